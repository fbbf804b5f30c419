//! Rows of a table: their join key and their text, as it will be written.
//!
//! Not here: matching them.

use super::columns::Table;
use crate::jobs::escape::push_escaped;
use crate::prelude::*;
use std::ops::Range;

/// Reads the rows of one table.
pub(super) struct RowReader {
    delimiter: u8,
    keys: Vec<usize>,
    width: usize,
    key: Vec<u8>,
    row: Vec<u8>,
    values: Vec<u8>,
    /// Where the fields lie in the record, or in `values` if that had to be unquoted.
    places: Vec<Range<usize>>,
}

/// A row. Two rows match if their keys are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row<'a> {
    /// The field of the join column; for several columns their fields, each with its end.
    pub(super) key: &'a [u8],
    /// The row with quotes only where fields need them, so that rows can be put together.
    pub(super) text: &'a [u8],
}

impl RowReader {
    pub(super) fn new(table: &Table, delimiter: u8) -> Self {
        Self {
            delimiter,
            keys: table.keys.clone(),
            width: table.width,
            key: Vec::new(),
            row: Vec::new(),
            values: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The row that a record holds.
    ///
    /// # Errors
    /// A row that has another number of fields than the first one of the table.
    pub(super) fn read<'a>(&'a mut self, record: Record<'a>) -> TaskResult<Row<'a>> {
        let bytes = record.bytes();
        self.places.clear();
        // A quote or a carriage return at the end of a row would mean something else in the middle of a line.
        let plain = memchr::memchr2(b'"', b'\r', bytes).is_none();
        if plain {
            let mut start = 0;
            for field in text::fields(bytes, self.delimiter) {
                self.places.push(start..start + field.len());
                start += field.len() + 1;
            }
        } else {
            self.unquote(bytes);
        }
        if self.places.len() != self.width {
            return Err(TaskError::input(format!(
                "the row at byte {} of {} has {} fields, the first one of that table has {}",
                record.offset(),
                record.source().path,
                self.places.len(),
                self.width
            )));
        }
        let (values, text) = if plain { (bytes, bytes) } else { (&self.values[..], &self.row[..]) };
        if let [only] = self.keys[..] {
            return Ok(Row { key: &values[self.places[only].clone()], text });
        }
        self.key.clear();
        for column in &self.keys {
            push_escaped(&values[self.places[*column].clone()], &mut self.key);
        }
        Ok(Row { key: &self.key, text })
    }

    fn unquote(&mut self, bytes: &[u8]) {
        self.row.clear();
        self.values.clear();
        for field in text::csv_fields(bytes, self.delimiter) {
            if !self.places.is_empty() {
                self.row.push(self.delimiter);
            }
            text::write_csv_field(&mut self.row, &field, self.delimiter);
            let start = self.values.len();
            self.values.extend_from_slice(&field);
            self.places.push(start..self.values.len());
        }
        if self.row.is_empty() {
            // A single empty field: an empty line would not be a row.
            self.row.extend_from_slice(b"\"\"");
        }
    }
}
