//! Reads one piece of a split, which is a range of a file, as blocks of whole records. A record belongs to the piece
//! that holds its first byte.

use crate::input::border::{QUOTE, first_record, unclosed_quote, whole_records};
use crate::input::compressed::Decoded;
use crate::input::content::{HEAD_BYTES, refuse_unpacked};
use crate::input::error::InputError;
use crate::input::format::RecordFormat;
use crate::input::limits::InputLimits;
use crate::input::path::FilePath;
use crate::input::source::ByteSource;
use crate::input::split::{Compression, Piece, Place};
use crate::input::table::is_by_rows;
use crate::input::tables::table_rows;
use crate::input::window::{Buffered, ByteRanges, Direct, Window};
use memchr::memchr;

/// Byte order mark at the start of some UTF-8 files. It is not part of the text.
pub(in crate::input) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Bytes read first when a record does not end within its block.
const REST_BYTES: usize = 64 << 10;

/// Range of the file that holds whole records.
#[derive(Clone, Copy)]
pub(super) struct FoundRange {
    pub(super) offset: u64,
    pub(super) length: usize,
}

pub(super) struct PieceBlocks {
    pub(super) name: FilePath,
    format: RecordFormat,
    record_max: u64,
    /// True if records could be larger with more memory.
    for_want_of_room: bool,
    block_bytes: usize,
    pub(super) window: Box<dyn Window>,
    /// Start of the next record, or of the piece if `seek`.
    at: u64,
    /// Offset from which records belong to other pieces.
    end: u64,
    /// True if the piece may start inside a record that belongs to the previous piece.
    seek: bool,
    /// Compression of the file, if the piece starts with the first bytes of a text, which were not checked.
    head: Option<Compression>,
    /// Start of the text after a byte order mark.
    pub(super) after_mark: Option<u64>,
    /// True if the next record is a header.
    header: bool,
}

impl PieceBlocks {
    pub(super) fn open(
        piece: &Piece,
        format: RecordFormat,
        file: Box<dyn ByteSource>,
        limits: &InputLimits,
    ) -> Result<Self, InputError> {
        let seek = format == RecordFormat::Lines && 0 < piece.offset && !piece.is_decoded();
        let first = piece.offset - u64::from(seek);
        let in_place = !piece.is_decoded() && file.bytes().is_some();
        let decoded = |decoded| (Box::new(Buffered::new(decoded, 0)) as Box<dyn Window>, 0);
        let (window, at): (Box<dyn Window>, u64) = match (piece.compression, file) {
            (Compression::None, file) if let Some(table) = &piece.table => {
                table_rows(piece, table, format, file)?
            }
            (Compression::Gzip, file) => decoded(Decoded::gzip(piece, file, limits)),
            (Compression::Bzip2, file) => decoded(Decoded::bzip2(piece, file, limits)),
            (Compression::Zstd, file) => decoded(Decoded::zstd(piece, file, limits)?),
            (Compression::None, file) if in_place => (Box::new(Direct(file)), first),
            (Compression::None, file) => {
                let ranges = ByteRanges::new(file, first, piece.end(), piece.stamp.size);
                (Box::new(Buffered::new(ranges, first)), first)
            }
        };
        let room = if in_place { u64::MAX } else { limits.buffered_record_max };
        let record_max = limits.record_max.min(room).max(1);
        Ok(Self {
            name: piece.name.clone(),
            format,
            record_max,
            for_want_of_room: record_max < limits.record_max,
            // A block is within the record limit, so only a record larger than its block can exceed the
            // limit.
            block_bytes: match piece.place {
                // A task may be divided after each step.
                Place::Steps => 1,
                _ => limits.block_bytes.max(1).min(usize::try_from(record_max).unwrap_or(usize::MAX)),
            },
            window,
            at,
            end: if piece.is_decoded() { u64::MAX } else { piece.end() },
            seek,
            head: match format {
                RecordFormat::Fixed { .. } => None,
                _ if 0 < piece.offset || piece.table.is_some() => None,
                _ => Some(piece.compression),
            },
            after_mark: None,
            header: piece.offset == 0 && matches!(format, RecordFormat::Csv { header: true, .. }),
        })
    }

    /// Finds the next block, without header and byte order mark; `None` after the last record of the piece.
    pub(super) fn find(&mut self) -> Result<Option<FoundRange>, InputError> {
        self.move_to_first()?;
        while let Some(mut found) = self.find_records()? {
            self.at = found.offset + found.length as u64;
            if self.header {
                let skipped = self.skip_header(found)?;
                found = FoundRange { offset: found.offset + skipped as u64, length: found.length - skipped };
            }
            if 0 < found.length {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the offsets of the next record and of the end, if the piece can end in between.
    pub(super) fn left(&self) -> Option<(u64, u64)> {
        let splits = matches!(self.format, RecordFormat::Lines | RecordFormat::Fixed { .. });
        let begun = self.head.is_none() && !self.seek;
        (splits && begun && self.end != u64::MAX && self.at < self.end).then_some((self.at, self.end))
    }

    /// Ends the piece at this offset, between the next record and its end. Records that start from there on belong to
    /// another piece.
    pub(super) fn end_at(&mut self, offset: u64) {
        self.end = offset;
    }

    /// Moves to the first record, once.
    fn move_to_first(&mut self) -> Result<(), InputError> {
        if self.seek {
            self.seek = false;
            self.seek_line()?;
        }
        if let Some(compression) = self.head.take() {
            let head = self.window.view(0, HEAD_BYTES)?;
            if compression != Compression::None && is_by_rows(self.format) {
                refuse_unpacked(&self.name, head)?;
            }
            if head.starts_with(BYTE_ORDER_MARK) {
                self.at = BYTE_ORDER_MARK.len() as u64;
                self.after_mark = Some(self.at);
                // The first record belongs to the piece with the mark, even if that piece ends within it.
                self.end = self.end.max(self.at + 1);
            }
            if matches!(self.format, RecordFormat::Csv { .. }) {
                self.refuse_carriage_returns()?;
            }
        }
        Ok(())
    }

    /// Refuses a table whose rows end with carriage returns alone, which would be a single row.
    fn refuse_carriage_returns(&mut self) -> Result<(), InputError> {
        let bytes = self.window.view(self.at, self.block_bytes.max(REST_BYTES))?;
        // A carriage return at the end of these bytes may be half of a line end.
        let seen = &bytes[..bytes.len().saturating_sub(1)];
        let mut quoted = false;
        let mut is_row_end = |byte: &u8| {
            quoted ^= *byte == QUOTE;
            *byte == b'\r' && !quoted
        };
        if memchr(b'\n', bytes).is_none() && seen.iter().any(&mut is_row_end) {
            return Err(InputError::refused(format!(
                "the rows of {} end with carriage returns alone, and only line feeds end rows here; convert it: \
                 `tr '\\r' '\\n' < FILE > NEW`",
                self.name
            )));
        }
        Ok(())
    }

    /// Moves from the byte before the piece to the first byte after a line end, or to the end of the piece.
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

    /// Finds whole records that start at `at`. The last one may be ended by the end of the file.
    fn find_records(&mut self) -> Result<Option<FoundRange>, InputError> {
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
        Ok(Some(FoundRange { offset: self.at, length: found }))
    }

    /// Returns the bytes of the record at `at`, which does not end within `seen` bytes.
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
                    return Err(self.too_long(quote));
                }
            }
        }
    }

    /// Returns the error for the record at `at`, in which the quote at this offset is not closed within the limit.
    fn too_long(&self, quote: Option<u64>) -> InputError {
        let record =
            format!("record of more than {} bytes at byte {} of {}", self.record_max, self.at, self.name);
        if self.for_want_of_room {
            return InputError::refused(format!(
                "{record}, which is what a slot of this worker has room for; give it more memory (--memory) or fewer slots"
            ));
        }
        let quote =
            quote.map_or_else(String::new, |at| format!(", with a quote at byte {at} that is not closed"));
        InputError::refused(format!("{record}{quote} (the limit is --max-record)"))
    }

    /// Checks if the file may end `seen` bytes after `at`, of which `whole` are complete records, and
    /// with a quote left open `quote` bytes after `at`.
    fn check_last(&self, whole: usize, seen: usize, quote: Option<usize>) -> Result<(), InputError> {
        if let Some(quote) = quote {
            return Err(InputError::unclosed_quote(&self.name, self.at + quote as u64));
        }
        match self.format {
            RecordFormat::Fixed { length } if whole < seen => {
                Err(InputError::fixed_length(&self.name, self.at + seen as u64, length))
            }
            _ => Ok(()),
        }
    }

    /// Returns the bytes up to the end of the first row that is not blank.
    fn skip_header(&mut self, found: FoundRange) -> Result<usize, InputError> {
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
