//! The master's journal: every instant with its facts and the resulting orders, line by line as JSON.
//!
//! The first line is the [`JournalHeader`], with all parameters to create an equal core. Every further line is a
//! [`JournalRecord`]. Replayed through a core, the facts must give the same orders. The reader is [`JournalReader`].

pub(crate) mod checked;
mod encoded;
pub(crate) mod ledger;
mod reader;

pub use checked::CheckedReadError;
pub use encoded::Encoded;
pub use reader::{JournalReadError, JournalReader, LINE_BYTES_MAX};

use crate::deciders::{DeciderNames, MadeDeciders};
use crate::registry::Registry;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::{Core, CoreConfig, ShuffleOrder};
use gristmill_scheduler::event::Event;
use gristmill_scheduler::units::Time;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Version of the lines.
pub const SCHEMA: u32 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Identifies the executable.
    pub build: String,
    /// Policy as text.
    pub policy: String,
    /// Placement as text.
    pub placement: String,
    /// Estimator as text.
    pub estimator: String,
    /// Initial memory of the estimator in its own form; null if it had none.
    pub memory: serde_json::Value,
    /// Limits of the core.
    pub core: CoreConfig,
}

impl JournalHeader {
    /// Header of a journal that this program writes.
    pub(crate) fn new(
        build: String,
        names: &DeciderNames,
        memory: serde_json::Value,
        core: CoreConfig,
    ) -> Self {
        let DeciderNames { policy, placement, estimator } = names.clone();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { schema: SCHEMA, version, build, policy, placement, estimator, memory, core }
    }

    /// Names of the deciders.
    pub(crate) fn names(&self) -> DeciderNames {
        let Self { policy, placement, estimator, .. } = self.clone();
        DeciderNames { policy, placement, estimator }
    }

    /// Creates a core like the one with which the master started.
    ///
    /// # Errors
    /// A description of an unknown name, or of a memory that the estimator rejects.
    pub(crate) fn make_core(&self, registry: &Registry) -> Result<Core, String> {
        let MadeDeciders { policy, placement, mut estimator, .. } = self.names().make(registry)?;
        estimator.restore(&self.memory)?;
        Ok(Core::new(self.core.clone(), policy, placement).with_estimator(estimator))
    }
}

/// Every further line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalRecord {
    /// Facts of one instant and the resulting orders.
    Instant {
        /// Time by the master's clock.
        at: Time,
        /// The facts, in the order in which they were entered.
        facts: Vec<Event>,
        /// The orders as JSON, in their order.
        orders: Vec<serde_json::Value>,
        /// New order in which the shuffle serves jobs, as JSON; `None` if it has not changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shuffle: Option<serde_json::Value>,
    },
    /// The deciders change.
    DecideBy {
        /// Time of the change.
        at: Time,
        /// Policy as text.
        policy: String,
        /// Placement as text.
        placement: String,
    },
    /// The estimator's memory is replaced; while no job is live.
    Memory {
        /// Time of the change.
        at: Time,
        /// Memory in the estimator's own form.
        memory: serde_json::Value,
    },
    /// The core is replaced by one rebuilt from this ledger, with the same limits, estimator's memory and deciders.
    Ledger {
        /// Time of the change.
        at: Time,
        /// State of the core; only a program of the same build can read it.
        ledger: Encoded,
    },
    /// A job's name and parameters, which the facts do not hold. Precedes the instant in which the job arrives.
    Job {
        /// Its number.
        job: gristmill_scheduler::ids::JobId,
        /// Its name in the registry.
        name: String,
        /// Its parameters as JSON text.
        parameters: String,
    },
    /// Properties of a worker that the facts do not hold. Precedes the instant in which the worker joins. Without it,
    /// the worker has full speed and its shuffle has no rate limit.
    Worker {
        /// Its number.
        worker: gristmill_scheduler::ids::WorkerId,
        /// Speed of its slots, above 0 and at most 1.
        speed: f64,
        /// Rate limit of its shuffle in each direction, bytes per second.
        nic_bytes_per_second: Option<u64>,
    },
    /// The master has ended in order. Without this record, the last instants may be missing.
    End,
}

/// [`JournalRecord::Instant`], in the form in which it is written.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InstantLine<'a> {
    Instant {
        at: Time,
        facts: &'a [Event],
        orders: &'a [Command],
        #[serde(skip_serializing_if = "Option::is_none")]
        shuffle: Option<&'a ShuffleOrder>,
    },
}

/// Writes a journal.
#[derive(Debug)]
pub struct Journal {
    file: BufWriter<File>,
}

impl Journal {
    /// Creates a journal, 0600, because it contains the names and parameters of jobs. An existing file is not touched.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(path: &Path, header: &JournalHeader) -> io::Result<Self> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        let mut journal = Self { file: BufWriter::new(file) };
        journal.line(header)?;
        journal.flush()?;
        Ok(journal)
    }

    /// Appends an instant.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn instant(
        &mut self,
        at: Time,
        facts: &[Event],
        orders: &[Command],
        shuffle: Option<&ShuffleOrder>,
    ) -> io::Result<()> {
        self.line(&InstantLine::Instant { at, facts, orders, shuffle })
    }

    /// Appends any other record.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn record(&mut self, record: &JournalRecord) -> io::Result<()> {
        self.line(record)
    }

    /// Writes appended records to the operating system.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, line)?;
        self.file.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests;
