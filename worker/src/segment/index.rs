//! Index of the segments of one map output: 12 bytes for each non-empty segment.
//!
//! A worker keeps one for each of its outputs; in a job of many maps and many partitions most segments are empty.
//!
//! Invariant: segments are stored one after another without gaps, in the order of their partitions.

/// Memory of a non-empty segment here, bytes.
pub(crate) const INDEX_ENTRY_BYTES: usize = size_of::<u32>() + size_of::<u64>();

/// Index of segments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SegmentIndex {
    partitions: u32,
    records: u64,
    /// Non-empty partitions, ascending.
    filled: Vec<u32>,
    /// End of the segment of each of them.
    ends: Vec<u64>,
}

impl SegmentIndex {
    /// Creates an index of this many empty partitions.
    pub fn new(partitions: u32) -> Self {
        Self { partitions, records: 0, filled: Vec::new(), ends: Vec::new() }
    }

    /// Appends the non-empty segment of a partition.
    pub fn push(&mut self, partition: u32, length: u64, records: u64) {
        assert!(partition < self.partitions, "{partition} is none of {} partitions", self.partitions);
        assert!(self.may_start(partition), "partition {partition} comes after a later one");
        let end = self.bytes() + length;
        self.filled.push(partition);
        self.ends.push(end);
        self.records += records;
    }

    /// True if no segment of this partition, or of a later one, has been appended.
    pub(crate) fn may_start(&self, partition: u32) -> bool {
        self.filled.last().is_none_or(|last| *last < partition)
    }

    /// Releases unused memory after the last segment.
    pub fn shrink_to_fit(&mut self) {
        self.filled.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Returns offset and length of the segment of this partition, 0 and 0 if it has no pairs; `None` if the partition
    /// does not exist. Takes logarithmic time in the number of segments.
    pub fn segment(&self, partition: u32) -> Option<(u64, u64)> {
        if self.partitions <= partition {
            return None;
        }
        let Ok(at) = self.filled.binary_search(&partition) else { return Some((0, 0)) };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some((start, self.ends[at] - start))
    }

    /// Returns the non-empty partitions, ascending.
    pub fn filled(&self) -> &[u32] {
        &self.filled
    }

    /// Returns the bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the pairs of all segments.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns its memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.filled.len() * INDEX_ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_knows_the_segments_that_have_pairs_and_costs_nothing_for_others() {
        let mut index = SegmentIndex::new(1_000_000);
        assert_eq!((index.memory_bytes(), index.bytes()), (0, 0));
        index.push(7, 100, 3);
        index.push(999_999, 50, 2);
        let found = [0, 7, 8, 999_999, 1_000_000].map(|partition| index.segment(partition));
        assert_eq!(found, [Some((0, 0)), Some((0, 100)), Some((0, 0)), Some((100, 50)), None]);
        assert_eq!((index.bytes(), index.records(), index.memory_bytes()), (150, 5, 24));
        assert!(!index.may_start(7) && !index.may_start(999_999));
    }
}
