//! The four formats of records in files.

use serde::{Deserialize, Serialize};

/// Format of the records of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RecordFormat {
    /// A record is a line without its `\n`; the last line may lack it. A `\r` stays part of the line.
    Lines,
    /// A record is one row as in RFC 4180, raw (quotes still in place), without its line end (`\n` or `\r\n`).
    Csv {
        /// The byte between fields.
        delimiter: u8,
        /// True if the first record of each file is a header, which is not passed to mappers.
        header: bool,
    },
    /// A record is exactly this many bytes.
    Fixed {
        /// Bytes of a record, at least 1.
        length: u32,
    },
    /// A record is a whole file, to its last byte. An empty file has no record.
    WholeFile,
}
