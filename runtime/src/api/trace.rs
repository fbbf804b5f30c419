//! Trace of a job: attempts, transfers, estimates, user output, and explanations.

use super::failures::AttemptEnd;
use super::job::JobStatus;
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use gristmill_worker::protocol::AttemptReport;
use serde::{Deserialize, Serialize};

/// Trace of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobTrace {
    /// Status of the job.
    pub status: JobStatus,
    /// Attempts in the order of launch.
    pub attempts: Vec<AttemptRecord>,
    /// Transfers in the order of their end.
    pub fetches: Vec<FetchRecord>,
    /// Estimates of the job's size, from arrival to end, at most 512.
    #[serde(default)]
    pub estimates: Vec<EstimateRecord>,
    /// Number of records dropped because there were too many.
    pub omitted: u64,
    /// True if the job has a combiner; `None` if its master did not know.
    pub combines: Option<bool>,
    /// Bytes of its input that could be cut into more splits, which excludes compressed files; `None` if its master did
    /// not know.
    pub cuttable_bytes: Option<u64>,
    /// True if all slots were available to the job: no other job was live at the same time, no worker joined, and each
    /// slot runs tasks of both kinds. A slot that this job did not use was then idle. False from older masters.
    #[serde(default)]
    pub had_all_slots: bool,
    /// Critical path: the steps of its flow time. Empty until the job has ended, and in archived traces, because it is
    /// computed from the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathStep>,
}

/// A step of a job's critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStep {
    /// Start, nanoseconds after the job's arrival.
    pub from_ns: u64,
    /// End, nanoseconds after the job's arrival.
    pub until_ns: u64,
    /// Description of the task, transfer or wait.
    pub what: String,
}

/// One attempt, for the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The attempt.
    pub attempt: AttemptId,
    /// Worker on which it ran.
    pub worker: WorkerId,
    /// Time of its launch by the master.
    pub launched_ns: u64,
    /// Time of its start on the worker, in the master's clock.
    pub started_ns: Option<u64>,
    /// Time of its end, in the master's clock.
    pub ended_ns: Option<u64>,
    /// Outcome.
    pub end: AttemptEnd,
    /// Reason for the choice of this job and this worker.
    pub reason: String,
    /// Report of its work, once it has ended.
    pub report: Option<AttemptReport>,
    /// Intervals of suspension, in the master's clock. The end of a current suspension is the time of the query.
    #[serde(default)]
    pub suspensions: Vec<(u64, u64)>,
    /// True if it is suspended now.
    #[serde(default)]
    pub suspended: bool,
}

/// One transfer of segments, for the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchRecord {
    /// The map attempt whose output was transferred.
    pub map: AttemptId,
    /// Worker that sent it.
    pub from: WorkerId,
    /// Worker that fetched it.
    pub to: WorkerId,
    /// Number of partitions.
    pub partitions: u32,
    /// Bytes; 0 if read in place.
    pub bytes: u64,
    /// Start of the request, in the master's clock.
    pub started_ns: u64,
    /// End of the request.
    pub ended_ns: u64,
}

/// Maximum number of estimates kept of one job. If there are more, every second one is dropped.
pub(crate) const ESTIMATES_MAX: usize = 512;

/// Estimate of a job's size at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateRecord {
    /// Time in the master's clock.
    pub at_ns: u64,
    /// Number of maps done by then.
    pub maps_done: u32,
    /// All work: slot-seconds of maps, seconds of the network, slot-seconds of reduces.
    pub whole: [f64; 3],
    /// Remaining work.
    pub left: [f64; 3],
}

/// Reasons, in words, why a task ran where and when it did, or why a job waits. Response to `GET /jobs/JOB/explain`,
/// which takes `?task=map-3` or `?task=reduce-0` for one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Sentences, the most direct reason first.
    pub sentences: Vec<String>,
}

/// Output of user code of one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogEntry {
    /// The attempt; `None` if several ran when it was written.
    pub attempt: Option<AttemptId>,
    /// Worker on which it ran.
    pub worker: WorkerId,
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Number of bytes dropped.
    pub omitted_bytes: u64,
}
