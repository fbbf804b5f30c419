//! What is known before a run: sizes of jobs, and what the system takes for tasks.
//!
//! Not here: how the costs are measured (`compare`), and who says sizes.

use super::MeasuredJob;
use super::scenario::simulated;
use gristmill_runtime::api::ExactWork;
use gristmill_scheduler::sim::cluster::{Config, SystemWork};
use gristmill_scheduler::workload::Job;
use serde::{Deserialize, Serialize};

/// A job of which the size is known before it runs.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownJob {
    /// When it is planned to arrive, seconds.
    pub arrival: f64,
    /// When it should have ended.
    pub deadline: Option<f64>,
    /// Its tasks and bytes.
    pub work: ExactWork,
    /// Where the size comes from.
    pub source: SizeSource,
}

/// Who says how large a job is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeSource {
    /// The workload: its tasks pass these times, and the system's costs come on top.
    Told,
    /// A run of the job alone: the system's costs are in these times.
    Alone,
}

impl KnownJob {
    /// Whether it has the tasks of the job as it was submitted.
    pub(super) fn fits(&self, job: &MeasuredJob) -> bool {
        let tasks = (self.work.map_seconds.len(), self.work.reduce_seconds.len());
        tasks == (job.map_seconds.len(), job.reduce_seconds.len())
    }

    /// For the simulator; the costs of the system are not in the lengths.
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

/// What the system takes for tasks, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SystemCosts {
    /// From the order to launch a map and a reduce to the fact of their end, beyond the time they pass, while nothing
    /// else runs.
    pub task: [f64; 2],
    /// From the order to fetch an output to the fact that it is there, while nothing else runs.
    pub fetch: f64,
    /// Processors of each host.
    pub cores: u32,
    /// Of a processor: for a map and a reduce.
    pub work: [f64; 2],
    /// Of a processor: for a request of a home.
    pub request_work: f64,
    /// Of a processor: for an output of a map at one home.
    pub fetch_work: f64,
    /// Of a processor: for a segment of such an output.
    pub segment_work: f64,
    /// Of a processor: for a byte that a map puts out and a reduce takes in.
    pub byte_work: [f64; 2],
    /// Of a processor: for a byte that comes from another worker.
    pub fetch_byte_work: f64,
}

impl SystemCosts {
    /// The costs as the simulator takes them.
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

    /// With these costs in it. What is work of a processor is not waited for a second time.
    pub(super) fn in_config(&self, config: Config) -> Config {
        let rest = |kind: usize| (self.task[kind] - self.work[kind]).max(0.0);
        let mut config = Config { system: Some(self.system()), report: [rest(0), rest(1)], ..config };
        config.network.latency = match config.network.in_rate.is_finite() {
            // Several requests are on their way at once, so that nobody waits for the first byte.
            true => 0.0,
            false => (self.fetch - self.request_work - self.fetch_work).max(0.0),
        };
        config
    }
}
