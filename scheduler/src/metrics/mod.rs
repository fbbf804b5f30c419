//! What is measured of jobs and clusters: each metric declared once, with unit and description, and the statistics
//! over them.

mod collect;
pub mod comparable;
mod declared;
mod outcome;
mod sketch;
mod statistics;
pub mod student;
mod times;

pub use collect::{CollectSettings, Collector, SLOWDOWN_EDGES};
pub use declared::{Better, Declaration, Metric, MetricError, System};
pub use outcome::{Bucket, RunMetrics};
pub use sketch::{EXACT_MAX, SKETCH_ERROR, Sketch};
pub use statistics::{Interval, Moments, jain, quantile};
pub use times::{JOB_COLUMNS, JobColumn, JobTimes};

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
    /// What its metrics are made of, but what it takes alone, which the record does not know.
    #[must_use]
    pub fn times(&self) -> JobTimes {
        let &JobRecord { arrival, start, maps_done, completion, .. } = self;
        let deadline = self.deadline.map(Time::seconds);
        JobTimes { arrival, start, maps_done, completion, deadline, alone: None }
    }

    /// Completion minus arrival.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.times().flow()
    }
}
