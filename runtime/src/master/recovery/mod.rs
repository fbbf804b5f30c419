//! Recovery journal of a running master. Each entry is written before its effects are visible outside, and the next
//! master of the state directory reads it.
//!
//! It holds the content of every journal, facts and orders, and also what the facts do not hold: submissions, workers,
//! and their frames. It contains keys of jobs and is readable only by this user. When it has grown, it is replaced by
//! the current state in one step, so that either the old or the new file exists. The effect of each line is in
//! `state::recover`, and the current state in `state::snapshot`.

mod read;
mod record;

pub use read::RecallError;
pub(super) use read::{Recalled, recall};
pub(super) use record::{BESIDE, FACTS, RecoveryNote, RecoveryRecord};

use crate::journal::checked::CheckedWriter;
use crate::journal::{JournalHeader, JournalRecord};
use gristmill_worker::whole_file::{self, Promise};
use record::HEADER;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Growth in bytes after which the file is compacted. A file that was larger at the last compaction must double.
const COMPACT_AFTER_BYTES: u64 = 64 << 20;

/// Writer of the recovery file.
pub(super) struct RecoveryJournal {
    path: PathBuf,
    lines: CheckedWriter,
    /// Bytes of the file after the last compaction.
    started_with: u64,
    /// [`COMPACT_AFTER_BYTES`], except in tests.
    compact_after: u64,
    /// Durable, except in tests.
    promise: Promise,
}

impl RecoveryJournal {
    /// Creates a new file.
    pub(super) fn create(path: PathBuf, header: &JournalHeader) -> io::Result<Self> {
        let mut lines = CheckedWriter::create(&path)?;
        lines.line(HEADER, header)?;
        Ok(Self::from_lines(path, lines))
    }

    /// Continues behind the recalled lines.
    pub(super) fn go_on(path: PathBuf, length: u64) -> io::Result<Self> {
        let lines = CheckedWriter::go_on(&path, length)?;
        Ok(Self::from_lines(path, lines))
    }

    fn from_lines(path: PathBuf, lines: CheckedWriter) -> Self {
        Self {
            path,
            lines,
            started_with: 0,
            compact_after: COMPACT_AFTER_BYTES,
            promise: Promise::PrivateAndDurable,
        }
    }

    /// Appends lines.
    pub(super) fn lines(&mut self) -> &mut CheckedWriter {
        &mut self.lines
    }

    /// Number of bytes not yet written to the operating system.
    pub(super) fn waiting(&self) -> usize {
        self.lines.waiting()
    }

    /// Another handle of the file, to sync it.
    pub(super) fn file(&self) -> io::Result<File> {
        self.lines.file()
    }

    /// Writes the appended lines to the operating system, so that they survive this process.
    pub(super) fn write_out(&mut self) -> io::Result<()> {
        self.lines.write_out()
    }

    /// True if the file has grown enough to be compacted.
    pub(super) fn has_grown(&self) -> bool {
        self.started_with + self.compact_after.max(self.started_with) <= self.lines.length()
    }

    /// Replaces the file by these lines, as a whole or not at all.
    ///
    /// # Errors
    /// An error of the file system. The old file is kept then, and compacted when it has grown again.
    pub(super) fn rewrite(
        &mut self,
        header: &JournalHeader,
        write: impl FnOnce(&mut CheckedWriter<&mut File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.started_with = self.lines.length();
        let mut written = None;
        let replaced = whole_file::replace(&self.path, self.promise, |file| {
            let mut lines = CheckedWriter::resume(&mut *file, 0);
            lines.line(HEADER, header)?;
            write(&mut lines)?;
            lines.write_out()?;
            let length = lines.length();
            drop(lines);
            written = Some((file.try_clone()?, length));
            io::Result::Ok(())
        });
        let Some((file, length)) = written else { return replaced };
        // The new file may be in place although an error was returned.
        let stands =
            fs::metadata(&self.path).is_ok_and(|there| file.metadata().is_ok_and(|it| same(&there, &it)));
        if stands {
            self.lines = CheckedWriter::resume(file, length);
            self.started_with = length;
        }
        if stands { Ok(()) } else { replaced }
    }

    /// Compacts after growth by this many bytes, without protection against a power failure.
    #[cfg(test)]
    pub(super) fn compact_after(self, bytes: u64) -> Self {
        Self { compact_after: bytes, promise: Promise::Plain, ..self }
    }

    /// Deletes the file because it is incomplete: no master may recover from it.
    pub(super) fn give_up(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::error!(path = %self.path.display(), %error, "remove this file before a master is started here");
        }
    }

    /// True if the next master would find it.
    pub(super) fn is_there(&self) -> bool {
        self.lines.is_at(&self.path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// A line of the file.
pub(super) enum RecoveryLine {
    Facts(JournalRecord),
    Beside(RecoveryRecord),
}
