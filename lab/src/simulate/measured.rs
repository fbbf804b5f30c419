//! Measurements of a run: workers, jobs, and the time of the system itself.

use gristmill_scheduler::core::CoreConfig;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::ids::{HostId, JobId, WorkerId};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::Job;
use gristmill_worker::settings::Shuffle;

/// Measurements of a run from its journal. Times are seconds since the first arrival; earlier times are
/// negative.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunMeasurements {
    /// Largest set of workers that were present at once.
    pub workers: Vec<WorkerShape>,
    /// Time when all of them had joined.
    pub workers_ready: f64,
    /// Jobs in the order of arrival.
    pub jobs: Vec<MeasuredJob>,
    /// Time of the system itself.
    pub overheads: Overheads,
    /// Bytes per second received or sent by the busiest worker while any transfer of it was in progress;
    /// `None` without transfers.
    pub carried: Option<f64>,
    /// Policy when the first job arrived.
    pub policy: String,
    /// Placement when the first job arrived.
    pub placement: String,
    /// Name of the estimator.
    pub estimator: String,
    /// Prior knowledge of the estimator; null if none.
    pub memory: serde_json::Value,
    /// True if the policy changed later.
    pub policy_changed: bool,
    /// Limits of the core.
    pub core: CoreConfig,
    /// Transfer mode of the workers.
    pub shuffle: Shuffle,
}

/// Shape of a worker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerShape {
    /// Number of the worker.
    pub worker: WorkerId,
    /// Machine of the worker.
    pub host: HostId,
    /// Slots of the worker.
    pub slots: Slots,
    /// Configured speed of its slots; 1 is full speed.
    pub speed: f64,
    /// Rate limit of its shuffle in each direction, in bytes per second.
    pub nic_bytes_per_second: Option<u64>,
}

/// Measurements of a job. Times of tasks are those of the last successful attempt, at speed 1. Tasks that
/// never succeeded count as the mean of the job's other tasks of their kind.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredJob {
    /// Number of the job.
    pub job: JobId,
    /// Name in the registry; empty if the journal does not contain it.
    pub name: String,
    /// Arrival of the job.
    pub arrived: f64,
    /// Slot-seconds of each map.
    pub map_seconds: Vec<f64>,
    /// Output bytes of each map, over all partitions.
    pub output_bytes: Vec<f64>,
    /// Slot-seconds of each reduce.
    pub reduce_seconds: Vec<f64>,
    /// System time of each map beyond its own time, in seconds; `None` where it cannot be determined, as
    /// for a map that was queued behind another.
    pub map_overheads: Vec<Option<f64>>,
    /// System time of each reduce, in the same form.
    pub reduce_overheads: Vec<Option<f64>>,
    /// Bytes that all maps read.
    pub input_bytes: f64,
    /// Terms of its submission.
    pub terms: JobTerms,
    /// Launch of its first task.
    pub started: Option<f64>,
    /// End of its last map.
    pub maps_done: Option<f64>,
    /// Arrival of its last segment.
    pub shuffle_done: Option<f64>,
    /// End of the job.
    pub ended: Option<f64>,
    /// True if it succeeded. Other jobs are not predicted.
    pub succeeded: bool,
}

/// Terms of a job's submission.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobTerms {
    /// Deadline of the job.
    pub deadline: Option<f64>,
    /// Weight of the job.
    pub weight: f64,
    /// Pool of the job.
    pub pool: Option<u32>,
    /// Weight of that pool, if the job specified it.
    pub pool_weight: Option<f64>,
    /// Priority of the job.
    pub priority: i32,
}

/// Time of the system itself, in seconds: medians over the run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Overheads {
    /// Time of a map beyond its own time, from the order to launch it to the event of its end. Maps that
    /// were queued behind others are not counted.
    pub map: f64,
    /// Time of a reduce, in the same form.
    pub reduce: f64,
    /// Time from the order to fetch from another worker to the event of the arrival, where the network
    /// has no rate limit. With a rate limit it is 0: several requests are in flight at once, which hides
    /// the latency of the first byte.
    pub fetch: f64,
    /// Time of a suspension and its resumption, beyond the work itself.
    pub suspension: f64,
}

/// Returns a job with these tasks and output bytes, as it was submitted.
pub(super) fn simulated(
    job: &MeasuredJob,
    (arrival, deadline): (f64, Option<f64>),
    [maps, reduces]: [Vec<f64>; 2],
    bytes: f64,
) -> Job {
    let JobTerms { weight, pool, pool_weight, priority, .. } = job.terms;
    Job {
        arrival,
        work: PerStation::new(maps.iter().sum(), 0.0, reduces.iter().sum()),
        shuffle_bytes: if reduces.is_empty() { 0.0 } else { bytes },
        maps,
        reduces,
        input_bytes: job.input_bytes,
        deadline: deadline.map(|deadline| deadline.max(0.0)),
        weight,
        pool,
        pool_weight,
        priority,
        name: Some(job.name.clone()).filter(|name| !name.is_empty()),
    }
}
