//! Fields of records: plain ones between delimiters, and those of CSV with quotes.
//!
//! Quotes follow the rule by which rows are found: a quote opens a quoted part only as the first byte of a
//! field. Inside, two quotes mean one and a single one ends it. Anything else is literal.

use memchr::{memchr, memchr3};
use std::borrow::Cow;

const QUOTE: u8 = b'"';

/// Returns the fields of a record between delimiters; quotes are literal. An empty record has one empty field.
pub fn fields(record: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(record);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let end = memchr(delimiter, bytes);
        rest = end.map(|end| &bytes[end + 1..]);
        Some(&bytes[..end.unwrap_or(bytes.len())])
    })
}

/// Returns the fields of a CSV row, without quotes. An empty row has one empty field.
#[must_use]
pub fn csv_fields(record: &[u8], delimiter: u8) -> CsvFields<'_> {
    CsvFields { rest: Some(record), delimiter }
}

/// Iterator over the fields of a CSV row; see [`csv_fields`].
#[derive(Clone, Debug)]
pub struct CsvFields<'a> {
    rest: Option<&'a [u8]>,
    delimiter: u8,
}

impl<'a> CsvFields<'a> {
    /// Returns the next field as in the row, with its quotes.
    #[inline]
    pub fn next_raw(&mut self) -> Option<&'a [u8]> {
        let bytes = self.rest?;
        let plain_from = if bytes.first() == Some(&QUOTE) { quoted_end(bytes) } else { 0 };
        let end = memchr(self.delimiter, &bytes[plain_from..]).map(|end| plain_from + end);
        self.rest = end.map(|end| &bytes[end + 1..]);
        Some(&bytes[..end.unwrap_or(bytes.len())])
    }
}

impl<'a> Iterator for CsvFields<'a> {
    type Item = Cow<'a, [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        let raw = self.next_raw()?;
        if raw.first() == Some(&QUOTE) { Some(unquote(raw)) } else { Some(Cow::Borrowed(raw)) }
    }
}

/// Returns the offset after the quote that closes the one at the start, or the end.
fn quoted_end(bytes: &[u8]) -> usize {
    let mut from = 1;
    while let Some(quote) = memchr(QUOTE, &bytes[from..]).map(|quote| from + quote) {
        if bytes.get(quote + 1) != Some(&QUOTE) {
            return quote + 1;
        }
        from = quote + 2;
    }
    bytes.len()
}

/// Returns the content of a field that starts with a quote.
fn unquote(raw: &[u8]) -> Cow<'_, [u8]> {
    let inside = &raw[1..];
    let first = memchr(QUOTE, inside).unwrap_or(inside.len());
    if inside.len() <= first + 1 {
        return Cow::Borrowed(&inside[..first]);
    }
    let mut field = Vec::with_capacity(inside.len());
    let mut rest = inside;
    loop {
        let Some(quote) = memchr(QUOTE, rest) else {
            field.extend_from_slice(rest);
            return Cow::Owned(field);
        };
        field.extend_from_slice(&rest[..quote]);
        rest = &rest[quote + 1..];
        if let Some((&QUOTE, behind)) = rest.split_first() {
            field.push(QUOTE);
            rest = behind;
        } else {
            field.extend_from_slice(rest);
            return Cow::Owned(field);
        }
    }
}

/// Appends a field so that it is parsed as the same bytes: in quotes if it contains a quote, the delimiter or a line
/// break. The caller has to write a row of one empty field as `""`, since blank lines are not rows.
pub fn write_csv_field(out: &mut Vec<u8>, field: &[u8], delimiter: u8) {
    let quoted = memchr3(QUOTE, delimiter, b'\n', field).is_some() || memchr(b'\r', field).is_some();
    if !quoted {
        out.extend_from_slice(field);
        return;
    }
    out.push(QUOTE);
    let mut rest = field;
    while let Some(quote) = memchr(QUOTE, rest) {
        out.extend_from_slice(&rest[..=quote]);
        out.push(QUOTE);
        rest = &rest[quote + 1..];
    }
    out.extend_from_slice(rest);
    out.push(QUOTE);
}
