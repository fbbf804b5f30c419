//! The pairs of an attempt, kept for a person who wants to read what happened, and written to a file of its own.
//!
//! They are taken where they pass: what a mapper emits, what its output holds when it is finished, what a reduce reads,
//! in which order, and which groups it makes of that. Everything is bounded; what does not fit is counted. Not here: the
//! story that is told of it (`cli`).

mod narrator;
mod story;

pub use story::{
    GroupTold, KeptInputs, MapStory, PartitionRule, PieceTold, PlacedPair, PlainPair, ReadPair, RecordTold,
    ReduceStory, SegmentTold, Told,
};

pub(crate) use narrator::{MapNarrator, PairWords, RecordNarrator, ReduceNarrator};

use crate::clean;
use crate::whole_file::{self, Promise};
use gristmill_scheduler::ids::AttemptId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Maps, and reduces, of a job that keep their pairs: those with the lowest numbers.
pub const TASKS_MAX: u32 = 64;

/// Items (records, pairs, groups) that one attempt keeps.
pub const ITEMS_MAX: usize = 10_000;

/// Bytes of text that one attempt keeps, of all its items together.
pub const TEXT_BYTES_MAX: usize = 512 << 10;

/// Bytes of a key, value or record that are kept, or a character more.
pub const WORDS_BYTES_MAX: usize = 200;

/// Longest file of an attempt that is read, bytes: JSON says a little more than its text.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Where the attempts of a worker put what they keep.
#[derive(Clone, Debug)]
pub struct Narration {
    folder: PathBuf,
}

impl Narration {
    /// In this folder, which must exist.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Whether this attempt keeps its pairs.
    pub(crate) fn tells(&self, attempt: AttemptId) -> bool {
        attempt.task.index < TASKS_MAX
    }

    /// Writes down what an attempt has kept. A story that cannot be written is a pity, and no reason to fail.
    pub(crate) fn write(&self, attempt: AttemptId, story: &impl Serialize) {
        let write = || {
            let text = serde_json::to_vec(story)?;
            let path = self.folder.join(file_name(attempt));
            whole_file::replace(&path, Promise::Plain, |file| file.write_all(&text))
        };
        if let Err(error) = write() {
            tracing::warn!(%attempt, %error, "what the attempt did cannot be told: its pairs could not be written");
        }
    }

    /// What an attempt has kept; `None` if it kept nothing.
    ///
    /// # Errors
    /// A file that cannot be read, is too long, or holds something else.
    pub fn read<T: DeserializeOwned>(&self, attempt: AttemptId) -> io::Result<Option<T>> {
        let file = match File::open(self.folder.join(file_name(attempt))) {
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

/// Words that a key or value has found for itself, cleaned and bounded.
pub(crate) fn bounded(words: &str) -> String {
    clean::line(words, WORDS_BYTES_MAX)
}

/// Bytes as a person reads them: text, or what is no text escaped; cleaned and bounded. A backslash is written twice, so
/// that one alone is an escape always: the text `\xff` and the byte look different.
#[must_use]
pub fn words_of(bytes: &[u8]) -> String {
    // A character may become six.
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
        let folder = tempfile::tempdir().unwrap();
        let narration = Narration::new(folder.path());
        let attempt = TaskId::map(JobId(1), 3).attempt(1);
        narration.write(attempt, &vec![1, 2]);
        assert_eq!(narration.read::<Vec<u32>>(attempt).unwrap(), Some(vec![1, 2]));
        assert_eq!(narration.read::<Vec<u32>>(TaskId::map(JobId(1), 3).attempt(0)).unwrap(), None);
        assert!(narration.read::<String>(attempt).is_err(), "it holds something else");
        assert!(narration.tells(attempt) && !narration.tells(TaskId::map(JobId(1), TASKS_MAX).attempt(0)));
    }
}
