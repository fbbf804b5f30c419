//! The bytes of a table's file for the crates that decode it: any range of them, from wherever the file is.
//!
//! What keeps a range from coming is kept for whoever asked for rows, as the crates turn it into text. So are the last ranges of
//! a file far away: a header is read with what follows it, and a dictionary is looked at before it is decoded.

use crate::input::local::LocalFile;
use crate::input::{InputError, OpenFile, RangeRead};
use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are read at once where nobody says how many will be wanted.
const READ_BYTES: usize = 64 << 10;

/// Bytes of ranges that are kept of a file that is fetched.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// A file whose ranges are read in any order.
#[derive(Clone)]
pub(super) struct TableBytes {
    size: u64,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    file: TableFile,
    /// The last ranges that were fetched, each with its place, the oldest first; no more than [`KEPT_BYTES_MAX`] of them.
    kept: VecDeque<(u64, Bytes)>,
    /// Why a range could not be read, or is not to be.
    failure: Option<InputError>,
}

enum TableFile {
    Local(LocalFile),
    Ranges(Box<dyn RangeRead>),
}

impl TableBytes {
    pub fn new(file: OpenFile, size: u64) -> Self {
        let file = match file {
            OpenFile::Local(file) => TableFile::Local(file),
            OpenFile::Read(file) | OpenFile::Remote(file) => TableFile::Ranges(file),
        };
        let kept = VecDeque::new();
        Self { size, shared: Arc::new(Mutex::new(Shared { file, kept, failure: None })) }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What kept a range from being read, if anything did.
    pub fn take_failure(&self) -> Option<InputError> {
        self.shared().failure.take()
    }

    /// Keeps why what was asked for is refused, for whoever asked for rows.
    pub fn fail(&self, failure: InputError) {
        self.shared().failure = Some(failure);
    }

    pub fn verify_unchanged(&self) -> Result<(), InputError> {
        match &mut self.shared().file {
            TableFile::Local(file) => file.verify_unchanged(),
            TableFile::Ranges(file) => file.verify_unchanged(),
        }
    }

    /// Exactly this range.
    pub fn range(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.size);
        // Before anything is made room for.
        let end =
            end.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "it ends before its data"))?;
        let mut shared = self.shared();
        if let Some(kept) = shared.kept(start, end) {
            return Ok(kept);
        }
        match &mut shared.file {
            TableFile::Local(file) => Ok(Bytes::copy_from_slice(&file.bytes()[start as usize..end as usize])),
            TableFile::Ranges(file) => {
                let mut buffer = vec![0; length];
                if let Err(failure) = file.read_at(start, &mut buffer) {
                    shared.failure = Some(failure);
                    return Err(io::Error::other("a range of it could not be read"));
                }
                let bytes = Bytes::from(buffer);
                shared.keep(start, &bytes);
                Ok(bytes)
            }
        }
    }
}

impl Shared {
    /// A range that lies within one that is kept.
    fn kept(&self, start: u64, end: u64) -> Option<Bytes> {
        let around = |&&(at, ref bytes): &&(u64, Bytes)| at <= start && end <= at + bytes.len() as u64;
        let (at, bytes) = self.kept.iter().rev().find(around)?;
        Some(bytes.slice((start - at) as usize..(end - at) as usize))
    }

    fn keep(&mut self, start: u64, bytes: &Bytes) {
        if KEPT_BYTES_MAX < bytes.len() {
            return;
        }
        self.kept.push_back((start, bytes.clone()));
        let mut held: usize = self.kept.iter().map(|(_, bytes)| bytes.len()).sum();
        while KEPT_BYTES_MAX < held {
            held -= self.kept.pop_front().map_or(held, |(_, bytes)| bytes.len());
        }
    }
}

impl Length for TableBytes {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for TableBytes {
    type T = TableReader;

    fn get_read(&self, start: u64) -> Result<TableReader> {
        Ok(TableReader::new(self.clone(), start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        Ok(self.range(start, length)?)
    }
}

/// Reads a file from a place on.
pub(super) struct TableReader {
    bytes: TableBytes,
    at: u64,
    /// What was read already from `at` on.
    ahead: io::Cursor<Bytes>,
}

impl TableReader {
    pub fn new(bytes: TableBytes, at: u64) -> Self {
        Self { bytes, at, ahead: io::Cursor::default() }
    }

    /// The next bytes, so many if the file has them, which are read all the same.
    pub fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        let left = usize::try_from(self.bytes.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = length.min(left);
        if self.ahead.get_ref().len() as u64 - self.ahead.position() < wanted as u64 {
            self.ahead = io::Cursor::new(self.bytes.range(self.at, wanted)?);
        }
        Ok(&self.ahead.get_ref()[self.ahead.position() as usize..])
    }
}

impl Read for TableReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ahead.position() == self.ahead.get_ref().len() as u64 {
            let left = self.bytes.size.saturating_sub(self.at);
            let length = (out.len().max(READ_BYTES) as u64).min(left);
            self.ahead = io::Cursor::new(self.bytes.range(self.at, length as usize)?);
        }
        let count = self.ahead.read(out)?;
        self.at += count as u64;
        Ok(count)
    }
}
