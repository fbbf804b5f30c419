//! Blocks of a segment in sequence: read or mapped, checked, decompressed.

use crate::segment::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, COMPRESS_BYTES_MAX, HEADER_BYTES, PAIR_BYTES_MAX, SegmentData,
    SegmentError, SegmentHeader, block_checksum,
};
use bytes::Bytes;

/// Upper bound of a block's size: pairs up to the limit, their lengths, and the block they were added to.
const RAW_BYTES_MAX: u32 = PAIR_BYTES_MAX as u32 + BLOCK_BYTES as u32 + 16;

/// Bytes of a block on disk that are read at once for a check: the sender controls the size of a block.
const CHECK_BYTES: usize = 256 << 10;

/// Maximum ratio of LZ4, so that a false length cannot request much memory.
const LZ4_RATIO_MAX: u64 = 255;

/// Header of a block.
pub(super) struct BlockHead {
    pub(super) stored: u32,
    pub(super) raw: u32,
    pub(super) checksum: u32,
    /// Bytes of the segment after the header.
    after: u64,
}

/// Checked blocks of a segment.
pub(super) struct SegmentBlocks {
    data: SegmentData,
    pub(super) header: SegmentHeader,
    /// Offset of the next block.
    pub(super) next: u64,
    /// Offset of the current block.
    offset: u64,
    /// Checksum of the block before the next one.
    pub(super) checksum: u32,
    pub(super) window: BlockWindow,
    /// Bytes of the current block before compression.
    raw: u32,
    /// Reused buffer for a file's block before decompression.
    stored: Vec<u8>,
    /// Header of the next block, if it was read together with the previous block.
    ahead: Option<[u8; BLOCK_HEADER_BYTES]>,
}

impl SegmentBlocks {
    pub(super) fn open(data: SegmentData) -> Result<Self, SegmentError> {
        let found = data.len() as u64;
        if found < HEADER_BYTES as u64 {
            return Err(SegmentError::Header { length: found });
        }
        let mut bytes = [0; HEADER_BYTES];
        read(&data, 0, &mut bytes)?;
        let header = SegmentHeader::from_bytes(&bytes).ok_or(SegmentError::Header { length: found })?;
        if header.length != found {
            return Err(SegmentError::Length { expected: header.length, found });
        }
        Ok(Self::new(data, header, HEADER_BYTES as u64, header.seed()))
    }

    fn new(data: SegmentData, header: SegmentHeader, next: u64, checksum: u32) -> Self {
        Self {
            data,
            header,
            next,
            offset: 0,
            checksum,
            window: BlockWindow::empty(),
            raw: 0,
            stored: Vec::new(),
            ahead: None,
        }
    }

    /// Creates a reader of the blocks after the current one, with buffers of its own.
    pub(super) fn after(&self) -> Self {
        Self::new(self.data.clone(), self.header, self.next, self.checksum)
    }

    pub(super) fn is_in_file(&self) -> bool {
        matches!(self.data, SegmentData::File { .. })
    }

    /// Moves before the block at this offset, which follows a block with this checksum.
    pub(super) fn seek(&mut self, offset: u64, before: u32) {
        (self.next, self.checksum, self.ahead) = (offset, before, None);
    }

    fn damaged(&self) -> SegmentError {
        SegmentError::Block { id: self.header.id, offset: self.offset }
    }

    pub(super) fn bad_pairs(&self) -> SegmentError {
        SegmentError::Pairs { id: self.header.id, offset: self.offset }
    }

    /// Reads the header of the next block; `None` after the last.
    pub(super) fn head(&mut self) -> Result<Option<BlockHead>, SegmentError> {
        self.offset = self.next;
        let left = self.header.length - self.offset;
        if left == 0 {
            self.window = BlockWindow::empty();
            return Ok(None);
        }
        if left < BLOCK_HEADER_BYTES as u64 {
            return Err(self.damaged());
        }
        let mut head = [0; BLOCK_HEADER_BYTES];
        match self.ahead.take() {
            Some(ahead) => head = ahead,
            None => read(&self.data, self.offset, &mut head)?,
        }
        let u32_at = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (stored, raw, checksum) = (u32_at(0), u32_at(4), u32_at(8));
        let after = left - BLOCK_HEADER_BYTES as u64;
        let possible = 0 < stored
            && stored <= raw
            && u64::from(stored) <= after
            && raw <= RAW_BYTES_MAX.min(self.header.block_max)
            && (stored == raw || raw as usize <= COMPRESS_BYTES_MAX)
            && u64::from(raw) <= u64::from(stored) * LZ4_RATIO_MAX;
        if possible { Ok(Some(BlockHead { stored, raw, checksum, after })) } else { Err(self.damaged()) }
    }

    /// Reads and checks the next block; false after the last. The window holds it as stored.
    pub(super) fn next(&mut self) -> Result<bool, SegmentError> {
        let Some(BlockHead { stored, raw, checksum, after }) = self.head()? else { return Ok(false) };
        self.load(stored as usize, after)?;
        let found = block_checksum(self.checksum, stored, raw, self.window.bytes());
        self.raw = raw;
        self.end_block(stored, found, checksum)
    }

    /// Checks the next block without holding it; false after the last.
    pub(super) fn check_next(&mut self) -> Result<bool, SegmentError> {
        if matches!(self.data, SegmentData::Memory(_)) {
            return self.next();
        }
        let Some(BlockHead { stored, raw, checksum, .. }) = self.head()? else { return Ok(false) };
        let mut found = block_checksum(self.checksum, stored, raw, &[]);
        let mut at = self.offset + BLOCK_HEADER_BYTES as u64;
        let mut left = stored as usize;
        while 0 < left {
            self.stored.resize(left.min(CHECK_BYTES), 0);
            read(&self.data, at, &mut self.stored)?;
            found = crc32c::crc32c_append(found, &self.stored);
            at += self.stored.len() as u64;
            left -= self.stored.len();
        }
        self.end_block(stored, found, checksum)
    }

    /// Moves past a block after comparing the found and the expected checksum.
    fn end_block(&mut self, stored: u32, found: u32, expected: u32) -> Result<bool, SegmentError> {
        if found != expected {
            return Err(self.damaged());
        }
        self.skip(stored, found);
        Ok(true)
    }

    /// Moves past the current block, which has this checksum.
    pub(super) fn skip(&mut self, stored: u32, checksum: u32) {
        self.checksum = checksum;
        self.next = self.offset + BLOCK_HEADER_BYTES as u64 + u64::from(stored);
    }

    /// Loads the stored bytes of the current block into the window.
    fn load(&mut self, stored: usize, after: u64) -> Result<(), SegmentError> {
        let from = self.offset + BLOCK_HEADER_BYTES as u64;
        match &self.data {
            SegmentData::Memory(bytes) => {
                let from = from as usize;
                self.window = BlockWindow::Shared(bytes.slice(from..from + stored));
            }
            SegmentData::File { .. } | SegmentData::InFile(_) => {
                let mut buffer = self.window.take_buffer();
                // The next block's header is read with it, which halves the number of system calls.
                let with_next = stored as u64 + BLOCK_HEADER_BYTES as u64 <= after;
                buffer.resize(stored + if with_next { BLOCK_HEADER_BYTES } else { 0 }, 0);
                read(&self.data, from, &mut buffer)?;
                self.ahead = if with_next { buffer[stored..].first_chunk().copied() } else { None };
                buffer.truncate(stored);
                self.window = BlockWindow::Own(buffer);
            }
        }
        Ok(())
    }

    /// Loads the first stored bytes of the current block, which was checked, into the window.
    pub(super) fn load_front(&mut self, bytes: usize) -> Result<(), SegmentError> {
        let mut buffer = self.window.take_buffer();
        buffer.resize(bytes, 0);
        read(&self.data, self.offset + BLOCK_HEADER_BYTES as u64, &mut buffer)?;
        self.window = BlockWindow::Own(buffer);
        Ok(())
    }

    /// Replaces stored bytes in the window by the decompressed pairs.
    pub(super) fn unpack(&mut self) -> Result<(), SegmentError> {
        if self.window.bytes().len() == self.raw as usize {
            return Ok(());
        }
        let mut raw = std::mem::take(&mut self.stored);
        raw.resize(self.raw as usize, 0);
        let unpacked = lz4_flex::block::decompress_into(self.window.bytes(), &mut raw);
        if unpacked.ok() != Some(self.raw as usize) {
            return Err(self.damaged());
        }
        self.stored = self.window.take_buffer();
        self.window = BlockWindow::Own(raw);
        Ok(())
    }
}

/// Bytes of the current block.
pub(super) enum BlockWindow {
    Shared(Bytes),
    Own(Vec<u8>),
}

impl BlockWindow {
    fn empty() -> Self {
        Self::Shared(Bytes::new())
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }

    /// Returns the buffer of an earlier block for reuse.
    fn take_buffer(&mut self) -> Vec<u8> {
        match std::mem::replace(self, Self::empty()) {
            Self::Own(buffer) => buffer,
            Self::Shared(_) => Vec::new(),
        }
    }
}

/// Fills `buffer` from `offset` of the segment on. The range must be within the segment.
pub(super) fn read(data: &SegmentData, offset: u64, buffer: &mut [u8]) -> Result<(), SegmentError> {
    match data {
        SegmentData::Memory(bytes) => {
            let from = offset as usize;
            buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
            Ok(())
        }
        SegmentData::File { file, offset: start, .. } => file
            .read_at(start + offset, buffer)
            .map_err(|source| SegmentError::Read { path: file.path().to_owned(), source }),
        SegmentData::InFile(_) => {
            unreachable!("such a segment has no blocks, and `SegmentReader` reads none")
        }
    }
}
