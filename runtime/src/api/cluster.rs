//! The master and its workers: how they stand, how a worker process ended, who decides from now on.

use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_worker::http::Endpoint;
use gristmill_worker::protocol::SlotCounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The master as a whole.
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
    /// The estimator that tells policies how large jobs are.
    #[serde(default)]
    pub estimator: String,
    /// Times that the policy panicked since it decides; `fifo` decided in its place.
    #[serde(default)]
    pub policy_panics: u64,
    /// What it said the last time; empty if it never did.
    #[serde(default)]
    pub policy_panic: String,
    /// The master's clock.
    pub now_ns: u64,
    /// Live workers.
    pub workers: Vec<WorkerStatus>,
    /// Workers that were given up in the last ten minutes because nothing was heard of them, if their process was not
    /// said to have ended; the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUpWorker>,
    /// Jobs that have not ended.
    pub jobs_live: u32,
    /// Why it promises nothing new for now: it takes no jobs, and orders wait. `None` if it does.
    #[serde(default)]
    pub trouble: Option<String>,
    /// Why it may not know of all jobs of earlier masters, in words; `None` if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register_gap: Option<String>,
    /// Should it be killed, another one may come in its place and go on with its jobs.
    #[serde(default)]
    pub returns: bool,
}

/// Who would get slots one after the other by the policy, were they free. Answer of `GET /api/v1/turns`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Turns {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// The most urgent first.
    pub turns: Vec<JobTurn>,
    /// Turns that the list has no room for.
    pub omitted: u64,
}

/// Slots for one job, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobTurn {
    /// The job.
    pub job: JobId,
    /// What it would start.
    pub kind: TaskKind,
    /// How many of them.
    pub tasks: u32,
    /// The policy's reason for the first one.
    pub reason: String,
}

/// Answer of `GET /api/v1/cluster`: what planning a job needs, for those who may submit one.
#[derive(Clone, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// As `GET /api/v1/status` has it.
    pub master: MasterStatus,
    /// What opens each worker's listings and samples of its files: secrets.
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
    /// Attempts it can run at once.
    pub slots: u32,
    /// The same by kind.
    pub slot_counts: SlotCounts,
    /// How fast its slots are made to be; 1 is as fast as they can.
    pub speed: f64,
    /// What its shuffle is held to in each direction, bytes in a second.
    pub nic_bytes_per_second: Option<u64>,
    /// Attempts it runs.
    pub running: u32,
    /// Where its shuffle server listens.
    pub endpoint: Endpoint,
    /// Its memory budget, bytes.
    pub memory_budget_bytes: u64,
    /// Anonymous and shared memory it uses, bytes.
    pub memory_bytes: u64,
    /// Free bytes on its fullest spill directory.
    pub disk_free_bytes: u64,
    /// Its clock minus the master's, nanoseconds, as measured.
    pub clock_offset_ns: i64,
    /// When it joined.
    pub joined_ns: u64,
    /// The connection to it is gone, and it is expected back.
    #[serde(default)]
    pub away: bool,
    /// Its spill disks are full: it gets no new tasks while others have room.
    #[serde(default)]
    pub disk_full: bool,
}

/// A worker of which nothing was heard for too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUpWorker {
    /// Its number.
    pub worker: WorkerId,
    /// Name of its machine.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// When it was given up, in the master's clock.
    pub given_up_ns: u64,
}

/// A worker process has ended; said by whoever started it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerEnded {
    /// Its process id.
    pub pid: u32,
    /// Name of its machine.
    pub host: String,
    /// By which the master believes this: the worker said what the key gives when it joined.
    pub key: String,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The kernel ended it because memory ran out, or it ended itself because it took more than its budget.
    #[serde(default)]
    pub out_of_memory: bool,
    /// Its exit code, if no signal did.
    pub code: Option<i32>,
    /// The last words of user code.
    pub last_words: String,
    /// What its slots began last; they may have ended it well.
    #[serde(default)]
    pub begun: Vec<AttemptId>,
    /// The attempt on whose thread the process was brought down from within; `None` if none is known to have done that.
    #[serde(default)]
    pub culprit: Option<AttemptId>,
}

/// What the master's estimator has learned. Answer of `GET /estimator`, and body of `PUT /estimator`, after which it knows
/// just that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimatorMemory {
    /// As text.
    pub estimator: String,
    /// As the estimator says it; null if it learns nothing.
    pub memory: serde_json::Value,
}

/// Who decides from now on. Body of `PUT /policy`; the answer is the [`MasterStatus`](super::MasterStatus).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyChange {
    /// Policy as text; `None`: stays, and starts anew.
    pub policy: Option<String>,
    /// Placement as text; `None`: stays, and starts anew.
    pub placement: Option<String>,
}
