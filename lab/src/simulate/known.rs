//! Knowledge before a run: sizes of jobs, and the system's cost of tasks.
//!
//! Not here: the measurement of the costs (`compare`), and the sources of sizes.

use super::measured::{MeasuredJob, simulated};
use gristmill_runtime::api::ExactWork;
use gristmill_scheduler::sim::cluster::{Config, SystemWork};
use gristmill_scheduler::workload::Job;
use serde::{Deserialize, Serialize};

/// Job whose size is known before it runs.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownJob {
    /// Planned arrival in seconds.
    pub arrival: f64,
    /// Deadline of the job.
    pub deadline: Option<f64>,
    /// Tasks and bytes of the job.
    pub work: ExactWork,
    /// Source of the size.
    pub source: SizeSource,
}

/// Source of the size of a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeSource {
    /// The workload: its tasks take these times, plus the system's costs.
    Told,
    /// A run of the job alone: these times include the system's costs.
    Alone,
}

impl KnownJob {
    /// True if it has the tasks of the job as submitted.
    pub(super) fn fits(&self, job: &MeasuredJob) -> bool {
        let tasks = (self.work.map_seconds.len(), self.work.reduce_seconds.len());
        tasks == (job.map_seconds.len(), job.reduce_seconds.len())
    }

    /// Converts the job for the simulator. The lengths do not include the costs of the system.
    pub(super) fn job(&self, job: &MeasuredJob, system: &SystemWork) -> Job {
        let bytes = self.work.shuffle_bytes;
        let lengths = |kind: usize, seconds: &[f64]| -> Vec<f64> {
            let own = match self.source {
                SizeSource::Told => 0.0,
                SizeSource::Alone => {
                    system.task[kind] + system.byte[kind] * bytes / seconds.len().max(1) as f64
                }
            };
            seconds.iter().map(|seconds| (seconds - own).max(0.0)).collect()
        };
        let tasks = [lengths(0, &self.work.map_seconds), lengths(1, &self.work.reduce_seconds)];
        simulated(job, (self.arrival, self.deadline), tasks, bytes)
    }
}

/// Costs of the system for tasks, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SystemCosts {
    /// Time from the order to launch a map and a reduce to the event of their end, beyond their own time,
    /// on an idle cluster.
    pub task: [f64; 2],
    /// Time from the order to fetch an output to the event of its arrival, on an idle cluster.
    pub fetch: f64,
    /// Processors of each host.
    pub cores: u32,
    /// Processor time of a map and a reduce.
    pub work: [f64; 2],
    /// Processor time of a request of a keep.
    pub request_work: f64,
    /// Processor time of an output of a map at one keep.
    pub fetch_work: f64,
    /// Processor time of a segment of such an output.
    pub segment_work: f64,
    /// Processor time of a byte that a map outputs and a reduce reads.
    pub byte_work: [f64; 2],
    /// Processor time of a byte from another worker.
    pub fetch_byte_work: f64,
}

impl SystemCosts {
    /// Returns the costs in the form of the simulator.
    #[must_use]
    pub fn system(&self) -> SystemWork {
        SystemWork {
            cores: self.cores,
            task: self.work,
            request: self.request_work,
            fetch: self.fetch_work,
            segment: self.segment_work,
            byte: self.byte_work,
            fetch_byte: self.fetch_byte_work,
        }
    }

    /// Adds these costs to a configuration. Processor time is not added a second time as a delay.
    pub(super) fn in_config(&self, config: Config) -> Config {
        let rest = |kind: usize| (self.task[kind] - self.work[kind]).max(0.0);
        let mut config = Config { system: Some(self.system()), report: [rest(0), rest(1)], ..config };
        config.network.latency = match config.network.in_rate.is_finite() {
            // Several requests are in flight at once, so the latency of the first byte is hidden.
            true => 0.0,
            false => (self.fetch - self.request_work - self.fetch_work).max(0.0),
        };
        config
    }
}
