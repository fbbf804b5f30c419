//! Metrics of jobs and clusters, each declared once with unit and description, and statistics over them.

mod collect;
pub mod comparable;
mod declared;
mod outcome;
mod sketch;
mod statistics;
pub mod student;
mod times;

pub use collect::Collector;
pub use declared::{Better, Declaration, Metric, MetricError, System};
pub use outcome::RunMetrics;
pub use sketch::{EXACT_MAX, SKETCH_ERROR, Sketch};
pub use statistics::{Interval, Moments, quantile};
pub use times::{JOB_COLUMNS, JobColumn, JobTimes};

use crate::station::PerStation;
use crate::units::Time;

/// Record of an ended job, as every simulator reports it. Times are in seconds since the start; the fluid and the
/// slotted model use their own unit (a slot is one second).
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct JobRecord {
    /// Index in the order of arrival, from 0.
    pub seq: u64,
    /// Time of arrival.
    pub arrival: f64,
    /// Time of its first service.
    pub start: f64,
    /// End of its last map.
    pub maps_done: f64,
    /// End of the job.
    pub completion: f64,
    /// Total work, as [`Row::whole`](crate::view::Row::whole), exactly.
    pub work: PerStation<f64>,
    /// Time by which it should have ended.
    pub deadline: Option<Time>,
    pub weight: f64,
}

impl JobRecord {
    /// Returns the inputs of its metrics, except for its time alone, which the record lacks.
    #[must_use]
    pub fn times(&self) -> JobTimes {
        let &JobRecord { arrival, start, maps_done, completion, .. } = self;
        let deadline = self.deadline.map(Time::seconds);
        JobTimes { arrival, start, maps_done, completion, deadline, alone: None }
    }

    /// Returns completion minus arrival.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.times().flow()
    }
}
