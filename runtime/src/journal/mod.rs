//! The master's journal: every instant with its facts and the orders that followed, line by line as JSON.
//!
//! The first line is the [`JournalHeader`], with all that a core needs to begin the same; every further line is a [`JournalRecord`].
//! Fed back through a core, the facts must give the same orders. Reading is in [`JournalReader`].

pub(crate) mod checked;
mod encoded;
pub(crate) mod ledger;
mod reader;

pub use checked::CheckedReadError;
pub use encoded::Encoded;
pub use reader::{JournalReadError, JournalReader, LINE_BYTES_MAX};

use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::{CoreConfig, ShuffleOrder};
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
    /// What the estimator knew from before, as it says itself; null if nothing.
    pub memory: serde_json::Value,
    /// Limits of the core.
    pub core: CoreConfig,
}

/// Every further line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalRecord {
    /// Facts of one instant and the orders that followed.
    Instant {
        /// When, by the master's clock.
        at: Time,
        /// The facts, in the order in which they were entered.
        facts: Vec<Event>,
        /// The orders as JSON, in their order.
        orders: Vec<serde_json::Value>,
        /// In which order the shuffle serves jobs from now on, as JSON; `None` if that has not changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shuffle: Option<serde_json::Value>,
    },
    /// From now on somebody else decides.
    DecideBy {
        /// When.
        at: Time,
        /// Policy as text.
        policy: String,
        /// Placement as text.
        placement: String,
    },
    /// From now on the estimator knows this and nothing else; while no job is live.
    Memory {
        /// When.
        at: Time,
        /// As the estimator says it.
        memory: serde_json::Value,
    },
    /// From now on a core decides that was made of this ledger, with the limits, the estimator's memory and those who
    /// decide as they were.
    Ledger {
        /// When.
        at: Time,
        /// All that the core kept; only a program of the same build reads it.
        ledger: Encoded,
    },
    /// A job's name and parameters, which the facts do not hold; comes before the instant in which it arrives.
    Job {
        /// Its number.
        job: gristmill_scheduler::ids::JobId,
        /// Its name in the registry.
        name: String,
        /// Its parameters as JSON text.
        parameters: String,
    },
    /// What the facts do not hold of a worker; comes before the instant in which it joins. Without it, the worker is as
    /// fast as it can and its shuffle not held to a rate.
    Worker {
        /// Its number.
        worker: gristmill_scheduler::ids::WorkerId,
        /// How fast its slots are made to be, above 0 and at most 1.
        speed: f64,
        /// What its shuffle is held to in each direction, bytes in a second.
        nic_bytes_per_second: Option<u64>,
    },
    /// The master has ended in order. Without it the journal may lack its last instants.
    End,
}

/// [`JournalRecord::Instant`], as it is written.
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
    /// Begins a journal, 0600: it names jobs and holds their parameters. An existing file is not touched.
    ///
    /// # Errors
    /// Whatever the file system says.
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
    /// Whatever the file system says.
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
    /// Whatever the file system says.
    pub fn record(&mut self, record: &JournalRecord) -> io::Result<()> {
        self.line(record)
    }

    /// Hands what was appended to the system.
    ///
    /// # Errors
    /// Whatever the file system says.
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
