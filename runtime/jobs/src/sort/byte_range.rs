//! Range of bytes of a record by which `sort --key-bytes` compares records: `START..END` without the byte at `END`, or
//! `START..`, counted from 0.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A half-open range of bytes of a record, as in `0..10` or `4..`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ByteRange {
    /// First byte, from 0.
    pub start: u32,
    /// The byte after the last one; `None` is the end of the record.
    pub end: Option<u32>,
}

/// A text that is not a range of bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a range of bytes: write A..B or A.., counted from 0")]
pub struct ByteRangeError {
    text: String,
}

impl ByteRange {
    pub(super) fn is_empty(self) -> bool {
        self.end.is_some_and(|end| end <= self.start)
    }

    /// The part of `record` in the range, as far as it exists.
    pub(super) fn slice(self, record: &[u8]) -> &[u8] {
        let end = self.end.map_or(record.len(), |end| record.len().min(end as usize));
        record.get(self.start as usize..end).unwrap_or_default()
    }
}

impl FromStr for ByteRange {
    type Err = ByteRangeError;

    fn from_str(text: &str) -> Result<Self, ByteRangeError> {
        let error = || ByteRangeError { text: text.to_owned() };
        let (start, end) = text.split_once("..").ok_or_else(error)?;
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| error());
        let end = if end.is_empty() { None } else { Some(number(end)?) };
        Ok(Self { start: number(start)?, end })
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            Some(end) => write!(f, "{}..{end}", self.start),
            None => write!(f, "{}..", self.start),
        }
    }
}
