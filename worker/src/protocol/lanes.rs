//! Lanes, the slots of the shuffle: the order in which workers fetch and serve the segments of several jobs.

use gristmill_scheduler::ids::JobId;
use serde::{Deserialize, Serialize};

/// Priorities of jobs' segments on a worker's lanes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LaneOrder {
    /// Grants, most urgent first.
    pub grants: Vec<(JobId, LaneShare)>,
    /// Fractions of the bytes by line; empty without lines.
    pub lines: Vec<f64>,
    /// True if jobs that are not named get nothing; otherwise they follow the named ones, by age.
    pub only: bool,
}

/// Share of a job in the lanes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneShare {
    /// All it can use, before the next.
    All,
    /// This many requests in flight.
    Requests(u32),
    /// Weight of its share of the bytes, relative to neighbours in the list with a weight.
    Weight(f64),
    /// All it can use of a line's share, from 0.
    Line(u32),
}
