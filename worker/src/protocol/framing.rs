//! Frames as bytes of a connection: a length and that many encoded bytes.

use super::{FRAME_BYTES_MAX, WORKER_FRAME_BYTES_MAX, WorkerFrame};
use crate::codec;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Memory that the lists of any other frame may take, for each byte that a frame may have.
const FRAME_MEMORY_FACTOR: usize = 4;

/// A connection that does not speak as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum FrameError {
    /// The connection broke.
    #[error("the control connection broke")]
    Io {
        #[source]
        source: std::io::Error,
    },
    /// A length beyond the limit.
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// As claimed.
        length: u64,
        /// As allowed.
        limit: u64,
    },
    /// Bytes that are no frame of this version.
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

/// Bytes that a [`FrameReader`] asks its connection for at once.
const READ_BYTES: usize = 64 << 10;

/// A buffer that a long frame made longer than this is not kept.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Frames of one connection: reads as much as has come and hands it out frame by frame.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: R,
    /// Bytes that have come, from `taken` on not handed out yet.
    buffer: Vec<u8>,
    taken: usize,
    limit: usize,
    /// Memory that the lists of a frame may take, bytes.
    memory_max: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// A reader of frames of up to `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        let memory_max = limit.saturating_mul(FRAME_MEMORY_FACTOR);
        Self { reader, buffer: Vec::new(), taken: 0, limit, memory_max }
    }

    /// Longer frames are allowed from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.set_limits(limit, limit.saturating_mul(FRAME_MEMORY_FACTOR));
    }

    /// As [`FrameReader::set_limit`], and the lists of a frame may take this memory.
    pub fn set_limits(&mut self, limit: usize, memory_max: usize) {
        self.limit = limit;
        self.memory_max = memory_max;
    }

    /// The next frame; `None` when the other side has closed between frames. Nothing is lost when this is
    /// dropped before it is ready.
    ///
    /// # Errors
    /// A broken connection, a frame over the limit, bytes that do not decode.
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
            // The buffer grows with what arrives, so a lying length costs its sender the bytes.
            self.buffer.reserve(READ_BYTES);
            let got = self.reader.read_buf(&mut self.buffer).await;
            if got.map_err(|source| FrameError::Io { source })? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next frame if all of it has come.
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
/// A broken connection, or a frame that is too long.
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
