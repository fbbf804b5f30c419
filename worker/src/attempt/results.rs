//! Results that an attempt of a map or a reduce hands to the worker when it has succeeded.

use crate::input::{SplitBlocks, bad_records};
use crate::narration::MapStory;
use crate::protocol::NamedPart;
use crate::segment::MapOutput;

/// Statistics of a successful attempt in addition to its `Progress`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskStats {
    /// Counters of user code, by name.
    pub counters: Vec<(String, u64)>,
    /// Input bytes on this machine; the rest was received from another process.
    pub local_bytes: u64,
}

/// Counts bad records that were skipped.
const BAD_RECORDS_COUNTER: &str = "bad records, left out";

impl TaskStats {
    pub(crate) fn note_input(&mut self, read: &SplitBlocks<'_>) {
        self.local_bytes = read.local_bytes();
        let bad = bad_records::count(&read.bad_records().found());
        if 0 < bad {
            self.counters.push((BAD_RECORDS_COUNTER.to_owned(), bad));
        }
    }
}

/// A finished map.
#[derive(Debug)]
pub struct MapDone {
    /// Segments of the map.
    pub output: MapOutput,
    /// Other statistics.
    pub stats: TaskStats,
    /// Pairs of the map, if requested.
    pub story: Option<Box<MapStory>>,
}

/// A finished reduce, or a finished map of a map-only job.
#[derive(Clone, Debug, PartialEq)]
pub struct PartDone {
    /// Bytes of the part.
    pub bytes: u64,
    /// Records of the part.
    pub records: u64,
    /// CRC-32C of the part.
    pub crc32c: u32,
    /// Files in named outputs.
    pub named: Vec<NamedPart>,
    /// Other statistics.
    pub stats: TaskStats,
}
