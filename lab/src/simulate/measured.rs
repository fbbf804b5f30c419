//! A run as it was measured: workers, jobs, what the system itself took.

use gristmill_scheduler::core::CoreConfig;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::ids::{HostId, JobId, WorkerId};

/// A run, as its journal tells it. Times in seconds since the first arrival; what was before is negative.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// The most workers that were there at once.
    pub workers: Vec<WorkerShape>,
    /// When all of them had joined.
    pub workers_ready: f64,
    /// The jobs in the order of arrival.
    pub jobs: Vec<MeasuredJob>,
    /// What the system itself took.
    pub overheads: Overheads,
    /// Bytes in a second that the worker which carried most took or gave while anything was on its way to or from it;
    /// `None` if nothing ever was.
    pub carried: Option<f64>,
    /// Who decided when the first job arrived.
    pub policy: String,
    /// The placement then.
    pub placement: String,
    /// The estimator.
    pub estimator: String,
    /// What the estimator knew from before; null if nothing.
    pub memory: serde_json::Value,
    /// Somebody else decided later on.
    pub policy_changed: bool,
    /// Limits of the core.
    pub core: CoreConfig,
}

/// A worker as it was.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerShape {
    /// Its number.
    pub worker: WorkerId,
    /// Its machine.
    pub host: HostId,
    /// What it ran at once.
    pub slots: Slots,
    /// How fast its slots were made to be; 1 is as fast as they can.
    pub speed: f64,
    /// What its shuffle was held to in each direction, bytes in a second.
    pub nic_bytes_per_second: Option<u64>,
}

/// A job as it was. Times of tasks are those of the last good attempt, at speed 1; tasks that never ended well count as
/// the mean of the job's others of their kind.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredJob {
    /// Its number.
    pub job: JobId,
    /// Its name in the registry; empty if the journal does not say.
    pub name: String,
    /// When it arrived.
    pub arrived: f64,
    /// Slot-seconds of each map.
    pub map_seconds: Vec<f64>,
    /// What each map put out, over all partitions.
    pub output_bytes: Vec<f64>,
    /// Slot-seconds of each reduce.
    pub reduce_seconds: Vec<f64>,
    /// What the system took for each map beyond its own time, in seconds; `None` where nothing can be told, as of a map
    /// that was queued behind another.
    pub map_overheads: Vec<Option<f64>>,
    /// Likewise for each reduce.
    pub reduce_overheads: Vec<Option<f64>>,
    /// What all maps read.
    pub input_bytes: f64,
    /// What it asked for.
    pub terms: JobTerms,
    /// When its first task was launched.
    pub started: Option<f64>,
    /// When its last map ended.
    pub maps_done: Option<f64>,
    /// When its last segment was in.
    pub shuffle_done: Option<f64>,
    /// When it ended.
    pub ended: Option<f64>,
    /// It ended well. Others are not predicted.
    pub succeeded: bool,
}

/// What a job asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobTerms {
    /// When it should have ended.
    pub deadline: Option<f64>,
    /// Its weight.
    pub weight: f64,
    /// The pool that it shared.
    pub pool: Option<u32>,
    /// Weight of that pool, where the job said so.
    pub pool_weight: Option<f64>,
    /// Its urgency.
    pub priority: i32,
}

/// What the system itself took, in seconds: medians over the run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Overheads {
    /// Of a map beyond its own time, from the order to launch it to the fact of its end; maps that were queued behind
    /// others are not counted.
    pub map: f64,
    /// Likewise of a reduce.
    pub reduce: f64,
    /// From the order to fetch from another worker to the fact that it is there, where the network has no rate. Where it
    /// has one this is 0: several requests are on their way at once, so that nobody waits for the first byte.
    pub fetch: f64,
    /// Of a suspension and what it takes to go on, beyond the work itself.
    pub suspension: f64,
}
