//! Which tasks a job becomes in the simulated cluster that comes with work alone.

use crate::sim::SimError;
use crate::sim::cluster::{Config, SECONDS_MAX, TASKS_MAX};
use crate::station::Station;
use crate::workload::Job;

/// How many tasks a job becomes, and which of them it did not bring along.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TaskCounts {
    /// Maps; a whole number, as `reduces` is, and maybe more than can be simulated.
    pub maps: f64,
    /// Reduces, with those that only fetch.
    pub reduces: f64,
    /// Whether its work of maps or reduces is cut into equal tasks of [`Config::task_seconds`] at most.
    pub cut: bool,
    /// Whether its reduces were added because it shuffles and has none: somebody must fetch. They do nothing else. One
    /// for each [`Config::task_seconds`] that a worker takes for all that is shuffled, one for each worker at most.
    pub fetch_only: bool,
}

impl TaskCounts {
    /// The tasks of this job on this cluster. O(1).
    #[must_use]
    pub fn of(config: &Config, job: &Job) -> Self {
        let [maps, mut reduces] = [
            count(job.maps.len(), job.work[Station::Map], config.task_seconds),
            count(job.reduces.len(), job.work[Station::Reduce], config.task_seconds),
        ];
        let bytes = shuffled_bytes(config, job);
        let fetch_only = reduces == 0.0 && 0.0 < bytes;
        if fetch_only {
            let seconds = bytes / config.network.in_rate.min(config.network.out_rate);
            reduces = (seconds / config.task_seconds).ceil().clamp(1.0, config.workers.len() as f64);
        }
        let whole = |tasks: &[f64], work: f64| tasks.is_empty() && 0.0 < work;
        let cut = whole(&job.maps, job.work[Station::Map]) || whole(&job.reduces, job.work[Station::Reduce]);
        Self { maps, reduces, cut, fetch_only }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> f64 {
        self.maps + self.reduces
    }
}

/// So many tasks as given, or so many equal ones of this length at most.
fn count(given: usize, work: f64, seconds: f64) -> f64 {
    match given {
        0 => (work / seconds).ceil().max(f64::from(0.0 < work)),
        _ => given as f64,
    }
}

/// What the maps of a job put out: seconds of the whole network are as good as bytes if there is a limit.
pub(super) fn shuffled_bytes(config: &Config, job: &Job) -> f64 {
    let rate = config.network.in_rate.min(config.network.out_rate) * config.workers.len() as f64;
    match job.shuffle_bytes == 0.0 && rate.is_finite() {
        true => job.work[Station::Shuffle] * rate,
        false => job.shuffle_bytes,
    }
}

/// The tasks as given, or the work in so many equal ones.
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
