//! The broadcast join: each worker holds one table, map tasks read the other one, and there is no shuffle.

use super::arguments::Join;
use super::columns::{PreparedJoin, Side};
use super::emission::Emission;
use super::held::{HeldTable, LikelyRow, key_hash};
use super::rows::{self, RowReader};
use gristmill_worker::prelude::*;
use std::sync::Arc;

/// Number of rows looked up together, so that the memory of each is loaded while the others are processed.
const BATCH: usize = 32;

pub(super) fn plan(join: &Join, prepared: &PreparedJoin, held: Side) -> JobPlan {
    let streamed = held.other();
    let mapper = {
        let (join_type, delimiter, prepared) = (join.join_type, join.delimiter, prepared.clone());
        move || {
            let reader = |side| RowReader::new(prepared.table(side), delimiter, prepared.selected(side));
            BroadcastJoin {
                delimiter,
                reader: reader(streamed),
                emission: Emission::new(join_type, delimiter, &prepared, streamed),
                held_reader: reader(held),
                table: Arc::default(),
            }
        }
    };
    JobPlan::map_only(join.input(streamed, prepared.header), mapper).side(join.input(held, prepared.header))
}

struct BroadcastJoin {
    delimiter: u8,
    reader: RowReader,
    emission: Emission,
    held_reader: RowReader,
    table: Arc<HeldTable>,
}

/// Rows that are looked up together.
#[derive(Default)]
struct Batch<'a> {
    /// Their keys, with the hashes.
    keys: Vec<(&'a [u8], u64)>,
    /// The rows found for them, once these are being loaded.
    likely: Vec<LikelyRow>,
    /// The pieces of all rows, the same number for each row.
    pieces: Vec<&'a [u8]>,
}

impl Batch<'_> {
    /// Starts to load the rows of all keys.
    fn load(&mut self, table: &HeldTable) {
        self.likely.extend(self.keys.iter().map(|(_, hash)| table.load_row(*hash)));
    }

    /// Writes the rows with their partners and empties the batch.
    fn write(&mut self, table: &HeldTable, emission: &mut Emission, out: &mut Output) {
        let each = self.pieces.len().checked_div(self.keys.len()).unwrap_or(0);
        for (number, ((key, hash), likely)) in self.keys.drain(..).zip(self.likely.drain(..)).enumerate() {
            let text = &self.pieces[number * each..(number + 1) * each];
            emission.streamed_row(text, table.partners_from(key, hash, likely), out);
        }
        self.pieces.clear();
    }
}

impl MapOnly for BroadcastJoin {
    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        let (delimiter, reader) = (self.delimiter, &mut self.held_reader);
        self.table =
            task.side_refusing(0, |files, refuse| HeldTable::build(files, delimiter, reader, refuse))?;
        Ok(())
    }

    fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult {
        let row = self.reader.read(record)?;
        self.emission.streamed_row(&[row.text], self.table.partners(row.key), out);
        Ok(())
    }

    fn block(&mut self, block: Block<'_>, out: &mut Output) -> TaskResult {
        let Some(key) = self.reader.plain_key(&block) else {
            return block
                .records()
                .try_for_each(|record| self.map(record, out).or_else(|error| out.refuse(record, error)));
        };
        let Self { delimiter, reader, emission, table, .. } = self;
        // One batch is filled while the memory of the previous one is being loaded.
        let (mut filling, mut loading) = (Batch::default(), Batch::default());
        text::for_each_plain_row(block.bytes(), *delimiter, |row| {
            if let Err(error) = reader.plain_row(row, |piece| filling.pieces.push(piece)) {
                return out.refuse(rows::record(row, &block), error);
            }
            let key = row.field(key);
            let hash = key_hash(key);
            table.load_place(hash);
            filling.keys.push((key, hash));
            if filling.keys.len() == BATCH {
                filling.load(table);
                loading.write(table, emission, out);
                std::mem::swap(&mut filling, &mut loading);
            }
            TaskResult::Ok(())
        })?;
        loading.write(table, emission, out);
        filling.load(table);
        filling.write(table, emission, out);
        Ok(())
    }
}
