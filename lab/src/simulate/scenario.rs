//! What the cluster simulator is given: replayed from a run's own measurements, or predicted from what was known before
//! it.
//!
//! Not here: running it (`simulate`).

use super::{JobTerms, KnownJob, Measured, MeasuredJob, SimulateError, SystemCosts, WorkerShape};
use gristmill_scheduler::core::CoreConfig;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::sim::cluster::{Config, NetworkConfig, SimWorker};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::Job;
use gristmill_worker::shuffle::plan::FetchLimits;
use std::collections::BTreeMap;

/// Jobs on a cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    pub(super) config: Config,
    /// In the order of arrival.
    pub(super) jobs: Vec<ScenarioJob>,
    /// The estimator of the run, and what it knew from before.
    pub(super) estimator: (String, serde_json::Value),
}

/// A job of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ScenarioJob {
    pub(super) job: JobId,
    /// Since when its flow time counts, seconds; before the cluster has workers, it arrives later in the simulator.
    pub(super) arrived: f64,
    pub(super) simulated: Job,
}

impl Measured {
    /// The jobs that ended well, with the times that their tasks took in this run and the overheads of this run: what
    /// differs from the run is the simulator's doing.
    ///
    /// # Errors
    /// No worker, or no job that ended well.
    pub fn replayed(&self) -> Result<Scenario, SimulateError> {
        // Requests and a busy machine take their part of a rate: what was carried is what can be.
        let rate = self.rate().map_or(f64::INFINITY, |rate| {
            self.carried.map_or(rate as f64, |carried| carried.clamp(1.0, rate as f64))
        });
        let config = Config {
            report: [self.overheads.map, self.overheads.reduce],
            resume_cost: self.overheads.suspension,
            ..self.cluster(rate, self.overheads.fetch)?
        };
        let job = |job: &MeasuredJob| ScenarioJob {
            job: job.job,
            arrived: job.arrived,
            simulated: self.measured_job(job),
        };
        self.scenario(config, self.jobs.iter().filter(|job| job.succeeded).map(job).collect())
    }

    /// The same jobs from what was known before the run: planned arrivals, sizes as told or measured in other runs, and
    /// costs of the system from other runs. Of this run only what was asked for is used: the shape of the cluster,
    /// what jobs were submitted with, who decides.
    ///
    /// # Errors
    /// No worker, no job, or one of which the size is not known.
    pub fn predicted(
        &self,
        known: &BTreeMap<JobId, KnownJob>,
        costs: &SystemCosts,
    ) -> Result<Scenario, SimulateError> {
        let rate = self.rate().map_or(f64::INFINITY, |rate| rate as f64);
        let (config, system) = (costs.in_config(self.cluster(rate, 0.0)?), costs.system());
        let job = |job: &MeasuredJob| match known.get(&job.job) {
            Some(known) if known.fits(job) => {
                Ok(ScenarioJob { job: job.job, arrived: known.arrival, simulated: known.job(job, &system) })
            }
            _ => Err(SimulateError::Unknown { job: job.job, name: job.name.clone() }),
        };
        self.scenario(config, self.jobs.iter().map(job).collect::<Result<_, _>>()?)
    }

    fn scenario(&self, config: Config, jobs: Vec<ScenarioJob>) -> Result<Scenario, SimulateError> {
        if jobs.is_empty() {
            return Err(SimulateError::NoJobs);
        }
        Ok(Scenario { config, jobs, estimator: (self.estimator.clone(), self.memory.clone()) })
    }

    /// What the shuffle is held to: the simulator has one network for all, so the smallest rate of any worker.
    fn rate(&self) -> Option<u64> {
        self.workers.iter().filter_map(|worker| worker.nic_bytes_per_second).min()
    }

    /// The cluster as it was asked for.
    fn cluster(&self, rate: f64, latency: f64) -> Result<Config, SimulateError> {
        let first = self.workers.first().ok_or(SimulateError::NoWorkers)?;
        let worker = |shape: &WorkerShape| SimWorker {
            speed: shape.speed,
            ..SimWorker::new(shape.slots, shape.host.0)
        };
        // As workers ask: for so much at once that they can soon turn to a more urgent job.
        let request_bytes = self
            .rate()
            .map_or(f64::INFINITY, |rate| FetchLimits::default().paced(rate).request_bytes_max as f64);
        Ok(Config {
            workers: self.workers.iter().map(worker).collect(),
            network: NetworkConfig { in_rate: rate, out_rate: rate, latency, ..NetworkConfig::default() },
            request_bytes,
            // Simulated tasks have one attempt.
            core: CoreConfig { backups: None, ..self.core.clone() },
            ..Config::uniform(1, first.slots)
        })
    }

    /// All tasks of a kind are reported as late as the one in the middle was; what the system took more or less for a
    /// task counts as its own time, since the sum over all matters and some take much more.
    fn measured_job(&self, job: &MeasuredJob) -> Job {
        let lengths = |seconds: &[f64], overheads: &[Option<f64>], median: f64| -> Vec<f64> {
            let length = |(seconds, overhead): (&f64, &Option<f64>)| {
                (seconds + overhead.map_or(0.0, |overhead| overhead - median)).max(0.0)
            };
            seconds.iter().zip(overheads).map(length).collect()
        };
        let maps = lengths(&job.map_seconds, &job.map_overheads, self.overheads.map);
        let reduces = lengths(&job.reduce_seconds, &job.reduce_overheads, self.overheads.reduce);
        // Before there are workers, nothing is decided that could matter.
        let arrival = job.arrived.max(self.workers_ready);
        simulated(job, (arrival, job.terms.deadline), [maps, reduces], job.output_bytes.iter().sum())
    }
}

/// A job with these tasks, which put out so many bytes, as it was submitted.
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
