//! Frames as bytes of a connection: a length, followed by that many encoded bytes.

use super::{FRAME_BYTES_MAX, WORKER_FRAME_BYTES_MAX, WorkerFrame};
use crate::codec;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Memory that the lists of any other frame may take, per byte of the maximum frame.
const FRAME_MEMORY_FACTOR: usize = 4;

/// Error of a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum FrameError {
    /// The connection was closed or failed.
    #[error("the control connection broke")]
    Io {
        #[source]
        source: std::io::Error,
    },
    /// A length exceeds the limit.
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// Claimed length.
        length: u64,
        /// Allowed length.
        limit: u64,
    },
    /// The bytes are not a frame of this version.
    #[error("a frame of {length} bytes could not be read")]
    Decode {
        length: usize,
        #[source]
        source: codec::CodecError,
    },
}

/// Appends a frame to a buffer.
///
/// # Errors
/// A message that encodes to more than [`FRAME_BYTES_MAX`].
pub fn push_frame<T: Serialize>(frame: &T, buffer: &mut Vec<u8>) -> Result<(), FrameError> {
    push_within(frame, FRAME_BYTES_MAX, buffer)
}

/// Appends a worker's frame to a buffer.
///
/// # Errors
/// A message that encodes to more than [`WORKER_FRAME_BYTES_MAX`].
pub fn push_worker_frame(frame: &WorkerFrame, buffer: &mut Vec<u8>) -> Result<(), FrameError> {
    push_within(frame, WORKER_FRAME_BYTES_MAX, buffer)
}

fn push_within<T: Serialize>(frame: &T, limit: usize, buffer: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    codec::encode(frame, buffer);
    let length = buffer.len() - start - 4;
    if limit < length {
        buffer.truncate(start);
        return Err(FrameError::TooLong { length: length as u64, limit: limit as u64 });
    }
    buffer[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Bytes that a [`FrameReader`] requests from its connection at once.
const READ_BYTES: usize = 64 << 10;

/// Maximum size of a buffer that is kept after a long frame.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Frames of one connection: reads the available bytes and returns them frame by frame.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: R,
    /// Received bytes, not returned yet from `taken` on.
    buffer: Vec<u8>,
    taken: usize,
    limit: usize,
    /// Maximum memory of the lists of a frame, bytes.
    memory_max: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Creates a reader of frames of up to `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        let memory_max = limit.saturating_mul(FRAME_MEMORY_FACTOR);
        Self { reader, buffer: Vec::new(), taken: 0, limit, memory_max }
    }

    /// Changes the maximum length of frames.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.set_limits(limit, limit.saturating_mul(FRAME_MEMORY_FACTOR));
    }

    /// Changes the maximum length as `FrameReader::set_limit`, and the memory of a frame's lists.
    pub fn set_limits(&mut self, limit: usize, memory_max: usize) {
        self.limit = limit;
        self.memory_max = memory_max;
    }

    /// Returns the next frame; `None` when the peer has closed the connection between frames. Dropping the future
    /// before it completes loses nothing.
    ///
    /// # Errors
    /// A failed connection, a frame over the limit, bytes that do not decode.
    pub async fn next<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        loop {
            if let Some(frame) = self.ready()? {
                return Ok(Some(frame));
            }
            self.buffer.drain(..self.taken);
            self.taken = 0;
            if self.buffer.is_empty() && BUFFER_KEPT_BYTES < self.buffer.capacity() {
                self.buffer = Vec::new();
            }
            // The buffer grows with received bytes, so a false length costs its sender those bytes.
            self.buffer.reserve(READ_BYTES);
            let got = self.reader.read_buf(&mut self.buffer).await;
            if got.map_err(|source| FrameError::Io { source })? == 0 {
                return Ok(None);
            }
        }
    }

    /// Returns the next frame if it is complete.
    ///
    /// # Errors
    /// A frame over the limit, bytes that do not decode.
    pub fn ready<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some((head, rest)) = self.buffer[self.taken..].split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if self.limit < length {
            return Err(FrameError::TooLong { length: length as u64, limit: self.limit as u64 });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = codec::decode_message(body, self.memory_max)
            .map_err(|source| FrameError::Decode { length, source })?;
        self.taken += 4 + length;
        Ok(Some(frame))
    }
}

/// Writes one frame and flushes.
///
/// # Errors
/// A failed connection, or a frame that is too long.
pub async fn write_frame<T, W>(writer: &mut W, frame: &T) -> Result<(), FrameError>
where
    T: Serialize,
    W: AsyncWrite + Unpin,
{
    let mut buffer = Vec::new();
    push_frame(frame, &mut buffer)?;
    writer.write_all(&buffer).await.map_err(|source| FrameError::Io { source })?;
    writer.flush().await.map_err(|source| FrameError::Io { source })
}
