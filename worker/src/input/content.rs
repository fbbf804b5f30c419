//! Detection of a file's format from its first bytes, where its name does not determine it. This is the
//! only such place, for files of this machine, of workers and of stores.
//!
//! The first bytes come from a read that happens anyway. Only a file that is to be cut is read at
//! planning time. Compressed files and tables are then read as if their names had the suffix. For jobs of
//! lines and of CSV, unsupported formats are refused by name. Jobs of whole files receive such files
//! unchanged. Records of fixed length may hold any bytes, so their files are not checked.

use super::error::InputError;
use super::format::RecordFormat;
use super::path::FilePath;
use super::source::{ByteSource, FileAccess};
use super::split::{Compression, Piece};
use super::table::{Table, TableKind, is_by_rows};
use std::borrow::Cow;

/// Number of bytes that determine the format: up to the magic bytes of a tar archive.
pub(super) const HEAD_BYTES: usize = 512;

/// Bytes of a fetched file that are read first, as many as a decoder requests.
const FETCH_BYTES: u64 = 1 << 20;

/// Format at the start of some bytes.
enum Content {
    /// Text, or an unknown format.
    Text,
    Compressed(Compression),
    Table(TableKind),
    /// Name of an unsupported format with its article, and advice.
    Unread(&'static str, &'static str),
}

const UNPACK: &str = "unpack it, or pack it with gzip, zstd or bzip2";
const EXTRACT: &str = "extract it and name the directory";
const EXPORT: &str = "write it as Parquet, Arrow or CSV";

/// Unsupported formats: offset of the magic bytes, magic bytes, name of the format, and advice.
const UNREAD: [(usize, &[u8], &str, &str); 21] = [
    (0, b"\xFD7zXZ\0", "an xz file", UNPACK),
    (0, b"\x04\x22\x4D\x18", "an lz4 file", UNPACK),
    (0, b"\x02\x21\x4C\x18", "an lz4 file", UNPACK),
    (0, b"\x5D\0\0", "an lzma file", UNPACK),
    (0, b"LZIP\x01", "an lzip file", UNPACK),
    (0, b"\x89LZO\0", "an lzop file", UNPACK),
    (0, b"\x1F\x9D", "a file of compress (.Z)", UNPACK),
    (0, b"\xFF\x06\0\0sNaPpY", "a snappy file", UNPACK),
    (0, b"PK\x03\x04", "a zip archive", EXTRACT),
    (0, b"PK\x05\x06", "a zip archive", EXTRACT),
    (0, b"7z\xBC\xAF\x27\x1C", "a 7z archive", EXTRACT),
    (0, b"Rar!\x1A\x07", "a rar archive", EXTRACT),
    (257, b"ustar", "a tar archive", EXTRACT),
    (0, b"Obj\x01", "an Avro file", EXPORT),
    (0, b"ORC", "an ORC file", EXPORT),
    (0, b"SEQ\x06", "a SequenceFile of Hadoop", EXPORT),
    (0, b"SQLite format 3\0", "an SQLite database", EXPORT),
    (0, b"\xFF\xFE\0\0", "text in UTF-32", "convert it: `iconv -f UTF-32 -t UTF-8 FILE > NEW`"),
    (0, b"\0\0\xFE\xFF", "text in UTF-32", "convert it: `iconv -f UTF-32 -t UTF-8 FILE > NEW`"),
    (0, b"\xFF\xFE", "text in UTF-16", "convert it: `iconv -f UTF-16 -t UTF-8 FILE > NEW`"),
    (0, b"\xFE\xFF", "text in UTF-16", "convert it: `iconv -f UTF-16 -t UTF-8 FILE > NEW`"),
];

/// Compressed formats without magic bytes, by file name suffix. They apply where the bytes are not text.
const UNMARKED: [(&str, &str); 6] = [
    (".br", "a Brotli file"),
    (".snappy", "a snappy file"),
    (".deflate", "a zlib file"),
    (".lz4", "an lz4 file of Hadoop"),
    (".lzo", "an lzo file"),
    (".lzo_deflate", "an lzo file"),
];

/// Returns the format of a file of this name that starts with these bytes.
fn content_of(name: &FilePath, bytes: &[u8]) -> Content {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    // Magic bytes of letters alone may also start a text.
    let is_binary = || head.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31));
    match head {
        [0x1F, 0x8B, 8, flags, ..] if flags & 0xE0 == 0 => Content::Compressed(Compression::Gzip),
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => {
            Content::Compressed(Compression::Zstd)
        }
        // A block, or the end of a stream without one.
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', b'&', b'S', b'Y', ..]
        | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => {
            Content::Compressed(Compression::Bzip2)
        }
        [b'P', b'A', b'R', b'1', ..] if is_binary() => Content::Table(TableKind::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', 0, 0, ..] => Content::Table(TableKind::Arrow),
        _ => {
            let marked = UNREAD.iter().find(|(at, mark, ..)| {
                head.get(*at..).is_some_and(|bytes| bytes.starts_with(mark))
                    && (mark[0] != b'O' || is_binary())
            });
            if let Some((_, _, content, advice)) = marked {
                return Content::Unread(content, advice);
            }
            // The head may end within a character.
            let is_text = str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
            let unmarked = UNMARKED.iter().find(|(suffix, _)| !is_text && name.has_suffix(suffix));
            unmarked.map_or(Content::Text, |(_, content)| Content::Unread(content, UNPACK))
        }
    }
}

/// Returns the piece according to the first bytes of its file, and the file with all its bytes still to
/// be read.
///
/// # Errors
/// The format is unsupported, or the first bytes cannot be read.
pub(super) fn recognized(
    piece: &Piece,
    format: RecordFormat,
    file: Box<dyn ByteSource>,
) -> Result<(Cow<'_, Piece>, Box<dyn ByteSource>), InputError> {
    if 0 < piece.offset || piece.is_decoded() || matches!(format, RecordFormat::Fixed { .. }) {
        return Ok((Cow::Borrowed(piece), file));
    }
    let of_bytes = file.bytes().map(|bytes| content_of(&piece.name, bytes));
    let (content, file): (_, Box<dyn ByteSource>) = match of_bytes {
        Some(content) => (content, file),
        None => {
            let file = ReadAhead::new(file, piece)?;
            (content_of(&piece.name, &file.head), Box::new(file))
        }
    };
    let known = match content {
        Content::Compressed(compression) => Piece { compression, ..piece.clone() },
        Content::Table(kind) if is_by_rows(format) => {
            if matches!(format, RecordFormat::Csv { header: false, .. }) {
                return Err(InputError::has_header(&piece.name));
            }
            Piece { table: Some(Box::new(Table { kind, columns: Vec::new() })), ..piece.clone() }
        }
        Content::Unread(content, advice) if is_by_rows(format) => {
            return Err(unread(&piece.name, "is", content, advice));
        }
        _ => return Ok((Cow::Borrowed(piece), file)),
    };
    Ok((Cow::Owned(known), file))
}

/// Returns the whole file of a piece, if its first bytes show that it is read as a whole. Otherwise, and
/// if it cannot be opened here, returns the piece: its reader reports the error.
///
/// # Errors
/// The format is unsupported.
pub fn recognized_whole(
    piece: Piece,
    format: RecordFormat,
    access: &dyn FileAccess,
) -> Result<Piece, InputError> {
    if piece.is_decoded() {
        return Ok(piece);
    }
    let size = piece.stamp.size;
    let head = Piece { offset: 0, length: size.min(HEAD_BYTES as u64), ..piece.clone() };
    let Ok(file) = access.open(&head) else { return Ok(piece) };
    Ok(match recognized(&head, format, file)?.0 {
        Cow::Owned(known) => Piece { length: size, ..known },
        Cow::Borrowed(_) => piece,
    })
}

/// Refuses a decompressed file whose first bytes are not those of a text.
pub(super) fn refuse_unpacked(name: &FilePath, head: &[u8]) -> Result<(), InputError> {
    match content_of(name, head) {
        Content::Text => Ok(()),
        Content::Table(kind) => Err(InputError::packed_table(name, kind)),
        Content::Compressed(_) => Err(unread(name, "holds", "another compressed file", "unpack it once")),
        Content::Unread(content, advice) => Err(unread(name, "holds", content, advice)),
    }
}

/// Returns the error of an unsupported format. The verb is `is`, or `holds` for a compressed file.
fn unread(name: &FilePath, verb: &str, content: &str, advice: &str) -> InputError {
    InputError::refused(format!("input {name} {verb} {content}, which is not read here; {advice}"))
}

/// File whose first bytes were read.
struct ReadAhead {
    file: Box<dyn ByteSource>,
    head: Vec<u8>,
}

impl ReadAhead {
    fn new(mut file: Box<dyn ByteSource>, piece: &Piece) -> Result<Self, InputError> {
        let mut head = vec![0; FETCH_BYTES.min(piece.length) as usize];
        file.read_at(0, &mut head)?;
        Ok(Self { file, head })
    }
}

impl ByteSource for ReadAhead {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        let known = usize::try_from(offset).ok().and_then(|at| self.head.get(at..)).unwrap_or_default();
        let count = known.len().min(buffer.len());
        let (front, rest) = buffer.split_at_mut(count);
        front.copy_from_slice(&known[..count]);
        if rest.is_empty() {
            return Ok(());
        }
        // Later ranges are mostly after it.
        self.head = Vec::new();
        self.file.read_at(offset + count as u64, rest)
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.file.verify_unchanged()
    }

    fn is_remote(&self) -> bool {
        self.file.is_remote()
    }
}
