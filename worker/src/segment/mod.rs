//! Segments: the pairs of one partition of one map output, as bytes with their own identity and checksums.
//!
//! The same bytes are used in memory, in spill files and on the wire; `FORMAT.md` describes them. Runs (sorted spills)
//! are also map outputs, with a short life.
//!
//! Invariant: every byte of a segment is covered by a checksum, and blocks cannot be swapped, because the checksum of
//! each block continues that of the previous block.

mod bounds;
mod entry;
mod error;
mod fingerprint;
mod in_file;
mod index;
mod output;
mod read;
mod spill;

#[cfg(test)]
mod tests;
mod write;

pub use bounds::{CUT_KEY_BYTES_MAX, KeyBounds};
pub(crate) use entry::PARTITIONS_MAX;
pub(crate) use entry::{LENGTH_MAX, PREFIX_BYTES, SortEntry};
pub use error::SegmentError;
pub(crate) use fingerprint::{Printing, fingerprint_of_places};
pub use gristmill_scheduler::event::Fingerprint;
pub(crate) use in_file::InFileBytes;
pub use in_file::InFileSegment;
pub(crate) use in_file::{InFileOutput, PART_BYTES, ReceivedOrder};
pub(crate) use index::{INDEX_ENTRY_BYTES, SegmentIndex};
pub use output::MapOutput;
pub(crate) use read::{RestLimits, SegmentRest, frame_at};
pub use read::{SegmentReader, verify};
pub use spill::{SpillDirs, SpillFile, SpillWriter};
pub use write::{SegmentsWriter, WriteError, WriteSetting};
pub(crate) use write::{framed_length, put_frame};

use bytes::Bytes;
use gristmill_scheduler::ids::JobId;
use output::OutputPlace;
use std::sync::Arc;

/// First bytes of every segment.
pub(crate) const MAGIC: [u8; 4] = *b"GMSG";
/// Version of the format; others are rejected.
pub(crate) const VERSION: u16 = 1;
/// Bytes of a segment's header.
pub(crate) const HEADER_BYTES: usize = 48;
/// Bytes of a block's header.
pub(crate) const BLOCK_HEADER_BYTES: usize = 12;
/// Size at which a block ends, after the pair that reaches it. Large enough that headers and system calls do not
/// matter, small enough that a merge of 256 files needs 32 MiB.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Maximum bytes of a key and its value together.
pub(crate) const PAIR_BYTES_MAX: usize = 1 << 30;
/// Maximum bytes of the lengths before a pair.
pub(crate) const FRAME_LENGTHS_BYTES_MAX: usize = 10;
/// Maximum size of compressed blocks. Longer blocks, of one large pair, are stored uncompressed: compression would need
/// their length again in memory. A block that claims to decompress to more is invalid.
const COMPRESS_BYTES_MAX: usize = 1 << 20;

/// Identity of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct SegmentId {
    pub job: JobId,
    /// Index of the map task.
    pub map: u32,
    /// Epoch of the attempt.
    pub epoch: u32,
    pub partition: u32,
}

/// Order of the pairs of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentOrder {
    /// By key bytes; pairs of equal keys in the order in which they were emitted.
    Key,
    /// Approximately by the hash of the key, each key once. For jobs with a combiner, which need no order until the
    /// reducer sorts once. Runs in this order are exactly sorted, by hash and then by key.
    Hash,
}

/// Header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// Identity of the segment.
    pub id: SegmentId,
    /// Order of its pairs.
    pub order: SegmentOrder,
    /// Number of pairs.
    pub records: u64,
    /// Total bytes, with header and blocks.
    pub length: u64,
    /// Bytes of its largest block before compression.
    pub block_max: u32,
}

/// Compression of blocks in spill files. Segments in memory are never compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SpillCompression {
    /// No compression.
    None,
    /// LZ4, if it makes the block smaller.
    #[default]
    Lz4,
}

/// Data of one segment, at any place. Clones share it. An empty segment has no bytes at all.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SegmentData {
    Memory(Bytes),
    /// Range of a spill file.
    File {
        /// File, deleted with the last of its segments.
        file: Arc<SpillFile>,
        /// Offset of the segment.
        offset: u64,
        /// Bytes of the segment.
        length: u64,
    },
    /// Pairs that are still in a file of the input.
    InFile(InFileSegment),
}

impl SegmentData {
    /// Number of bytes of the segment.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File { length, .. } => *length as usize,
            Self::InFile(segment) => segment.header().length as usize,
        }
    }

    /// True if there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory needed to read it, in addition to its data: its longest block as stored in a file, and
    /// decompressed.
    ///
    /// # Errors
    /// Bytes that are not a segment.
    pub(crate) fn buffer_bytes(&self) -> Result<usize, SegmentError> {
        read::buffer_bytes(self)
    }
}

impl SegmentHeader {
    /// Returns the header's bytes, including the checksum.
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6] = match self.order {
            SegmentOrder::Key => 0,
            SegmentOrder::Hash => 1,
        };
        bytes[8..12].copy_from_slice(&self.id.job.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.id.map.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.id.epoch.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.id.partition.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.records.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.length.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.block_max.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..44]);
        bytes[44..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Parses a header; `None` if it is invalid.
    fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let order = match bytes[6] {
            0 => SegmentOrder::Key,
            1 => SegmentOrder::Hash,
            _ => return None,
        };
        let known = bytes[..4] == MAGIC && bytes[4..6] == VERSION.to_le_bytes() && bytes[7] == 0;
        if !known || u32_at(44) != crc32c::crc32c(&bytes[..44]) {
            return None;
        }
        let id =
            SegmentId { job: JobId(u32_at(8)), map: u32_at(12), epoch: u32_at(16), partition: u32_at(20) };
        Some(Self { id, order, records: u64_at(24), length: u64_at(32), block_max: u32_at(40) })
    }

    /// Returns the initial checksum of the first block: the identity, so that no block fits another segment.
    fn seed(&self) -> u32 {
        crc32c::crc32c(&self.to_bytes()[4..24])
    }
}

/// Returns the checksum of a block, from that of the previous block.
fn block_checksum(before: u32, stored: u32, raw: u32, payload: &[u8]) -> u32 {
    let lengths = crc32c::crc32c_append(before, &stored.to_le_bytes());
    let lengths = crc32c::crc32c_append(lengths, &raw.to_le_bytes());
    crc32c::crc32c_append(lengths, payload)
}
