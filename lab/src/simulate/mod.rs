//! The jobs of a run in the cluster simulator, in two separate modes.
//!
//! *Replayed*: arrivals, times of tasks and overheads are those measured in the run. Only the assignment
//! of slots is decided again, by the same policy or another. It shows the accuracy of the simulator.
//! *Predicted*: planned arrivals, sizes and costs are as known before the run, without any measurement of
//! it. It shows the accuracy of predictions.
//! Not here: the source of the measurements (`measure`), and tables of the results.

mod known;
pub mod measure;
mod measured;
mod scenario;
mod traffic;

pub use known::{KnownJob, SizeSource, SystemCosts};
pub use measured::{JobTerms, MeasuredJob, Overheads, RunMeasurements, WorkerShape};
pub use scenario::Scenario;

use gristmill_runtime::registry::Registry;
use gristmill_scheduler::estimate::Estimator;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::sim::SimError;
use gristmill_scheduler::sim::cluster::{self, Observer, TransferRun};
use gristmill_scheduler::workload::Job;

/// Times of a job in the simulator, in seconds since the first arrival.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimulatedJob {
    /// Number of the job.
    pub job: JobId,
    /// Arrival of the job.
    pub arrived: f64,
    /// Start of its first task.
    pub started: f64,
    /// End of its last map.
    pub maps_done: f64,
    /// Arrival of its last segment.
    pub shuffle_done: f64,
    /// End of the job.
    pub ended: f64,
}

/// Reason why a simulation is impossible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// A policy, placement or estimator cannot be created.
    #[error("{reason}")]
    Name {
        /// Cause, with the name.
        reason: String,
    },
    /// The journal contains no worker.
    #[error("no worker joined")]
    NoWorkers,
    /// No job succeeded.
    #[error("no job ended well")]
    NoJobs,
    /// The size of a job is not known beforehand.
    #[error("nothing says before the run what the tasks of {job} (`{name}`) take")]
    Unknown {
        /// Number of the job.
        job: JobId,
        /// Name of the job.
        name: String,
    },
    /// The simulator rejects the scenario.
    #[error("the simulation under policy `{policy}` failed")]
    Simulation {
        /// Name of the policy.
        policy: String,
        /// Cause.
        #[source]
        source: SimError,
    },
}

/// Simulates the jobs of this scenario with this policy, placement and estimator, and returns their times
/// in the order of arrival.
///
/// # Errors
/// Unknown names, and scenarios that the simulator cannot run.
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

/// Records the end of the last transfer of each job.
struct Transfers<'a>(&'a mut [f64]);

impl Observer for Transfers<'_> {
    fn transfer(&mut self, run: &TransferRun) {
        let last = &mut self.0[run.seq as usize];
        *last = last.max(run.end);
    }
}

impl Scenario {
    /// Creates the estimator of this name. If it is the estimator of the run, it has the knowledge from then.
    fn make_estimator(&self, registry: &Registry, name: &str) -> Result<Box<dyn Estimator>, SimulateError> {
        let error = |reason| SimulateError::Name { reason };
        let mut made = registry.make_estimator(name).map_err(error)?;
        if name == self.estimator.0 {
            made.restore(&self.estimator.1).map_err(error)?;
        }
        Ok(made)
    }
}

impl RunMeasurements {
    /// Returns the recorded times of the jobs that succeeded, in the form that [`simulate`] returns.
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
