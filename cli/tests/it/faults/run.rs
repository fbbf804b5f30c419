//! What is known of a job that a fault has struck, as plain data: gathered by `facts`, judged by `invariants`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The files of an output directory.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What an undisturbed run has made.
#[derive(Clone)]
pub struct Reference {
    /// Its parts.
    pub parts: Vec<Vec<u8>>,
    /// Its status.
    pub status: Value,
}

/// How a job that was struck must end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ending {
    /// Exit code of its submitter; `None`: it was killed.
    pub code: Option<i32>,
    /// The state in which all see the job in the end.
    pub state: &'static str,
    /// Words of its submitter's last message.
    pub words: &'static [&'static str],
    /// Whether no attempt may have been lost, nor anything done again.
    pub untouched: bool,
}

impl Ending {
    /// As if nothing had been; attempts may have been made again.
    pub const SAME_OUTPUT: Self = Self { code: Some(0), state: "succeeded", words: &[], untouched: false };

    /// Its submitter was killed, and the master undoes it.
    pub const ABANDONED: Self = Self { code: None, state: "failed", ..Self::SAME_OUTPUT };

    /// Its submitter has cancelled it.
    pub const CANCELLED: Self = Self {
        code: Some(130),
        state: "cancelled",
        words: &["interrupted", "was cancelled"],
        untouched: false,
    };

    /// Whether its output must be there.
    pub fn has_output(&self) -> bool {
        self.state == "succeeded"
    }
}

/// A job that was struck, and what was left of it.
#[derive(Clone)]
pub struct Run {
    /// How it must end.
    pub ending: Ending,
    /// Exit code of its submitter.
    pub code: Option<i32>,
    /// From the fault to the end of the submitter.
    pub took: Duration,
    /// How long that may take.
    pub bound: Duration,
    /// What its submitter said on stderr.
    pub stderr: String,
    /// What its submitter said on stdout, if that is a report.
    pub report: Option<Value>,
    /// Its output directory; `None`: there is none.
    pub output: Option<Files>,
    /// How often the fault fired.
    pub fired: u64,
    /// How often it should have.
    pub wanted: RangeInclusive<u64>,
    /// What is told of it; `None` if it never came as far as the master.
    pub told: Option<Told>,
    /// The next job on the same cluster.
    pub next: Next,
    /// Processes, files and tokens that were still there when the cluster had ended.
    pub left: Vec<String>,
    /// What all processes have written to stderr.
    pub logs: String,
}

/// What is told of a job in all places.
#[derive(Clone)]
pub struct Told {
    /// Its status from the master.
    pub status: Value,
    /// Its line among all jobs, from the command line.
    pub listed: String,
    /// Its state in the register that outlives the master.
    pub registered: String,
    /// What the journal says of it; `None` if its master was killed, since each writes a journal of its own.
    pub journal: Option<Written>,
}

/// What a journal says of a job.
#[derive(Clone, Default)]
pub struct Written {
    /// Its outcome.
    pub outcome: String,
    /// Why the journal does not replay to the same orders; empty if it does.
    pub replay: String,
}

/// A job that came after a fault.
#[derive(Clone, Default)]
pub struct Next {
    /// Exit code of its submitter.
    pub code: Option<i32>,
    /// What its submitter said.
    pub stderr: String,
    /// Its parts.
    pub parts: Vec<Vec<u8>>,
}
