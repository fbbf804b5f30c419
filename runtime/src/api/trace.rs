//! What happened to a job: attempts, transfers, estimates, user output, and why it went as it did.

use super::{AttemptEnd, JobStatus};
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use gristmill_worker::protocol::AttemptReport;
use serde::{Deserialize, Serialize};

/// Everything that happened to a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobTrace {
    /// How it stands.
    pub status: JobStatus,
    /// Attempts in the order of launching.
    pub attempts: Vec<AttemptRecord>,
    /// Transfers in the order of their end.
    pub fetches: Vec<FetchRecord>,
    /// How large the job looked, from arrival to end, at most [`ESTIMATES_MAX`].
    #[serde(default)]
    pub estimates: Vec<EstimateRecord>,
    /// Records left out because there were too many.
    pub omitted: u64,
    /// Whether the job has a combiner; `None` if its master did not know.
    #[serde(default)]
    pub combines: Option<bool>,
    /// Bytes of its input that could be cut into more splits, which compressed files cannot; `None` likewise.
    #[serde(default)]
    pub cuttable_bytes: Option<u64>,
    /// No other job was there while it was, the workers stayed the same or became fewer, and each slot runs tasks of both
    /// kinds: what this job did not use was not used. Not said by older masters.
    #[serde(default)]
    pub had_all_slots: bool,
    /// What its flow time went into; empty until it has ended, and in what is kept of it, as it follows from that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathStep>,
}

/// A stretch of a job's critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStep {
    /// Where it begins, nanoseconds after the job's arrival.
    pub from_ns: u64,
    /// Where it ends, likewise.
    pub until_ns: u64,
    /// What ran, travelled or was waited for.
    pub what: String,
}

/// One attempt, for the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The attempt.
    pub attempt: AttemptId,
    /// Where it ran.
    pub worker: WorkerId,
    /// When the master launched it.
    pub launched_ns: u64,
    /// When it began on the worker, in the master's clock.
    pub started_ns: Option<u64>,
    /// When it ended, in the master's clock.
    pub ended_ns: Option<u64>,
    /// How it ended.
    pub end: AttemptEnd,
    /// Why this job, why there.
    pub reason: String,
    /// What it did, once it has ended.
    pub report: Option<AttemptReport>,
    /// From when until when it was suspended, in the master's clock; while it is, the end is the time of the look.
    #[serde(default)]
    pub suspensions: Vec<(u64, u64)>,
    /// Whether it is suspended now.
    #[serde(default)]
    pub suspended: bool,
}

/// One transfer of segments, for the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchRecord {
    /// Whose output.
    pub map: AttemptId,
    /// Who had it.
    pub from: WorkerId,
    /// Who fetched it.
    pub to: WorkerId,
    /// Number of partitions.
    pub partitions: u32,
    /// Bytes; 0 if read in place.
    pub bytes: u64,
    /// When the request began, in the master's clock.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
}

/// Estimates kept of one job; when there are more, every second one is left out.
pub const ESTIMATES_MAX: usize = 512;

/// How large a job looked at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateRecord {
    /// When, in the master's clock.
    pub at_ns: u64,
    /// Maps done then.
    pub maps_done: u32,
    /// Slot-seconds of maps, seconds of the network, slot-seconds of reduces: all work.
    pub whole: [f64; 3],
    /// What was left of it.
    pub left: [f64; 3],
}

/// Why something ran where and when it did, or why it waits, in words. Answer to `GET /jobs/JOB/explain`, which takes
/// `?task=map-3` or `?task=reduce-0` for one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Sentences, the answer first.
    pub sentences: Vec<String>,
}

/// What user code wrote, for one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogEntry {
    /// The attempt; `None` if several ran when it was written.
    pub attempt: Option<AttemptId>,
    /// Where it ran.
    pub worker: WorkerId,
    /// The words, bytes that are not UTF-8 replaced.
    pub text: String,
    /// Bytes left out.
    pub omitted_bytes: u64,
}
