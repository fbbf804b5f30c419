//! `StreamXmlRecordReader` of Hadoop: a record is the text between two marks, both included, over any
//! number of lines. Text outside of records is skipped.
//!
//! Marks are text. What Hadoop calls a slow match, with patterns, is not supported. A record without its
//! end is ignored.

use memchr::memmem;
use serde::{Deserialize, Serialize};

/// Maximum bytes of a record.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// Marks of records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Marks {
    /// Start of a record. Not empty.
    pub begin: String,
    /// End of a record. Not empty.
    pub end: String,
}

/// A record exceeds the maximum length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a record between marks has more than {RECORD_BYTES_MAX} bytes, or no end")]
pub(super) struct TooLong;

/// Cuts a stream of bytes into records.
#[derive(Debug, Default)]
pub(super) struct RecordCutter {
    /// Bytes that may belong to a record: from its start, or the length of an incomplete start mark.
    held: Vec<u8>,
    /// Number of bytes after a start mark that have been searched for the end; `None` without a start mark.
    searched: Option<usize>,
}

impl RecordCutter {
    /// Passes each complete record to `take`.
    pub fn push<E: From<TooLong>>(
        &mut self,
        bytes: &[u8],
        marks: &Marks,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (begin, end) = (marks.begin.as_bytes(), marks.end.as_bytes());
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let Some(searched) = self.searched else {
                match memmem::find(&self.held[at..], begin) {
                    Some(found) => {
                        at += found;
                        self.searched = Some(begin.len());
                        continue;
                    }
                    None => {
                        let kept = self.held.len().saturating_sub(begin.len().saturating_sub(1)).max(at);
                        self.held.drain(..kept);
                        return Ok(());
                    }
                }
            };
            match memmem::find(&self.held[at + searched..], end) {
                Some(found) => {
                    let after = at + searched + found + end.len();
                    take(&self.held[at..after])?;
                    (at, self.searched) = (after, None);
                }
                None => {
                    self.held.drain(..at);
                    self.searched =
                        Some(self.held.len().saturating_sub(end.len().saturating_sub(1)).max(searched));
                    return if RECORD_BYTES_MAX < self.held.len() { Err(TooLong.into()) } else { Ok(()) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl From<TooLong> for String {
        fn from(_: TooLong) -> Self {
            "too long".to_owned()
        }
    }

    fn cut(pieces: &[&[u8]]) -> Vec<String> {
        let marks = Marks { begin: "<a>".to_owned(), end: "</a>".to_owned() };
        let (mut cutter, mut records) = (RecordCutter::default(), Vec::new());
        for piece in pieces {
            let pushed: Result<(), String> = cutter.push(piece, &marks, |record| {
                records.push(String::from_utf8_lossy(record).into_owned());
                Ok(())
            });
            pushed.unwrap();
        }
        records
    }

    #[test]
    fn records_stand_between_marks_over_several_lines() {
        assert_eq!(
            cut(&[b"x<a>1</a>y\n<a>2\n3</a><a></a> <a>no end"]),
            ["<a>1</a>", "<a>2\n3</a>", "<a></a>"]
        );
        assert_eq!(cut(&[b"<", b"a", b">1<", b"/a", b">"]), ["<a>1</a>"]);
        assert_eq!(cut(&[b"</a><a><a></a></a>"]), ["<a><a></a>"]);
        assert_eq!(cut(&[b""]), [""; 0]);
    }

    proptest! {
        #[test]
        fn records_do_not_depend_on_how_bytes_come(
            words in proptest::collection::vec(prop_oneof![Just("<a>"), Just("</a>"), Just("<"), Just("a"), Just("\n")], 0..30),
            cuts in proptest::collection::vec(0usize..60, 0..8),
        ) {
            let text = words.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
            prop_assert_eq!(cut(&pieces), cut(&[bytes]));
        }
    }
}
