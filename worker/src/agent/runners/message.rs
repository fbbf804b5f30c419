//! What a worker and its runners say to each other.
//!
//! A runner says [`RunnerWord::Ready`] first; then the worker orders, and each order to run is answered by one
//! [`RunnerWord::Ended`]. The frames are those of the control connection, over a socket that nobody else has.

use crate::input::{FileBadRecords, FilePath, Split};
use crate::protocol::{FailureClass, JobOrder, Measures, NamedPart};
use crate::segment::GivenUpOutput;
use crate::settings::WorkerSettings;
use crate::task::{PartDone, Progress};
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;

/// Version of what follows: a shipped program may have been built against another version of this library.
pub(super) const RUNNER_PROTOCOL: u32 = 6;

/// What a worker orders.
#[derive(Serialize, Deserialize)]
pub(super) enum RunnerOrder {
    /// Before anything else.
    Begin(Box<RunnerTerms>),
    /// The orders to run that follow are of this job.
    Job(Box<JobOrder>),
    /// Run an attempt of it.
    Run(Box<RunnerTask>),
}

/// What a runner is of its worker.
#[derive(Serialize, Deserialize)]
pub(super) struct RunnerTerms {
    /// The number of the worker.
    pub worker: WorkerId,
    /// How the worker was made to be.
    pub settings: WorkerSettings,
    /// Folders of this runner alone.
    pub folders: Vec<FilePath>,
    /// What an attempt collects or merges.
    pub slot_bytes: u64,
}

/// An attempt to run.
#[derive(Serialize, Deserialize)]
pub(super) struct RunnerTask {
    pub attempt: AttemptId,
    /// In less memory than others.
    pub alone: bool,
    pub input: RunnerInput,
    /// The folder and name of the empty file that the part is built in, if the attempt makes one.
    pub output: Option<(FilePath, String)>,
}

/// What an attempt works on.
#[derive(Serialize, Deserialize)]
pub(super) enum RunnerInput {
    /// A map reads a split.
    Split(Split),
    /// A reduce reads what its worker has gathered, in map order.
    Segments(Vec<LentSegment>),
}

/// Where a segment lies that the worker keeps for as long as the attempt runs.
#[derive(Serialize, Deserialize)]
pub(super) struct LentSegment {
    pub path: FilePath,
    pub file_bytes: u64,
    pub offset: u64,
    pub length: u64,
}

/// What a runner says.
#[derive(Serialize, Deserialize)]
pub(super) enum RunnerWord {
    /// It is there.
    Ready {
        /// Its [`RUNNER_PROTOCOL`].
        protocol: u32,
    },
    /// How far the attempt is, several times a second.
    Progress(RunnerProgress),
    /// The attempt has ended.
    Ended(Box<RunnerEnd>),
    /// It ends by a mistake of the engine. Its exit code alone does not say so: user code may exit with any.
    Broken {
        /// What went wrong.
        why: String,
    },
    /// It ends because it took more memory than its budget.
    OverMemory {
        /// How much it was.
        why: String,
    },
}

/// How far an attempt is.
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
    /// No user code runs.
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

    /// Shows it as that of an attempt of this process. Its steps are this process's own.
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

/// How an attempt has ended.
#[derive(Serialize, Deserialize)]
pub(super) struct RunnerEnd {
    pub result: RunnerResult,
    pub progress: RunnerProgress,
    /// Counters of user code, by name.
    pub counters: Vec<(String, u64)>,
    /// What user code measured besides.
    pub measures: Measures,
    /// Bytes of input that lie on this machine.
    pub local_bytes: u64,
    pub bad_records: Vec<FileBadRecords>,
    /// Processor time of its thread.
    pub cpu_ns: u64,
    /// Largest resident memory of the runner so far.
    pub peak_bytes: u64,
}

/// What an attempt leaves behind.
#[derive(Serialize, Deserialize)]
pub(super) enum RunnerResult {
    /// A map output in a file in one of the runner's folders.
    Mapped(GivenUpOutput),
    /// Its part is built.
    Built(BuiltPart),
    /// It failed.
    Failed { class: FailureClass, message: String },
}

/// A part that is built.
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
