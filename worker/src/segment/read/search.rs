//! Search for a key in a segment that is ordered by key, without reading all of it.
//!
//! The headers of blocks give their places. They are not checked by themselves, but each block whose first key is read
//! is checked from the checksum in the header before it. So a search that succeeds ends at the right block: the block
//! before which it cuts was checked, and so was the next one.

use super::blocks::{BlockHead, BlockWindow, SegmentBlocks};
use super::{frame_at, frame_lengths};
use crate::segment::{COMPRESS_BYTES_MAX, FRAME_LENGTHS_BYTES_MAX, SegmentError};

/// Place of a block, by the headers of the blocks before.
#[derive(Clone, Copy, Debug)]
pub(in crate::segment) struct BlockStart {
    /// Offset of its header in the segment.
    pub(in crate::segment) offset: u64,
    /// Checksum of the block before.
    pub(in crate::segment) before: u32,
    /// Bytes before compression.
    pub(in crate::segment) raw: u32,
    /// Bytes stored.
    pub(super) stored: u32,
}

/// Blocks found by their headers, from some block of the segment on.
pub(in crate::segment) struct BlockSearch {
    probe: SegmentBlocks,
    blocks: Vec<BlockStart>,
    /// Offset of the first header that was not read.
    next: u64,
    /// Checksum of the block before it.
    before: u32,
}

impl BlockSearch {
    /// Starts with the next block of `probe`.
    pub(in crate::segment) fn new(probe: SegmentBlocks) -> Self {
        let (next, before) = probe.position();
        Self { probe, blocks: Vec::new(), next, before }
    }

    /// Returns the blocks found so far.
    pub(in crate::segment) fn blocks(&self) -> &[BlockStart] {
        &self.blocks
    }

    /// Reads headers until this many blocks are found, or all.
    pub(super) fn hop(&mut self, blocks_max: usize) -> Result<(), SegmentError> {
        while self.blocks.len() < blocks_max {
            self.probe.seek(self.next, self.before);
            let Some(BlockHead { stored, raw, checksum, .. }) = self.probe.head()? else { break };
            self.blocks.push(BlockStart { offset: self.next, before: self.before, raw, stored });
            self.probe.skip(stored);
            (self.next, _) = self.probe.position();
            self.before = checksum;
        }
        Ok(())
    }

    /// Returns the bytes of the segment after the blocks that were found.
    pub(super) fn bytes_after(&self) -> u64 {
        self.probe.header.length - self.next
    }

    /// Returns the index of the first block that may have pairs with keys from `from` on. The last of the pairs before
    /// may have that key too, so it is the block before the first one that starts with such a key.
    pub(in crate::segment) fn first_block(&mut self, from: &[u8]) -> Result<usize, SegmentError> {
        self.hop(2)?;
        // This saves reading all headers of an end that was cut for this key.
        if self.blocks.len() < 2 || !self.starts_before(1, from)? {
            return Ok(0);
        }
        self.hop(usize::MAX)?;
        let (mut low, mut high) = (1, self.blocks.len());
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            if self.starts_before(middle, from)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn starts_before(&mut self, block: usize, from: &[u8]) -> Result<bool, SegmentError> {
        // One byte more than `from` decides.
        Ok(self.first_key(block, from.len() + 1)? < from)
    }

    /// Checks a block and returns the first bytes of its first key, `bytes_max` at most.
    pub(super) fn first_key(&mut self, block: usize, bytes_max: usize) -> Result<&[u8], SegmentError> {
        let BlockStart { offset, before, stored, .. } = self.blocks[block];
        self.probe.seek(offset, before);
        if stored as usize > COMPRESS_BYTES_MAX && self.probe.is_in_file() {
            // A block of one large pair is not held in memory for its key. It is never compressed.
            self.probe.check_next()?;
            let bytes = (stored as usize).min(FRAME_LENGTHS_BYTES_MAX.saturating_add(bytes_max));
            self.probe.load_front(bytes)?;
            let Some((length, _, at)) = frame_lengths(self.probe.window.bytes(), 0) else {
                return Err(self.probe.bad_pairs());
            };
            let bytes = &self.probe.window.bytes()[at..];
            return Ok(&bytes[..bytes.len().min(length).min(bytes_max)]);
        }
        self.probe.next()?;
        self.probe.unpack()?;
        let Some((key, _)) = frame_at(self.probe.window.bytes(), 0) else {
            return Err(self.probe.bad_pairs());
        };
        Ok(&self.probe.window.bytes()[key.start..key.end.min(key.start.saturating_add(bytes_max))])
    }

    /// Returns the blocks from this one on.
    pub(super) fn into_blocks(mut self, first: usize) -> SegmentBlocks {
        let (offset, before) =
            self.blocks.get(first).map_or((self.next, self.before), |block| (block.offset, block.before));
        self.probe.seek(offset, before);
        self.probe.window = BlockWindow::empty();
        self.probe
    }
}
