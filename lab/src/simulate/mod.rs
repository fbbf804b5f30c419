//! The jobs of a run in the cluster simulator, in two ways that are kept apart.
//!
//! *Replayed*: arrivals, times of tasks and overheads as they were measured in the run; only who gets which slot when is
//! decided anew, by the same policy or another. It says how good the simulator is.
//! *Predicted*: planned arrivals, sizes and costs as they were known before the run, nothing measured in it. It says how
//! well one knows beforehand.
//! Not here: where the measurements come from (`measure`), and tables of the results.

mod known;
pub mod measure;
mod measured;
mod scenario;
mod traffic;

pub use known::{KnownJob, SizeSource, SystemCosts};
pub use measured::{JobTerms, Measured, MeasuredJob, Overheads, WorkerShape};
pub use scenario::Scenario;

use gristmill_runtime::registry::Registry;
use gristmill_scheduler::estimate::Estimator;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::sim::SimError;
use gristmill_scheduler::sim::cluster::{self, Observer, TransferRun};
use gristmill_scheduler::workload::Job;

/// When things happen to a job in the simulator, in seconds since the first arrival.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimulatedJob {
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

/// What cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
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
    /// A job of which nobody said beforehand how large it is.
    #[error("nothing says before the run what the tasks of {job} (`{name}`) take")]
    Unknown {
        /// The job.
        job: JobId,
        /// Its name.
        name: String,
    },
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

/// When the jobs of this scenario get how far with this policy, placement and estimator, in the order of arrival.
///
/// # Errors
/// Names that mean nothing, and what the simulator cannot run.
pub fn simulate(
    registry: &Registry,
    scenario: &Scenario,
    policy: &str,
    placement: &str,
    estimator: &str,
) -> Result<Vec<SimulatedJob>, SimulateError> {
    let name = |reason| SimulateError::Name { reason };
    let decides = registry.simulated_policy(policy).map_err(name)?;
    let places = registry.simulated_placement(placement).map_err(name)?;
    let estimates = scenario.make_estimator(registry, estimator)?;
    let jobs = &scenario.jobs;
    let source: Vec<Job> = jobs.iter().map(|job| job.simulated.clone()).collect();
    let mut shuffled = vec![0.0; jobs.len()];
    let mut records: Vec<Option<JobRecord>> = vec![None; jobs.len()];
    let mut keep = |record: &JobRecord| records[record.seq as usize] = Some(*record);
    let deciders = cluster::Deciders { policy: decides, placement: places, estimator: Some(estimates) };
    cluster::run(&scenario.config, deciders, source, &mut Transfers(&mut shuffled), &mut keep)
        .map_err(|source| SimulateError::Simulation { policy: policy.to_owned(), source })?;
    let simulated = jobs.iter().zip(records).zip(shuffled).filter_map(|((job, record), shuffled)| {
        let record = record?;
        Some(SimulatedJob {
            job: job.job,
            arrived: job.arrived,
            started: record.start,
            maps_done: record.maps_done,
            shuffle_done: record.maps_done.max(shuffled),
            ended: record.completion,
        })
    });
    Ok(simulated.collect())
}

/// Notes when the last transfer of each job ended.
struct Transfers<'a>(&'a mut [f64]);

impl Observer for Transfers<'_> {
    fn transfer(&mut self, run: &TransferRun) {
        let last = &mut self.0[run.seq as usize];
        *last = last.max(run.end);
    }
}

impl Scenario {
    /// The estimator of this name; the one of the run knows what it knew then.
    fn make_estimator(&self, registry: &Registry, name: &str) -> Result<Box<dyn Estimator>, SimulateError> {
        let error = |reason| SimulateError::Name { reason };
        let mut made = registry.make_estimator(name).map_err(error)?;
        if name == self.estimator.0 {
            made.restore(&self.estimator.1).map_err(error)?;
        }
        Ok(made)
    }
}

impl Measured {
    /// What was recorded of the jobs that ended well, as [`simulate`] gives what would have been.
    #[must_use]
    pub fn recorded(&self) -> Vec<SimulatedJob> {
        let recorded = |job: &MeasuredJob| {
            let started = job.started.unwrap_or(job.arrived);
            let maps_done = job.maps_done.unwrap_or(started);
            SimulatedJob {
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
}

#[cfg(test)]
mod tests;
