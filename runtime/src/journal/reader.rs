//! Reader of a journal, line by line.
//!
//! A killed master leaves an incomplete last line: it is skipped and reported by [`JournalReader::torn`]. Any other
//! invalid line is an error with its number.

use super::{JournalHeader, JournalRecord, SCHEMA};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longest line, bytes: the arrival of a job of a few million maps.
pub const LINE_BYTES_MAX: u64 = 512 << 20;

/// Error of reading a journal. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum JournalReadError {
    /// The file does not exist, or is not readable.
    #[error("could not open the journal")]
    Open {
        #[source]
        source: io::Error,
    },
    /// The file system failed.
    #[error("could not read line {line}")]
    Io {
        /// Number of the line.
        line: u64,
        #[source]
        source: io::Error,
    },
    /// The first line does not start a journal.
    #[error("this is no journal of gristmill: its first line is no header")]
    NoJournal {
        /// The cause; `None` if there is no whole line at all.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The journal is of another version of this program.
    #[error("this is a journal of schema {found}, and only schema {SCHEMA} can be read")]
    Schema {
        /// The one in the header.
        found: u64,
    },
    /// A line is longer than [`LINE_BYTES_MAX`].
    #[error("line {line} has more than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Number of the line.
        line: u64,
    },
    /// A line is not a valid record.
    #[error("line {line} is no record of a journal")]
    Line {
        /// Number of the line.
        line: u64,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

/// Reads a journal.
#[derive(Debug)]
pub struct JournalReader<R> {
    source: R,
    header: JournalHeader,
    /// Number of the last line read.
    line: u64,
    torn: Option<u64>,
    buffer: Vec<u8>,
}

/// The header's version, without its other fields.
#[derive(serde::Deserialize)]
struct Version {
    schema: u64,
}

impl JournalReader<BufReader<File>> {
    /// Opens a journal and reads its header.
    ///
    /// # Errors
    /// As [`JournalReader::new`].
    pub fn open(path: &Path) -> Result<Self, JournalReadError> {
        let file = File::open(path).map_err(|source| JournalReadError::Open { source })?;
        Self::new(BufReader::new(file))
    }
}

impl<R: BufRead> JournalReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// A file that is not a journal, a journal of another schema, and errors of the source.
    pub fn new(mut source: R) -> Result<Self, JournalReadError> {
        let mut buffer = Vec::new();
        if !line_of(&mut source, 1, &mut buffer)? {
            return Err(JournalReadError::NoJournal { source: None });
        }
        let none = |source| JournalReadError::NoJournal { source: Some(source) };
        let Version { schema } = serde_json::from_slice(&buffer).map_err(none)?;
        if schema != u64::from(SCHEMA) {
            return Err(JournalReadError::Schema { found: schema });
        }
        let header = serde_json::from_slice(&buffer).map_err(none)?;
        Ok(Self { source, header, line: 1, torn: None, buffer })
    }

    /// The first line.
    #[must_use]
    pub fn header(&self) -> &JournalHeader {
        &self.header
    }

    /// Line number of the last record read, counted from 1, which is the header.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Number of the last line, if it is incomplete; known after the end.
    #[must_use]
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// A line that is not a valid record, or an error of the source.
    pub fn record(&mut self) -> Result<Option<JournalRecord>, JournalReadError> {
        let line = self.line + 1;
        self.buffer.clear();
        if !line_of(&mut self.source, line, &mut self.buffer)? {
            return Ok(None);
        }
        match serde_json::from_slice(&self.buffer) {
            Ok(record) => {
                self.line = line;
                Ok(Some(record))
            }
            // Only a writer that was killed leaves an incomplete line.
            Err(_) if self.buffer.last() != Some(&b'\n') => {
                self.torn = Some(line);
                Ok(None)
            }
            Err(source) => Err(JournalReadError::Line { line, source }),
        }
    }
}

/// Reads one line with its line break, if it has one. Returns false at the end.
fn line_of(source: &mut impl BufRead, line: u64, buffer: &mut Vec<u8>) -> Result<bool, JournalReadError> {
    let read = source.take(LINE_BYTES_MAX + 1).read_until(b'\n', buffer);
    let read = read.map_err(|source| JournalReadError::Io { line, source })?;
    if LINE_BYTES_MAX < read as u64 {
        return Err(JournalReadError::TooLong { line });
    }
    Ok(0 < read)
}
