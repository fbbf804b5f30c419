//! The frames of the control connection, read and written in batches.

use crate::http::Duplex;
use crate::protocol::{FRAME_BYTES_MAX, FrameReader, MasterFrame};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, channel};

/// Bytes of frames that are queued before the loop writes them together.
const WRITE_BATCH_BYTES: usize = 256 << 10;

/// Maximum number of frames passed to the loop together.
const READ_BATCH_MAX: usize = 256;

/// Maximum number of batches of frames that wait for the loop. Further ones stay in the connection.
const READ_BATCHES_AHEAD: usize = 4;

/// Writes encoded frames as they arrive, several at once when they queue up.
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

/// Reads frames in a separate task, as many as have arrived at a time, so that a partially read frame is
/// never lost when another event occurs. The channel closes with the connection.
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

/// Returns the next batch; `None` at the end of the connection.
async fn next_batch(reader: &mut FrameReader<ReadHalf<Duplex>>) -> Option<Vec<MasterFrame>> {
    let mut batch = vec![reader.next().await.ok()??];
    while batch.len() < READ_BATCH_MAX
        && let Ok(Some(frame)) = reader.ready()
    {
        batch.push(frame);
    }
    Some(batch)
}
