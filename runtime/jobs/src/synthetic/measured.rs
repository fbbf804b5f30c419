//! A measured job to be replayed: a time for each task and the bytes of the shuffle.
//!
//! Times are rounded to the microsecond, because they are sent to every worker.

use crate::ExactWork;
use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Maximum number of tasks of one kind: their times are part of the job's parameters.
const TASKS_MAX: usize = 100_000;

/// Longest task, seconds.
const SECONDS_MAX: f64 = 24.0 * 3600.0;

/// Durations and shuffle bytes of a job's tasks.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct MeasuredTasks {
    map_us: Vec<u64>,
    reduce_us: Vec<u64>,
    /// Output of all maps together; each has the same share.
    shuffle_bytes: u64,
}

impl MeasuredTasks {
    /// Reads a file of [`ExactWork`].
    ///
    /// # Errors
    /// A file that cannot be read, or whose numbers are invalid for a job.
    pub(super) fn read(path: &Path) -> Result<Self, PlanError> {
        let wrong = |reason: String| PlanError::Parameter {
            parameter: "--times".to_owned(),
            value: path.display().to_string(),
            reason,
        };
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let work: ExactWork = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        Self::new(&work).map_err(wrong)
    }

    /// Creates it from numbers in memory.
    ///
    /// # Errors
    /// A description of numbers that are invalid for a job.
    pub fn new(work: &ExactWork) -> Result<Self, String> {
        work.validate()?;
        if work.map_seconds.is_empty() {
            return Err("it has no maps".to_owned());
        }
        for (kind, seconds) in [("maps", &work.map_seconds), ("reduces", &work.reduce_seconds)] {
            if TASKS_MAX < seconds.len() {
                return Err(format!("its {} {kind} are more than {TASKS_MAX}", seconds.len()));
            }
            if let Some(longest) = seconds.iter().find(|time| SECONDS_MAX < **time) {
                return Err(format!("a task takes {longest} s, longer than {SECONDS_MAX} s"));
            }
        }
        let microseconds = |seconds: &[f64]| seconds.iter().map(|time| (time * 1e6).round() as u64).collect();
        Ok(Self {
            map_us: microseconds(&work.map_seconds),
            reduce_us: microseconds(&work.reduce_seconds),
            shuffle_bytes: work.shuffle_bytes.round() as u64,
        })
    }

    /// Number of maps, at least 1.
    pub(super) fn maps(&self) -> u32 {
        self.map_us.len() as u32
    }

    /// Time of the longest map.
    pub(super) fn longest_map(&self) -> Duration {
        Duration::from_micros(self.map_us.iter().copied().max().unwrap_or(0))
    }

    /// Number of reduces.
    pub(super) fn reduces(&self) -> u32 {
        self.reduce_us.len() as u32
    }

    pub(super) fn map_time(&self, task: u32) -> Duration {
        Duration::from_micros(self.map_us.get(task as usize).copied().unwrap_or(0))
    }

    pub(super) fn reduce_time(&self, task: u32) -> Duration {
        Duration::from_micros(self.reduce_us.get(task as usize).copied().unwrap_or(0))
    }

    /// Bytes emitted by a map. The first maps emit one byte more if the total is not divisible.
    pub(super) fn map_bytes(&self, task: u32) -> u64 {
        let maps = u64::from(self.maps().max(1));
        self.shuffle_bytes / maps + u64::from(u64::from(task) < self.shuffle_bytes % maps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(map_seconds: &[f64], shuffle_bytes: f64, reduce_seconds: &[f64]) -> ExactWork {
        ExactWork {
            map_seconds: map_seconds.to_vec(),
            shuffle_bytes,
            reduce_seconds: reduce_seconds.to_vec(),
        }
    }

    #[test]
    fn tasks_take_their_own_times_and_maps_share_the_bytes() {
        let measured = MeasuredTasks::new(&work(&[0.5, 0.25, 1.0], 11.0, &[2.0])).unwrap();
        assert_eq!((measured.maps(), measured.reduces()), (3, 1));
        assert_eq!(measured.map_time(1), Duration::from_millis(250));
        assert_eq!(measured.reduce_time(0), Duration::from_secs(2));
        assert_eq!([0, 1, 2].map(|task| measured.map_bytes(task)), [4, 4, 3]);
    }

    #[test]
    fn numbers_that_make_no_job_are_refused() {
        for (work, word) in [
            (work(&[], 0.0, &[1.0]), "no maps"),
            (work(&[-1.0], 0.0, &[]), "map_seconds holds -1"),
            (work(&[1.0], f64::NAN, &[]), "shuffle_bytes holds NaN"),
            (work(&[1.0], 0.0, &[f64::INFINITY]), "reduce_seconds holds inf"),
            (work(&[1e9], 0.0, &[]), "longer than"),
        ] {
            let error = MeasuredTasks::new(&work).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
