//! The shuffle of one worker: it holds map outputs and serves their segments, and it gathers the segments of
//! the partitions whose home it is, over HTTP, while maps still run.
//!
//! [`plan`] decides what to fetch next (pure), [`store`] holds what is there, [`serve`] and [`fetch`] move
//! bytes. Not here: merging (`merge`) and who is home of what (the master decides).

pub mod fetch;
pub mod plan;
pub mod serve;
pub mod store;

use serde::{Deserialize, Serialize};

/// Asks for segments: of each map, the same partitions. Body of `POST /shuffle/JOB`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    /// Map index and attempt epoch.
    pub maps: Vec<(u32, u32)>,
    /// Partitions wanted of each, ascending.
    pub partitions: Vec<u32>,
}

/// Opens the answer, behind a 4-byte little-endian length: for each map of the request either the lengths of
/// its segments in bytes, one for each partition, or `None` if this worker does not hold that attempt's
/// output. The segments follow in the same order without gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchHead {
    /// One for each map of the request.
    pub lengths: Vec<Option<Vec<u64>>>,
}

/// Longest [`FetchRequest`] in bytes.
pub const FETCH_REQUEST_BYTES_MAX: usize = 4 << 20;

/// Longest [`FetchHead`] in bytes.
pub const FETCH_HEAD_BYTES_MAX: usize = 64 << 20;
