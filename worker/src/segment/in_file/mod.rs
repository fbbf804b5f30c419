//! Segments whose pairs are still in the input: only their order is held, 16 bytes for each pair.
//!
//! For sorts: a pair without a value whose key is in a mapped file need not be copied to become a map output.
//! A merge on this worker reads the keys in place. A worker with the same file system receives only the order
//! and maps the file itself. For others the bytes that a segment in memory would have are built as they are
//! sent. After reading such a segment to its end, the reader checks that the file is still the one that the
//! map read, as the map itself does. If not, the job fails for its input. A reduce that reads in place
//! reports it at once. A serving worker drops the output, so that the map runs again and reports it.

mod read;
mod receive;

use super::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, Fingerprint, HEADER_BYTES, INDEX_ENTRY_BYTES, SegmentError,
    SegmentHeader, SegmentId, SegmentIndex, SortEntry, WriteSetting, fingerprint_of_places,
};
use crate::budget::Reservation;
use crate::input::{FilePlace, MappedFile};
use crate::key::hash::key_prefix;
use receive::CHECKSUM_BYTES;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use read::InFileBytes;
pub(crate) use read::InFileReader;
pub(crate) use receive::ReceivedOrder;

/// Pairs of one map output, sorted by partition and key.
pub(crate) struct InFileOutput {
    file: Arc<MappedFile>,
    /// Base of positions in the file.
    start: usize,
    entries: Vec<SortEntry>,
    /// Non-empty partitions, ascending.
    parts: Vec<FileRun>,
    /// Released with the output: the memory of the entries, and the used bytes of the file. A receiver of the order
    /// uses no more of the file than its sender.
    _reservations: Vec<Reservation>,
}

/// Memory of a non-empty partition, bytes.
pub(crate) const PART_BYTES: usize = size_of::<FileRun>() + INDEX_ENTRY_BYTES;

struct FileRun {
    entries: Range<usize>,
    header: SegmentHeader,
}

impl InFileOutput {
    /// Creates an output of sorted entries, whose positions are relative to `start` of `file`. `held` is for the
    /// entries and the data of each partition, `relied_on` for the bytes of the file.
    pub fn new(
        setting: &WriteSetting,
        file: Arc<MappedFile>,
        start: usize,
        entries: Vec<SortEntry>,
        mut held: Reservation,
        relied_on: Reservation,
    ) -> Self {
        let mut parts: Vec<FileRun> = Vec::new();
        let mut begin = 0;
        for run in entries.chunk_by(|a, b| a.partition() == b.partition()) {
            let partition = run[0].partition();
            let mut header = setting.header(partition);
            header.records = run.len() as u64;
            header.length = HEADER_BYTES as u64;
            let mut block = 0;
            for (number, entry) in run.iter().enumerate() {
                block += entry.framed_length();
                if BLOCK_BYTES <= block || number + 1 == run.len() {
                    header.length += (BLOCK_HEADER_BYTES + block) as u64;
                    header.block_max = header.block_max.max(block as u32);
                    block = 0;
                }
            }
            parts.push(FileRun { entries: begin..begin + run.len(), header });
            begin += run.len();
        }
        parts.shrink_to_fit();
        held.shrink_to(size_of_val(&entries[..]) + parts.len() * PART_BYTES);
        Self { file, start, entries, parts, _reservations: vec![held, relied_on] }
    }

    /// Returns the index of the segments as if they were stored one after another.
    pub fn index(&self, partitions: u32) -> SegmentIndex {
        let mut index = SegmentIndex::new(partitions);
        for FileRun { header, .. } in &self.parts {
            index.push(header.id.partition, header.length, header.records);
        }
        index.shrink_to_fit();
        index
    }

    fn bytes(&self) -> &[u8] {
        &self.file.bytes()[self.start..]
    }

    /// Returns the fingerprint of its pairs.
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint_of_places(self.entries.iter().map(|entry| (entry.partition(), entry.number())))
    }
}

impl std::fmt::Debug for InFileOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InFileOutput").field("pairs", &self.entries.len()).finish_non_exhaustive()
    }
}

/// One segment of such an output, never an empty one. Clones share the data.
#[derive(Clone, Debug)]
pub struct InFileSegment {
    output: Arc<InFileOutput>,
    /// Index of the output's part.
    part: usize,
}

impl InFileSegment {
    /// Returns the segment of this partition; `None` if it has no pairs.
    pub(crate) fn from_output(output: &Arc<InFileOutput>, partition: u32) -> Option<Self> {
        let part = output.parts.binary_search_by_key(&partition, |part| part.header.id.partition).ok()?;
        Some(Self { output: output.clone(), part })
    }

    /// Returns the file, and the base of positions in it.
    pub(crate) fn place(&self) -> (FilePlace, u64) {
        (self.output.file.place(), self.output.start as u64)
    }

    /// Returns the bytes of the order as it is sent: the header, 16 bytes for each pair, and a checksum.
    pub(crate) fn order_bytes(&self) -> u64 {
        (HEADER_BYTES + CHECKSUM_BYTES) as u64 + self.header().records * size_of::<SortEntry>() as u64
    }

    /// Appends about `bytes_max` of the order from this pair on to `out`. Returns the next pair. The start is pair 0
    /// and checksum 0; the end is reached when no pair is left.
    pub(crate) fn put_order(
        &self,
        from: usize,
        checksum: &mut u32,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let begin = out.len();
        if from == 0 {
            out.extend_from_slice(&self.header().to_bytes());
        }
        let entries = self.entries();
        let until = entries.len().min(from + bytes_max / size_of::<SortEntry>());
        out.extend(entries[from..until].iter().flat_map(|entry| entry.to_bytes()));
        *checksum = crc32c::crc32c_append(*checksum, &out[begin..]);
        if until == entries.len() {
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        until
    }

    /// Creates a segment from a received order, after all possible checks: it is that of `id`, its checksum is right,
    /// and all pairs are in the file.
    ///
    /// # Errors
    /// [`SegmentError::Header`], [`SegmentError::Identity`], [`SegmentError::Block`].
    pub(crate) fn received(
        order: ReceivedOrder,
        id: SegmentId,
        file: Arc<MappedFile>,
        start: u64,
        reservation: Reservation,
    ) -> Result<Self, SegmentError> {
        let ReceivedOrder { head, entries, checksum, found } = order;
        let length = (head.len() + size_of_val(&entries[..])) as u64;
        let header = SegmentHeader::from_bytes(&head).ok_or(SegmentError::Header { length })?;
        if header.id != id {
            return Err(SegmentError::Identity { expected: id, found: header.id });
        }
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(file.bytes().len());
        let bytes = file.bytes().len() - start;
        let lies_there = |entry: &SortEntry| entry.partition() == id.partition && entry.end() <= bytes;
        let whole = checksum == found
            && header.records == entries.len() as u64
            && !entries.is_empty()
            && entries.iter().all(lies_there);
        if !whole {
            return Err(SegmentError::Block { id, offset: HEADER_BYTES as u64 });
        }
        let parts = vec![FileRun { entries: 0..entries.len(), header }];
        let output = InFileOutput { file, start, entries, parts, _reservations: vec![reservation] };
        Ok(Self { output: Arc::new(output), part: 0 })
    }

    fn part(&self) -> &FileRun {
        &self.output.parts[self.part]
    }

    fn entries(&self) -> &[SortEntry] {
        &self.output.entries[self.part().entries.clone()]
    }

    /// Returns the number of its pairs with keys less than `from`.
    fn pairs_before(&self, from: &[u8]) -> usize {
        let (prefix, bytes) = (key_prefix(from), self.output.bytes());
        self.entries().partition_point(|entry| match entry.prefix().cmp(&prefix) {
            Ordering::Less => true,
            Ordering::Equal => entry.key_in(bytes) < from,
            Ordering::Greater => false,
        })
    }

    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.part().header
    }

    /// Checks that the file is still the one that the map read.
    ///
    /// # Errors
    /// [`SegmentError::Changed`].
    pub(crate) fn check(&self) -> Result<(), SegmentError> {
        let source = match self.output.file.verify_unchanged() {
            Ok(()) => return Ok(()),
            Err(source) => Box::new(source),
        };
        Err(SegmentError::Changed { id: self.header().id, source })
    }
}
