//! A window that moves over the bytes of a file: in place where the file is mapped, through a buffer
//! where it is fetched or decoded.

use super::error::InputError;
use super::source::ByteSource;

/// Bytes fetched at once from another process within the piece.
const FETCH_BYTES: u64 = 4 << 20;

/// Bytes fetched at once after the end of the piece, where only the rest of one record is needed.
const FETCH_REST_BYTES: u64 = 64 << 10;

/// Moving view of a file.
pub trait Window {
    /// The bytes from `offset` on, `length` of them; fewer only where the file ends. Offsets never decrease.
    ///
    /// # Errors
    /// What keeps them from being read.
    fn view(&mut self, offset: u64, length: usize) -> Result<&[u8], InputError>;

    /// Called after the last view: whether the file is still the one that was listed.
    ///
    /// # Errors
    /// A file that changed.
    fn verify_unchanged(&mut self) -> Result<(), InputError>;
}

/// Views of a file in the address space, without a copy.
pub(super) struct Direct(pub Box<dyn ByteSource>);

impl Window for Direct {
    #[inline]
    fn view(&mut self, offset: u64, length: usize) -> Result<&[u8], InputError> {
        let size = self.0.bytes().unwrap_or_default().len();
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(size);
        let to = from.saturating_add(length).min(size);
        self.0.populate(to);
        Ok(&self.0.bytes().unwrap_or_default()[from..to])
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.0.verify_unchanged()
    }
}

/// Source of sequential bytes.
pub trait Fill {
    /// Appends at least one byte, and about `wanted`, to `buffer`; `false` at the end of the file.
    ///
    /// # Errors
    /// What keeps them from being read.
    fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> Result<bool, InputError>;

    /// See [`Window::verify_unchanged`].
    ///
    /// # Errors
    /// See there.
    fn verify_unchanged(&mut self) -> Result<(), InputError>;
}

/// Views of a buffer that is filled as the window moves. It holds at most one view and one fill.
pub struct Buffered<F> {
    source: F,
    buffer: Vec<u8>,
    /// Offset of the buffer's first byte in the file.
    base: u64,
    ended: bool,
}

impl<F: Fill> Buffered<F> {
    /// Creates a window. `first` is the offset of the first byte that `source` returns.
    pub fn new(source: F, first: u64) -> Self {
        Self { source, buffer: Vec::new(), base: first, ended: false }
    }
}

impl<F: Fill> Window for Buffered<F> {
    fn view(&mut self, offset: u64, length: usize) -> Result<&[u8], InputError> {
        assert!(self.base <= offset, "the window went back from {} to {offset}", self.base);
        let mut from = usize::try_from(offset - self.base).unwrap_or(usize::MAX);
        assert!(from <= self.buffer.len(), "the window skipped bytes before {offset}");
        if self.buffer.len() - from < length && !self.ended {
            self.buffer.drain(..from);
            self.base += from as u64;
            from = 0;
            while self.buffer.len() < length && !self.ended {
                let wanted = length - self.buffer.len();
                self.ended = !self.source.fill(&mut self.buffer, wanted)?;
            }
        }
        let to = from.saturating_add(length).min(self.buffer.len());
        Ok(&self.buffer[from..to])
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.source.verify_unchanged()
    }
}

/// File that is fetched range by range.
pub(super) struct ByteRanges {
    file: Box<dyn ByteSource>,
    at: u64,
    /// End of the piece, after which only small ranges are fetched.
    end: u64,
    size: u64,
}

impl ByteRanges {
    /// Creates a source that fetches from `first` on, mostly up to `end`, of a file of `size` bytes.
    pub fn new(file: Box<dyn ByteSource>, first: u64, end: u64, size: u64) -> Self {
        Self { file, at: first, end, size }
    }
}

impl Fill for ByteRanges {
    fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> Result<bool, InputError> {
        let length = if self.at < self.end {
            FETCH_BYTES.min(self.end - self.at)
        } else {
            (wanted as u64).clamp(FETCH_REST_BYTES, FETCH_BYTES)
        };
        let length = length.min(self.size.saturating_sub(self.at));
        if length == 0 {
            return Ok(false);
        }
        let filled = buffer.len();
        buffer.resize(filled + length as usize, 0);
        self.file.read_at(self.at, &mut buffer[filled..])?;
        self.at += length;
        Ok(true)
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.file.verify_unchanged()
    }
}
