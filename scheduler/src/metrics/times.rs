//! The times of one job, simulated or real, and the columns that files with a line for each job have of them.

/// What the metrics of a job are made of: seconds since the same moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobTimes {
    /// When it arrived.
    pub arrival: f64,
    /// When it was first given anything.
    pub start: f64,
    /// When its last map ended.
    pub maps_done: f64,
    /// When it ended.
    pub completion: f64,
    /// When it should have ended.
    pub deadline: Option<f64>,
    /// What it takes from its arrival to its end when no other job is there; `None` if nobody knows.
    pub alone: Option<f64>,
}

impl JobTimes {
    /// From its arrival to its end.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.completion - self.arrival
    }

    /// From its arrival until it is first given anything.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.start - self.arrival
    }

    /// From when it is first given anything to its end.
    #[must_use]
    pub fn execution(&self) -> f64 {
        self.completion - self.start
    }

    /// How much later than its deadline it ended, 0 if in time; `None` without a deadline.
    #[must_use]
    pub fn tardiness(&self) -> Option<f64> {
        self.deadline.map(|deadline| (self.completion - deadline).max(0.0))
    }

    /// Flow time / time alone; `None` if nobody knows that, or it is nothing.
    #[must_use]
    pub fn slowdown(&self) -> Option<f64> {
        self.alone.filter(|alone| 0.0 < *alone).map(|alone| self.flow() / alone)
    }
}

/// A column of a file with a line for each job: its name, and what stands there, if anything.
pub type JobColumn = (&'static str, fn(&JobTimes) -> Option<f64>);

/// What all such files have of the times of a job, in this order, in seconds but for the slowdown.
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
