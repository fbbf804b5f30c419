//! Reader of the recovery file of an earlier master of the state directory.

use super::RecoveryLine;
use super::record::{BESIDE, FACTS, HEADER};
use crate::journal::checked::CheckedReader;
use crate::journal::{CheckedReadError, JournalHeader, SCHEMA};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Error for which a master cannot recover from its journal.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum RecallError {
    /// The file cannot be opened.
    #[error("it cannot be opened")]
    Open {
        #[source]
        source: io::Error,
    },
    /// A damaged line.
    #[error(transparent)]
    Read { source: CheckedReadError },
    /// A line that is invalid for this program.
    #[error("the line that ends at byte {offset} cannot be understood: {reason}")]
    Line {
        /// Offset of its end.
        offset: u64,
        /// Description of the error.
        reason: String,
    },
    /// The facts lead to other orders than those recorded.
    #[error(
        "the facts that end at byte {offset} now lead to other orders than those that were given: {what}"
    )]
    Differs {
        /// Offset of the end of the line.
        offset: u64,
        /// The first order that differs.
        what: String,
    },
}

/// A journal that is being read.
pub(in crate::master) struct Recalled {
    lines: CheckedReader<BufReader<File>>,
    pub(in crate::master) header: JournalHeader,
}

/// Opens a journal and reads its header. `None` if the file does not exist, or ends within its first line.
pub(in crate::master) fn recall(path: &Path) -> Result<Option<Recalled>, RecallError> {
    let mut lines = match CheckedReader::open(path) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RecallError::Open { source }),
    };
    let header = match lines.next().map_err(|source| RecallError::Read { source })? {
        None => return Ok(None),
        Some(line) if line.letter == HEADER => serde_json::from_slice::<JournalHeader>(line.json),
        Some(_) => {
            let reason = "it is no header".to_owned();
            return Err(RecallError::Line { offset: lines.offset(), reason });
        }
    };
    let wrong = |reason| RecallError::Line { offset: lines.offset(), reason };
    let header = header.map_err(|error| wrong(error.to_string()))?;
    if header.schema != SCHEMA {
        return Err(wrong(format!("schema {} is not {SCHEMA}", header.schema)));
    }
    Ok(Some(Recalled { lines, header }))
}

impl Recalled {
    /// The next line; `None` at the end.
    pub(in crate::master) fn next(&mut self) -> Result<Option<RecoveryLine>, RecallError> {
        let line = self.lines.next().map_err(|source| RecallError::Read { source })?;
        let Some(line) = line else { return Ok(None) };
        let read = match line.letter {
            FACTS => serde_json::from_slice(line.json).map(RecoveryLine::Facts),
            BESIDE => serde_json::from_slice(line.json).map(RecoveryLine::Beside),
            other => Err(serde::de::Error::custom(format!("{other} is no kind of line"))),
        };
        let offset = self.lines.offset();
        read.map(Some).map_err(|error| RecallError::Line { offset, reason: error.to_string() })
    }

    /// Bytes of whole lines read so far.
    pub(in crate::master) fn offset(&self) -> u64 {
        self.lines.offset()
    }

    /// Bytes of an incomplete last line; known after the end.
    pub(in crate::master) fn torn(&self) -> u64 {
        self.lines.torn()
    }
}
