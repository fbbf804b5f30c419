//! Tasks that a job without given tasks becomes in the simulated cluster.

use crate::sim::SimError;
use crate::sim::cluster::{Config, SECONDS_MAX, TASKS_MAX};
use crate::station::Station;
use crate::workload::Job;

/// Numbers of tasks of a job, and which of them were not given.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SimulatedTasks {
    /// Number of maps. An integer, as `reduces`, and possibly more than can be simulated.
    pub maps: f64,
    /// Number of reduces. A job that shuffles and has none gets reduces that only fetch: one per [`Config::task_seconds`]
    /// that a worker takes to receive the whole shuffle, and at most one per worker.
    pub reduces: f64,
}

impl SimulatedTasks {
    /// Counts the tasks of this job on this cluster. O(1).
    #[must_use]
    pub fn count(config: &Config, job: &Job) -> Self {
        let [maps, mut reduces] = [
            count(job.maps.len(), job.work[Station::Map], config.task_seconds),
            count(job.reduces.len(), job.work[Station::Reduce], config.task_seconds),
        ];
        let bytes = shuffled_bytes(config, job);
        if reduces == 0.0 && 0.0 < bytes {
            let seconds = bytes / config.network.in_rate.min(config.network.out_rate);
            reduces = (seconds / config.task_seconds).ceil().clamp(1.0, config.workers.len() as f64);
        }
        Self { maps, reduces }
    }

    /// Number of all tasks.
    #[must_use]
    pub fn all(&self) -> f64 {
        self.maps + self.reduces
    }
}

/// Returns the number of given tasks, or the number of equal tasks of at most this length.
fn count(given: usize, work: f64, seconds: f64) -> f64 {
    match given {
        0 => (work / seconds).ceil().max(f64::from(0.0 < work)),
        _ => given as f64,
    }
}

/// Returns the output bytes of the job's maps. With a network limit, shuffle seconds of the whole network are converted
/// to bytes.
pub(super) fn shuffled_bytes(config: &Config, job: &Job) -> f64 {
    let rate = config.network.in_rate.min(config.network.out_rate) * config.workers.len() as f64;
    match job.shuffle_bytes == 0.0 && rate.is_finite() {
        true => job.work[Station::Shuffle] * rate,
        false => job.shuffle_bytes,
    }
}

/// Returns the given tasks, or the work split into this many equal tasks.
pub(super) fn cut(
    index: u64,
    field: &'static str,
    tasks: Vec<f64>,
    work: f64,
    count: f64,
) -> Result<Vec<f64>, SimError> {
    if TASKS_MAX as f64 <= count {
        return Err(SimError::Job { index, field, value: count, wanted: "fewer than 1e8 tasks" });
    }
    if !tasks.is_empty() || count == 0.0 {
        return Ok(tasks);
    }
    let length = work / count;
    if SECONDS_MAX < length {
        return Err(SimError::Job { index, field, value: length, wanted: "tasks of at most 1e9 seconds" });
    }
    Ok(vec![length; count as usize])
}
