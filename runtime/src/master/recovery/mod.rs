//! The journal of a standing master, from which it comes back: written before anybody is told of what it holds, and read
//! by the next master of the state folder.
//!
//! It holds what every journal does, facts and orders, and beside it what the facts do not hold: submissions, workers,
//! and what these have said. Keys of jobs are in it: it is for nobody but this user.
//! Not here: what a line does to the state (`state::relive`).

mod read;
mod record;

pub use read::RecallError;
pub(super) use read::{Recalled, recall};
pub(super) use record::{Encoded, RecoveryNote, RecoveryRecord};

use crate::journal::checked::CheckedWriter;
use crate::journal::{JournalHeader, JournalRecord};
use record::{BESIDE, FACTS, HEADER};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Writes it.
pub(super) struct RecoveryJournal {
    path: PathBuf,
    lines: CheckedWriter,
}

impl RecoveryJournal {
    /// Begins anew.
    pub(super) fn begin(path: PathBuf, header: &JournalHeader) -> io::Result<Self> {
        let mut lines = CheckedWriter::create(&path)?;
        lines.line(HEADER, header)?;
        Ok(Self { path, lines })
    }

    /// Goes on behind what was recalled.
    pub(super) fn go_on(path: PathBuf, length: u64) -> io::Result<Self> {
        Ok(Self { lines: CheckedWriter::go_on(&path, length)?, path })
    }

    /// Appends what every journal holds.
    pub(super) fn facts(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.lines.line(FACTS, line)
    }

    /// Appends what only this one holds.
    pub(super) fn beside(&mut self, note: &RecoveryNote<'_>) -> io::Result<()> {
        self.lines.line(BESIDE, note)
    }

    /// Hands what was appended to the system: from now on it outlives this process.
    pub(super) fn write_out(&mut self) -> io::Result<()> {
        self.lines.write_out()
    }

    /// It lacks something: nobody must come back from it.
    pub(super) fn give_up(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::error!(path = %self.path.display(), %error, "remove this file before a master is started here");
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// One line of it.
pub(super) enum RecoveryLine {
    Facts(JournalRecord),
    Beside(RecoveryRecord),
}
