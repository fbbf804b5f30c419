//! Records, blocks of records, and the four ways files fall into records.

use super::local::MappedFile;
use super::records::Records;
use crate::text::is_plain;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;

/// How a file falls into records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RecordFormat {
    /// A record is a line without its `\n`; the last line may lack it. A `\r` stays part of the line.
    Lines,
    /// A record is one row as in RFC 4180, raw (quotes still in place), without its line end (`\n` or `\r\n`).
    Csv {
        /// The byte between fields.
        delimiter: u8,
        /// Whether the first record of each file is a header, which is not handed to mappers.
        header: bool,
    },
    /// A record is exactly this many bytes.
    Fixed {
        /// Bytes of a record, at least 1.
        length: u32,
    },
    /// A record is a whole file, to its last byte. An empty file is none.
    WholeFile,
}

/// Where a block comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file as the user would name it; lossy if the name is not UTF-8.
    pub path: String,
    /// Which input of the plan it belongs to, from 0.
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
    /// For tests of mappers; the engine makes its own.
    #[must_use]
    pub fn new(bytes: &'a [u8], offset: u64, source: &'a Source) -> Self {
        Self { bytes, offset, source }
    }

    /// The record without its line end.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The record as text, bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }

    /// Position of the record's first byte in its file (after decompression). Of a table by columns it only tells the order:
    /// rows of other row groups count for 64 MiB each.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The file the record comes from.
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
    /// The map of the file in which the bytes lie, if they do.
    pub(crate) mapping: Option<&'a Arc<MappedFile>>,
    /// Whether its rows are plain, if that is known.
    pub(crate) plain: Option<bool>,
    /// Nothing but a byte order mark lies before it in its file.
    pub(crate) after_mark: bool,
}

impl<'a> Block<'a> {
    /// For tests of mappers; the engine makes its own. `bytes` must hold whole records.
    #[must_use]
    pub fn new(bytes: &'a [u8], offset: u64, format: RecordFormat, source: &'a Source) -> Self {
        Self { bytes, offset, format, source, mapping: None, plain: None, after_mark: false }
    }

    /// The bytes of all records with their line ends.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Position of the first byte in its file (after decompression).
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// True if nothing but a byte order mark lies before it in its file.
    #[must_use]
    pub fn is_after_mark(&self) -> bool {
        self.after_mark
    }

    /// The file the block comes from.
    #[must_use]
    pub fn source(&self) -> &'a Source {
        self.source
    }

    /// How the block falls into records.
    #[must_use]
    pub fn format(&self) -> RecordFormat {
        self.format
    }

    /// Whether there is no quote and no carriage return in it: then
    /// [`for_each_plain_row`](crate::text::for_each_plain_row) takes rows of a table apart faster.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.plain.unwrap_or_else(|| is_plain(self.bytes))
    }

    /// The records, in order.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records::new(*self)
    }
}
