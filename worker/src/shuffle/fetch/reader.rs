//! Response of a fetch as a stream, split at the reader's positions.

use crate::http::{Answer, HttpError};
use crate::shuffle::pace::{PacedStream, Preempted};
use bytes::{Buf, Bytes};
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a buffer that is allocated before any of its bytes has arrived.
const READ_BYTES_FIRST: usize = 1 << 20;

/// Response as a stream, split at the reader's positions.
pub(super) struct AnswerReader<'a> {
    pub(super) body: Answer,
    pub(super) ready: Bytes,
    /// Pacing of its bytes.
    pub(super) stream: Option<&'a PacedStream>,
    /// Counter of received bytes.
    pub(super) received: &'a AtomicU64,
}

impl AnswerReader<'_> {
    /// Passes the next `length` bytes to `take`, in slices as they arrive.
    pub(super) async fn read(
        &mut self,
        mut length: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), AnswerReadError>,
    ) -> Result<(), AnswerReadError> {
        while 0 < length {
            if self.ready.is_empty() {
                let piece =
                    self.body.chunk().await.map_err(AnswerReadError::Http)?.ok_or(AnswerReadError::Short)?;
                self.received.fetch_add(piece.len() as u64, Ordering::Relaxed);
                if let Some(stream) = self.stream {
                    stream.pass(piece.len() as u64).await?;
                }
                self.ready = piece;
            }
            let size = (self.ready.len() as u64).min(length) as usize;
            take(&self.ready[..size])?;
            self.ready.advance(size);
            length -= size as u64;
        }
        Ok(())
    }

    pub(super) async fn read_vec(&mut self, length: usize) -> Result<Vec<u8>, AnswerReadError> {
        let mut all = Vec::with_capacity(length.min(READ_BYTES_FIRST));
        self.read(length as u64, |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// Reads the end after the segments, so that the connection can be reused. Without an end there, it is not reused.
    pub(super) async fn end(mut self) -> Result<(), HttpError> {
        if self.ready.is_empty() { self.body.chunk().await.map(drop) } else { Ok(()) }
    }
}

/// Error of reading the response.
pub(super) enum AnswerReadError {
    Http(HttpError),
    /// It ended before all segments announced in its head.
    Short,
    Preempted,
    Disk(std::io::Error),
}

impl From<Preempted> for AnswerReadError {
    fn from(Preempted: Preempted) -> Self {
        AnswerReadError::Preempted
    }
}
