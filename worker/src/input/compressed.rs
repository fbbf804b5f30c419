//! Compressed files as a stream of what is in them, with a limit on how much that may be.
//!
//! The limit is kept outside the decoders: a small file that claims to hold terabytes is given up as soon as
//! more has come out than the allowed ratio. Decoders hold a window of at most 32 KiB (gzip) or 128 MiB (zstd).

use super::local::LocalFile;
use super::path::FilePath;
use super::split::Piece;
use super::window::Fill;
use super::{InputError, InputLimits, OpenFile, RangeRead};
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// Compressed bytes fetched at once from another process.
const FETCH_BYTES: u64 = 1 << 20;

/// Bytes decoded between two looks at the limit.
const STEP_BYTES: usize = 256 << 10;

/// Largest window of a zstd frame, as a power of two: what the `zstd` tool accepts by default.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// First bytes of every member of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The decoded bytes of one compressed file.
pub(super) struct Decoded {
    name: FilePath,
    decoder: Decoder,
    /// Bytes that have come out.
    decoded: u64,
    expansion_max: u32,
    expansion_floor: u64,
}

enum Decoder {
    Gzip(Box<Members>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Stored>>),
}

impl Decoded {
    /// Decodes a gzip file of any number of members. What follows the last one and is no member is left out, as the
    /// `gzip` tool does.
    pub fn gzip(piece: &Piece, file: OpenFile, limits: &InputLimits) -> Self {
        let stored = Stored::new(file, piece.stamp.size);
        Self::new(piece, Decoder::Gzip(Box::new(Members::new(stored))), limits)
    }

    /// Decodes a Zstandard file of any number of frames.
    pub(crate) fn zstd(piece: &Piece, file: OpenFile, limits: &InputLimits) -> Result<Self, InputError> {
        let unavailable = |source| InputError::Unavailable { path: piece.name.clone(), source };
        let stored = Stored::new(file, piece.stamp.size);
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
            Decoder::Gzip(members) => members.stored(),
            Decoder::Zstd(decoder) => decoder.get_mut(),
        }
    }
}

impl Fill for Decoded {
    fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> Result<bool, InputError> {
        let step = wanted.min(STEP_BYTES) as u64;
        let before = buffer.len();
        let result = match &mut self.decoder {
            Decoder::Gzip(members) => members.take(step).read_to_end(buffer),
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
            // The stored bytes' own errors pass through the decoder unchanged; all others are the decoder's.
            Err(error) => Err(match error.downcast::<InputError>() {
                Ok(transport) => transport,
                Err(source) => InputError::Corrupt { path: self.name.clone(), offset: compressed, source },
            }),
        }
    }

    fn left_out(&self) -> u64 {
        match &self.decoder {
            Decoder::Gzip(members) => members.left_out.unwrap_or(0),
            Decoder::Zstd(_) => 0,
        }
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        match &mut self.stored().file {
            StoredFile::Local(file) => file.verify_unchanged(),
            StoredFile::Ranges { file, .. } => file.verify_unchanged(),
        }
    }
}

/// The members of a gzip file, one after another.
struct Members {
    /// The one that is being read, or the last one.
    member: Option<GzDecoder<Stored>>,
    /// Bytes behind the last member that are left out; `None` until that has ended.
    left_out: Option<u64>,
}

impl Members {
    fn new(stored: Stored) -> Self {
        Self { member: Some(GzDecoder::new(stored)), left_out: None }
    }

    fn stored(&mut self) -> &mut Stored {
        self.member.as_mut().expect("it is taken only to be replaced").get_mut()
    }

    /// Goes from the end of a member to the next one, or to the end of the file.
    fn next_member(&mut self) -> io::Result<()> {
        let head = self.stored().head()?;
        // Also a single byte that a member could begin with: the file was cut short there.
        if !head.is_empty() && GZIP_MAGIC.starts_with(head) {
            self.member = self.member.take().map(|ended| GzDecoder::new(ended.into_inner()));
        } else {
            self.left_out = Some(self.stored().pass_zeros()?);
        }
        Ok(())
    }
}

impl Read for Members {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.left_out.is_none() && !out.is_empty() {
            let count = self.member.as_mut().map_or(Ok(0), |member| member.read(out))?;
            if 0 < count {
                return Ok(count);
            }
            self.next_member()?;
        }
        Ok(0)
    }
}

/// The compressed bytes, counted as the decoder uses them.
struct Stored {
    file: StoredFile,
    size: u64,
    /// Bytes the decoder has used.
    used: u64,
}

enum StoredFile {
    Local(LocalFile),
    Ranges {
        file: Box<dyn RangeRead>,
        buffer: Vec<u8>,
        /// Position of the buffer's first byte.
        base: u64,
    },
}

impl Stored {
    fn new(file: OpenFile, size: u64) -> Self {
        let file = match file {
            OpenFile::Local(file) => StoredFile::Local(file),
            OpenFile::Read(file) | OpenFile::Remote(file) => {
                StoredFile::Ranges { file, buffer: Vec::new(), base: 0 }
            }
        };
        Self { file, size, used: 0 }
    }

    /// The next bytes, as many as tell whether a member of gzip begins; fewer only where the file ends.
    fn head(&mut self) -> io::Result<&[u8]> {
        let wanted = GZIP_MAGIC.len().min(usize::try_from(self.size - self.used).unwrap_or(usize::MAX));
        if let StoredFile::Ranges { buffer, base, .. } = &mut self.file
            && *base + (buffer.len() as u64) < self.used + wanted as u64
        {
            // The head lies across the end of what was fetched: fetch from its first byte on.
            buffer.clear();
            *base = self.used;
        }
        Ok(&self.fill_buf()?[..wanted])
    }

    /// Uses up zeros, with which files are padded; answers how many bytes are left if there is anything else.
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
        match &mut self.file {
            StoredFile::Local(file) => {
                let from = self.used as usize;
                file.populate(from.saturating_add(FETCH_BYTES as usize));
                Ok(&file.bytes()[from..])
            }
            StoredFile::Ranges { file, buffer, base } => {
                if *base + buffer.len() as u64 == self.used {
                    *base = self.used;
                    buffer.clear();
                    buffer.resize(FETCH_BYTES.min(self.size - self.used) as usize, 0);
                    if !buffer.is_empty() {
                        file.read_at(*base, buffer).map_err(io::Error::other)?;
                    }
                }
                Ok(&buffer[(self.used - *base) as usize..])
            }
        }
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
