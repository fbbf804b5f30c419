//! Ends of records: the rules of the formats, on bytes that start with a record.
//!
//! The rule of CSV, exactly: a quote opens a quoted field only as the first byte of a field. Inside, two
//! quotes represent one, and a single quote ends the quoted part. Bytes after it up to the next delimiter
//! are literal, as is a quote anywhere else in an unquoted field. Outside quotes a row ends at `\n`, and
//! one `\r` before it belongs to the line end. Any other `\r` is literal. Blank lines are not rows. A
//! quote that is never closed would extend to the end of the file: such a file is refused.

use super::format::RecordFormat;
use memchr::{memchr, memchr2, memrchr};

/// Byte that quotes a CSV field.
pub(crate) const QUOTE: u8 = b'"';

/// Record at the start of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordEnd {
    /// Bytes of the record with its line end.
    pub length: usize,
    /// Bytes of the record without its line end.
    pub content: usize,
}

/// Returns the bytes of the longest prefix of complete records; 0 if the first one is incomplete.
pub(crate) fn whole_records(format: RecordFormat, bytes: &[u8]) -> usize {
    match format {
        RecordFormat::Lines => memrchr(b'\n', bytes).map_or(0, |at| at + 1),
        RecordFormat::Csv { delimiter, .. } => whole_rows(bytes, delimiter),
        RecordFormat::Fixed { length } => bytes.len() - bytes.len() % length as usize,
        // Only the end of the file ends it.
        RecordFormat::WholeFile => 0,
    }
}

/// Returns the first record, if it ends within `bytes`. A blank line of CSV counts as one, with no content.
pub(crate) fn first_record(format: RecordFormat, bytes: &[u8]) -> Option<RecordEnd> {
    match format {
        RecordFormat::Lines => memchr(b'\n', bytes).map(|at| RecordEnd { length: at + 1, content: at }),
        RecordFormat::Csv { delimiter, .. } => first_row(bytes, delimiter),
        RecordFormat::Fixed { length } => {
            let length = length as usize;
            (length <= bytes.len()).then_some(RecordEnd { length, content: length })
        }
        RecordFormat::WholeFile => None,
    }
}

/// Returns the offset of a quote that opens and is not closed within `bytes`, which start with a record.
pub(crate) fn unclosed_quote(format: RecordFormat, bytes: &[u8]) -> Option<usize> {
    let RecordFormat::Csv { delimiter, .. } = format else { return None };
    let mut at = 0;
    loop {
        let open = opening_quote(bytes, at, delimiter)?;
        match after_quoted(bytes, open + 1) {
            Some(after) => at = after,
            None => return Some(open),
        }
    }
}

fn whole_rows(bytes: &[u8], delimiter: u8) -> usize {
    let (mut at, mut whole) = (0, 0);
    loop {
        let open = opening_quote(bytes, at, delimiter);
        let outside = &bytes[at..open.unwrap_or(bytes.len())];
        if let Some(newline) = memrchr(b'\n', outside) {
            whole = at + newline + 1;
        }
        match open.and_then(|open| after_quoted(bytes, open + 1)) {
            Some(after) => at = after,
            None => return whole,
        }
    }
}

fn first_row(bytes: &[u8], delimiter: u8) -> Option<RecordEnd> {
    let mut at = 0;
    loop {
        let found = at + memchr2(b'\n', QUOTE, &bytes[at..])?;
        if bytes[found] == b'\n' {
            let carriage_return = 0 < found && bytes[found - 1] == b'\r';
            return Some(RecordEnd { length: found + 1, content: found - usize::from(carriage_return) });
        }
        at = if found == 0 || bytes[found - 1] == delimiter {
            after_quoted(bytes, found + 1)?
        } else {
            found + 1
        };
    }
}

/// Returns the offset of the first quote at or after `at` that opens a field. `bytes[at]` is outside
/// quotes and, unless it is the first byte, is not an opening quote itself.
fn opening_quote(bytes: &[u8], at: usize, delimiter: u8) -> Option<usize> {
    let mut from = at;
    loop {
        let quote = from + memchr(QUOTE, &bytes[from..])?;
        if quote == 0 || bytes[quote - 1] == delimiter || bytes[quote - 1] == b'\n' {
            return Some(quote);
        }
        from = quote + 1;
    }
}

/// Returns the offset of the first byte after the closing quote. `inside` is the first byte after the
/// opening one.
fn after_quoted(bytes: &[u8], inside: usize) -> Option<usize> {
    let mut from = inside;
    loop {
        let quote = from + memchr(QUOTE, &bytes[from..])?;
        if bytes.get(quote + 1) != Some(&QUOTE) {
            return Some(quote + 1);
        }
        from = quote + 2;
    }
}

/// Finds the cuts of a CSV file: the first row end at or after each multiple of the split size, ascending. The first
/// cut is after the first row that is not blank, which may be a header. `first` is the offset at which the first row
/// starts. With `quoted`, the file may contain quotes.
///
/// # Errors
/// The offset of a quote that is never closed.
pub(crate) fn row_cuts(
    bytes: &[u8],
    first: usize,
    delimiter: u8,
    split_bytes: u64,
    quoted: bool,
) -> Result<Vec<u64>, u64> {
    let (rows, mut cuts) = (&bytes[first..], Vec::new());
    let Some(content) = rows.iter().position(|byte| !matches!(byte, b'\r' | b'\n')) else { return Ok(cuts) };
    let (mut at, mut wanted) = (content, split_bytes);
    loop {
        let open = if quoted { opening_quote(rows, at, delimiter) } else { None };
        let outside = &rows[..open.unwrap_or(rows.len())];
        loop {
            // A cut after byte `wanted - 1` is the earliest valid one.
            let earliest = usize::try_from(wanted - 1).unwrap_or(usize::MAX).saturating_sub(first);
            let from = at.max(earliest);
            let Some(newline) = outside.get(from..).and_then(|rest| memchr(b'\n', rest)) else { break };
            at = from + newline + 1;
            let cut = (first + at) as u64;
            cuts.push(cut);
            wanted = (cut / split_bytes + 1) * split_bytes;
        }
        let Some(open) = open else { return Ok(cuts) };
        at = after_quoted(rows, open + 1).ok_or((first + open) as u64)?;
    }
}
