//! Sink of the bytes of a part: its file, with compression if the job requests it.
//!
//! The compressed bytes depend only on the written bytes, not on the pieces in which they are written.
//! Not here: reading compressed inputs, whose size is unknown (`input`).

use super::layout::RowLayout;
use super::stored::Stored;
use super::table::{self, TableSink};
use crate::input::{Compression, TableKind};
use crate::objects::{self, ObjectError, ObjectReader, ObjectUrl, is_url};
use crate::part_format::PartFormat;
use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// Default levels of `gzip`, `zstd` and `bzip2`. Encoders hold 0.3 MiB (gzip), 3 MiB (zstd) or 7.6 MiB
/// (bzip2).
const GZIP_LEVEL: u32 = 6;
const BZIP2_LEVEL: u32 = 9;
const ZSTD_LEVEL: i32 = 3;

/// Number of bytes of a part that are read back at once.
const READ_BYTES: usize = 256 << 10;

/// Largest window of a zstd frame that is read back, as a power of two: the default limit of the `zstd` tool.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Encoder between the bytes of a part and its file.
pub(super) enum Sink {
    /// Unchanged bytes, which the caller counts.
    Plain(Box<dyn Write + Send>),
    /// One member, whose header has no name and no time.
    Gzip(Box<GzEncoder<Stored>>),
    /// One frame with a checksum.
    Zstd(Box<zstd::stream::write::Encoder<'static, Stored>>),
    /// One stream.
    Bzip2(Box<BzEncoder<Stored>>),
    /// Rows of a columnar table.
    Table(Box<dyn TableSink>),
    /// Failed sink, with its error until it is reported.
    Broken(Option<io::Error>),
}

impl Sink {
    /// Creates a sink. `layout` holds the columns of a table.
    pub(super) fn new(writer: Box<dyn Write + Send>, format: PartFormat, layout: &RowLayout) -> Self {
        let compression = match format {
            PartFormat::Bytes(compression) => compression,
            PartFormat::Table(kind) => {
                return table::open(kind, layout, Stored::new(writer))
                    .map_or_else(|error| Sink::Broken(Some(error)), Sink::Table);
            }
        };
        match compression {
            Compression::None => Sink::Plain(writer),
            Compression::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Sink::Gzip(Box::new(GzEncoder::new(Stored::new(writer), level)))
            }
            Compression::Bzip2 => {
                let level = bzip2::Compression::new(BZIP2_LEVEL);
                Sink::Bzip2(Box::new(BzEncoder::new(Stored::new(writer), level)))
            }
            Compression::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(Stored::new(writer), ZSTD_LEVEL);
                let checked = encoder.and_then(|mut encoder| {
                    encoder.include_checksum(true)?;
                    Ok(encoder)
                });
                checked
                    .map_or_else(|error| Sink::Broken(Some(error)), |encoder| Sink::Zstd(Box::new(encoder)))
            }
        }
    }

    /// Returns the size and CRC-32C of the file; `None` if they are those of the input.
    pub(super) fn stored(&self) -> Option<(u64, u32)> {
        let stored = match self {
            Sink::Plain(_) | Sink::Broken(_) => return None,
            Sink::Gzip(encoder) => encoder.get_ref(),
            Sink::Zstd(encoder) => encoder.get_ref(),
            Sink::Bzip2(encoder) => encoder.get_ref(),
            Sink::Table(table) => return Some(table.stored()),
        };
        Some(stored.sum())
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sink::Plain(writer) => writer.write_all(bytes),
            Sink::Gzip(encoder) => encoder.write_all(bytes),
            Sink::Zstd(encoder) => encoder.write_all(bytes),
            Sink::Bzip2(encoder) => encoder.write_all(bytes),
            Sink::Table(table) => table.write_all(bytes),
            Sink::Broken(why) => Err(why.take().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Writes the encoder's remaining bytes and the end of its format. Nothing may be written afterwards.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(writer) => writer.flush(),
            Sink::Gzip(encoder) => {
                encoder.try_finish()?;
                encoder.get_mut().flush()
            }
            Sink::Zstd(encoder) => {
                encoder.do_finish()?;
                encoder.get_mut().flush()
            }
            Sink::Bzip2(encoder) => {
                encoder.try_finish()?;
                encoder.get_mut().flush()
            }
            Sink::Table(table) => table.finish(),
            Sink::Broken(_) => self.write_all(&[]),
        }
    }
}

/// Opens a part for reading and decompresses it, according to its name. A part in a store is named by its
/// URL.
///
/// # Errors
/// A file that cannot be opened, a columnar table, and the errors of a store.
pub fn open_part(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let file: Box<dyn Read + Send> = match path.to_str().filter(|path| is_url(path)) {
        Some(url) => Box::new(StoredPart::open(url).map_err(io::Error::other)?),
        None => Box::new(File::open(path)?),
    };
    let file = BufReader::with_capacity(READ_BYTES, file);
    let compression = match PartFormat::of_name(&path.into()) {
        PartFormat::Bytes(compression) => compression,
        PartFormat::Table(kind) => return Err(no_text(kind)),
    };
    Ok(match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(file)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
    })
}

fn no_text(kind: TableKind) -> io::Error {
    let why = format!(
        "it is a {kind} file and no text; make it the input of a job, or read it with what reads such files"
    );
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// Part in a store, from its first byte to its last.
struct StoredPart {
    reader: Box<dyn ObjectReader>,
    at: u64,
    size: u64,
}

impl StoredPart {
    fn open(url: &str) -> Result<Self, ObjectError> {
        let url = ObjectUrl::parse(url)?;
        let bucket = objects::open(&url)?;
        let stamp = bucket.stamp(url.key())?;
        Ok(Self { reader: bucket.reader(url.key(), stamp, stamp.size), at: 0, size: stamp.size })
    }
}

impl Read for StoredPart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = (self.size - self.at).min(buffer.len() as u64);
        let buffer = &mut buffer[..length as usize];
        self.reader.read_at(self.at, buffer).map_err(io::Error::other)?;
        self.at += length;
        Ok(buffer.len())
    }
}
