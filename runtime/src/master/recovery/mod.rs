//! The journal of a standing master, from which it comes back: written before anybody is told of what it holds, and read
//! by the next master of the state folder.
//!
//! It holds what every journal does, facts and orders, and beside it what the facts do not hold: submissions, workers,
//! and what these have said. Keys of jobs are in it: it is for nobody but this user.
//! When it has grown it is begun anew with what stands then, in one step: there is always the old file or the new one.
//! Not here: what a line does to the state (`state::relive`), and what stands (`state::compact`).

mod read;
mod record;

pub use read::RecallError;
pub(super) use read::{Recalled, recall};
pub(super) use record::{RecoveryNote, RecoveryRecord};

use crate::journal::checked::CheckedWriter;
use crate::journal::{JournalHeader, JournalRecord};
use gristmill_worker::whole_file::{self, Promise};
use record::{BESIDE, FACTS, HEADER};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file is begun anew when it has grown by so many bytes, or by what it had then if that was more.
const COMPACT_AFTER_BYTES: u64 = 64 << 20;

/// Writes it.
pub(super) struct RecoveryJournal {
    path: PathBuf,
    lines: RecoveryLines<File>,
    /// Bytes that it had when it was begun anew.
    begun_with: u64,
    /// [`COMPACT_AFTER_BYTES`], but for tests.
    compact_after: u64,
    /// Durable, but for tests.
    promise: Promise,
}

/// Appends lines of it.
pub(super) struct RecoveryLines<W: Write>(CheckedWriter<W>);

impl<W: Write> RecoveryLines<W> {
    /// Appends what every journal holds.
    pub(super) fn facts(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.0.line(FACTS, line)
    }

    /// Hands it to the system.
    pub(super) fn write_out(&mut self) -> io::Result<()> {
        self.0.write_out()
    }

    /// Appends what only this one holds.
    pub(super) fn beside(&mut self, note: &RecoveryNote<'_>) -> io::Result<()> {
        self.0.line(BESIDE, note)
    }
}

impl RecoveryJournal {
    /// Begins anew.
    pub(super) fn begin(path: PathBuf, header: &JournalHeader) -> io::Result<Self> {
        let mut lines = CheckedWriter::create(&path)?;
        lines.line(HEADER, header)?;
        Ok(Self::of(path, lines))
    }

    /// Goes on behind what was recalled.
    pub(super) fn go_on(path: PathBuf, length: u64) -> io::Result<Self> {
        let lines = CheckedWriter::go_on(&path, length)?;
        Ok(Self::of(path, lines))
    }

    fn of(path: PathBuf, lines: CheckedWriter) -> Self {
        Self {
            path,
            lines: RecoveryLines(lines),
            begun_with: 0,
            compact_after: COMPACT_AFTER_BYTES,
            promise: Promise::PrivateAndDurable,
        }
    }

    /// Appends lines.
    pub(super) fn lines(&mut self) -> &mut RecoveryLines<File> {
        &mut self.lines
    }

    /// Bytes that the system does not have.
    pub(super) fn waiting(&self) -> usize {
        self.lines.0.waiting()
    }

    /// Another handle of the file, to sync it.
    pub(super) fn file(&self) -> io::Result<File> {
        self.lines.0.file()
    }

    /// Hands what was appended to the system: from now on it outlives this process.
    pub(super) fn write_out(&mut self) -> io::Result<()> {
        self.lines.0.write_out()
    }

    /// Whether it is worth while to begin it anew.
    pub(super) fn has_grown(&self) -> bool {
        self.begun_with + self.compact_after.max(self.begun_with) <= self.lines.0.length()
    }

    /// Begins it anew with these lines, whole or not at all.
    ///
    /// # Errors
    /// What the file system says; then the old file stands, and is worth while to begin anew when it has grown again.
    pub(super) fn begin_anew(
        &mut self,
        header: &JournalHeader,
        write: impl FnOnce(&mut RecoveryLines<&mut File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.begun_with = self.lines.0.length();
        let mut written = None;
        let replaced = whole_file::replace(&self.path, self.promise, |file| {
            let mut lines = RecoveryLines(CheckedWriter::of(&mut *file, 0));
            lines.0.line(HEADER, header)?;
            write(&mut lines)?;
            lines.0.write_out()?;
            let length = lines.0.length();
            drop(lines);
            written = Some((file.try_clone()?, length));
            io::Result::Ok(())
        });
        let Some((file, length)) = written else { return replaced };
        // It may stand there although not all went well.
        let stands =
            fs::metadata(&self.path).is_ok_and(|there| file.metadata().is_ok_and(|it| same(&there, &it)));
        if stands {
            self.lines = RecoveryLines(CheckedWriter::of(file, length));
            self.begun_with = length;
        }
        if stands { Ok(()) } else { replaced }
    }

    /// Begun anew when it has grown by so many bytes; what power takes is lost then.
    #[cfg(test)]
    pub(super) fn compact_after(self, bytes: u64) -> Self {
        Self { compact_after: bytes, promise: Promise::Plain, ..self }
    }

    /// It lacks something: nobody must come back from it.
    pub(super) fn give_up(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::error!(path = %self.path.display(), %error, "remove this file before a master is started here");
        }
    }

    /// True if the next master would find it.
    pub(super) fn is_there(&self) -> bool {
        self.lines.0.is_at(&self.path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// One line of it.
pub(super) enum RecoveryLine {
    Facts(JournalRecord),
    Beside(RecoveryRecord),
}
