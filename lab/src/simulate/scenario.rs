//! Input of the cluster simulator: replayed from a run's own measurements, or predicted from what was
//! known before it.
//!
//! Not here: running it (`simulate`).

use super::measured::simulated;
use super::{KnownJob, MeasuredJob, RunMeasurements, SimulateError, SystemCosts, WorkerShape};
use gristmill_scheduler::core::CoreConfig;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::sim::cluster::{Config, NetworkConfig, SimWorker};
use gristmill_scheduler::units::Bytes;
use gristmill_scheduler::workload::Job;
use gristmill_worker::settings::Shuffle;
use gristmill_worker::shuffle::plan::FetchLimits;
use std::collections::BTreeMap;

/// Jobs and their cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    pub(super) config: Config,
    /// Jobs in the order of arrival.
    pub(super) jobs: Vec<ScenarioJob>,
    /// Estimator of the run, and its prior knowledge.
    pub(super) estimator: (String, serde_json::Value),
}

/// Job of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ScenarioJob {
    pub(super) job: JobId,
    /// Start of its flow time in seconds. If it is before the cluster has workers, the job arrives later
    /// in the simulator.
    pub(super) arrived: f64,
    pub(super) simulated: Job,
}

impl RunMeasurements {
    /// Returns the jobs that succeeded, with the times of their tasks and the overheads of this run. Any
    /// difference to the run is caused by the simulator.
    ///
    /// # Errors
    /// No worker, or no job that succeeded.
    pub fn replayed(&self) -> Result<Scenario, SimulateError> {
        // Requests and a busy machine reduce the rate, so the limit is the rate that was reached.
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

    /// Returns the same jobs with what was known before the run: planned arrivals, sizes that were
    /// specified or measured in other runs, and costs of the system from other runs. Of this run only the
    /// request is used: the shape of the cluster, the submitted terms of jobs, and the policy.
    ///
    /// # Errors
    /// No worker, no job, or a job of unknown size.
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

    /// Returns the rate limit of the shuffle. The simulator has one network for all workers, so it is the
    /// smallest rate of any.
    fn rate(&self) -> Option<u64> {
        self.workers.iter().filter_map(|worker| worker.nic_bytes_per_second).min()
    }

    /// Returns the configuration of the cluster as requested.
    fn cluster(&self, rate: f64, latency: f64) -> Result<Config, SimulateError> {
        let first = self.workers.first().ok_or(SimulateError::NoWorkers)?;
        let worker = |shape: &WorkerShape| SimWorker {
            speed: shape.speed,
            ..SimWorker::new(shape.slots, shape.host.0)
        };
        // Like workers, it requests small enough amounts that a more urgent job can follow soon.
        let request_bytes = self
            .rate()
            .map_or(f64::INFINITY, |rate| FetchLimits::default().paced(rate).request_bytes_max as f64);
        Ok(Config {
            workers: self.workers.iter().map(worker).collect(),
            network: NetworkConfig {
                in_rate: rate,
                out_rate: rate,
                latency,
                own: self.shuffle == Shuffle::Http,
                ..NetworkConfig::default()
            },
            request_bytes,
            // Simulated tasks have one attempt. The measured maps are divided already. Policies know the limit of the
            // rate, not the rate that was reached.
            core: CoreConfig {
                backups: None,
                dividing: None,
                network: self.rate().map(Bytes),
                ..self.core.clone()
            },
            ..Config::uniform(1, first.slots)
        })
    }

    /// Converts a measured job. All tasks of a kind are reported with the median delay. The difference of
    /// a task's system time to it counts as its own time, since the sum over all matters and some tasks
    /// take much longer.
    fn measured_job(&self, job: &MeasuredJob) -> Job {
        let lengths = |seconds: &[f64], overheads: &[Option<f64>], median: f64| -> Vec<f64> {
            let length = |(seconds, overhead): (&f64, &Option<f64>)| {
                (seconds + overhead.map_or(0.0, |overhead| overhead - median)).max(0.0)
            };
            seconds.iter().zip(overheads).map(length).collect()
        };
        let maps = lengths(&job.map_seconds, &job.map_overheads, self.overheads.map);
        let reduces = lengths(&job.reduce_seconds, &job.reduce_overheads, self.overheads.reduce);
        // Before workers have joined, no decision has an effect.
        let arrival = job.arrived.max(self.workers_ready);
        simulated(job, (arrival, job.terms.deadline), [maps, reduces], job.output_bytes.iter().sum())
    }
}
