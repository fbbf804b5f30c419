//! What the jobs of a journal would have taken under any policy, by the cluster simulator.
//!
//! Arrivals, shapes of jobs, measured times of tasks and the overheads of the real system stay; who gets which slot
//! when is decided anew. Not here: where the measurements come from (`measure`), and tables of the results.
//!
//! It is not: a model of contention. A task takes what it took, whoever else runs on the machine.

pub mod measure;
mod measured;
mod traffic;

pub use measured::{JobTerms, Measured, MeasuredJob, Overheads, WorkerShape};

use gristmill_runtime::registry::Registry;
use gristmill_scheduler::estimate::Estimator;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::sim::SimError;
use gristmill_scheduler::sim::cluster::{self, Config, NetworkConfig, Observer, SimWorker, TransferRun};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::Job;
use gristmill_worker::shuffle::plan::FetchLimits;

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
            deadline: job.terms.deadline.map(|deadline| deadline.max(0.0)),
            weight: job.terms.weight,
            pool: job.terms.pool,
            pool_weight: job.terms.pool_weight,
            priority: job.terms.priority,
            name: Some(job.name.clone()).filter(|name| !name.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests;
