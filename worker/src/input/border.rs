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

/// Row of CSV, parsed strictly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StrictRow {
    /// It ends, and its quotes are valid.
    Ends(RecordEnd),
    /// It does not end here; offset of an unclosed quote, if there is one.
    Open(Option<usize>),
    /// The closing quote of a field is followed by neither a delimiter nor a line end.
    Unsound,
}

/// Parses the row that starts with `bytes` strictly. If a closing quote was forgotten, the next quote
/// seems to close it, and is followed by the content of another field.
pub(crate) fn strict_row(bytes: &[u8], delimiter: u8) -> StrictRow {
    let mut at = 0;
    loop {
        let Some(found) = memchr2(b'\n', QUOTE, &bytes[at..]).map(|found| at + found) else {
            return StrictRow::Open(None);
        };
        if bytes[found] == b'\n' {
            let carriage_return = 0 < found && bytes[found - 1] == b'\r';
            let content = found - usize::from(carriage_return);
            return StrictRow::Ends(RecordEnd { length: found + 1, content });
        }
        if 0 < found && bytes[found - 1] != delimiter {
            at = found + 1;
            continue;
        }
        let Some(after) = after_quoted(bytes, found + 1) else { return StrictRow::Open(Some(found)) };
        match &bytes[after..] {
            [] | [b'\n', ..] | [b'\r'] | [b'\r', b'\n', ..] => {}
            [next, ..] if *next == delimiter => {}
            _ => return StrictRow::Unsound,
        }
        at = after;
    }
}

/// Does the same as [`whole_records`], for rows that are also valid when [parsed strictly](strict_row).
pub(crate) fn sound_records(format: RecordFormat, bytes: &[u8]) -> usize {
    let RecordFormat::Csv { delimiter, .. } = format else { return whole_records(format, bytes) };
    if memchr(QUOTE, bytes).is_none() {
        return whole_rows(bytes, delimiter);
    }
    let mut whole = 0;
    while let StrictRow::Ends(row) = strict_row(&bytes[whole..], delimiter) {
        whole += row.length;
    }
    whole
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

/// Finds the cuts of a CSV file from its chunks: the first row end at or after each multiple of the split
/// size. The first cut is after the first row that is not blank, which may be a header.
pub(crate) struct RowCuts {
    delimiter: u8,
    split_bytes: u64,
    state: QuoteState,
    /// Last byte outside quotes. It decides if a quote opens a field.
    previous: u8,
    /// Offset of the last quote that opened a field.
    opened: u64,
    /// True if a byte other than a line end was read.
    content: bool,
    /// Number of bytes read so far.
    fed: u64,
    /// The next cut is the first end of a row at or after this byte.
    wanted: u64,
    /// Cuts found so far, ascending.
    pub cuts: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    Outside,
    Quoted,
    /// After a quote inside quotes, which closed the field unless another quote follows.
    AfterQuote,
}

impl RowCuts {
    /// Creates a finder. `first` is the offset of the first byte, at which a row starts.
    pub fn new(delimiter: u8, split_bytes: u64, first: u64) -> Self {
        Self {
            delimiter,
            split_bytes,
            state: QuoteState::Outside,
            previous: b'\n',
            opened: first,
            content: false,
            fed: first,
            wanted: split_bytes,
            cuts: Vec::new(),
        }
    }

    /// Returns the offset of a quote that opened and is not closed so far.
    pub(crate) fn unclosed(&self) -> Option<u64> {
        (self.state == QuoteState::Quoted).then_some(self.opened)
    }

    /// Reads the next bytes of the file.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut at = 0;
        while at < chunk.len() {
            match self.state {
                QuoteState::Quoted => match memchr(QUOTE, &chunk[at..]) {
                    Some(quote) => {
                        self.state = QuoteState::AfterQuote;
                        at += quote + 1;
                    }
                    None => at = chunk.len(),
                },
                QuoteState::AfterQuote if chunk[at] == QUOTE => {
                    self.state = QuoteState::Quoted;
                    at += 1;
                }
                QuoteState::AfterQuote => {
                    self.state = QuoteState::Outside;
                    self.previous = QUOTE;
                }
                QuoteState::Outside => at = self.outside(chunk, at),
            }
        }
        self.fed += chunk.len() as u64;
    }

    /// Advances to the byte after the next opening quote or to the end of the chunk.
    fn outside(&mut self, chunk: &[u8], at: usize) -> usize {
        let opens = |quote: usize| {
            let before = if quote == at { self.previous } else { chunk[quote - 1] };
            before == self.delimiter || before == b'\n'
        };
        let mut from = at;
        let open = loop {
            match memchr(QUOTE, &chunk[from..]).map(|quote| from + quote) {
                Some(quote) if opens(quote) => break Some(quote),
                Some(quote) => from = quote + 1,
                None => break None,
            }
        };
        let end = open.unwrap_or(chunk.len());
        self.cut(&chunk[at..end], self.fed + at as u64);
        if let Some(&last) = chunk[at..end].last() {
            self.previous = last;
        }
        if open.is_some() {
            self.state = QuoteState::Quoted;
            self.opened = self.fed + end as u64;
            self.content = true;
            end + 1
        } else {
            end
        }
    }

    /// Finds cuts in bytes outside quotes, of which the first one is at `position`.
    fn cut(&mut self, outside: &[u8], position: u64) {
        let mut at = 0;
        if !self.content {
            let Some(first) = outside.iter().position(|byte| !matches!(byte, b'\r' | b'\n')) else { return };
            self.content = true;
            at = first;
        }
        loop {
            // A cut after byte `wanted - 1` is the earliest valid one.
            let skip = usize::try_from((self.wanted - 1).saturating_sub(position)).unwrap_or(usize::MAX);
            at = at.max(skip);
            let Some(newline) = outside.get(at..).and_then(|rest| memchr(b'\n', rest)) else { return };
            at += newline + 1;
            let cut = position + at as u64;
            self.cuts.push(cut);
            self.wanted = (cut / self.split_bytes + 1) * self.split_bytes;
        }
    }
}
