//! Rows of a table: their join key and their text in output form.
//!
//! Most tables have no quotes; their rows are then parsed many at a time and never copied.

use super::columns::JoinTable;
use gristmill_worker::key::encode_escaped;
use gristmill_worker::prelude::*;
use gristmill_worker::text::PlainRow;
use std::ops::Range;

/// Reads the rows of one table.
pub(super) struct RowReader {
    delimiter: u8,
    width: usize,
    /// Places of the join columns.
    keys: Vec<usize>,
    /// Places of the columns that make up the text; `None` for all.
    selected: Option<Vec<usize>>,
    key: Vec<u8>,
    row: Vec<u8>,
    values: Vec<u8>,
    /// Places of the fields in the record, or in `values` if it had to be unquoted.
    places: Vec<Range<usize>>,
}

/// A row. Two rows match if their keys are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct JoinRow<'a> {
    /// The field of the join column; for several columns their fields, each with its end.
    pub(super) key: &'a [u8],
    /// The columns that are written, with quotes only if fields need them, so that rows can be concatenated.
    pub(super) text: &'a [u8],
}

impl RowReader {
    pub(super) fn new(table: &JoinTable, delimiter: u8, selected: Option<Vec<usize>>) -> Self {
        Self {
            delimiter,
            width: table.width,
            keys: table.keys.clone(),
            selected,
            key: Vec::new(),
            row: Vec::new(),
            values: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The key column, if rows of this block can be read by [`plain_row`](RowReader::plain_row).
    pub(super) fn plain_key(&self, block: &Block<'_>) -> Option<usize> {
        match self.keys[..] {
            [only] if block.is_plain() => Some(only),
            _ => None,
        }
    }

    /// Passes on the pieces of text that are written of a plain row; delimiters belong between them. Its block
    /// has a [`plain_key`](RowReader::plain_key).
    ///
    /// # Errors
    /// A row whose number of fields differs from that of the first row of the table.
    #[inline]
    pub(super) fn plain_row<'a>(&self, row: PlainRow<'a, '_>, mut piece: impl FnMut(&'a [u8])) -> TaskResult {
        if row.fields() != self.width {
            return Err(self.other_width(row.fields()));
        }
        match &self.selected {
            None => piece(row.bytes()),
            Some(places) => places.iter().for_each(|place| piece(row.field(*place))),
        }
        Ok(())
    }

    #[cold]
    fn other_width(&self, fields: usize) -> TaskError {
        TaskError::bad_record(format!(
            "it has {fields} fields, the first row of that table has {}",
            self.width
        ))
    }

    /// The row in a record.
    ///
    /// # Errors
    /// A row whose number of fields differs from that of the first row of the table.
    pub(super) fn read<'a>(&'a mut self, record: Record<'a>) -> TaskResult<JoinRow<'a>> {
        let bytes = record.bytes();
        self.places.clear();
        self.row.clear();
        // A quote or a carriage return at the end of a row would have another meaning in the middle of a line.
        let plain = text::is_plain(bytes);
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
            return Err(self.other_width(self.places.len()));
        }
        let values = if plain { bytes } else { &self.values[..] };
        let text = match &self.selected {
            None if plain => bytes,
            None => {
                write_fields(values, self.places.iter(), self.delimiter, &mut self.row);
                &self.row[..]
            }
            Some(selected) => {
                let places = selected.iter().map(|place| &self.places[*place]);
                write_fields(values, places, self.delimiter, &mut self.row);
                &self.row[..]
            }
        };
        if let [only] = self.keys[..] {
            return Ok(JoinRow { key: &values[self.places[only].clone()], text });
        }
        self.key.clear();
        for column in &self.keys {
            encode_escaped(&values[self.places[*column].clone()], &mut self.key);
        }
        Ok(JoinRow { key: &self.key, text })
    }

    fn unquote(&mut self, bytes: &[u8]) {
        self.values.clear();
        for field in text::csv_fields(bytes, self.delimiter) {
            let start = self.values.len();
            self.values.extend_from_slice(&field);
            self.places.push(start..self.values.len());
        }
    }
}

/// The record of a plain row of this block.
#[cold]
pub(super) fn record<'a>(row: PlainRow<'a, '_>, block: &Block<'a>) -> Record<'a> {
    let within = row.bytes().as_ptr() as usize - block.bytes().as_ptr() as usize;
    Record::new(row.bytes(), block.offset() + within as u64, block.source())
}

/// Writes fields with quotes where they need them.
fn write_fields<'a>(
    values: &[u8],
    places: impl Iterator<Item = &'a Range<usize>>,
    delimiter: u8,
    out: &mut Vec<u8>,
) {
    for (number, place) in places.enumerate() {
        if 0 < number {
            out.push(delimiter);
        }
        text::write_csv_field(out, &values[place.clone()], delimiter);
    }
}
