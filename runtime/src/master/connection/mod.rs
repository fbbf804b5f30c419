//! The connection of one worker, from its handshake to its end: frames are read batch by batch, and written.

use super::address;
use super::input::{MasterHandle, MasterInput};
use super::limits::{BATCH_MAX, HEARTBEAT};
use gristmill_scheduler::ids::WorkerId;
use gristmill_worker::http::{Duplex, ShownKey};
use gristmill_worker::protocol::{
    FrameReader, HELLO_BYTES_MAX, Hello, MasterFrame, PROTOCOL_VERSION, WORKER_FRAME_BYTES_MAX,
    WORKER_FRAME_MEMORY_MAX, WorkerFrame, write_frame,
};
use gristmill_worker::sanitize;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

/// Time limit for sending the last frames to a lost worker.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for a worker to close its end after the master has closed its own. Until then its host may have to receive lost
/// packets again, several times.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for the handshake of a connection.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of batches of frames of one worker that wait to be entered and settled.
const BATCHES_AHEAD: usize = 2;

/// Bytes of frames to one worker written at once.
const WRITE_BATCH_BYTES: usize = 256 << 10;

/// Interval at which a worker's token is checked again. It is also checked whenever a token is revoked.
const TOKEN_CHECK_PAUSE: Duration = Duration::from_secs(1);

/// Performs the handshake with a worker on a new connection and carries its frames until it is gone.
pub(super) async fn serve_worker(handle: MasterHandle, io: Duplex, peer: IpAddr, key: ShownKey) {
    let (reader, mut writer) = tokio::io::split(io);
    let mut reader = FrameReader::new(reader, HELLO_BYTES_MAX);
    let greeting = tokio::time::timeout(HELLO_TIMEOUT, reader.next());
    let Ok(Ok(Some(WorkerFrame::Hello(hello)))) = greeting.await else {
        tracing::debug!(%peer, "a connection did not introduce itself as a worker");
        return;
    };
    // It may have been revoked since the gate admitted the connection.
    if handle.tokens.find(&key.0).is_none() {
        refuse(&mut writer, "its token holds no more").await;
        return;
    }
    let (admitted, mut to_write) = match admit(&handle, hello, peer).await {
        Ok(admitted) => admitted,
        Err(Some(reason)) => {
            tracing::warn!(%peer, reason = sanitize::message(&reason), "refused a worker");
            return refuse(&mut writer, &reason).await;
        }
        // The master is ending. A worker that was not refused looks for the next one.
        Err(None) => return,
    };
    reader.set_limits(WORKER_FRAME_BYTES_MAX, WORKER_FRAME_MEMORY_MAX);
    let mut writing = tokio::spawn(async move { write_frames(&mut writer, &mut to_write).await });
    let goodbye = carry_frames(&handle, admitted, &key, &mut reader, &mut writing).await;
    let (worker, connection) = admitted;
    let _ = handle.inputs.send(MasterInput::Gone { worker, connection, goodbye });
    // Queued frames, such as the order to exit, are still sent, and may be in flight for long; the handle is held until
    // then. Incoming frames are read and dropped meanwhile. If unread bytes were left, or came later, the system would
    // reset the connection and discard what the worker has not yet received.
    let heard_out = async { while let Ok(Some(_)) = reader.next::<WorkerFrame>().await {} };
    let written = async {
        if !writing.is_finished() {
            let _ = writing.await;
        }
    };
    tokio::join!(written, async { tokio::time::timeout(CLOSE_TIMEOUT, heard_out).await.ok() });
}

/// Admits a worker. Returns its number and that of the connection, and the frames to be written. An `Err` is sent to
/// the worker, if it has a reason.
async fn admit(
    handle: &MasterHandle,
    mut hello: Hello,
    peer: IpAddr,
) -> Result<((WorkerId, u64), UnboundedReceiver<Vec<u8>>), Option<String>> {
    if hello.protocol != PROTOCOL_VERSION {
        return Err(Some(format!("it speaks protocol {} instead of {PROTOCOL_VERSION}", hello.protocol)));
    }
    hello.shuffle = address::of_peer(hello.shuffle, peer, handle.plaintext).await.map_err(Some)?;
    let (frames, to_write) = unbounded_channel();
    let (reply, joined) = oneshot::channel();
    let _ = handle.inputs.send(MasterInput::Join { hello, frames, reply });
    let admitted = joined.await.map_err(|_| None)?.map_err(Some)?;
    Ok((admitted, to_write))
}

async fn refuse(writer: &mut (impl AsyncWrite + Unpin), reason: &str) {
    let _ = write_frame(writer, &MasterFrame::Refused { reason: sanitize::message(reason) }).await;
}

/// Carries the frames of a worker to the master's loop until one side or the token ends. Returns true if the worker has
/// said goodbye.
async fn carry_frames(
    handle: &MasterHandle,
    (worker, connection): (WorkerId, u64),
    key: &ShownKey,
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    writing: &mut JoinHandle<()>,
) -> bool {
    let turns = Arc::new(Semaphore::new(BATCHES_AHEAD));
    let mut goodbye = false;
    let mut shutdown = handle.shutdown.subscribe();
    let mut changed = handle.tokens.changes();
    // It may have been revoked since the gate admitted it.
    changed.mark_changed();
    let mut check = tokio::time::interval(TOKEN_CHECK_PAUSE);
    loop {
        let next = async {
            // A worker that sends faster than the loop enters is not read further. The turn is acquired first: data
            // already read would be lost if this future were dropped while it waits.
            let turn = Arc::clone(&turns).acquire_owned().await;
            (reader.next().await, turn)
        };
        let (first, turn) = tokio::select! {
            next = next => next,
            // The worker is lost, or reads nothing: it may never close its end.
            _ = &mut *writing => return goodbye,
            _ = shutdown.wait_for(Option::is_some) => return goodbye,
            // It was revoked, or the grace period of its generation is over.
            () = token_to_be_checked(&mut changed, &mut check) => match handle.tokens.find(&key.0) {
                Some(_) => continue,
                None => {
                    tracing::warn!(%worker, token = sanitize::message(&key.0), "the token of a worker holds no more");
                    return goodbye;
                }
            },
        };
        let first = match first {
            Ok(Some(first)) => first,
            Ok(None) => return goodbye,
            Err(error) => {
                tracing::warn!(%worker, error = gristmill_worker::error_text::chain(&error), "refused what a worker said");
                return goodbye;
            }
        };
        let mut frames = vec![first];
        while frames.len() < BATCH_MAX
            && let Ok(Some(frame)) = reader.ready()
        {
            frames.push(frame);
        }
        goodbye |= matches!(frames.last(), Some(WorkerFrame::Goodbye));
        let Ok(turn) = turn else { return goodbye };
        if handle.inputs.send(MasterInput::Frames { worker, connection, frames, turn }).is_err() {
            return goodbye;
        }
    }
}

/// Waits until a token is to be checked again.
async fn token_to_be_checked(changed: &mut watch::Receiver<()>, check: &mut tokio::time::Interval) {
    tokio::select! {
        _ = changed.changed() => {}
        _ = check.tick() => {}
    }
}

/// Writes frames until the master has dropped the worker, several at once if they queue up. Then the connection is
/// closed, so that the worker notices. A worker that reads nothing cannot keep it open.
async fn write_frames(writer: &mut (impl AsyncWrite + Unpin), frames: &mut UnboundedReceiver<Vec<u8>>) {
    while let Some(mut batch) = frames.recv().await {
        while batch.len() < WRITE_BATCH_BYTES
            && let Ok(more) = frames.try_recv()
        {
            batch.extend_from_slice(&more);
        }
        let write = async {
            writer.write_all(&batch).await?;
            writer.flush().await
        };
        let given_up = async {
            while !frames.is_closed() {
                tokio::time::sleep(HEARTBEAT).await;
            }
            tokio::time::sleep(LAST_WORDS_TIMEOUT).await;
        };
        tokio::select! {
            biased;
            written = write => if written.is_err() { return },
            () = given_up => return,
        }
    }
    let _ = tokio::time::timeout(LAST_WORDS_TIMEOUT, writer.shutdown()).await;
}

#[cfg(test)]
mod tests;
