//! Recorded pairs of an attempt, for display, in a file of their own.
//!
//! They are recorded where they pass: the pairs that a mapper emits, those of its finished output, those that a reduce
//! reads, in their order, and its groups. All lists are bounded; omitted items are counted. The displayed story is
//! written in `cli`.

mod narrator;
mod story;

pub use story::{
    GroupTold, KeptInputs, MapStory, PartitionRule, PlacedPair, PlainPair, ReadPair, ReduceStory, StoryPiece,
    StoryRecord, StorySegment, Told,
};

pub(crate) use narrator::{MapNarrator, PairWords, RecordNarrator, ReduceNarrator};

use crate::sanitize;
use crate::whole_file::{self, Promise};
use gristmill_scheduler::ids::AttemptId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Maximum maps, and maximum reduces, of a job that are recorded: those with the lowest numbers.
pub const TASKS_MAX: u32 = 64;

/// Maximum items (records, pairs, groups) recorded for one attempt.
pub const ITEMS_MAX: usize = 10_000;

/// Maximum bytes of text recorded for one attempt, over all items.
pub const TEXT_BYTES_MAX: usize = 512 << 10;

/// Maximum bytes recorded of a key, value or record, or one more character.
pub const WORDS_BYTES_MAX: usize = 200;

/// Maximum size of an attempt's file that is read, bytes: JSON is slightly longer than its text.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Directory of the records of a worker's attempts.
#[derive(Clone, Debug)]
pub struct Narration {
    directory: PathBuf,
}

impl Narration {
    /// Creates it with this directory, which must exist.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// True if this attempt is recorded.
    pub(crate) fn tells(&self, attempt: AttemptId) -> bool {
        attempt.task.index < TASKS_MAX
    }

    /// Writes the record of an attempt. A failed write is not a reason to fail the attempt.
    pub(crate) fn write(&self, attempt: AttemptId, story: &impl Serialize) {
        let write = || {
            let text = serde_json::to_vec(story)?;
            let path = self.directory.join(file_name(attempt));
            whole_file::replace(&path, Promise::Plain, |file| file.write_all(&text))
        };
        if let Err(error) = write() {
            tracing::warn!(%attempt, %error, "what the attempt did cannot be told: its pairs could not be written");
        }
    }

    /// Reads the record of an attempt; `None` if it has none.
    ///
    /// # Errors
    /// A file that cannot be read, is too long, or has other contents.
    pub fn read<T: DeserializeOwned>(&self, attempt: AttemptId) -> io::Result<Option<T>> {
        let file = match File::open(self.directory.join(file_name(attempt))) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
        if FILE_BYTES_MAX < text.len() as u64 {
            return Err(io::Error::other(format!("it is longer than {FILE_BYTES_MAX} bytes")));
        }
        Ok(Some(serde_json::from_slice(&text)?))
    }
}

fn file_name(attempt: AttemptId) -> String {
    format!("{}-{}", attempt.task.job, attempt.file_name())
}

/// Sanitizes and bounds the text of a key or value.
pub(crate) fn bounded(words: &str) -> String {
    sanitize::line(words, WORDS_BYTES_MAX)
}

/// Formats bytes for display: text, or escapes for bytes that are not text; sanitized and bounded. A backslash is
/// doubled, so that a single one is always an escape: the text `\xff` and the byte look different.
#[must_use]
pub fn words_of(bytes: &[u8]) -> String {
    // One character may become six.
    let front = &bytes[..bytes.len().min(WORDS_BYTES_MAX + 4)];
    let of_text = |text: &str| bounded(&text.replace('\\', r"\\"));
    let words = match std::str::from_utf8(front) {
        Ok(text) => of_text(text),
        Err(error) if error.error_len().is_none() && front.len() < bytes.len() => {
            of_text(&String::from_utf8_lossy(&front[..error.valid_up_to()]))
        }
        Err(_) => bounded(&front.escape_ascii().to_string()),
    };
    match front.len() < bytes.len() && !words.ends_with('…') {
        true => words + "…",
        false => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::{JobId, TaskId};

    #[test]
    fn words_are_text_or_escaped_and_never_too_long() {
        assert_eq!(words_of(b"mill"), "mill");
        assert_eq!(words_of(b"a\x1b[2J"), "a\\u001b[2J");
        assert_eq!(words_of(b"\xff\x00"), "\\xff\\x00");
        assert_eq!(words_of(br"\xff"), r"\\xff");
        assert_eq!(words_of(b"\\\xff"), r"\\\xff");
        let long = words_of("ä".repeat(5000).as_bytes());
        assert!(long.starts_with("ää") && long.ends_with('…') && long.len() <= WORDS_BYTES_MAX + 8, "{long}");
    }

    #[test]
    fn what_was_written_is_read_again_by_its_attempt_alone() {
        let directory = tempfile::tempdir().unwrap();
        let narration = Narration::new(directory.path());
        let attempt = TaskId::map(JobId(1), 3).attempt(1);
        narration.write(attempt, &vec![1, 2]);
        assert_eq!(narration.read::<Vec<u32>>(attempt).unwrap(), Some(vec![1, 2]));
        assert_eq!(narration.read::<Vec<u32>>(TaskId::map(JobId(1), 3).attempt(0)).unwrap(), None);
        assert!(narration.read::<String>(attempt).is_err(), "it holds something else");
        assert!(narration.tells(attempt) && !narration.tells(TaskId::map(JobId(1), TASKS_MAX).attempt(0)));
    }
}
