//! What is measured of jobs and clusters: each metric declared once, with unit and description, and the statistics
//! over them.

mod collect;
mod declared;
mod sketch;
mod statistics;

pub use collect::{Bucket, CollectSettings, Collector, RunMetrics, SLOWDOWN_EDGES};
pub use declared::{Better, Declaration, Metric, MetricError};
pub use sketch::{SKETCH_ERROR, Sketch};
pub use statistics::{Interval, Moments, jain};

use crate::station::PerStation;
use crate::units::Time;

/// One job that is over, as every simulator reports it. Times in seconds since the start; the fluid and the slotted
/// model count in their own unit instead (a slot is one second).
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct JobRecord {
    /// Order of arrival, from 0.
    pub seq: u64,
    /// When it arrived.
    pub arrival: f64,
    /// When it was first given anything.
    pub start: f64,
    /// When its last map ended.
    pub maps_done: f64,
    /// When it ended.
    pub completion: f64,
    /// All its work, as [`Row::whole`](crate::view::Row::whole), exactly.
    pub work: PerStation<f64>,
    /// When it should have ended.
    pub deadline: Option<Time>,
    pub weight: f64,
}

impl JobRecord {
    /// What its metrics of time are made of.
    #[must_use]
    pub fn times(&self) -> JobTimes {
        let deadline = self.deadline.map(Time::seconds);
        JobTimes { arrival: self.arrival, start: self.start, completion: self.completion, deadline }
    }

    /// Completion minus arrival.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.times().flow()
    }
}

/// What all metrics of time are made of, of a simulated job as of a real one: seconds since the same moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobTimes {
    /// When it arrived.
    pub arrival: f64,
    /// When it was first given anything.
    pub start: f64,
    /// When it ended.
    pub completion: f64,
    /// When it should have ended.
    pub deadline: Option<f64>,
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
}
