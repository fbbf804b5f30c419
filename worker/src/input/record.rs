//! Records and the blocks in which they come to a mapper, with their place in the input.

use super::border::first_record;
use super::error::InputError;
pub use super::format::RecordFormat;
use super::mapped::MappedFile;
use crate::text::is_plain;
use std::ops::Deref;
use std::sync::Arc;

/// Origin of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path of the file as the user named it; lossy if the name is not UTF-8.
    pub path: String,
    /// Index of the input in the plan, from 0.
    pub input: usize,
}

/// One record. Dereferences to its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: u64,
    pub(crate) source: &'a Source,
}

impl<'a> Record<'a> {
    /// Creates a record for tests of mappers. The engine creates its own.
    #[must_use]
    pub fn new(bytes: &'a [u8], offset: u64, source: &'a Source) -> Self {
        Self { bytes, offset, source }
    }

    /// Returns the record without its line end.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the record as text, bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }

    /// Returns the offset of the record's first byte in its file (after decompression). For a columnar
    /// table it only shows the order: rows of other row groups count for 64 MiB each.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the file that contains the record.
    #[must_use]
    pub fn source(&self) -> &'a Source {
        self.source
    }
}

impl Deref for Record<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// Whole records of one file, one after another, line ends included.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: u64,
    pub(crate) format: RecordFormat,
    pub(crate) source: &'a Source,
    /// Mapping of the file that contains the bytes, if there is one.
    pub(crate) mapping: Option<&'a Arc<MappedFile>>,
    /// True if its rows are plain, `None` if unknown.
    pub(crate) plain: Option<bool>,
    /// True if only a byte order mark is before it in its file.
    pub(crate) after_mark: bool,
}

impl<'a> Block<'a> {
    /// Creates a block for tests of mappers. The engine creates its own. `bytes` must hold whole records.
    #[must_use]
    pub fn new(bytes: &'a [u8], offset: u64, format: RecordFormat, source: &'a Source) -> Self {
        Self { bytes, offset, format, source, mapping: None, plain: None, after_mark: false }
    }

    /// Returns the bytes of all records with their line ends.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the offset of the first byte in its file (after decompression).
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// True if only a byte order mark is before it in its file.
    #[must_use]
    pub fn is_after_mark(&self) -> bool {
        self.after_mark
    }

    /// Returns the file that contains the block.
    #[must_use]
    pub fn source(&self) -> &'a Source {
        self.source
    }

    /// Returns the format of the records.
    #[must_use]
    pub fn format(&self) -> RecordFormat {
        self.format
    }

    /// True if it contains no quote and no carriage return. Then
    /// [`for_each_plain_row`](crate::text::for_each_plain_row) splits rows of a table faster.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.plain.unwrap_or_else(|| is_plain(self.bytes))
    }

    /// Returns the records, in order.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records::new(*self)
    }
}

/// Iterates over the records of a block, without their line ends, in order. The last record may lack its line end.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    block: Block<'a>,
    at: usize,
}

impl<'a> Records<'a> {
    /// Creates an iterator over the records of this block.
    #[must_use]
    pub fn new(block: Block<'a>) -> Self {
        Self { block, at: 0 }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let rest = &self.block.bytes[self.at..];
            if rest.is_empty() {
                return None;
            }
            let (length, content) = match first_record(self.block.format, rest) {
                Some(ended) => (ended.length, ended.content),
                None => (rest.len(), rest.len()),
            };
            let offset = self.block.offset + self.at as u64;
            self.at += length;
            // An empty line is a record of a text, but not a row of a table.
            if content == 0 && matches!(self.block.format, RecordFormat::Csv { .. }) {
                continue;
            }
            return Some(Record { bytes: &rest[..content], offset, source: self.block.source });
        }
    }
}

/// Blocks of one split, in order.
pub trait Blocks {
    /// Returns the next block, never empty; `None` after the last.
    ///
    /// # Errors
    /// Input that cannot be read or is not as planned. The reader must not be used after an error.
    fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError>;
}
