//! Shuffle of one worker: it holds map outputs and serves their segments, and it gathers the segments of its partitions
//! over HTTP while maps still run.
//!
//! [`plan`] decides what to fetch next and [`lanes`] the order of jobs by the master's order (both pure).
//! [`pace`] limits bytes to the rate of a slower network, [`store`] holds the data, and [`serve`] and
//! [`fetch`] move bytes.

pub mod fetch;
mod index_set;
pub mod lanes;
pub(crate) mod meter;
pub mod pace;
pub mod plan;
pub mod serve;
pub mod store;

use crate::input::FilePlace;
use serde::{Deserialize, Serialize};

/// Request of segments: of each map, the same partitions. Body of `POST /shuffle/JOB`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    /// Map index and attempt epoch.
    pub maps: Vec<(u32, u32)>,
    /// Requested partitions of each map. One that several reduces of the worker read is there several times.
    pub partitions: Vec<u32>,
    /// Identity of the file system of the requesting worker: boot of the machine, mounts and root directory. A worker
    /// with the same one receives only the order of pairs that are in a file, and reads the pairs there. `None`
    /// requests all bytes.
    pub sees: Option<String>,
    /// True if earlier responses were damaged: the copies here are verified before they are sent again. If a copy is
    /// intact, the route damages data.
    pub verify: bool,
}

/// Head of the response, after a 4-byte little-endian length. The segments follow in the order of the request without
/// gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchHead {
    /// One entry for each map of the request; `None` if this worker does not hold that attempt's output.
    pub outputs: Vec<Option<OutputHead>>,
    /// Indexes in the request of outputs that are damaged here, and are dropped.
    pub damaged: Vec<u32>,
}

/// Description of the data of one map output that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputHead {
    /// Number of bytes for each partition; 0 for a segment without pairs.
    pub lengths: Vec<u64>,
    /// File of the pairs if only their order follows, and the base of positions in the file.
    pub in_file: Option<(FilePlace, u64)>,
}

/// Maximum length of a [`FetchRequest`] in bytes: all partitions that a job can have, of one map.
pub(crate) const FETCH_REQUEST_BYTES_MAX: usize = 8 << 20;

/// Maximum number of segments in one request, unless they are of one map: each costs either side some bytes of memory.
pub(crate) const FETCH_SEGMENTS_MAX: usize = 1 << 16;

/// Maximum bytes of a length in a [`FetchHead`].
const LENGTH_BYTES_MAX: usize = 9;

/// Maximum bytes of the other fields of an output in a [`FetchHead`]: two paths, and some numbers.
const OUTPUT_HEAD_BYTES_MAX: usize = 16 << 10;

/// Returns the maximum length of a [`FetchHead`] for a request of this many maps and partitions, bytes.
#[must_use]
pub(crate) fn fetch_head_bytes_max(maps: usize, partitions: usize) -> usize {
    64 + maps * (OUTPUT_HEAD_BYTES_MAX + LENGTH_BYTES_MAX * partitions)
}

/// Returns the maximum memory for the lists of such a head, bytes: that of the lists of a valid one, and at least the
/// length of the head.
#[must_use]
pub(crate) fn fetch_head_memory_max(maps: usize, partitions: usize) -> usize {
    fetch_head_bytes_max(maps, partitions) + maps * size_of::<Option<OutputHead>>()
}

/// Returns the maximum number of maps in one request with this many partitions, at least 1.
#[must_use]
pub(crate) fn fetch_maps_max(partitions: usize) -> usize {
    (FETCH_SEGMENTS_MAX / partitions.max(1)).max(1)
}

#[cfg(test)]
mod tests;
