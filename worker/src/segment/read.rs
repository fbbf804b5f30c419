//! Reads the pairs of one segment, checking each block before its first pair is handed out.
//!
//! Segments in memory are read where they lie; blocks of files are read into one buffer. Not here: merging.

use super::in_file::InFileReader;
use super::{
    BLOCK_HEADER_BYTES, COMPRESS_BYTES_MAX, HEADER_BYTES, PAIR_BYTES_MAX, SegmentData, SegmentError,
    SegmentHeader, SegmentId, SegmentOrder, block_checksum,
};
use crate::key::hash::{key_hash, key_prefix};
use bytes::Bytes;
use std::ops::Range;

/// More bytes than a block can have: pairs up to the limit, their lengths, and the block they were added to.
const RAW_BYTES_MAX: u32 = PAIR_BYTES_MAX as u32 + super::BLOCK_BYTES as u32 + 16;
/// Bytes of a block on disk that are read at once to be checked: a block may be as large as whoever sent it likes.
const CHECK_BYTES: usize = 256 << 10;
/// A block of LZ4 grows at most this many times, so a false length cannot ask for much memory.
const LZ4_RATIO_MAX: u64 = 255;

/// The pairs of one segment, one at a time.
///
/// Holds at most one block, stored and decompressed. `key`, `value` and `rank` are those of the pair that the
/// last [`advance`](SegmentReader::advance) reached.
pub struct SegmentReader(Source);

enum Source {
    Blocks(BlockReader),
    InFile(InFileReader),
}

impl SegmentReader {
    /// Opens a segment that is not empty.
    ///
    /// # Errors
    /// Bytes that do not begin with a header, or have another length than it says.
    pub fn open(data: SegmentData) -> Result<Self, SegmentError> {
        Ok(Self(match data {
            SegmentData::InFile(segment) => Source::InFile(InFileReader::new(segment)),
            data => Source::Blocks(BlockReader::open(data)?),
        }))
    }

    /// The segment's header.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        match &self.0 {
            Source::Blocks(reader) => &reader.blocks.header,
            Source::InFile(reader) => reader.header(),
        }
    }

    /// Goes to the next pair; false after the last.
    ///
    /// # Errors
    /// A block that is damaged or cannot be read.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, SegmentError> {
        match &mut self.0 {
            Source::Blocks(reader) => reader.advance(),
            Source::InFile(reader) => reader.advance(),
        }
    }

    /// The key's bytes.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.0 {
            Source::Blocks(reader) => &reader.blocks.window.bytes()[reader.key.clone()],
            Source::InFile(reader) => reader.key(),
        }
    }

    /// The value's bytes.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.0 {
            Source::Blocks(reader) => &reader.blocks.window.bytes()[reader.value.clone()],
            Source::InFile(_) => b"",
        }
    }

    /// The memory from the key's first byte on, if there is so much of it in the block.
    #[inline]
    pub(crate) fn key_loaded(&self) -> Option<[u8; 16]> {
        match &self.0 {
            Source::Blocks(reader) => reader.blocks.window.bytes()[reader.key.start..].first_chunk().copied(),
            Source::InFile(_) => None,
        }
    }

    /// A number that sorts like the pair as far as it goes: the key's first bytes, or its hash.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> u64 {
        match &self.0 {
            Source::InFile(reader) => reader.prefix(),
            Source::Blocks(reader) => match reader.blocks.header.order {
                SegmentOrder::Key => key_prefix(self.key()),
                SegmentOrder::Hash => key_hash(self.key()).get(),
            },
        }
    }
}

/// Reads a segment that consists of blocks.
struct BlockReader {
    blocks: Blocks,
    left: u64,
    at: usize,
    key: Range<usize>,
    value: Range<usize>,
}

impl BlockReader {
    fn open(data: SegmentData) -> Result<Self, SegmentError> {
        let blocks = Blocks::open(data)?;
        Ok(Self { left: blocks.header.records, blocks, at: 0, key: 0..0, value: 0..0 })
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
        self.at = 0;
        (self.key, self.value) = (0..0, 0..0);
        if self.blocks.next()? {
            self.blocks.unpack()?;
            return self.advance();
        }
        if self.left != 0 {
            return Err(self.blocks.bad_pairs());
        }
        Ok(false)
    }
}

/// Checks that `data` is the whole and undamaged segment `expected`. An empty segment is right for any.
///
/// # Errors
/// What is wrong with it.
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
    let mut blocks = Blocks::open(data.clone())?;
    let found = blocks.header.id;
    if found != *expected {
        return Err(SegmentError::Identity { expected: *expected, found });
    }
    while blocks.check_next()? {}
    Ok(())
}

/// See [`SegmentData::buffer_bytes`].
pub(super) fn buffer_bytes(data: &SegmentData) -> Result<usize, SegmentError> {
    let block_max = |blocks: &Blocks| blocks.header.block_max as usize;
    match data {
        SegmentData::InFile(_) => Ok(0),
        SegmentData::File { .. } => {
            let longest = block_max(&Blocks::open(data.clone())?);
            Ok(longest + longest.min(COMPRESS_BYTES_MAX))
        }
        SegmentData::Memory(_) => {
            let mut blocks = Blocks::open(data.clone())?;
            // Few have compressed blocks, and those from the first on.
            while let Some(BlockHead { stored, raw, .. }) = blocks.head()? {
                if stored < raw {
                    return Ok(block_max(&blocks).min(COMPRESS_BYTES_MAX));
                }
                blocks.skip(stored);
            }
            Ok(0)
        }
    }
}

/// What stands in front of a block.
struct BlockHead {
    stored: u32,
    raw: u32,
    checksum: u32,
    /// Bytes of the segment behind the head.
    after: u64,
}

/// The blocks of a segment, checked.
struct Blocks {
    data: SegmentData,
    header: SegmentHeader,
    /// Where the next block begins.
    next: u64,
    /// Where the current block begins.
    offset: u64,
    checksum: u32,
    window: Window,
    /// Bytes of the current block before compression.
    raw: u32,
    /// Reused: what a file's block looked like before it was unpacked.
    stored: Vec<u8>,
    /// The next block's header, if it was read along with the block before it.
    ahead: Option<[u8; BLOCK_HEADER_BYTES]>,
}

/// The bytes of the current block.
enum Window {
    Shared(Bytes),
    Own(Vec<u8>),
}

impl Window {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }

    /// The buffer of an earlier block, to be used again.
    fn take_buffer(&mut self) -> Vec<u8> {
        match std::mem::replace(self, Self::Shared(Bytes::new())) {
            Self::Own(buffer) => buffer,
            Self::Shared(_) => Vec::new(),
        }
    }
}

impl Blocks {
    fn open(data: SegmentData) -> Result<Self, SegmentError> {
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
        Ok(Self {
            checksum: header.seed(),
            header,
            next: HEADER_BYTES as u64,
            offset: 0,
            window: Window::Shared(Bytes::new()),
            raw: 0,
            stored: Vec::new(),
            ahead: None,
            data,
        })
    }

    fn damaged(&self) -> SegmentError {
        SegmentError::Block { id: self.header.id, offset: self.offset }
    }

    fn bad_pairs(&self) -> SegmentError {
        SegmentError::Pairs { id: self.header.id, offset: self.offset }
    }

    /// Reads the head of the next block; `None` after the last.
    fn head(&mut self) -> Result<Option<BlockHead>, SegmentError> {
        self.offset = self.next;
        let left = self.header.length - self.offset;
        if left == 0 {
            self.window = Window::Shared(Bytes::new());
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
    fn next(&mut self) -> Result<bool, SegmentError> {
        let Some(BlockHead { stored, raw, checksum, after }) = self.head()? else { return Ok(false) };
        self.load(stored as usize, after)?;
        let found = block_checksum(self.checksum, stored, raw, self.window.bytes());
        self.raw = raw;
        self.end_block(stored, found, checksum)
    }

    /// Checks the next block without holding it; false after the last.
    fn check_next(&mut self) -> Result<bool, SegmentError> {
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

    /// Goes behind a block, whose checksum was found and should be these.
    fn end_block(&mut self, stored: u32, found: u32, expected: u32) -> Result<bool, SegmentError> {
        if found != expected {
            return Err(self.damaged());
        }
        self.checksum = found;
        self.skip(stored);
        Ok(true)
    }

    /// Goes behind the block at hand.
    fn skip(&mut self, stored: u32) {
        self.next = self.offset + BLOCK_HEADER_BYTES as u64 + u64::from(stored);
    }

    /// Brings the stored bytes of the current block into the window.
    fn load(&mut self, stored: usize, after: u64) -> Result<(), SegmentError> {
        let from = self.offset + BLOCK_HEADER_BYTES as u64;
        match &self.data {
            SegmentData::Memory(bytes) => {
                let from = from as usize;
                self.window = Window::Shared(bytes.slice(from..from + stored));
            }
            SegmentData::File { .. } | SegmentData::InFile(_) => {
                let mut buffer = self.window.take_buffer();
                // The next block's header comes along, which halves the number of system calls.
                let with_next = stored as u64 + BLOCK_HEADER_BYTES as u64 <= after;
                buffer.resize(stored + if with_next { BLOCK_HEADER_BYTES } else { 0 }, 0);
                read(&self.data, from, &mut buffer)?;
                self.ahead = if with_next { buffer[stored..].first_chunk().copied() } else { None };
                buffer.truncate(stored);
                self.window = Window::Own(buffer);
            }
        }
        Ok(())
    }

    /// Replaces stored bytes in the window by the pairs themselves.
    fn unpack(&mut self) -> Result<(), SegmentError> {
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
        self.window = Window::Own(raw);
        Ok(())
    }
}

/// Fills `buffer` from `offset` of the segment on. The range must lie within it.
fn read(data: &SegmentData, offset: u64, buffer: &mut [u8]) -> Result<(), SegmentError> {
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

/// Key and value of the pair that is framed at `at`; `None` if it does not end within `bytes`.
#[inline]
pub(crate) fn frame_at(bytes: &[u8], at: usize) -> Option<(Range<usize>, Range<usize>)> {
    let (key_length, at) = varint_at(bytes, at)?;
    let (value_length, at) = varint_at(bytes, at)?;
    let key_end = at.checked_add(key_length)?;
    let end = key_end.checked_add(value_length)?;
    (end <= bytes.len()).then_some((at..key_end, key_end..end))
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
