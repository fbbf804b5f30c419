//! Messages between a worker and its runners.
//!
//! A runner sends [`RunnerWord::Ready`] first. Then the worker sends orders, and the runner responds to
//! each order to run with one [`RunnerWord::Ended`]. The frames are those of the control connection, over
//! a private socket.

use crate::input::{FileBadRecords, FilePath, Split};
use crate::protocol::{FailureClass, JobOrder, Measures, NamedPart};
use crate::segment::GivenUpOutput;
use crate::settings::WorkerSettings;
use crate::task::{PartDone, Progress};
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;

/// Version of this protocol: a shipped program may have been built with another version of this library.
pub(super) const RUNNER_PROTOCOL: u32 = 6;

/// Order of a worker.
#[derive(Serialize, Deserialize)]
pub(super) enum RunnerOrder {
    /// First order.
    Begin(Box<RunnerTerms>),
    /// The following orders to run are of this job.
    Job(Box<JobOrder>),
    /// Run an attempt of it.
    Run(Box<RunnerTask>),
}

/// Settings of a runner.
#[derive(Serialize, Deserialize)]
pub(super) struct RunnerTerms {
    /// Number of the worker.
    pub worker: WorkerId,
    /// Settings of the worker.
    pub settings: WorkerSettings,
    /// Private directories of this runner.
    pub folders: Vec<FilePath>,
    /// Bytes that an attempt collects or merges.
    pub slot_bytes: u64,
}

/// Attempt to run.
#[derive(Serialize, Deserialize)]
pub(super) struct RunnerTask {
    pub attempt: AttemptId,
    /// True for less memory than other attempts.
    pub alone: bool,
    pub input: RunnerInput,
    /// Directory and name of the empty file that the part is built in, if the attempt produces one.
    pub output: Option<(FilePath, String)>,
}

/// Input of an attempt.
#[derive(Serialize, Deserialize)]
pub(super) enum RunnerInput {
    /// A map reads a split.
    Split(Split),
    /// A reduce reads the segments that its worker has gathered, in map order.
    Segments(Vec<LentSegment>),
}

/// Location of a segment that the worker keeps while the attempt runs.
#[derive(Serialize, Deserialize)]
pub(super) struct LentSegment {
    pub path: FilePath,
    pub file_bytes: u64,
    pub offset: u64,
    pub length: u64,
}

/// Message of a runner.
#[derive(Serialize, Deserialize)]
pub(super) enum RunnerWord {
    /// The runner is ready.
    Ready {
        /// Its [`RUNNER_PROTOCOL`].
        protocol: u32,
    },
    /// Progress of the attempt, several times a second.
    Progress(RunnerProgress),
    /// The attempt has ended.
    Ended(Box<RunnerEnd>),
    /// It ends because of a bug of the engine. Its exit code alone does not show that: user code may exit
    /// with any.
    Broken {
        /// Description of the error.
        why: String,
    },
    /// It ends because it used more memory than its budget.
    OverMemory {
        /// Description with the amount of memory.
        why: String,
    },
}

/// Progress of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct RunnerProgress {
    pub bytes_in: u64,
    pub records_in: u64,
    pub records_out: u64,
    pub bytes_out: u64,
    pub spills: u64,
    pub spilled_bytes: u64,
    pub paced_ns: u64,
    pub steps: u64,
    /// True if no user code runs.
    pub engine: bool,
}

impl RunnerProgress {
    pub(super) fn of(progress: &Progress) -> Self {
        Self {
            bytes_in: progress.bytes_in.load(Relaxed),
            records_in: progress.records_in.load(Relaxed),
            records_out: progress.records_out.load(Relaxed),
            bytes_out: progress.bytes_out.load(Relaxed),
            spills: progress.spills.load(Relaxed),
            spilled_bytes: progress.spilled_bytes.load(Relaxed),
            paced_ns: progress.paced_ns.load(Relaxed),
            steps: progress.steps.load(Relaxed),
            engine: progress.is_in_engine(),
        }
    }

    /// Copies it to the progress of an attempt of this process. The steps are this process's own.
    pub(super) fn show_in(&self, progress: &Progress) {
        progress.bytes_in.store(self.bytes_in, Relaxed);
        progress.records_in.store(self.records_in, Relaxed);
        progress.records_out.store(self.records_out, Relaxed);
        progress.bytes_out.store(self.bytes_out, Relaxed);
        progress.spills.store(self.spills, Relaxed);
        progress.spilled_bytes.store(self.spilled_bytes, Relaxed);
        progress.paced_ns.store(self.paced_ns, Relaxed);
    }
}

/// End of an attempt.
#[derive(Serialize, Deserialize)]
pub(super) struct RunnerEnd {
    pub result: RunnerResult,
    pub progress: RunnerProgress,
    /// Counters of user code, by name.
    pub counters: Vec<(String, u64)>,
    /// Other measurements of user code.
    pub measures: Measures,
    /// Bytes of input on this machine.
    pub local_bytes: u64,
    pub bad_records: Vec<FileBadRecords>,
    /// Processor time of its thread.
    pub cpu_ns: u64,
    /// Largest resident memory of the runner so far.
    pub peak_bytes: u64,
}

/// Result of an attempt.
#[derive(Serialize, Deserialize)]
pub(super) enum RunnerResult {
    /// Map output in a file in one of the runner's directories.
    Mapped(GivenUpOutput),
    /// Built part.
    Built(BuiltPart),
    /// Failure.
    Failed { class: FailureClass, message: String },
}

/// Built part.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct BuiltPart {
    pub bytes: u64,
    pub records: u64,
    pub crc32c: u32,
    pub named: Vec<NamedPart>,
}

impl From<&PartDone> for BuiltPart {
    fn from(done: &PartDone) -> Self {
        let named = done.named.clone();
        Self { bytes: done.bytes, records: done.records, crc32c: done.crc32c, named }
    }
}
