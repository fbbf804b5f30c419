//! Segments: the pairs of one partition of one map output, as bytes that carry their own identity and checksums.
//!
//! The same bytes lie in memory, in spill files and on the wire; `FORMAT.md` describes them. Runs (sorted
//! spills) are map outputs too, only short-lived.
//!
//! Invariant: no byte of a segment is outside a checksum, and blocks cannot be swapped, because the checksum
//! of each block continues that of the one before it.

mod entry;
mod error;
mod in_file;
mod index;
mod output;
mod print;
mod read;
mod spill;

#[cfg(test)]
mod tests;
mod write;

pub use entry::PARTITIONS_MAX;
pub(crate) use entry::{LENGTH_MAX, PREFIX_BYTES, SortEntry};
pub use error::SegmentError;
pub use in_file::{InFileBytes, InFileSegment};
pub(crate) use in_file::{InFileOutput, PART_BYTES, ReceivedOrder};
pub(crate) use index::{INDEX_ENTRY_BYTES, SegmentIndex};
pub(crate) use output::GivenUpOutput;
pub use output::MapOutput;
pub use print::OutputPrint;
pub(crate) use print::Printing;
pub(crate) use read::frame_at;
pub use read::{SegmentReader, verify};
pub(crate) use spill::ensure;
pub use spill::{SpillDirs, SpillFile, SpillWriter};
pub use write::{SegmentsWriter, WriteError, WriteSetting};
pub(crate) use write::{framed_length, put_frame};

use bytes::Bytes;
use gristmill_scheduler::ids::JobId;
use output::OutputPlace;
use std::sync::Arc;

/// First bytes of every segment.
pub(crate) const MAGIC: [u8; 4] = *b"GMSG";
/// Version of the bytes; another one is refused.
pub(crate) const VERSION: u16 = 1;
/// Bytes of a segment's header.
pub(crate) const HEADER_BYTES: usize = 48;
/// Bytes in front of each block.
pub(crate) const BLOCK_HEADER_BYTES: usize = 12;
/// A block ends with the first pair at which it has this many bytes. Large enough that headers and system calls
/// do not matter, small enough that a merge of 256 files needs 32 MiB.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Bytes of a key and its value together.
pub(crate) const PAIR_BYTES_MAX: usize = 1 << 30;
/// Bytes of the lengths in front of a pair, at most.
pub(crate) const FRAME_LENGTHS_BYTES_MAX: usize = 10;
/// Longer blocks, of one large pair, are stored as they are: compressing needs their length once more in memory. So a
/// block that claims to unpack to more is a lie.
const COMPRESS_BYTES_MAX: usize = 1 << 20;

/// What a segment is a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct SegmentId {
    pub job: JobId,
    /// Index of the map task.
    pub map: u32,
    /// Which try of it.
    pub epoch: u32,
    pub partition: u32,
}

/// In which order the pairs of a segment lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentOrder {
    /// By key bytes; pairs of equal keys in the order in which they were emitted.
    Key,
    /// Roughly by the hash of the key, each key once. For jobs with a combiner, which need no order until the
    /// reducer sorts once. Runs in this order are exactly sorted, by hash and then by key.
    Hash,
}

/// The header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// What it is a part of.
    pub id: SegmentId,
    /// The order of its pairs.
    pub order: SegmentOrder,
    /// Number of pairs.
    pub records: u64,
    /// Bytes with header and blocks.
    pub length: u64,
    /// Bytes of its largest block before compression.
    pub block_max: u32,
}

/// How blocks in spill files are compressed. Segments in memory never are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SpillCompression {
    /// As they are.
    None,
    /// LZ4 where it makes the block smaller.
    #[default]
    Lz4,
}

/// The bytes of one segment, wherever they are. Cloning shares them. An empty segment has no bytes at all.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SegmentData {
    Memory(Bytes),
    /// A range of a spill file.
    File {
        /// The file; deleted with the last segment that lies in it.
        file: Arc<SpillFile>,
        /// First byte of the segment.
        offset: u64,
        /// Bytes of the segment.
        length: u64,
    },
    /// Pairs that still lie in a file of the input.
    InFile(InFileSegment),
}

impl SegmentData {
    /// Bytes of the segment.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File { length, .. } => *length as usize,
            Self::InFile(segment) => segment.header().length as usize,
        }
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it takes to read it, besides what it lies in: its longest block as it is stored in a file, and unpacked.
    ///
    /// # Errors
    /// Bytes that are no segment.
    pub(crate) fn buffer_bytes(&self) -> Result<usize, SegmentError> {
        read::buffer_bytes(self)
    }
}

impl SegmentHeader {
    /// The header's bytes, checksum included.
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

    /// Reads a header; `None` if it is none.
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

    /// What the checksum of the first block continues: the identity, so that no block fits another segment.
    fn seed(&self) -> u32 {
        crc32c::crc32c(&self.to_bytes()[4..24])
    }
}

/// The checksum of a block, from that of the block before it.
fn block_checksum(before: u32, stored: u32, raw: u32, payload: &[u8]) -> u32 {
    let lengths = crc32c::crc32c_append(before, &stored.to_le_bytes());
    let lengths = crc32c::crc32c_append(lengths, &raw.to_le_bytes());
    crc32c::crc32c_append(lengths, payload)
}
