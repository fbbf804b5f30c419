//! Encoding of records as bytes, so that the order of the encodings is the order of the records.

use super::arguments::Sort;
use super::byte_range::ByteRange;
use super::number::push_number;
use gristmill_worker::key::{decode_escaped, encode_escaped};
use gristmill_worker::prelude::*;

/// Order by which records are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordOrder {
    part: KeyPart,
    numeric: bool,
    reverse: bool,
    layout: KeyLayout,
}

/// The part of the record that is its key.
#[derive(Clone, Copy, Debug)]
enum KeyPart {
    Whole,
    Bytes(ByteRange),
    /// The field with this index, from 0.
    Field {
        index: usize,
        delimiter: u8,
    },
}

/// Contents of the key and the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeyLayout {
    /// Only the record matters: it is the key, and the value is empty.
    Record,
    /// The key part, then the record, which orders records with equal parts. The value is the length of the encoded
    /// part, from which the record is found again.
    PartThenRecord,
    /// The key part alone: equal keys stay in the order of the input. The value is the record.
    PartToRecord,
}

/// Buffers of [`RecordOrder::pair`] and [`RecordOrder::record`].
#[derive(Default)]
pub(crate) struct KeyBuffers {
    key: Vec<u8>,
    record: Vec<u8>,
    length: [u8; 4],
}

impl RecordOrder {
    pub(crate) fn new(sort: &Sort) -> Self {
        let part = match (sort.key_bytes, sort.field) {
            (Some(range), _) => KeyPart::Bytes(range),
            (None, Some(field)) => {
                KeyPart::Field { index: field as usize - 1, delimiter: sort.delimiter.unwrap_or(b'\t') }
            }
            (None, None) => KeyPart::Whole,
        };
        let by_input_order = sort.stable || sort.unique;
        // Records compare like their first bytes followed by the whole record.
        let begins = |part| matches!(part, KeyPart::Bytes(ByteRange { start: 0, .. }));
        let layout = match part {
            KeyPart::Whole if !sort.numeric => KeyLayout::Record,
            part if !sort.numeric && !by_input_order && begins(part) => KeyLayout::Record,
            _ if by_input_order => KeyLayout::PartToRecord,
            _ => KeyLayout::PartThenRecord,
        };
        Self { part, numeric: sort.numeric, reverse: sort.reverse, layout }
    }

    /// The key and value of a record.
    pub(crate) fn pair<'a>(&self, record: &'a [u8], scratch: &'a mut KeyBuffers) -> (&'a [u8], &'a [u8]) {
        let KeyBuffers { key, length, .. } = scratch;
        key.clear();
        match self.layout {
            KeyLayout::Record if !self.reverse => return (record, b""),
            KeyLayout::Record => encode_escaped(record, key),
            KeyLayout::PartThenRecord | KeyLayout::PartToRecord => self.push_part(record, key),
        }
        let part_length = key.len();
        if self.layout == KeyLayout::PartThenRecord {
            if self.reverse {
                encode_escaped(record, key);
            } else {
                key.extend_from_slice(record);
            }
        }
        if self.reverse {
            flip(key);
        }
        let value: &[u8] = match self.layout {
            KeyLayout::Record => b"",
            KeyLayout::PartThenRecord => {
                *length = u32::try_from(part_length).unwrap_or(u32::MAX).to_le_bytes();
                length
            }
            KeyLayout::PartToRecord => record,
        };
        (key, value)
    }

    /// The record from which [`pair`](RecordOrder::pair) made this key and value.
    pub(super) fn record<'a>(&self, key: &'a [u8], value: &'a [u8], scratch: &'a mut KeyBuffers) -> &'a [u8] {
        let record = match self.layout {
            KeyLayout::PartToRecord => return value,
            KeyLayout::Record => key,
            KeyLayout::PartThenRecord => {
                let length = value.try_into().map_or(0, u32::from_le_bytes);
                key.get(length as usize..).unwrap_or_default()
            }
        };
        if !self.reverse {
            return record;
        }
        let KeyBuffers { key: escaped, record: unescaped, .. } = scratch;
        escaped.clear();
        escaped.extend_from_slice(record);
        flip(escaped);
        unescaped.clear();
        // A key of this job always decodes.
        let _ = decode_escaped(&mut escaped.as_slice(), |part| unescaped.extend_from_slice(part));
        unescaped
    }

    fn push_part(&self, record: &[u8], out: &mut Vec<u8>) {
        let part = match self.part {
            KeyPart::Whole => record,
            KeyPart::Bytes(range) => range.slice(record),
            KeyPart::Field { index, delimiter } => {
                text::fields(record, delimiter).nth(index).unwrap_or_default()
            }
        };
        if self.numeric {
            push_number(part, out);
        } else {
            encode_escaped(part, out);
        }
    }
}

/// Reverses the order of self-delimiting strings.
fn flip(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}
