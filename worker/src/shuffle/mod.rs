//! The shuffle of one worker: it holds map outputs and serves their segments, and it gathers the segments of
//! the partitions whose home it is, over HTTP, while maps still run.
//!
//! [`plan`] decides what to fetch next and [`lanes`] whose turn it is by the master's order (both pure), [`pace`] holds
//! bytes to the rate of a slower network, [`store`] holds what is there, [`serve`] and [`fetch`] move bytes.

pub mod fetch;
pub mod lanes;
pub(crate) mod meter;
pub mod pace;
pub mod plan;
pub mod serve;
pub mod store;

use crate::input::FilePlace;
use serde::{Deserialize, Serialize};

/// Asks for segments: of each map, the same partitions. Body of `POST /shuffle/JOB`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    /// Map index and attempt epoch.
    pub maps: Vec<(u32, u32)>,
    /// Partitions wanted of each, ascending.
    pub partitions: Vec<u32>,
    /// What files the asking worker sees, as boot of the machine, mounts and root directory: one that sees the same is
    /// sent the order of pairs that lie in a file, and reads them there. `None` asks for all bytes.
    pub sees: Option<String>,
    /// What came of these before was damaged: their copies here are to be verified before they are sent again. A copy
    /// that is whole tells that the way damages data.
    pub verify: bool,
}

/// Opens the answer, behind a 4-byte little-endian length. The segments follow in the order of the request without
/// gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchHead {
    /// One for each map of the request; `None` if this worker does not hold that attempt's output.
    pub outputs: Vec<Option<OutputHead>>,
    /// Which of those, by their places in the request, are damaged here, and are given up.
    pub damaged: Vec<u32>,
}

/// What follows of one map output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputHead {
    /// How many bytes follow for each partition; 0 for a segment without pairs.
    pub lengths: Vec<u64>,
    /// Where the pairs lie if only their order follows, and where in the file places are counted from.
    pub in_file: Option<(FilePlace, u64)>,
}

/// Longest [`FetchRequest`] in bytes: all partitions that a job can have, of one map.
pub(crate) const FETCH_REQUEST_BYTES_MAX: usize = 8 << 20;

/// Segments that one request may ask for, unless they are of one map: each costs either side some bytes of memory.
pub(crate) const FETCH_SEGMENTS_MAX: usize = 1 << 16;

/// Bytes of a length in a [`FetchHead`], at most.
const LENGTH_BYTES_MAX: usize = 9;

/// Bytes of what else a [`FetchHead`] says of an output, at most: two paths, and some numbers.
const OUTPUT_HEAD_BYTES_MAX: usize = 16 << 10;

/// Longest [`FetchHead`] that answers a request of so many maps and partitions, bytes.
#[must_use]
pub(crate) fn fetch_head_bytes_max(maps: usize, partitions: usize) -> usize {
    64 + maps * (OUTPUT_HEAD_BYTES_MAX + LENGTH_BYTES_MAX * partitions)
}

/// Memory that the lists of such a head may take, bytes: what those of a right one take, and no less than it has bytes.
#[must_use]
pub(crate) fn fetch_head_memory_max(maps: usize, partitions: usize) -> usize {
    fetch_head_bytes_max(maps, partitions) + maps * size_of::<Option<OutputHead>>()
}

/// Maps that one request may name with so many partitions, at least 1.
#[must_use]
pub(crate) fn fetch_maps_max(partitions: usize) -> usize {
    (FETCH_SEGMENTS_MAX / partitions.max(1)).max(1)
}

#[cfg(test)]
mod tests;
