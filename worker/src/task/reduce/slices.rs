//! Totals of a partition with more keys than a table can hold: slice by slice of the hash space.
//!
//! Segments of combined values are approximately in the order of their keys' hashes. Read in parallel up to the same
//! hash, they give a table all values of a part of the keys, so that a run has each of these keys once. Read one after
//! another, each would fill the table with its own keys, and runs would have as many pairs as the segments. Correctness
//! does not depend on that order: a late pair is totalled with a later slice, and is combined with the others of its
//! key when runs are merged.

use super::MergeError;
use crate::attempt::TaskFailure;
use crate::collect::table::CombineTable;
use crate::collect::{CombineRun, Combining, FULL, TableMemory};
use crate::merge::FanIn;
use crate::segment::{SegmentData, SegmentHeader, SegmentOrder, SegmentReader};
use crate::value::Value;

/// Divisor of the memory limit that gives the maximum for buffers of segments read in parallel.
const BUFFERS_SHARE: usize = 4;
/// Expected number of different keys of all segments, relative to the largest one: a table of this size rarely grows,
/// and does not reach its limit by doubling.
const KEYS_EXPECTED: u64 = 2;
/// Number of slices whose keys fill a table, if no two segments have a key in common. With fewer slices, more of the
/// table may be empty when it is written.
const SLICES_EACH_TABLE: usize = 16;
/// Maximum slices of a partition.
const SLICES_MAX: usize = 1 << 16;

/// Limits of reading a partition.
#[derive(Clone, Copy)]
pub(super) struct SliceRoom {
    /// Segments read in parallel, and the memory for the table and their buffers.
    pub fan_in: FanIn,
    /// Index of the partition, if it is a share of the hash space, and the number of shares; else 0 of 1.
    pub share: (u32, u32),
}

/// Slices of a partition's share of the hash space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HashSlices {
    /// Number of slices; one if a table can hold all keys, or if segments are not in the order of hashes.
    pub count: u32,
    /// Number of segments read in parallel.
    pub segments_at_once: usize,
    /// Initial slots of a table.
    slots: usize,
    /// Index of the first, among all slices of the whole hash space, and the number of those.
    first: u64,
    all: u64,
}

impl HashSlices {
    /// Plans slices, several of which fit into a table of values `V`.
    pub(super) fn plan<V: Value>(
        headers: &[SegmentHeader],
        segments: &[SegmentData],
        room: SliceRoom,
    ) -> Result<Self, TaskFailure> {
        let most = headers.iter().map(|header| header.records).max().unwrap_or(0);
        let sum = headers.iter().fold(0_u64, |sum, header| sum.saturating_add(header.records));
        let (share, shares) = room.share;
        let slots = CombineTable::<V>::slots_for(sum.min(most.saturating_mul(KEYS_EXPECTED)) as usize);
        let (first, all) = (u64::from(share), u64::from(shares));
        let whole = Self { count: 1, segments_at_once: 1, slots, first, all };
        let limit_bytes = room.fan_in.buffers_bytes;
        let is_by_hash = headers.iter().all(|header| header.order == SegmentOrder::Hash);
        if CombineTable::<V>::bytes_of(slots) <= limit_bytes || !is_by_hash {
            return Ok(whole);
        }
        let mut largest = 0;
        for data in segments {
            let bytes = data.buffer_bytes().map_err(|source| MergeError { map: None, source })?;
            largest = largest.max(bytes);
        }
        let buffered = (limit_bytes / BUFFERS_SHARE).checked_div(largest).unwrap_or(usize::MAX);
        let segments_at_once = segments.len().min(room.fan_in.segments_max).min(buffered);
        let slots_max = (limit_bytes - segments_at_once * largest) / CombineTable::<V>::bytes_of(1);
        if segments_at_once < 2 || slots_max < CombineTable::<V>::SLOTS_MIN {
            return Ok(whole);
        }
        let slots = 1 << slots_max.ilog2();
        let tables = sum as usize / CombineTable::<V>::keys_of(slots) + 1;
        let count = tables.saturating_mul(SLICES_EACH_TABLE).min(SLICES_MAX) as u32;
        let (first, all) = (first * u64::from(count), all * u64::from(count));
        Ok(Self { count, segments_at_once, slots, first, all })
    }

    /// Creates an empty table for the keys of some slices.
    pub(super) fn table<V: Value>(
        &self,
        combiner: Box<dyn CombineRun<V>>,
        limit_bytes: usize,
        memory: TableMemory<V>,
    ) -> Combining<V> {
        let shares = (self.count == 1).then_some(self.all);
        Combining::for_share(combiner, limit_bytes, self.slots, shares, memory)
    }

    /// True if the pair of a reader belongs to a later slice.
    #[inline]
    fn is_later(&self, reader: &SegmentReader, slice: u32) -> bool {
        1 < self.count && {
            let of_all = (u128::from(reader.rank()) * u128::from(self.all)) >> 64;
            u128::from(self.first + u64::from(slice)) < of_all
        }
    }
}

/// Fill level of the table after each slice, to write it before a slice that does not fit as a whole.
#[derive(Default)]
pub(super) struct SliceFill {
    before: usize,
    most: usize,
}

impl SliceFill {
    /// Records the fill level after a slice, relative to [`FULL`]. Returns true if the table is to be written before
    /// the next one.
    pub(super) fn is_to_be_written(&mut self, fill: usize) -> bool {
        self.most = self.most.max(fill.saturating_sub(self.before));
        let is_full = FULL < fill + self.most + self.most / 8;
        self.before = if is_full { 0 } else { fill };
        is_full
    }
}

/// Segment that is read slice by slice.
pub(super) struct SliceReader {
    reader: SegmentReader,
    /// True if it has been read up to a pair of a later slice.
    is_ahead: bool,
    has_ended: bool,
}

impl SliceReader {
    pub(super) fn open(data: SegmentData) -> Result<Self, TaskFailure> {
        let reader = SegmentReader::open(data).map_err(|source| MergeError { map: None, source })?;
        Ok(Self { reader, is_ahead: false, has_ended: false })
    }

    /// Returns the next pair, if it does not belong to a later slice.
    #[inline]
    pub(super) fn next(
        &mut self,
        slices: &HashSlices,
        slice: u32,
    ) -> Result<Option<&SegmentReader>, TaskFailure> {
        if !self.is_ahead {
            if self.has_ended {
                return Ok(None);
            }
            let more = self.reader.advance();
            let map = self.reader.header().id.map;
            if !more.map_err(|source| MergeError { map: Some(map), source })? {
                self.has_ended = true;
                return Ok(None);
            }
        }
        self.is_ahead = slices.is_later(&self.reader, slice);
        Ok((!self.is_ahead).then_some(&self.reader))
    }
}
