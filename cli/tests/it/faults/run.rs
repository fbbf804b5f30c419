//! Facts about a disturbed job, as plain data: collected by `facts`, judged by `invariants`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The files of an output directory.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Result of an undisturbed run.
#[derive(Clone)]
pub struct Reference {
    /// Parts of its output.
    pub parts: Vec<Vec<u8>>,
    /// Status of the job.
    pub status: Value,
}

/// Expected end of a disturbed job.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ending {
    /// Exit code of its submitter, or `None` if it was killed.
    pub code: Option<i32>,
    /// Final state of the job in all reports.
    pub state: &'static str,
    /// Words of its submitter's last message.
    pub words: &'static [&'static str],
    /// True if no attempt may be lost and no work repeated.
    pub untouched: bool,
}

impl Ending {
    /// The output is that of an undisturbed run; attempts may have run again.
    pub const SAME_OUTPUT: Self = Self { code: Some(0), state: "succeeded", words: &[], untouched: false };

    /// Its submitter was killed, and the master removes its output.
    pub const ABANDONED: Self = Self { code: None, state: "failed", ..Self::SAME_OUTPUT };

    /// Its submitter has cancelled it.
    pub const CANCELLED: Self = Self {
        code: Some(130),
        state: "cancelled",
        words: &["interrupted", "was cancelled"],
        untouched: false,
    };

    /// True if its output must exist.
    pub fn has_output(&self) -> bool {
        self.state == "succeeded"
    }
}

/// A disturbed job and what it left.
#[derive(Clone)]
pub struct Run {
    /// Expected end of the job.
    pub ending: Ending,
    /// Exit code of its submitter.
    pub code: Option<i32>,
    /// Time from the fault to the end of the submitter.
    pub took: Duration,
    /// Maximum of that time.
    pub bound: Duration,
    /// Its submitter's stderr.
    pub stderr: String,
    /// Its submitter's stdout, if that is a report.
    pub report: Option<Value>,
    /// Its output directory, or `None` if it does not exist.
    pub output: Option<Files>,
    /// Number of times that the fault fired.
    pub fired: u64,
    /// Number of times that it should have fired.
    pub wanted: RangeInclusive<u64>,
    /// Reports of the job, or `None` if it never reached the master.
    pub told: Option<Told>,
    /// The next job on the same cluster.
    pub next: Next,
    /// Processes, files and tokens that were left when the cluster had ended.
    pub left: Vec<String>,
    /// The stderr of all processes.
    pub logs: String,
}

/// Reports of a job in all places.
#[derive(Clone)]
pub struct Told {
    /// Its status from the master.
    pub status: Value,
    /// Its line among all jobs, from the command line.
    pub listed: String,
    /// Its state in the register that outlives the master.
    pub registered: String,
    /// The job in the journal. `None` if its master was killed, since each master writes a journal of its
    /// own.
    pub journal: Option<Written>,
}

/// A job as a journal records it.
#[derive(Clone, Default)]
pub struct Written {
    /// Outcome of the job.
    pub outcome: String,
    /// Reason why the journal does not replay to the same orders; empty if it does.
    pub replay: String,
}

/// A job that came after a fault.
#[derive(Clone, Default)]
pub struct Next {
    /// Exit code of its submitter.
    pub code: Option<i32>,
    /// Its submitter's stderr.
    pub stderr: String,
    /// Its parts.
    pub parts: Vec<Vec<u8>>,
}
