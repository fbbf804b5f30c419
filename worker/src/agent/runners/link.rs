//! Frames over the socket between a worker and one of its runners, without a runtime: both ends are plain
//! threads.

use crate::codec;
use crate::protocol::{FRAME_BYTES_MAX, WORKER_FRAME_BYTES_MAX, WORKER_FRAME_MEMORY_MAX, push_frame};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Timeout for the other side to read a frame.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Buffer size above which a buffer is released after a long frame.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Result of a read.
pub(super) enum Heard<T> {
    Frame(T),
    /// No complete frame yet.
    Nothing,
    /// The other side has closed the socket.
    End,
}

/// One end of the socket.
pub(super) struct RunnerLink {
    socket: UnixStream,
    buffer: Vec<u8>,
    /// Maximum bytes of a received frame, and of the memory for its lists.
    limits: (usize, usize),
}

impl RunnerLink {
    /// Creates the runner's end: the description of a job is the longest frame.
    pub(super) fn of_runner(socket: UnixStream) -> io::Result<Self> {
        Self::new(socket, (FRAME_BYTES_MAX, 4 * FRAME_BYTES_MAX))
    }

    /// Creates the worker's end: reports of a shipped program have the same limits as frames of workers.
    pub(super) fn of_worker(socket: UnixStream) -> io::Result<Self> {
        Self::new(socket, (WORKER_FRAME_BYTES_MAX, WORKER_FRAME_MEMORY_MAX))
    }

    fn new(socket: UnixStream, limits: (usize, usize)) -> io::Result<Self> {
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self { socket, buffer: Vec::new(), limits })
    }

    /// Returns the same socket for another thread that only sends.
    pub(super) fn speaker(&self) -> io::Result<Self> {
        Self::new(self.socket.try_clone()?, self.limits)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The frame is too long, or the socket is blocked.
    pub(super) fn say<T: Serialize>(&mut self, frame: &T) -> io::Result<()> {
        let mut bytes = Vec::new();
        push_frame(frame, &mut bytes).map_err(io::Error::other)?;
        self.socket.write_all(&bytes)
    }

    /// Reads a frame, waiting at most `patience`.
    ///
    /// # Errors
    /// The bytes are not a valid frame.
    pub(super) fn hear<T: DeserializeOwned>(&mut self, patience: Duration) -> io::Result<Heard<T>> {
        if let Some(frame) = self.take()? {
            return Ok(Heard::Frame(frame));
        }
        self.socket.set_read_timeout(Some(patience))?;
        let had = self.buffer.len();
        self.buffer.resize(had + READ_BYTES, 0);
        let got = self.socket.read(&mut self.buffer[had..]);
        self.buffer.truncate(had + *got.as_ref().unwrap_or(&0));
        match got {
            Ok(0) => Ok(Heard::End),
            Ok(_) => Ok(self.take()?.map_or(Heard::Nothing, Heard::Frame)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
                    Ok(Heard::Nothing)
                }
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Ok(Heard::End),
                _ => Err(error),
            },
        }
    }

    /// Returns the next frame if it is complete.
    fn take<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some((head, rest)) = self.buffer.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        let (bytes_max, memory_max) = self.limits;
        if length > bytes_max {
            let words = format!("a frame of {length} bytes is over the limit of {bytes_max}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = codec::decode_message(body, memory_max)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.buffer.drain(..4 + length);
        if self.buffer.is_empty() && BUFFER_KEPT_BYTES < self.buffer.capacity() {
            self.buffer = Vec::new();
        }
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    fn pair() -> (RunnerLink, RunnerLink, UnixStream) {
        let (one, other) = UnixStream::pair().unwrap();
        let raw = one.try_clone().unwrap();
        (RunnerLink::of_runner(one).unwrap(), RunnerLink::of_worker(other).unwrap(), raw)
    }

    #[test]
    fn frames_come_whole_however_they_are_cut() {
        let (mut one, mut other, mut raw) = pair();
        assert!(matches!(other.hear::<String>(SHORT).unwrap(), Heard::Nothing));
        let mut bytes = Vec::new();
        push_frame(&"first", &mut bytes).unwrap();
        push_frame(&"second", &mut bytes).unwrap();
        for cut in 1..bytes.len() {
            raw.write_all(&bytes[..cut]).unwrap();
            let mut heard = Vec::new();
            let mut hear = || match other.hear::<String>(SHORT).unwrap() {
                Heard::Frame(frame) => heard.push(frame),
                Heard::Nothing => {}
                Heard::End => panic!("ended"),
            };
            (0..3).for_each(|_| hear());
            raw.write_all(&bytes[cut..]).unwrap();
            (0..3).for_each(|_| hear());
            assert_eq!(heard, ["first", "second"], "cut at {cut}");
        }
        one.say(&"third").unwrap();
        drop((one, raw));
        assert!(matches!(other.hear::<String>(SHORT).unwrap(), Heard::Frame(frame) if frame == "third"));
        assert!(matches!(other.hear::<String>(SHORT).unwrap(), Heard::End));
    }

    #[test]
    fn what_is_no_frame_is_an_error_and_takes_no_memory() {
        let (_one, mut other, mut raw) = pair();
        raw.write_all(&(WORKER_FRAME_BYTES_MAX as u32 + 1).to_le_bytes()).unwrap();
        assert!(other.hear::<String>(SHORT).is_err());
        let (_one, mut other, mut raw) = pair();
        raw.write_all(&[2, 0, 0, 0, 255, 255]).unwrap();
        assert!(other.hear::<String>(SHORT).is_err());
    }
}
