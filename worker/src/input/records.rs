//! The records of a block, one after another.

use super::border::first_record;
use super::record::{Block, Record, RecordFormat};

/// Iterates over the records of a block, without their line ends, in order. The last record may lack its line end.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    block: Block<'a>,
    at: usize,
}

impl<'a> Records<'a> {
    /// The records of this block.
    #[must_use]
    pub fn new(block: Block<'a>) -> Self {
        Self { block, at: 0 }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let rest = &self.block.bytes[self.at..];
            if rest.is_empty() {
                return None;
            }
            let (length, content) = match first_record(self.block.format, rest) {
                Some(ended) => (ended.length, ended.content),
                None => (rest.len(), rest.len()),
            };
            let offset = self.block.offset + self.at as u64;
            self.at += length;
            // An empty line is a record of a text, but not a row of a table.
            if content == 0 && matches!(self.block.format, RecordFormat::Csv { .. }) {
                continue;
            }
            return Some(Record { bytes: &rest[..content], offset, source: self.block.source });
        }
    }
}
