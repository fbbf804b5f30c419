//! Times of one job, simulated or real, and their columns in files with a line per job.

/// Inputs of the metrics of a job: seconds from a common origin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobTimes {
    /// Time of arrival.
    pub arrival: f64,
    /// Time of its first service.
    pub start: f64,
    /// End of its last map.
    pub maps_done: f64,
    /// End of the job.
    pub completion: f64,
    /// Time by which it should have ended.
    pub deadline: Option<f64>,
    /// Time from its arrival to its end without other jobs; `None` if unknown.
    pub alone: Option<f64>,
}

impl JobTimes {
    /// Returns the time from its arrival to its end.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.completion - self.arrival
    }

    /// Returns the time from its arrival to its first service.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.start - self.arrival
    }

    /// Returns the time from its first service to its end.
    #[must_use]
    pub fn execution(&self) -> f64 {
        self.completion - self.start
    }

    /// Returns how much later than its deadline it ended, 0 if in time; `None` without a deadline.
    #[must_use]
    pub fn tardiness(&self) -> Option<f64> {
        self.deadline.map(|deadline| (self.completion - deadline).max(0.0))
    }

    /// Returns flow time / time alone; `None` if that is unknown or 0.
    #[must_use]
    pub fn slowdown(&self) -> Option<f64> {
        self.alone.filter(|alone| 0.0 < *alone).map(|alone| self.flow() / alone)
    }
}

/// Column of a file with a line per job: its name, and its value if there is one.
pub type JobColumn = (&'static str, fn(&JobTimes) -> Option<f64>);

/// Columns of the times of a job in all such files, in this order, in seconds except for the slowdown.
pub const JOB_COLUMNS: [JobColumn; 11] = [
    ("arrival", |times| Some(times.arrival)),
    ("start", |times| Some(times.start)),
    ("maps-done", |times| Some(times.maps_done)),
    ("completion", |times| Some(times.completion)),
    ("flow", |times| Some(times.flow())),
    ("waiting", |times| Some(times.waiting())),
    ("execution", |times| Some(times.execution())),
    ("alone", |times| times.alone),
    ("slowdown", JobTimes::slowdown),
    ("deadline", |times| times.deadline),
    ("tardiness", JobTimes::tardiness),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_job_are_its_times_and_empty_where_nothing_is_known() {
        let plain = JobTimes {
            arrival: 1.0,
            start: 2.0,
            maps_done: 3.0,
            completion: 7.0,
            deadline: None,
            alone: None,
        };
        let found = |times: &JobTimes| JOB_COLUMNS.map(|(_, of)| of(times));
        let start = [1.0, 2.0, 3.0, 7.0, 6.0, 1.0, 5.0].map(Some);
        assert_eq!(found(&plain), [&start[..], &[None; 4]].concat()[..]);
        let full = JobTimes { deadline: Some(6.5), alone: Some(4.0), ..plain };
        assert_eq!(found(&full)[7..], [Some(4.0), Some(1.5), Some(6.5), Some(0.5)]);
        assert_eq!(JobTimes { alone: Some(0.0), ..plain }.slowdown(), None);
    }
}
