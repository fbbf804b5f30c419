//! Reads the pairs of one segment, and checks each block before it returns the block's first pair.
//!
//! Segments in memory are read in place; blocks of files are read into one buffer.

mod blocks;
mod rest;
mod search;

use super::in_file::InFileReader;
use super::{COMPRESS_BYTES_MAX, SegmentData, SegmentError, SegmentHeader, SegmentId, SegmentOrder};
use crate::key::hash::{key_hash, key_prefix};
use blocks::{BlockHead, SegmentBlocks};
pub(crate) use rest::{RestLimits, SegmentRest};
pub(super) use rest::{cut_off, evenly};
use search::BlockSearch;
use std::ops::Range;

/// Pairs of one segment, one at a time.
///
/// Holds at most one block, stored and decompressed. `key`, `value` and `rank` are those of the pair that the last
/// [`advance`](SegmentReader::advance) reached.
pub struct SegmentReader(SegmentSource);

enum SegmentSource {
    Blocks(BlockReader),
    InFile(InFileReader),
}

impl SegmentReader {
    /// Opens a non-empty segment.
    ///
    /// # Errors
    /// Bytes that do not start with a header, or whose length differs from the header's.
    pub fn open(data: SegmentData) -> Result<Self, SegmentError> {
        Ok(Self(match data {
            SegmentData::InFile(segment) => SegmentSource::InFile(InFileReader::new(segment)),
            data => SegmentSource::Blocks(BlockReader::open(data)?),
        }))
    }

    /// Opens a non-empty segment before its first pair with a key from `from` on, if it is ordered by key. It reads a
    /// logarithmic number of the blocks before.
    ///
    /// # Errors
    /// As [`SegmentReader::open`], and a block that is damaged or cannot be read.
    pub fn open_from(data: SegmentData, from: &[u8]) -> Result<Self, SegmentError> {
        let mut reader = Self::open(data)?;
        match &mut reader.0 {
            SegmentSource::Blocks(reader) => reader.skip_before(from)?,
            SegmentSource::InFile(reader) => reader.skip_before(from),
        }
        Ok(reader)
    }

    /// Checks that pairs in the input are still the ones that the map read. For a reader that does not reach its end,
    /// where it does this itself.
    ///
    /// # Errors
    /// [`SegmentError::Changed`].
    pub(crate) fn check_unchanged(&self) -> Result<(), SegmentError> {
        match &self.0 {
            SegmentSource::Blocks(_) => Ok(()),
            SegmentSource::InFile(reader) => reader.segment.check(),
        }
    }

    /// Returns the segment's header.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        match &self.0 {
            SegmentSource::Blocks(reader) => &reader.blocks.header,
            SegmentSource::InFile(reader) => reader.header(),
        }
    }

    /// Moves to the next pair; false after the last.
    ///
    /// # Errors
    /// A block that is damaged or cannot be read.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, SegmentError> {
        match &mut self.0 {
            SegmentSource::Blocks(reader) => reader.advance(),
            SegmentSource::InFile(reader) => reader.advance(),
        }
    }

    /// Returns the key's bytes.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.0 {
            SegmentSource::Blocks(reader) => &reader.blocks.window.bytes()[reader.key.clone()],
            SegmentSource::InFile(reader) => reader.key(),
        }
    }

    /// Returns the value's bytes.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.0 {
            SegmentSource::Blocks(reader) => &reader.blocks.window.bytes()[reader.value.clone()],
            SegmentSource::InFile(_) => b"",
        }
    }

    /// Returns 16 bytes from the key's first byte on, if the block has that many.
    #[inline]
    pub(crate) fn key_loaded(&self) -> Option<[u8; 16]> {
        match &self.0 {
            SegmentSource::Blocks(reader) => {
                reader.blocks.window.bytes()[reader.key.start..].first_chunk().copied()
            }
            SegmentSource::InFile(_) => None,
        }
    }

    /// Returns a number that sorts like a prefix of the pair: the key's first bytes, or its hash.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> u64 {
        match &self.0 {
            SegmentSource::InFile(reader) => reader.prefix(),
            SegmentSource::Blocks(reader) => match reader.blocks.header.order {
                SegmentOrder::Key => key_prefix(self.key()),
                SegmentOrder::Hash => key_hash(self.key()).get(),
            },
        }
    }
}

/// Reads a segment that consists of blocks.
struct BlockReader {
    blocks: SegmentBlocks,
    /// Number of pairs after the current one, and in skipped blocks.
    left: u64,
    /// True if blocks were skipped, so that the number of pairs is unknown.
    skipped: bool,
    at: usize,
    key: Range<usize>,
    value: Range<usize>,
}

impl BlockReader {
    fn open(data: SegmentData) -> Result<Self, SegmentError> {
        let blocks = SegmentBlocks::open(data)?;
        Ok(Self { left: blocks.header.records, skipped: false, blocks, at: 0, key: 0..0, value: 0..0 })
    }

    /// Skips the pairs with keys less than `from`. The reader is before its first block.
    fn skip_before(&mut self, from: &[u8]) -> Result<(), SegmentError> {
        // In the order of hashes pairs of all keys may follow.
        if from.is_empty() || self.blocks.header.order == SegmentOrder::Hash {
            return Ok(());
        }
        let mut search = BlockSearch::new(self.blocks.after(), usize::MAX)?;
        if let Some(block) = search.last_before(from)? {
            self.blocks.seek(block.offset, block.before);
            self.skipped = true;
        }
        loop {
            let bytes = self.blocks.window.bytes();
            while self.at < bytes.len() {
                let Some((key, value)) = frame_at(bytes, self.at) else {
                    return Err(self.blocks.bad_pairs());
                };
                if &bytes[key] >= from {
                    return Ok(());
                }
                self.at = value.end;
                self.left = self.left.wrapping_sub(1);
            }
            if !self.next_block()? {
                return Ok(());
            }
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<bool, SegmentError> {
        let bytes = self.blocks.window.bytes();
        if self.at == bytes.len() {
            return self.advance_block();
        }
        let Some((key, value)) = frame_at(bytes, self.at) else { return Err(self.blocks.bad_pairs()) };
        self.at = value.end;
        (self.key, self.value) = (key, value);
        self.left = self.left.wrapping_sub(1);
        Ok(true)
    }

    #[cold]
    fn advance_block(&mut self) -> Result<bool, SegmentError> {
        if self.next_block()? {
            return self.advance();
        }
        if self.left != 0 && !self.skipped {
            return Err(self.blocks.bad_pairs());
        }
        Ok(false)
    }

    /// Moves before the first pair of the next block; false after the last.
    fn next_block(&mut self) -> Result<bool, SegmentError> {
        self.at = 0;
        (self.key, self.value) = (0..0, 0..0);
        if !self.blocks.next()? {
            return Ok(false);
        }
        self.blocks.unpack()?;
        Ok(true)
    }
}

/// Checks that `data` is the complete and intact segment `expected`. An empty segment matches any.
///
/// # Errors
/// The first detected error.
pub fn verify(data: &SegmentData, expected: &SegmentId) -> Result<(), SegmentError> {
    if data.is_empty() {
        return Ok(());
    }
    if let SegmentData::InFile(segment) = data {
        let found = segment.header().id;
        return if found == *expected {
            segment.check()
        } else {
            Err(SegmentError::Identity { expected: *expected, found })
        };
    }
    let mut blocks = SegmentBlocks::open(data.clone())?;
    let found = blocks.header.id;
    if found != *expected {
        return Err(SegmentError::Identity { expected: *expected, found });
    }
    while blocks.check_next()? {}
    Ok(())
}

/// Returns the memory as [`SegmentData::buffer_bytes`].
pub(super) fn buffer_bytes(data: &SegmentData) -> Result<usize, SegmentError> {
    let block_max = |blocks: &SegmentBlocks| blocks.header.block_max as usize;
    match data {
        SegmentData::InFile(_) => Ok(0),
        SegmentData::File { .. } => {
            let longest = block_max(&SegmentBlocks::open(data.clone())?);
            Ok(longest + longest.min(COMPRESS_BYTES_MAX))
        }
        SegmentData::Memory(_) => {
            let mut blocks = SegmentBlocks::open(data.clone())?;
            // Few segments have compressed blocks, and those have them from the first block on.
            while let Some(BlockHead { stored, raw, checksum, .. }) = blocks.head()? {
                if stored < raw {
                    return Ok(block_max(&blocks).min(COMPRESS_BYTES_MAX));
                }
                blocks.skip(stored, checksum);
            }
            Ok(0)
        }
    }
}

/// Returns key and value of the pair framed at `at`; `None` if it does not end within `bytes`.
#[inline]
pub(crate) fn frame_at(bytes: &[u8], at: usize) -> Option<(Range<usize>, Range<usize>)> {
    let (key_length, value_length, at) = frame_lengths(bytes, at)?;
    let key_end = at.checked_add(key_length)?;
    let end = key_end.checked_add(value_length)?;
    (end <= bytes.len()).then_some((at..key_end, key_end..end))
}

/// Returns the lengths of key and value of the pair framed at `at`, and the offset of its key.
#[inline]
fn frame_lengths(bytes: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    let (key_length, at) = varint_at(bytes, at)?;
    let (value_length, at) = varint_at(bytes, at)?;
    Some((key_length, value_length, at))
}

#[inline]
fn varint_at(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((usize::from(first), at + 1));
    }
    let mut number = 0;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.get(at)?;
        number |= usize::from(byte & 0x7F) << shift;
        at += 1;
        if byte < 0x80 {
            return Some((number, at));
        }
    }
    None
}
