//! Bytes of a table's file for the crates that decode it: any range of them, from a local file or over
//! the network.
//!
//! The crates turn an error of reading into text. The error itself is stored here, so that a lost
//! connection is not reported as a damaged file.

use bytes::Bytes;
use gristmill_worker::input::{ByteSource, InputError};
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are read for a header, whose length is unknown. The bytes after it are mostly the page that
/// is read next.
const HEADER_BYTES: usize = 64 << 10;

/// File whose ranges are read in any order.
#[derive(Clone)]
pub(crate) struct TableBytes {
    size: u64,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    file: Box<dyn ByteSource>,
    /// Last header that was fetched, with its offset.
    header: (u64, Vec<u8>),
    /// Error of a range that could not be read.
    failure: Option<InputError>,
}

impl TableBytes {
    pub fn new(file: Box<dyn ByteSource>, size: u64) -> Self {
        let shared = Shared { file, header: (0, Vec::new()), failure: None };
        Self { size, shared: Arc::new(Mutex::new(shared)) }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error of a range that could not be read, once.
    pub fn take_failure(&self) -> Option<InputError> {
        self.shared().failure.take()
    }

    pub fn verify_unchanged(&self) -> Result<(), InputError> {
        self.shared().file.verify_unchanged()
    }
}

impl Shared {
    /// Fills `out` with the bytes from `start` on, which are within the file.
    fn read_at(&mut self, start: u64, out: &mut [u8]) -> io::Result<()> {
        let (at, header) = &mut self.header;
        let kept = start.checked_sub(*at).and_then(|from| header.get(from as usize..)?.get(..out.len()));
        if let Some(kept) = kept {
            out.copy_from_slice(kept);
            return Ok(());
        }
        if let Err(failure) = self.file.read_at(start, out) {
            self.failure = Some(failure);
            return Err(io::Error::other("a range of it could not be read"));
        }
        if self.file.is_remote() && out.len() <= HEADER_BYTES {
            (*at, *header) = (start, out.to_vec());
        }
        Ok(())
    }
}

impl Length for TableBytes {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for TableBytes {
    type T = BufReader<TableReader>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(HEADER_BYTES, TableReader { bytes: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Checked before memory is allocated for them.
        if start.checked_add(length as u64).is_none_or(|end| self.size < end) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; length];
        self.shared().read_at(start, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// Reads a file from any offset on.
pub(crate) struct TableReader {
    bytes: TableBytes,
    at: u64,
}

impl TableReader {
    pub fn new(bytes: TableBytes) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Read for TableReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.size.saturating_sub(self.at);
        let length = (out.len() as u64).min(left) as usize;
        self.bytes.shared().read_at(self.at, &mut out[..length])?;
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for TableReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.bytes.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
