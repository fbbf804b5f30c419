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
use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// Compressed bytes fetched at once from another process.
const FETCH_BYTES: u64 = 1 << 20;

/// Bytes decoded between two checks of the limit.
const STEP_BYTES: usize = 256 << 10;

/// Largest window of a zstd frame, as a power of two: what the `zstd` tool accepts by default.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// First bytes of every member of a gzip file.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// First bytes of every stream of a bzip2 file.
const BZIP2_MAGIC: &[u8] = b"BZh";

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
    Members(Box<Members>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Stored>>),
}

impl Decoded {
    /// Decodes a gzip file of any number of members. Bytes after the last member are ignored, as by the
    /// `gzip` tool.
    pub fn gzip(piece: &Piece, file: Box<dyn ByteSource>, limits: &InputLimits) -> Self {
        let member = Member::Gzip(Box::new(GzDecoder::new(Stored::new(file, piece.stamp.size))));
        Self::new(piece, Decoder::Members(Box::new(Members::new(member))), limits)
    }

    /// Decodes a bzip2 file of any number of streams, as the `bzip2` tool does. Bytes after the last
    /// stream are ignored.
    pub fn bzip2(piece: &Piece, file: Box<dyn ByteSource>, limits: &InputLimits) -> Self {
        let member = Member::Bzip2(Box::new(BzDecoder::new(Stored::new(file, piece.stamp.size))));
        Self::new(piece, Decoder::Members(Box::new(Members::new(member))), limits)
    }

    /// Decodes a Zstandard file of any number of frames.
    pub(crate) fn zstd(
        piece: &Piece,
        file: Box<dyn ByteSource>,
        limits: &InputLimits,
    ) -> Result<Self, InputError> {
        let unavailable = |source| InputError::Unavailable { path: piece.name.clone(), source };
        let mut stored = Stored::new(file, piece.stamp.size);
        let head = stored.fill_buf().map_err(|source| failed(&piece.name, 0, source))?;
        let window = zstd_window(head).unwrap_or(0);
        if 1 << ZSTD_WINDOW_LOG_MAX < window {
            let (window, limit) = (window.div_ceil(1 << 20), 1 << (ZSTD_WINDOW_LOG_MAX - 20));
            return Err(InputError::Window { path: piece.name.clone(), window, limit });
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

    fn stored(&mut self) -> &mut Stored {
        match &mut self.decoder {
            Decoder::Members(members) => members.stored(),
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
            Decoder::Members(members) => members.take(step).read_to_end(buffer),
            Decoder::Zstd(decoder) => decoder.take(step).read_to_end(buffer),
        };
        self.decoded += (buffer.len() - before) as u64;
        let compressed = self.stored().used;
        let allowed = self.expansion_floor.max(compressed.saturating_mul(u64::from(self.expansion_max)));
        if allowed < self.decoded {
            return Err(InputError::Expansion {
                path: self.name.clone(),
                decoded: self.decoded,
                compressed,
                ratio_max: self.expansion_max,
            });
        }
        match result {
            Ok(count) => Ok(count as u64 == step),
            Err(source) => Err(failed(&self.name, compressed, source)),
        }
    }

    fn left_out(&self) -> u64 {
        match &self.decoder {
            Decoder::Members(members) => members.left_out.unwrap_or(0),
            Decoder::Zstd(_) => 0,
        }
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.stored().file.verify_unchanged()
    }
}

/// Members of a gzip file, or streams of a bzip2 file, one after another.
struct Members {
    /// Current member, or the last one.
    member: Option<Member>,
    /// Number of ignored bytes after the last member; `None` until it has ended.
    left_out: Option<u64>,
}

impl Members {
    fn new(member: Member) -> Self {
        Self { member: Some(member), left_out: None }
    }

    fn member(&mut self) -> &mut Member {
        self.member.as_mut().expect("it is taken only to be replaced")
    }

    fn stored(&mut self) -> &mut Stored {
        self.member().stored()
    }

    /// Moves from the end of a member to the next one, or to the end of the file.
    fn next_member(&mut self) -> io::Result<()> {
        let magic = self.member().magic();
        let head = self.stored().head(magic.len())?;
        // Also a prefix of the magic bytes: the file was cut short there.
        if !head.is_empty() && magic.starts_with(head) {
            self.member = self.member.take().map(Member::next);
        } else {
            self.left_out = Some(self.stored().pass_zeros()?);
        }
        Ok(())
    }
}

impl Read for Members {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.left_out.is_none() && !out.is_empty() {
            let count = self.member().read(out)?;
            if 0 < count {
                return Ok(count);
            }
            self.next_member()?;
        }
        Ok(0)
    }
}

/// Member of a file that may have several.
enum Member {
    Gzip(Box<GzDecoder<Stored>>),
    Bzip2(Box<BzDecoder<Stored>>),
}

impl Member {
    fn stored(&mut self) -> &mut Stored {
        match self {
            Member::Gzip(decoder) => decoder.get_mut(),
            Member::Bzip2(decoder) => decoder.get_mut(),
        }
    }

    /// Returns the magic bytes of a member.
    fn magic(&self) -> &'static [u8] {
        match self {
            Member::Gzip(_) => GZIP_MAGIC,
            Member::Bzip2(_) => BZIP2_MAGIC,
        }
    }

    /// Returns the member that starts where this one has ended.
    fn next(self) -> Self {
        match self {
            Member::Gzip(ended) => Member::Gzip(Box::new(GzDecoder::new(ended.into_inner()))),
            Member::Bzip2(ended) => Member::Bzip2(Box::new(BzDecoder::new(ended.into_inner()))),
        }
    }
}

impl Read for Member {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Member::Gzip(decoder) => decoder.read(out),
            Member::Bzip2(decoder) => decoder.read(out),
        }
    }
}

/// Compressed bytes, counted as the decoder consumes them.
struct Stored {
    file: Box<dyn ByteSource>,
    size: u64,
    /// Number of bytes that the decoder has consumed.
    used: u64,
    /// Fetched bytes of a file that is not in the address space.
    buffer: Vec<u8>,
    /// Offset of the buffer's first byte.
    base: u64,
}

impl Stored {
    fn new(file: Box<dyn ByteSource>, size: u64) -> Self {
        Self { file, size, used: 0, buffer: Vec::new(), base: 0 }
    }

    /// Returns the next `wanted` bytes; fewer only where the file ends.
    fn head(&mut self, wanted: usize) -> io::Result<&[u8]> {
        let wanted = wanted.min(usize::try_from(self.size - self.used).unwrap_or(usize::MAX));
        if self.base + (self.buffer.len() as u64) < self.used + wanted as u64 {
            // The head extends beyond the fetched bytes, so fetch from its first byte on.
            self.buffer.clear();
            self.base = self.used;
        }
        Ok(&self.fill_buf()?[..wanted])
    }

    /// Consumes zeros, with which files are padded. Returns the number of remaining bytes if others follow.
    fn pass_zeros(&mut self) -> io::Result<u64> {
        let left = self.size - self.used;
        loop {
            let bytes = self.fill_buf()?;
            let count = bytes.len();
            if count == 0 {
                return Ok(0);
            }
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(left);
            }
            self.consume(count);
        }
    }
}

impl BufRead for Stored {
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

impl Read for Stored {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}
