//! Valid records of a piece, where bad ones are skipped.
//!
//! A bad record ends with the line on which it starts, so that one surplus quote does not cost all
//! following rows. Of records of fixed length only the last one of a file can be bad, and a whole file is
//! skipped as a whole. Rows of CSV are parsed strictly here. All this depends only on the file and the
//! limits, so the cuts of a file and the reads of its pieces agree.

use super::piece::{Found, PieceBlocks, REST_BYTES, clamp};
use crate::input::border::{StrictRow, first_record, sound_records, strict_row};
use crate::input::error::InputError;
use crate::input::format::RecordFormat;
use crate::input::limits::InputLimits;
use crate::input::local::LocalFiles;
use crate::input::source::FileAccess;
use crate::input::split::Piece;
use memchr::memchr;

/// Kind of the first record of some bytes.
enum First {
    /// It ends; bytes with and without its line end.
    Ends { length: usize, content: usize },
    /// It does not end here; offset of an unclosed quote.
    Open { quote: Option<usize> },
    /// It is bad, independent of the bytes that follow.
    Bad(&'static str),
}

fn first(format: RecordFormat, bytes: &[u8]) -> First {
    match format {
        RecordFormat::Csv { delimiter, .. } => match strict_row(bytes, delimiter) {
            StrictRow::Ends(row) => First::Ends { length: row.length, content: row.content },
            StrictRow::Open(quote) => First::Open { quote },
            StrictRow::Unsound => First::Bad("something follows the closing quote of a field"),
        },
        _ => match first_record(format, bytes) {
            Some(record) => First::Ends { length: record.length, content: record.content },
            None => First::Open { quote: None },
        },
    }
}

impl PieceBlocks {
    /// Finds valid records that start at `at`. If the first one is bad, returns none and the offset after it.
    pub(super) fn find_sound_records(&mut self) -> Result<Option<Found>, InputError> {
        if self.end <= self.at {
            return Ok(None);
        }
        let length = clamp(self.end - self.at, self.block_bytes);
        let bytes = self.window.view(self.at, length)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let sound = sound_records(self.format, bytes);
        if 0 < sound {
            return Ok(Some(Found { offset: self.at, length: sound }));
        }
        self.judge_first(length).map(Some)
    }

    /// Reads the record at `at` until it ends or is known to be bad.
    fn judge_first(&mut self, seen: usize) -> Result<Found, InputError> {
        let offset = self.at;
        // One byte more than the longest record with the longest line end.
        let length_max = usize::try_from(self.record_max).unwrap_or(usize::MAX).saturating_add(3);
        let mut length = seen.min(length_max);
        loop {
            let bytes = self.window.view(offset, length)?;
            let (seen, first) = (bytes.len(), first(self.format, bytes));
            let is_long = |content: usize| self.record_max < content as u64;
            match first {
                First::Ends { length, content } if !is_long(content) => return Ok(Found { offset, length }),
                First::Bad(reason) => return self.leave_out(reason),
                First::Open { quote } if seen < length && !is_long(seen) => {
                    return match (quote, self.format) {
                        (Some(quote), _) => {
                            let at = offset + quote as u64;
                            self.leave_out(&format!("the quote at byte {at} is never closed"))
                        }
                        (None, RecordFormat::Fixed { length }) => {
                            self.leave_out(&format!("the file ends after {seen} of its {length} bytes"))
                        }
                        (None, _) => Ok(Found { offset, length: seen }),
                    };
                }
                First::Open { .. } if seen == length && length < length_max => {
                    length = length.saturating_mul(2).max(REST_BYTES).min(length_max);
                }
                First::Ends { .. } | First::Open { .. } => {
                    let limit = self.record_max;
                    if self.for_want_of_room {
                        return Err(InputError::NoRoom { path: self.name.clone(), offset, limit });
                    }
                    return self.leave_out(&format!("it has more than {limit} bytes"));
                }
            }
        }
    }

    /// Skips the record at `at`, up to the end of its first line.
    fn leave_out(&mut self, reason: &str) -> Result<Found, InputError> {
        if self.header {
            // Otherwise the next row would be treated as the header.
            let (path, reason) = (self.name.clone(), reason.to_owned());
            return Err(InputError::BadRecord { path, offset: self.at, reason });
        }
        self.bad.leave_out(&self.name.to_text(), self.at, reason)?;
        let mut next = self.at;
        loop {
            let bytes = self.window.view(next, REST_BYTES)?;
            let has_lines = matches!(self.format, RecordFormat::Lines | RecordFormat::Csv { .. });
            let newline = memchr(b'\n', bytes).filter(|_| has_lines);
            next += newline.map_or(bytes.len(), |newline| newline + 1) as u64;
            if newline.is_some() || bytes.len() < REST_BYTES {
                return Ok(Found { offset: next, length: 0 });
            }
        }
    }
}

/// Returns offsets near multiples of the split size at which a local CSV file can be cut if bad records
/// are skipped. They are boundaries that the reader of a piece also finds.
pub(in crate::input) fn sound_cuts(
    file: &Piece,
    format: RecordFormat,
    split_bytes: u64,
    limits: &InputLimits,
) -> Result<Vec<u64>, InputError> {
    let block_bytes = limits.block_bytes.min(usize::try_from(split_bytes).unwrap_or(usize::MAX));
    // The readers of the pieces report bad records.
    let limits = InputLimits { block_bytes, bad_records_max: u64::MAX, ..*limits };
    let mut blocks = PieceBlocks::open(file, format, LocalFiles.open(file)?, &limits)?;
    let (mut cuts, mut wanted) = (Vec::new(), split_bytes);
    while let Some(found) = blocks.find()? {
        let end = found.offset + found.length as u64;
        if wanted <= end {
            cuts.push(end);
            wanted = (end / split_bytes + 1) * split_bytes;
        }
        blocks.bad.forget();
    }
    blocks.window.verify_unchanged()?;
    Ok(cuts)
}
