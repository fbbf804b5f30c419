//! What is measured of jobs and clusters: each metric declared once, with unit and description, and the statistics
//! over them.
//!
//! Not here: who produces the records (simulators, live masters) and how they are shown.

mod collect;
mod declared;
mod sketch;
mod statistics;

pub use collect::{Bucket, CollectSettings, Collector, Outcome, SLOWDOWN_EDGES};
pub use declared::{Better, Declaration, Metric, MetricError};
pub use sketch::{SKETCH_ERROR, Sketch};
pub use statistics::{Interval, Moments, jain};

use crate::units::Time;

/// One job that is over, as every simulator reports it. Times in seconds since the start; the fluid and the slotted
/// model count in their own unit instead (a slot is one second).
#[derive(Clone, Copy, PartialEq, Debug)]
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
    pub work: [f64; 3],
    /// When it should have ended.
    pub goal: Option<Time>,
    /// Its weight.
    pub weight: f64,
}

impl JobRecord {
    /// Completion minus arrival.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.completion - self.arrival
    }
}
