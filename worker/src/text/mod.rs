//! Tokenisers, field splitters and number formats for mappers: functions on bytes.
//!
//! If a fast and a simple implementation exist, a test checks that they are equal.

mod fields;
mod numbers;
mod rows;
#[cfg(test)]
mod tests;
mod words;

pub use fields::{CsvFields, csv_fields, fields, write_csv_field};
pub use numbers::parse_u64;
pub(crate) use rows::count_plain_rows;
pub use rows::{PlainRow, for_each_plain_row, is_plain};
pub use words::{for_each_word, is_white_space, unicode_words, words};

/// Returns the lines of some bytes without their `\n`; the last one may lack it. A `\r` stays part of the line.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}
