//! Where records end: the rules of the formats, on bytes that begin with a record.
//!
//! The rule of CSV, exactly: a quote opens a quoted field only as the first byte of a field. Inside, two
//! quotes stand for one, and a single quote ends the quoted part; what follows up to the next delimiter is
//! literal, as is a quote anywhere else in an unquoted field. Outside quotes a row ends at `\n`, and one `\r`
//! before it belongs to the line end; any other `\r` is literal. Blank lines are no rows. A quote that is
//! never closed would run to the end of the file: such a file is refused.

use super::format::RecordFormat;
use memchr::{memchr, memchr2, memrchr};

/// The byte that quotes a CSV field.
pub(crate) const QUOTE: u8 = b'"';

/// A record at the beginning of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordEnd {
    /// Bytes of the record with its line end.
    pub length: usize,
    /// Bytes of the record without its line end.
    pub content: usize,
}

/// Bytes of the longest prefix that consists of ended records; 0 if not even the first one ends.
pub(crate) fn whole_records(format: RecordFormat, bytes: &[u8]) -> usize {
    match format {
        RecordFormat::Lines => memrchr(b'\n', bytes).map_or(0, |at| at + 1),
        RecordFormat::Csv { delimiter, .. } => whole_rows(bytes, delimiter),
        RecordFormat::Fixed { length } => bytes.len() - bytes.len() % length as usize,
        // It ends with its file alone.
        RecordFormat::WholeFile => 0,
    }
}

/// The first record, if it ends within `bytes`. A blank line of CSV counts as one, with no content.
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

/// Where a quote opens that is not closed within `bytes`, which begin with a record.
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

/// The first quote at or after `at` that opens a field; `bytes[at]` lies outside quotes and, unless it is the
/// first byte, is no opening quote itself.
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

/// A row of CSV that is read strictly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StrictRow {
    /// It ends, and its quotes are in order.
    Ends(RecordEnd),
    /// It does not end here; perhaps with a quote at this place that is not closed.
    Open(Option<usize>),
    /// Something else than a delimiter or a line end follows the closing quote of a field.
    Unsound,
}

/// The row that begins with `bytes`, read strictly: where a quote was forgotten, the next one seems to close it, and is
/// followed by what stands in another field.
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

/// As [`whole_records`], of rows that are also sound when they are [read strictly](strict_row).
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

/// The first byte after the closing quote; `inside` is the first byte after the opening one.
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

/// Finds the cuts of a CSV file that is fed to it chunk by chunk: the ends of rows next after multiples of
/// the split size. The first cut lies behind the first row that is not blank, which may be a header.
pub(crate) struct RowCuts {
    delimiter: u8,
    split_bytes: u64,
    state: QuoteState,
    /// The last byte outside quotes; decides whether a quote opens a field.
    previous: u8,
    /// Where the last quote that opened a field lies.
    opened: u64,
    /// Whether something that is no line end has been seen.
    content: bool,
    /// Bytes fed so far.
    fed: u64,
    /// The next cut is the first end of a row at or after this byte.
    wanted: u64,
    /// Found so far, ascending.
    pub cuts: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    Outside,
    Quoted,
    /// Behind a quote inside quotes: it closed the field unless another quote follows.
    AfterQuote,
}

impl RowCuts {
    /// `first` is the position of the first byte that will be fed, where a row begins.
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

    /// Where a quote opens that is not closed in what was fed.
    pub(crate) fn unclosed(&self) -> Option<u64> {
        (self.state == QuoteState::Quoted).then_some(self.opened)
    }

    /// Takes the next bytes of the file.
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

    /// Goes on to the byte after the next opening quote or to the end of the chunk.
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

    /// Looks for wanted cuts in bytes outside quotes, of which the first one lies at `position`.
    fn cut(&mut self, outside: &[u8], position: u64) {
        let mut at = 0;
        if !self.content {
            let Some(first) = outside.iter().position(|byte| !matches!(byte, b'\r' | b'\n')) else { return };
            self.content = true;
            at = first;
        }
        loop {
            // A cut behind byte `wanted - 1` is the earliest that will do.
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
