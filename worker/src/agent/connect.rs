//! Control connection of a worker: opening it, reconnecting until the greeting, writing to it.

use super::config::{WorkerConfig, WorkerError};
use super::end_requests::EndRequests;
use super::rejoin::MasterDoor;
use crate::error_text::chain;
use crate::http::{Duplex, Endpoint, HttpError};
use crate::protocol::{Hello, PROTOCOL_VERSION};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Pause between attempts to reach a master that does not run yet.
const JOIN_PAUSE: Duration = Duration::from_millis(250);

/// Opens the control connection, retrying until the timeout. Returns `None` if the worker is to leave:
/// before joining there is nothing to clean up.
pub(super) async fn join(
    config: &WorkerConfig,
    requests: &mut EndRequests,
) -> Result<Option<Duplex>, WorkerError> {
    let started = Instant::now();
    let mut said = Instant::now();
    let door = MasterDoor::from_config(config);
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

/// Returns the first frame of a worker of this age. `shuffle` is its shuffle endpoint.
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
