//! Compressed files as a stream of their decompressed bytes, with a limit on their number.
//!
//! The limit is checked outside the decoders: a small file that decompresses to terabytes is rejected as
//! soon as its output exceeds the allowed ratio. Decoders hold a window of at most 32 KiB (gzip), 128 MiB
//! (zstd) or a block of 3.6 MiB (bzip2).

use super::error::InputError;
use super::limits::InputLimits;
use super::path::FilePath;
use super::source::ByteSource;
use super::split::Piece;
use super::window::Fill;
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, Read};

/// Compressed bytes fetched at once from another process.
const FETCH_BYTES: u64 = 1 << 20;

/// Bytes decoded between two checks of the limit.
const STEP_BYTES: usize = 256 << 10;

/// Largest window of a zstd frame, as a power of two: what the `zstd` tool accepts by default.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Decoded bytes of one compressed file.
pub(super) struct Decoded {
    name: FilePath,
    decoder: Decoder,
    /// Number of decoded bytes.
    decoded: u64,
    expansion_max: u32,
    expansion_floor: u64,
}

enum Decoder {
    Gzip(Box<MultiGzDecoder<StoredBytes>>),
    Bzip2(Box<MultiBzDecoder<StoredBytes>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, StoredBytes>>),
}

impl Decoded {
    /// Decodes a gzip file of any number of members.
    pub fn gzip(piece: &Piece, file: Box<dyn ByteSource>, limits: &InputLimits) -> Self {
        let decoder = MultiGzDecoder::new(StoredBytes::new(file, piece.stamp.size));
        Self::new(piece, Decoder::Gzip(Box::new(decoder)), limits)
    }

    /// Decodes a bzip2 file of any number of streams.
    pub fn bzip2(piece: &Piece, file: Box<dyn ByteSource>, limits: &InputLimits) -> Self {
        let decoder = MultiBzDecoder::new(StoredBytes::new(file, piece.stamp.size));
        Self::new(piece, Decoder::Bzip2(Box::new(decoder)), limits)
    }

    /// Decodes a Zstandard file of any number of frames.
    pub(crate) fn zstd(
        piece: &Piece,
        file: Box<dyn ByteSource>,
        limits: &InputLimits,
    ) -> Result<Self, InputError> {
        let unavailable = |source| InputError::Unavailable { path: piece.name.clone(), source };
        let mut stored = StoredBytes::new(file, piece.stamp.size);
        let head = stored.fill_buf().map_err(|source| failed(&piece.name, 0, source))?;
        let window = zstd_window(head).unwrap_or(0);
        if 1 << ZSTD_WINDOW_LOG_MAX < window {
            let (window, limit) = (window.div_ceil(1 << 20), 1 << (ZSTD_WINDOW_LOG_MAX - 20));
            return Err(InputError::refused(format!(
                "compressed input {} needs a window of {window} MiB (zstd --long), and {limit} MiB are allowed; compress it \
                 again without --long",
                piece.name
            )));
        }
        let mut decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(unavailable)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(unavailable)?;
        Ok(Self::new(piece, Decoder::Zstd(Box::new(decoder)), limits))
    }

    fn new(piece: &Piece, decoder: Decoder, limits: &InputLimits) -> Self {
        Self {
            name: piece.name.clone(),
            decoder,
            decoded: 0,
            expansion_max: limits.expansion_max,
            expansion_floor: limits.expansion_floor,
        }
    }

    fn stored(&mut self) -> &mut StoredBytes {
        match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Bzip2(decoder) => decoder.get_mut(),
            Decoder::Zstd(decoder) => decoder.get_mut(),
        }
    }
}

/// Converts an error. Errors of the stored bytes pass through a decoder unchanged, all others are the
/// decoder's.
fn failed(name: &FilePath, offset: u64, error: io::Error) -> InputError {
    let corrupt = |source| InputError::Corrupt { path: name.clone(), offset, source };
    error.downcast::<InputError>().unwrap_or_else(corrupt)
}

/// Returns the window in bytes that the first frame needs, by its header (RFC 8878); `None` if these bytes do not show it.
/// The decoder has one error code for this, which its crate passes on as text alone.
fn zstd_window(mut bytes: &[u8]) -> Option<u64> {
    // Frames that decoders skip.
    while let [0x50..=0x5F, 0x2A, 0x4D, 0x18, a, b, c, d, rest @ ..] = bytes {
        bytes = rest.get(u32::from_le_bytes([*a, *b, *c, *d]) as usize..)?;
    }
    let [0x28, 0xB5, 0x2F, 0xFD, descriptor, rest @ ..] = bytes else { return None };
    if descriptor & 0x20 == 0 {
        let window = u64::from(*rest.first()?);
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * (window & 7));
    }
    // A single segment: the window is the content, whose size follows the dictionary's number.
    let at = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = 1 << (descriptor >> 6);
    let mut size = [0; 8];
    size[..length].copy_from_slice(rest.get(at..at + length)?);
    Some(u64::from_le_bytes(size))
}

impl Fill for Decoded {
    fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> Result<bool, InputError> {
        let step = wanted.min(STEP_BYTES) as u64;
        let before = buffer.len();
        let result = match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.take(step).read_to_end(buffer),
            Decoder::Bzip2(decoder) => decoder.take(step).read_to_end(buffer),
            Decoder::Zstd(decoder) => decoder.take(step).read_to_end(buffer),
        };
        self.decoded += (buffer.len() - before) as u64;
        let compressed = self.stored().used;
        let allowed = self.expansion_floor.max(compressed.saturating_mul(u64::from(self.expansion_max)));
        if allowed < self.decoded {
            return Err(InputError::refused(format!(
                "input {} grows more than {} times (the limit is --max-expansion): {} bytes came out of {compressed}",
                self.name, self.expansion_max, self.decoded
            )));
        }
        match result {
            Ok(count) => Ok(count as u64 == step),
            Err(source) => Err(failed(&self.name, compressed, source)),
        }
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.stored().file.verify_unchanged()
    }
}

/// Compressed bytes, counted as the decoder consumes them.
struct StoredBytes {
    file: Box<dyn ByteSource>,
    size: u64,
    /// Number of bytes that the decoder has consumed.
    used: u64,
    /// Fetched bytes of a file that is not in the address space.
    buffer: Vec<u8>,
    /// Offset of the buffer's first byte.
    base: u64,
}

impl StoredBytes {
    fn new(file: Box<dyn ByteSource>, size: u64) -> Self {
        Self { file, size, used: 0, buffer: Vec::new(), base: 0 }
    }
}

impl BufRead for StoredBytes {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.file.bytes().is_some() {
            let from = self.used as usize;
            self.file.populate(from.saturating_add(FETCH_BYTES as usize));
            return Ok(&self.file.bytes().unwrap_or_default()[from..]);
        }
        if self.base + self.buffer.len() as u64 == self.used {
            self.base = self.used;
            self.buffer.clear();
            self.buffer.resize(FETCH_BYTES.min(self.size - self.used) as usize, 0);
            if !self.buffer.is_empty() {
                self.file.read_at(self.base, &mut self.buffer).map_err(io::Error::other)?;
            }
        }
        Ok(&self.buffer[(self.used - self.base) as usize..])
    }

    fn consume(&mut self, count: usize) {
        self.used += count as u64;
    }
}

impl Read for StoredBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}
