//! What an attempt that ended well leaves to whoever ran it.

use crate::input::{SplitBlocks, bad_records};
use crate::narration::MapStory;
use crate::protocol::{HandOver, Measures, NamedPart};
use crate::segment::MapOutput;

/// What is known of an attempt when it has ended well, besides its `Progress`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskStats {
    /// Counters of user code, by name.
    pub counters: Vec<(String, u64)>,
    /// What user code measured besides.
    pub measures: Measures,
    /// Bytes of input that lie on this machine; the rest came from another process.
    pub local_bytes: u64,
}

/// Counts bytes behind the last member of gzip and bzip2 files: they are no data, but the user should know of them.
pub const LEFT_OUT_COUNTER: &str = "bytes behind compressed data, left out";

/// Counts records that were left out because they are bad.
pub const BAD_RECORDS_COUNTER: &str = "bad records, left out";

impl TaskStats {
    pub(crate) fn note_input(&mut self, read: &SplitBlocks<'_>) {
        self.local_bytes = read.local_bytes();
        if 0 < read.left_out() {
            self.counters.push((LEFT_OUT_COUNTER.to_owned(), read.left_out()));
        }
        let bad = bad_records::count(&read.bad_records().found());
        if 0 < bad {
            self.counters.push((BAD_RECORDS_COUNTER.to_owned(), bad));
        }
    }
}

/// A finished map.
#[derive(Debug)]
pub struct MapDone {
    /// Its segments.
    pub output: MapOutput,
    /// What else is known.
    pub stats: TaskStats,
    /// Its pairs, if somebody wants to read them.
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
    /// What it wrote to outputs beside the main one.
    pub named: Vec<NamedPart>,
    /// What else is known.
    pub stats: TaskStats,
}

/// How a reduce attempt ended well.
#[derive(Clone, Debug, PartialEq)]
pub enum ReduceEnd {
    /// Its part is built.
    Part(PartDone),
    /// It was suspended and has written down where it stands; what it wrote so far is in its output.
    HandedOver(Box<HandOver>),
}
