//! The control connection of a worker: found, kept up to the greeting, written to.

use super::rejoin::MasterDoor;
use super::{EndRequests, WorkerConfig, WorkerError, chain};
use crate::http::{Duplex, Endpoint, HttpError};
use crate::protocol::{FRAME_BYTES_MAX, FrameReader, Hello, MasterFrame, PROTOCOL_VERSION};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, channel};

/// How long a worker waits between attempts to reach a master that is not there yet.
const JOIN_PAUSE: Duration = Duration::from_millis(250);

/// Frames that wait to be written before the loop writes them in one go, bytes.
const WRITE_BATCH_BYTES: usize = 256 << 10;

/// Frames that are handed to the loop in one go.
const READ_BATCH_MAX: usize = 256;

/// Batches of frames that wait for the loop; more stay in the connection.
const READ_BATCHES_AHEAD: usize = 4;

/// Opens the control connection, trying until the patience ends. `None` if it is to go:
/// a worker that has not joined has nothing to put in order.
pub(super) async fn join(
    config: &WorkerConfig,
    requests: &mut EndRequests,
) -> Result<Option<Duplex>, WorkerError> {
    let started = Instant::now();
    let mut said = Instant::now();
    let door = MasterDoor::of(config);
    loop {
        let tried = tokio::select! {
            tried = door.connect() => tried,
            () = requests.to_go() => return Ok(None),
        };
        let source = match tried {
            Ok(io) => return Ok(Some(io)),
            Err(source) => source,
        };
        let master = config.master.clone();
        if matches!(source, HttpError::Unauthorized { .. } | HttpError::Forbidden { .. }) {
            return Err(WorkerError::Unauthorised { master });
        }
        let for_now = matches!(
            source,
            HttpError::Connect { .. }
                | HttpError::Timeout { .. }
                | HttpError::Closed { .. }
                | HttpError::Crowded { .. }
        );
        if !for_now {
            let reason = chain(&source);
            return Err(WorkerError::Refused { master, reason });
        }
        if config.join_patience < started.elapsed() {
            let seconds = config.join_patience.as_secs();
            return Err(WorkerError::Unreachable { master, seconds, source: Box::new(source) });
        }
        if Duration::from_secs(5) < said.elapsed() {
            said = Instant::now();
            tracing::warn!(%master, "master not reachable yet, still trying");
        }
        tokio::time::sleep(JOIN_PAUSE).await;
    }
}

/// What a worker says first, when it has lived so long; `shuffle` is where it serves segments.
pub(super) fn introduction(config: &WorkerConfig, shuffle: Endpoint, lived: Duration) -> Hello {
    Hello {
        protocol: PROTOCOL_VERSION,
        build: config.build.clone(),
        slots: config.settings.slots,
        speed: config.settings.speed,
        nic_bytes_per_second: config.settings.nic_bytes_per_second.map(NonZeroU64::get),
        shuffle,
        host: config.host.clone(),
        pid: std::process::id(),
        ended_proof: config.ended_proof.clone(),
        memory_bytes: config.settings.memory.get(),
        worker_ns: lived.as_nanos() as u64,
        rejoin: None,
    }
}

/// Writes encoded frames as they come, several at once when they queue up.
pub(super) async fn write_frames(mut writer: WriteHalf<Duplex>, mut frames: UnboundedReceiver<Vec<u8>>) {
    while let Some(mut batch) = frames.recv().await {
        while batch.len() < WRITE_BATCH_BYTES
            && let Ok(more) = frames.try_recv()
        {
            batch.extend_from_slice(&more);
        }
        if writer.write_all(&batch).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

/// Reads frames in a task of its own, as much as has come at a time: a frame half read must not be lost when
/// something else happens. The channel closes with the connection.
pub(super) fn read_frames(mut reader: FrameReader<ReadHalf<Duplex>>) -> Receiver<Vec<MasterFrame>> {
    reader.set_limit(FRAME_BYTES_MAX);
    let (orders, incoming) = channel(READ_BATCHES_AHEAD);
    tokio::spawn(async move {
        while let Some(batch) = next_batch(&mut reader).await {
            if orders.send(batch).await.is_err() {
                return;
            }
        }
    });
    incoming
}

/// `None` at the end of the connection.
async fn next_batch(reader: &mut FrameReader<ReadHalf<Duplex>>) -> Option<Vec<MasterFrame>> {
    let mut batch = vec![reader.next().await.ok()??];
    while batch.len() < READ_BATCH_MAX
        && let Ok(Some(frame)) = reader.ready()
    {
        batch.push(frame);
    }
    Some(batch)
}
