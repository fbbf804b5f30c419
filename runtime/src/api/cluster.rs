//! The master and its workers: status, ends of worker processes, and the deciders.

use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_worker::http::Endpoint;
use gristmill_worker::protocol::Slots;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Status of the master.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MasterStatus {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Identifies the executable.
    pub build: String,
    /// The policy that chooses jobs.
    pub policy: String,
    /// The placement that chooses workers.
    pub placement: String,
    /// The estimator of job sizes for policies.
    #[serde(default)]
    pub estimator: String,
    /// Number of panics of the current policy; `fifo` decided instead each time.
    #[serde(default)]
    pub policy_panics: u64,
    /// Message of its last panic; empty if it never panicked.
    #[serde(default)]
    pub policy_panic: String,
    /// The master's clock.
    pub now_ns: u64,
    /// Live workers.
    pub workers: Vec<WorkerStatus>,
    /// Workers lost in the last ten minutes because of their silence, unless the end of their process was reported; the
    /// last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUpWorker>,
    /// Number of jobs that have not ended.
    pub jobs_live: u32,
    /// Reason for which the master accepts no jobs and delays orders, because it cannot write them down. `None` if it
    /// can.
    pub trouble: Option<String>,
    /// Reason, in words, for which jobs of earlier masters may be missing; `None` if all are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register_gap: Option<String>,
    /// True if another master can continue its jobs should this one be killed.
    #[serde(default)]
    pub returns: bool,
}

/// Queue of the policy: jobs that would get the next free slots. Response of `GET /api/v1/turns`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Turns {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Entries, the most urgent first.
    pub turns: Vec<JobTurn>,
    /// Number of entries that the list has no room for.
    pub omitted: u64,
}

/// Consecutive slots for one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobTurn {
    /// The job.
    pub job: JobId,
    /// Kind of the tasks it would start.
    pub kind: TaskKind,
    /// Number of the tasks.
    pub tasks: u32,
    /// The policy's reason for the first one.
    pub reason: String,
}

/// Response of `GET /api/v1/cluster`: the data for planning a job, for callers that may submit one.
#[derive(Clone, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// As in `GET /api/v1/status`.
    pub master: MasterStatus,
    /// Keys of each worker's listings and samples of its files: secrets.
    pub list_keys: BTreeMap<WorkerId, String>,
}

/// A worker as the master sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Its number.
    pub worker: WorkerId,
    /// Name of its machine.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// Number of attempts it can run at once.
    pub slots: u32,
    /// The same by kind.
    pub slot_counts: Slots,
    /// Speed of its slots; 1 is full speed.
    pub speed: f64,
    /// Rate limit of its shuffle in each direction, bytes per second.
    pub nic_bytes_per_second: Option<u64>,
    /// Number of attempts it runs.
    pub running: u32,
    /// Endpoint of its shuffle server.
    pub endpoint: Endpoint,
    /// Its memory budget, bytes.
    pub memory_budget_bytes: u64,
    /// Anonymous and shared memory it uses, bytes.
    pub memory_bytes: u64,
    /// Processors its process uses, without its children; in twentieths.
    #[serde(default)]
    pub processors: f64,
    /// Free bytes on its fullest spill directory.
    pub disk_free_bytes: u64,
    /// Its clock minus the master's, nanoseconds, as measured.
    pub clock_offset_ns: i64,
    /// Time at which it joined.
    pub joined_ns: u64,
    /// True if it is disconnected and expected back.
    #[serde(default)]
    pub away: bool,
    /// True if its spill disks are full: it gets no new tasks while others have room.
    #[serde(default)]
    pub disk_full: bool,
}

/// A worker lost because of its silence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUpWorker {
    /// Its number.
    pub worker: WorkerId,
    /// Name of its machine.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// Time of its loss, in the master's clock.
    pub given_up_ns: u64,
}

/// Report of the end of a worker process by the process that started it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerEnded {
    /// Its process id.
    pub pid: u32,
    /// Name of its machine.
    pub host: String,
    /// Key that authenticates this report: the worker reported a value derived from it when it joined.
    pub key: String,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// True if the kernel ended it because memory ran out, or it ended itself because it exceeded its budget.
    #[serde(default)]
    pub out_of_memory: bool,
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Last output of user code.
    pub last_words: String,
    /// The last attempts started in its slots; they may have succeeded.
    #[serde(default)]
    pub begun: Vec<AttemptId>,
    /// The attempt on whose thread the process was ended from within; `None` if that is not known of any.
    pub culprit: Option<AttemptId>,
}

/// Memory of the master's estimator. Response of `GET /estimator`, and body of `PUT /estimator`, which replaces all of
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimatorMemory {
    /// Name of the estimator as text.
    pub estimator: String,
    /// Memory in the estimator's own form; null if it does not learn.
    pub memory: serde_json::Value,
}

/// New deciders. Body of `PUT /policy`; the response is the [`MasterStatus`](super::MasterStatus).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyChange {
    /// Policy as text; `None` to keep it, restarted.
    pub policy: Option<String>,
    /// Placement as text; `None` to keep it, restarted.
    pub placement: Option<String>,
}
