//! What the jobs of a journal would have taken under any policy, by the cluster simulator.
//!
//! Arrivals, shapes of jobs, measured times of tasks and the overheads of the real system stay; who gets which slot
//! when is decided anew. Not here: where the measurements come from (`measure`), and tables of the results.
//!
//! It is not: a model of contention. A task takes what it took, whoever else runs on the machine.

pub mod measure;
mod traffic;

use gristmill_runtime::registry::Registry;
use gristmill_scheduler::core::CoreConfig;
use gristmill_scheduler::estimate::Estimator;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::ids::{HostId, JobId, WorkerId};
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::sim::SimError;
use gristmill_scheduler::sim::cluster::{self, Config, NetworkConfig, Observer, SimWorker, TransferRun};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::Job;
use gristmill_worker::shuffle::plan::FetchLimits;

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
    /// When it should have ended.
    pub goal: Option<f64>,
    /// Its weight.
    pub weight: f64,
    /// The pool that it shared.
    pub pool: Option<u32>,
    /// Weight of that pool, where the job said so.
    pub pool_weight: Option<f64>,
    /// Its urgency.
    pub priority: i32,
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

/// When things would have happened to a job, in seconds since the first arrival.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PredictedJob {
    /// The job.
    pub job: JobId,
    /// When it arrived.
    pub arrived: f64,
    /// When its first task began.
    pub started: f64,
    /// When its last map ended.
    pub maps_done: f64,
    /// When its last segment was in.
    pub shuffle_done: f64,
    /// When it ended.
    pub ended: f64,
}

/// What cannot be predicted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictError {
    /// A policy, placement or estimator that cannot be made.
    #[error("{reason}")]
    Name {
        /// Why, with its name.
        reason: String,
    },
    /// The journal has no worker.
    #[error("no worker joined")]
    NoWorkers,
    /// No job ended well.
    #[error("no job ended well")]
    NoJobs,
    /// The simulator refuses it.
    #[error("the simulation under policy `{policy}` failed")]
    Simulation {
        /// The policy.
        policy: String,
        /// Why.
        #[source]
        source: SimError,
    },
}

/// When the jobs that ended well would have got how far with this policy, placement and estimator, in the order of
/// arrival.
///
/// # Errors
/// Names that mean nothing, a journal without workers or jobs that ended well, and what the simulator cannot run.
pub fn predict(
    registry: &Registry,
    measured: &Measured,
    policy: &str,
    placement: &str,
    estimator: &str,
) -> Result<Vec<PredictedJob>, PredictError> {
    let name = |reason| PredictError::Name { reason };
    let decides = registry.simulated_policy(policy).map_err(name)?;
    let places = registry.simulated_placement(placement).map_err(name)?;
    let estimates = measured.estimator(registry, estimator)?;
    let config = measured.cluster()?;
    let jobs: Vec<&MeasuredJob> = measured.jobs.iter().filter(|job| job.succeeded).collect();
    if jobs.is_empty() {
        return Err(PredictError::NoJobs);
    }
    let source: Vec<Job> = jobs.iter().map(|job| measured.simulated(job)).collect();
    let mut shuffled = vec![0.0; jobs.len()];
    let mut records: Vec<Option<JobRecord>> = vec![None; jobs.len()];
    let mut keep = |record: &JobRecord| records[record.seq as usize] = Some(*record);
    let deciders = cluster::Deciders { policy: decides, placement: places, estimator: Some(estimates) };
    cluster::run(&config, deciders, source, &mut Transfers(&mut shuffled), &mut keep)
        .map_err(|source| PredictError::Simulation { policy: policy.to_owned(), source })?;
    let predicted = jobs.iter().zip(records).zip(shuffled).filter_map(|((job, record), shuffled)| {
        let record = record?;
        Some(PredictedJob {
            job: job.job,
            arrived: job.arrived,
            started: record.start,
            maps_done: record.maps_done,
            shuffle_done: record.maps_done.max(shuffled),
            ended: record.completion,
        })
    });
    Ok(predicted.collect())
}

/// Notes when the last transfer of each job ended.
struct Transfers<'a>(&'a mut [f64]);

impl Observer for Transfers<'_> {
    fn transfer(&mut self, run: &TransferRun) {
        let last = &mut self.0[run.seq as usize];
        *last = last.max(run.end);
    }
}

impl Measured {
    /// What was recorded of the jobs that ended well, as [`predict`] gives what would have been.
    #[must_use]
    pub fn recorded(&self) -> Vec<PredictedJob> {
        let recorded = |job: &MeasuredJob| {
            let started = job.started.unwrap_or(job.arrived);
            let maps_done = job.maps_done.unwrap_or(started);
            PredictedJob {
                job: job.job,
                arrived: job.arrived,
                started,
                maps_done,
                shuffle_done: job.shuffle_done.unwrap_or(maps_done),
                ended: job.ended.unwrap_or(maps_done),
            }
        };
        self.jobs.iter().filter(|job| job.succeeded).map(recorded).collect()
    }

    /// The estimator of this name; the one of the run knows what it knew then.
    fn estimator(&self, registry: &Registry, name: &str) -> Result<Box<dyn Estimator>, PredictError> {
        let error = |reason| PredictError::Name { reason };
        let mut made = registry.make_estimator(name).map_err(error)?;
        if name == self.estimator {
            made.restore(&self.memory).map_err(error)?;
        }
        Ok(made)
    }

    /// The cluster as it was. The simulator has one network for all: its rate is the smallest of any worker.
    fn cluster(&self) -> Result<Config, PredictError> {
        let first = self.workers.first().ok_or(PredictError::NoWorkers)?;
        let worker = |shape: &WorkerShape| SimWorker {
            speed: shape.speed,
            ..SimWorker::new(shape.slots, shape.host.0)
        };
        let rate = self.workers.iter().filter_map(|worker| worker.nic_bytes_per_second).min();
        // As workers ask: for so much at once that they can soon turn to a more urgent job.
        let request_bytes =
            rate.map_or(f64::INFINITY, |rate| FetchLimits::default().paced(rate).request_bytes_max as f64);
        // Requests and a busy machine take their part of a rate: what was carried is what can be.
        let rate = rate.map_or(f64::INFINITY, |rate| {
            let rate = rate as f64;
            self.carried.map_or(rate, |carried| carried.clamp(1.0, rate))
        });
        let network = NetworkConfig {
            in_rate: rate,
            out_rate: rate,
            latency: self.overheads.fetch,
            ..NetworkConfig::default()
        };
        Ok(Config {
            workers: self.workers.iter().map(worker).collect(),
            network,
            request_bytes,
            report: [self.overheads.map, self.overheads.reduce],
            resume_cost: self.overheads.suspension,
            core: self.core.clone(),
            ..Config::uniform(1, first.slots)
        })
    }

    /// The job for the simulator. All tasks of a kind are reported as late as the one in the middle was; what the system
    /// took more or less for a task counts as its own time, since the sum over all matters and some take much more.
    fn simulated(&self, job: &MeasuredJob) -> Job {
        let lengths = |seconds: &[f64], overheads: &[Option<f64>], median: f64| -> Vec<f64> {
            let length = |(seconds, overhead): (&f64, &Option<f64>)| {
                (seconds + overhead.map_or(0.0, |overhead| overhead - median)).max(0.0)
            };
            seconds.iter().zip(overheads).map(length).collect()
        };
        let maps = lengths(&job.map_seconds, &job.map_overheads, self.overheads.map);
        let reduces = lengths(&job.reduce_seconds, &job.reduce_overheads, self.overheads.reduce);
        let bytes = if reduces.is_empty() { 0.0 } else { job.output_bytes.iter().sum() };
        Job {
            // Before there are workers, nothing is decided that could matter.
            arrival: job.arrived.max(self.workers_ready),
            work: PerStation::new(maps.iter().sum(), 0.0, reduces.iter().sum()),
            maps,
            reduces,
            input_bytes: job.input_bytes,
            shuffle_bytes: bytes,
            deadline: job.goal.map(|goal| goal.max(0.0)),
            weight: job.weight,
            pool: job.pool,
            pool_weight: job.pool_weight,
            priority: job.priority,
            name: Some(job.name.clone()).filter(|name| !name.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests;
