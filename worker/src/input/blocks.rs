//! Reads a split block by block: every record whose first byte lies in a piece, whole, exactly once.
//!
//! A piece of lines that does not begin with its file looks at the byte before it to learn whether a line
//! begins with it; the last line is read beyond the end of the piece. Pieces of the other formats begin and
//! end at borders of records.
//!
//! Not here: where records end (`border`), how bytes come (`window`, `compressed`).

use super::border::{first_record, unclosed_quote, whole_records};
use super::compressed::Decoded;
use super::local::MappedFile;
use super::path::FilePath;
use super::record::{Block, RecordFormat, Source};
use super::window::{Buffered, Direct, Ranges, Window};
use super::{Blocks, Compression, FileAccess, InputError, InputLimits, OpenFile, Piece, Split};
use memchr::memchr;
use std::sync::Arc;

/// What some editors write at the beginning of a file to say that it is UTF-8; no part of a table.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Bytes looked at first when a record does not end within its block.
const REST_BYTES: usize = 64 << 10;

/// Opens a split for reading. Files are opened one at a time, when their turn comes.
///
/// Blocks hold about [`InputLimits::block_bytes`], more only for a longer record, and belong to one file each.
pub fn open_split<'a>(split: &'a Split, access: &'a dyn FileAccess, limits: &InputLimits) -> SplitBlocks<'a> {
    SplitBlocks {
        split,
        access,
        limits: *limits,
        pieces_begun: 0,
        current: None,
        source: Source { path: String::new(), input: split.input as usize },
        mapping: None,
        local_bytes: 0,
        remote_bytes: 0,
        left_out: 0,
    }
}

/// The blocks of one split.
pub struct SplitBlocks<'a> {
    split: &'a Split,
    access: &'a dyn FileAccess,
    limits: InputLimits,
    pieces_begun: usize,
    current: Option<PieceBlocks>,
    source: Source,
    /// The map of the current file, if its blocks lie in one.
    mapping: Option<Arc<MappedFile>>,
    local_bytes: u64,
    remote_bytes: u64,
    left_out: u64,
}

impl SplitBlocks<'_> {
    /// Bytes of the pieces opened so far that were read from this machine's file system.
    #[must_use]
    pub fn local_bytes(&self) -> u64 {
        self.local_bytes
    }

    /// Bytes of the pieces opened so far that were fetched from another process.
    #[must_use]
    pub fn remote_bytes(&self) -> u64 {
        self.remote_bytes
    }

    /// Bytes behind the data of gzip files that were left out so far.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Opens the next piece; `None` if there is none.
    fn open_next(&mut self) -> Result<Option<PieceBlocks>, InputError> {
        let Some(piece) = self.split.pieces.get(self.pieces_begun) else { return Ok(None) };
        self.pieces_begun += 1;
        let file = self.access.open(piece)?;
        match &file {
            OpenFile::Local(_) | OpenFile::Read(_) => self.local_bytes += piece.length,
            OpenFile::Remote(_) => self.remote_bytes += piece.length,
        }
        self.source.path = piece.name.to_text();
        self.mapping = match &file {
            OpenFile::Local(file) if piece.compression == Compression::None => file.mapping().cloned(),
            _ => None,
        };
        PieceBlocks::open(piece, self.split.format, file, &self.limits).map(Some)
    }
}

impl Blocks for SplitBlocks<'_> {
    fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError> {
        let found = loop {
            if let Some(current) = &mut self.current {
                if let Some(found) = current.find()? {
                    break found;
                }
                current.window.verify_unchanged()?;
                let left_out = current.window.left_out();
                if 0 < left_out {
                    tracing::warn!(file = %current.name, bytes = left_out, "left out what follows the gzip data");
                }
                self.left_out += left_out;
                self.current = None;
            }
            match self.open_next()? {
                Some(next) => self.current = Some(next),
                None => return Ok(None),
            }
        };
        let current = self.current.as_mut().expect("the block was just found in it");
        let bytes = current.window.view(found.offset, found.length)?;
        let mapping = self.mapping.as_ref();
        Ok(Some(Block { mapping, ..Block::new(bytes, found.offset, self.split.format, &self.source) }))
    }
}

/// A stretch of the file that holds whole records.
#[derive(Clone, Copy)]
struct Found {
    offset: u64,
    length: usize,
}

struct PieceBlocks {
    name: FilePath,
    format: RecordFormat,
    record_max: u64,
    /// Records could be larger if there were room for them.
    for_want_of_room: bool,
    block_bytes: usize,
    window: Box<dyn Window>,
    /// The next record begins here, or the piece begins here if `seek`.
    at: u64,
    /// Records that begin here or later belong to other pieces.
    end: u64,
    /// The piece may begin inside a record that belongs to the piece before.
    seek: bool,
    /// The piece begins with its file.
    file_begins: bool,
    /// The next record is a header.
    header: bool,
}

impl PieceBlocks {
    fn open(
        piece: &Piece,
        format: RecordFormat,
        file: OpenFile,
        limits: &InputLimits,
    ) -> Result<Self, InputError> {
        let seek = format == RecordFormat::Lines && 0 < piece.offset;
        let first = piece.offset - u64::from(seek);
        let in_place = piece.compression == Compression::None && matches!(file, OpenFile::Local(_));
        let window: Box<dyn Window> = match (piece.compression, file) {
            (Compression::Gzip, file) => Box::new(Buffered::new(Decoded::gzip(piece, file, limits), 0)),
            (Compression::Zstd, file) => Box::new(Buffered::new(Decoded::zstd(piece, file, limits)?, 0)),
            (Compression::None, OpenFile::Local(file)) => Box::new(Direct(file)),
            (Compression::None, OpenFile::Read(file) | OpenFile::Remote(file)) => {
                let ranges = Ranges::new(file, first, piece.end(), piece.stamp.size);
                Box::new(Buffered::new(ranges, first))
            }
        };
        let whole_file = piece.compression != Compression::None;
        let room = if in_place { u64::MAX } else { limits.buffered_record_max };
        let record_max = limits.record_max.min(room).max(1);
        Ok(Self {
            name: piece.name.clone(),
            format,
            record_max,
            for_want_of_room: record_max < limits.record_max,
            // A block within the record limit: so only a record that outgrows its block can outgrow the limit.
            block_bytes: limits.block_bytes.max(1).min(usize::try_from(record_max).unwrap_or(usize::MAX)),
            window,
            at: first,
            end: if whole_file { u64::MAX } else { piece.end() },
            seek,
            file_begins: piece.offset == 0,
            header: piece.offset == 0 && matches!(format, RecordFormat::Csv { header: true, .. }),
        })
    }

    /// The next block, without header and byte order mark; `None` behind the last record of the piece.
    fn find(&mut self) -> Result<Option<Found>, InputError> {
        self.begin()?;
        while let Some(mut found) = self.find_records()? {
            self.at = found.offset + found.length as u64;
            if self.header {
                let skipped = self.skip_header(found)?;
                found = Found { offset: found.offset + skipped as u64, length: found.length - skipped };
            }
            if 0 < found.length {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Goes to the first record, once.
    fn begin(&mut self) -> Result<(), InputError> {
        if self.seek {
            self.seek = false;
            self.seek_line()?;
        }
        if self.file_begins && matches!(self.format, RecordFormat::Csv { .. }) {
            self.file_begins = false;
            if self.window.view(0, BYTE_ORDER_MARK.len())? == BYTE_ORDER_MARK {
                self.at = BYTE_ORDER_MARK.len() as u64;
            }
        }
        Ok(())
    }

    /// From the byte before the piece to the first byte behind a line end, or to the end of the piece.
    fn seek_line(&mut self) -> Result<(), InputError> {
        while self.at < self.end - 1 {
            let length = clamp(self.end - 1 - self.at, self.block_bytes);
            let bytes = self.window.view(self.at, length)?;
            if let Some(newline) = memchr(b'\n', bytes) {
                self.at += newline as u64 + 1;
                return Ok(());
            }
            if bytes.len() < length {
                break;
            }
            self.at += length as u64;
        }
        self.at = self.end;
        Ok(())
    }

    /// Whole records that begin at `at`; the last one may be ended by the end of the file.
    fn find_records(&mut self) -> Result<Option<Found>, InputError> {
        if self.end <= self.at {
            return Ok(None);
        }
        let length = clamp(self.end - self.at, self.block_bytes);
        let bytes = self.window.view(self.at, length)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let (seen, whole) = (bytes.len(), whole_records(self.format, bytes));
        let found = if seen < length {
            let quote = unclosed_quote(self.format, &bytes[whole..]).map(|quote| whole + quote);
            self.check_last(whole, seen, quote)?;
            seen
        } else if 0 < whole {
            whole
        } else {
            self.find_long_record(length)?
        };
        Ok(Some(Found { offset: self.at, length: found }))
    }

    /// Bytes of the record at `at`, which does not end within `seen` bytes.
    fn find_long_record(&mut self, seen: usize) -> Result<usize, InputError> {
        // One byte more than the longest record with the longest line end.
        let length_max = usize::try_from(self.record_max).unwrap_or(usize::MAX).saturating_add(3);
        let mut length = seen.saturating_mul(2).max(REST_BYTES).min(length_max);
        loop {
            let bytes = self.window.view(self.at, length)?;
            let (seen, ended) = (bytes.len(), first_record(self.format, bytes));
            let content = ended.map_or(seen, |ended| ended.content);
            let too_long = self.record_max < content as u64;
            match ended {
                Some(ended) if !too_long => return Ok(ended.length),
                None if seen < length && !too_long => {
                    let quote = unclosed_quote(self.format, bytes);
                    self.check_last(0, seen, quote)?;
                    return Ok(seen);
                }
                None if seen == length && length < length_max => {
                    length = length.saturating_mul(2).min(length_max);
                }
                _ => {
                    let quote = unclosed_quote(self.format, bytes).map(|quote| self.at + quote as u64);
                    let (path, offset, limit) = (self.name.clone(), self.at, self.record_max);
                    if self.for_want_of_room {
                        return Err(InputError::NoRoom { path, offset, limit });
                    }
                    return Err(InputError::RecordTooLong { path, offset, limit, quote });
                }
            }
        }
    }

    /// Whether the file may end `seen` bytes behind `at`, of which `whole` are ended records, and with a quote
    /// left open `quote` bytes behind `at`.
    fn check_last(&self, whole: usize, seen: usize, quote: Option<usize>) -> Result<(), InputError> {
        if let Some(quote) = quote {
            return Err(InputError::UnclosedQuote {
                path: self.name.clone(),
                offset: self.at + quote as u64,
            });
        }
        match self.format {
            RecordFormat::Fixed { length } if whole < seen => {
                Err(InputError::FixedLength { path: self.name.clone(), size: self.at + seen as u64, length })
            }
            _ => Ok(()),
        }
    }

    /// Bytes up to the end of the first row that is not blank.
    fn skip_header(&mut self, found: Found) -> Result<usize, InputError> {
        let bytes = self.window.view(found.offset, found.length)?;
        let mut skipped = 0;
        while self.header && skipped < bytes.len() {
            let rest = &bytes[skipped..];
            let (length, content) = first_record(self.format, rest)
                .map_or((rest.len(), rest.len()), |row| (row.length, row.content));
            skipped += length;
            self.header = content == 0;
        }
        Ok(skipped)
    }
}

fn clamp(bytes: u64, most: usize) -> usize {
    usize::try_from(bytes).map_or(most, |bytes| bytes.min(most))
}
