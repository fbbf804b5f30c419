//! In which order workers fetch and serve the segments of several jobs.

use gristmill_scheduler::ids::JobId;
use serde::{Deserialize, Serialize};

/// Which jobs' segments go first over a worker's lanes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LaneOrder {
    /// Most urgent first.
    pub grants: Vec<(JobId, LaneShare)>,
    /// Fractions of the bytes by line; empty if there are no lines.
    pub lines: Vec<f64>,
    /// Jobs that are not named get nothing; otherwise they come after those named, by age.
    pub only: bool,
}

/// What a job may have of the lanes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneShare {
    /// All it can use before the next.
    All,
    /// So many requests in flight.
    Requests(u32),
    /// A share of the bytes relative to its neighbours in the list that have a weight too.
    Weight(f64),
    /// All it can use of a line's share, from 0.
    Line(u32),
}
