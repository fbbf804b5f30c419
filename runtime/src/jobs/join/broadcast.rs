//! The broadcast join: each worker holds one table, map tasks read the other one, and nothing is shuffled.
//!
//! Not here: what is written for a row and its partners ([`emission`](super::emission)).

use super::Join;
use super::columns::{Prepared, Side};
use super::emission::Emission;
use super::rows::RowReader;
use crate::prelude::*;
use gristmill_worker::record::{RecordFormat, Source};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

pub(super) fn plan(join: &Join, prepared: &Prepared, held: Side) -> JobPlan {
    let streamed = held.other();
    let mapper = {
        let (join_type, delimiter, prepared) = (join.join_type, join.delimiter, prepared.clone());
        move || BroadcastJoin {
            delimiter,
            held,
            reader: RowReader::new(prepared.table(streamed), delimiter),
            emission: Emission::new(join_type, delimiter, &prepared, streamed),
            held_reader: RowReader::new(prepared.table(held), delimiter),
            table: Arc::default(),
        }
    };
    JobPlan::map_only(join.input(streamed, prepared.header), mapper).side(join.input(held, prepared.header))
}

/// A table by its keys.
#[derive(Default)]
pub(super) struct HeldTable {
    rows: Vec<u8>,
    places: HashMap<Box<[u8]>, Vec<Range<usize>>>,
}

impl HeldTable {
    /// Reads whole rows without a header.
    pub(super) fn build(bytes: &[u8], delimiter: u8, side: Side, reader: &mut RowReader) -> TaskResult<Self> {
        let source = Source { path: format!("the {side} table"), input: 0 };
        let format = RecordFormat::Csv { delimiter, header: false };
        let mut table = Self::default();
        for record in Block::new(bytes, 0, format, &source).records() {
            let row = reader.read(record)?;
            let start = table.rows.len();
            table.rows.extend_from_slice(row.text);
            let place = start..table.rows.len();
            match table.places.get_mut(row.key) {
                Some(places) => places.push(place),
                None => {
                    table.places.insert(row.key.into(), vec![place]);
                }
            }
        }
        Ok(table)
    }

    /// The rows with this key, in the order of the table.
    pub(super) fn partners(&self, key: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.places.get(key).into_iter().flatten().map(|place| &self.rows[place.clone()])
    }
}

struct BroadcastJoin {
    delimiter: u8,
    held: Side,
    reader: RowReader,
    emission: Emission,
    held_reader: RowReader,
    table: Arc<HeldTable>,
}

impl MapOnly for BroadcastJoin {
    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        let (delimiter, held, reader) = (self.delimiter, self.held, &mut self.held_reader);
        self.table = task.side(0, |bytes| HeldTable::build(bytes, delimiter, held, reader))?;
        Ok(())
    }

    fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult {
        let row = self.reader.read(record)?;
        self.emission.streamed_row(row.text, self.table.partners(row.key), out);
        Ok(())
    }
}
