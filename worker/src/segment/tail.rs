//! End of a segment: what a server sends for the keys from one on.
//!
//! The blocks are sent unchanged, from the one that has the key. A new header has the checksum of the block before, from
//! which that of the first block continues, so every byte stays under a checksum.

use super::read::{BlockSearch, SegmentBlocks};
use super::{HEADER_BYTES, SegmentData, SegmentError, SegmentHeader, SegmentOrder};
use bytes::Bytes;

/// End of a segment, without a copy.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SegmentTail {
    /// A segment: the whole one if nothing can be cut off, or pairs in their file.
    Whole(SegmentData),
    /// Header, and the blocks after it, which alone are not a segment.
    Cut { head: [u8; HEADER_BYTES], rest: SegmentData },
}

impl SegmentTail {
    /// Number of bytes, with the header.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Whole(data) => data.len() as u64,
            Self::Cut { rest, .. } => (HEADER_BYTES + rest.len()) as u64,
        }
    }

    /// True if there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the end of a segment that has all its pairs with keys from `from` on, and few others. Blocks: it reads the
/// headers of all blocks, and a logarithmic number of blocks.
///
/// # Errors
/// A read block that is damaged, or a file that has changed.
pub fn tail(data: &SegmentData, from: &[u8]) -> Result<SegmentTail, SegmentError> {
    if data.is_empty() || from.is_empty() {
        return Ok(SegmentTail::Whole(data.clone()));
    }
    if let SegmentData::InFile(segment) = data {
        let rest = segment.tail(from)?.map(SegmentData::InFile);
        return Ok(SegmentTail::Whole(rest.unwrap_or_else(|| SegmentData::Memory(Bytes::new()))));
    }
    let blocks = SegmentBlocks::open(data.clone())?;
    let header = blocks.header;
    let mut search = BlockSearch::new(blocks);
    let first = match header.order {
        SegmentOrder::Key => search.first_block(from)?,
        SegmentOrder::Hash => 0,
    };
    if first == 0 {
        return Ok(SegmentTail::Whole(data.clone()));
    }
    let blocks = &search.blocks()[first..];
    let (at, before) = (blocks[0].offset, blocks[0].before);
    let block_max = blocks.iter().map(|block| block.raw).max().unwrap_or(0);
    let length = HEADER_BYTES as u64 + header.length - at;
    let head = SegmentHeader { records: 0, length, block_max, before: Some(before), ..header }.to_bytes();
    let rest = match data {
        SegmentData::Memory(bytes) => SegmentData::Memory(bytes.slice(at as usize..)),
        SegmentData::File { file, offset, length } => {
            SegmentData::File { file: file.clone(), offset: offset + at, length: length - at }
        }
        SegmentData::InFile(_) => unreachable!("its end was returned before"),
    };
    Ok(SegmentTail::Cut { head, rest })
}
