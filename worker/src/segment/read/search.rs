//! Search for blocks by their headers and first keys: the other blocks are not read.

use super::blocks::{BlockHead, SegmentBlocks};
use super::frame_lengths;
use crate::segment::{COMPRESS_BYTES_MAX, FRAME_LENGTHS_BYTES_MAX, SegmentError};

/// Place of a block, by the headers of the blocks before.
#[derive(Clone, Copy)]
pub(super) struct BlockPlace {
    /// Offset of its header in the segment.
    pub(super) offset: u64,
    /// Checksum of the block before.
    pub(super) before: u32,
    /// Bytes of the found blocks before, uncompressed.
    pub(super) raw_before: u64,
    stored: u32,
}

/// Blocks found by their headers.
pub(super) struct BlockSearch {
    probe: SegmentBlocks,
    pub(super) blocks: Vec<BlockPlace>,
    /// Bytes of these blocks, uncompressed.
    pub(super) raw: u64,
    /// Bytes of these blocks in the segment, with their headers.
    pub(super) stored: u64,
    /// Bytes of the segment after these blocks.
    pub(super) after: u64,
}

impl BlockSearch {
    /// Reads headers from the next block of `probe` on: this many, or all.
    pub(super) fn new(mut probe: SegmentBlocks, headers_max: usize) -> Result<Self, SegmentError> {
        let (start, mut blocks, mut raw_before) = (probe.next, Vec::new(), 0);
        while blocks.len() < headers_max {
            let (offset, before) = (probe.next, probe.checksum);
            let Some(BlockHead { stored, raw, checksum, .. }) = probe.head()? else { break };
            blocks.push(BlockPlace { offset, before, raw_before, stored });
            raw_before += u64::from(raw);
            probe.skip(stored, checksum);
        }
        let (stored, after) = (probe.next - start, probe.header.length - probe.next);
        Ok(Self { probe, blocks, raw: raw_before, stored, after })
    }

    /// Returns the last block whose first key is less than `from`; `None` if that is the first block, or none. Pairs
    /// with keys from `from` on are in this block and in later ones: its last pairs may have the key `from` too.
    pub(super) fn last_before(&mut self, from: &[u8]) -> Result<Option<BlockPlace>, SegmentError> {
        let (mut low, mut high) = (0, self.blocks.len());
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            // As many bytes as `from` has decide.
            if self.first_key(middle, from.len())? < from {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok((low > 0).then(|| self.blocks[low]))
    }

    /// Checks a block and returns the first bytes of its first key, `bytes_max` at most.
    pub(super) fn first_key(&mut self, block: usize, bytes_max: usize) -> Result<&[u8], SegmentError> {
        let BlockPlace { offset, before, stored, .. } = self.blocks[block];
        self.probe.seek(offset, before);
        if stored as usize > COMPRESS_BYTES_MAX {
            // A block of one large pair is not held in memory for its key. It is never compressed.
            self.probe.check_next()?;
            self.probe.load_front((stored as usize).min(FRAME_LENGTHS_BYTES_MAX + bytes_max))?;
        } else {
            self.probe.next()?;
            self.probe.unpack()?;
        }
        let bytes = self.probe.window.bytes();
        let key = frame_lengths(bytes, 0)
            .and_then(|(length, _, start)| bytes.get(start..start + length.min(bytes_max)));
        key.ok_or_else(|| self.probe.bad_pairs())
    }
}
