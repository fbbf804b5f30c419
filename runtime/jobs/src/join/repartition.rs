//! The repartition join: rows of both tables meet at the reducer of their key.
//!
//! The held table is the plan's first input, so its rows come first among the values of a key.

use super::JoinType;
use super::arguments::Join;
use super::columns::{PreparedJoin, Side};
use super::emission::Emission;
use super::rows::{self, RowReader};
use gristmill_worker::prelude::*;

/// First byte of a value: a row of the held table or one of the streamed table.
const HELD: u8 = 0;
const STREAMED: u8 = 1;
/// Overhead of a held row in addition to its bytes.
const HELD_ROW_BYTES: u64 = 8;

/// The table whose rows of one key are held: the smaller one. Semi and anti joins need only the keys of the right
/// table, so for them it is the right one, and no rows are held.
pub(super) fn held_side(join: &Join, prepared: &PreparedJoin) -> Side {
    if join.join_type.is_left_alone() || prepared.right.bytes < prepared.left.bytes {
        Side::Right
    } else {
        Side::Left
    }
}

pub(super) fn plan(join: &Join, prepared: &PreparedJoin) -> JobPlan {
    let held = held_side(join, prepared);
    let mapper = |side: Side| {
        let (table, delimiter) = (prepared.table(side).clone(), join.delimiter);
        let selected = prepared.selected(side);
        let with_row = !(side == Side::Right && join.join_type.is_left_alone());
        let tag = if side == held { HELD } else { STREAMED };
        move || RowMapper {
            delimiter,
            reader: RowReader::new(&table, delimiter, selected.clone()),
            tag,
            with_row,
            value: Vec::new(),
        }
    };
    let reducer = {
        let (join_type, delimiter, prepared) = (join.join_type, join.delimiter, prepared.clone());
        let group_max = join.group_max;
        move || JoinReducer {
            join_type,
            held,
            group_max,
            rows: HeldRows::default(),
            emission: Emission::new(join_type, delimiter, &prepared, held.other()),
        }
    };
    JobPlan::map(join.input(held, prepared.header), mapper(held))
        .map(join.input(held.other(), prepared.header), mapper(held.other()))
        .reduce(reducer)
}

struct RowMapper {
    delimiter: u8,
    reader: RowReader,
    tag: u8,
    with_row: bool,
    value: Vec<u8>,
}

impl Mapper for RowMapper {
    type Key = ByteString;
    type Value = ByteString;

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        let row = self.reader.read(record)?;
        self.value.clear();
        self.value.push(self.tag);
        if self.with_row {
            self.value.extend_from_slice(row.text);
        }
        out.emit(row.key, &self.value);
        Ok(())
    }

    fn block(&mut self, block: Block<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        let Some(key) = self.reader.plain_key(&block) else {
            return block
                .records()
                .try_for_each(|record| self.map(record, out).or_else(|error| out.refuse(record, error)));
        };
        let Self { delimiter, reader, tag, with_row, value } = self;
        text::for_each_plain_row(block.bytes(), *delimiter, |row| {
            value.clear();
            value.push(*tag);
            let mut first = true;
            let read = reader.plain_row(row, |piece| {
                if *with_row {
                    if !std::mem::take(&mut first) {
                        value.push(*delimiter);
                    }
                    value.extend_from_slice(piece);
                }
            });
            if let Err(error) = read {
                return out.refuse(rows::record(row, &block), error);
            }
            out.emit(row.field(key), value);
            Ok(())
        })
    }
}

struct JoinReducer {
    join_type: JoinType,
    held: Side,
    group_max: u64,
    rows: HeldRows,
    emission: Emission,
}

/// The rows of the held table with the current key, one after another.
#[derive(Default)]
struct HeldRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl HeldRows {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    fn memory(&self) -> u64 {
        self.bytes.len() as u64 + self.ends.len() as u64 * HELD_ROW_BYTES
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().scan(0, |start, end| {
            let row = &self.bytes[*start..*end];
            *start = *end;
            Some(row)
        })
    }
}

impl JoinReducer {
    fn hold_row(&mut self, key: &[u8], row: &[u8]) -> TaskResult {
        // For left rows it matters only that a right row exists.
        if self.join_type.is_left_alone() && !self.rows.ends.is_empty() {
            return Ok(());
        }
        self.rows.push(row);
        if self.rows.memory() > self.group_max {
            return Err(TaskError::config(format!(
                "the rows of the {} table with the join key {:?} take over {} bytes of memory; \
                 --group-max raises the limit",
                self.held,
                String::from_utf8_lossy(key),
                self.group_max
            )));
        }
        Ok(())
    }
}

impl Reducer for JoinReducer {
    type Key = ByteString;
    type Value = ByteString;

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        self.rows.clear();
        let mut streamed = false;
        while let Some(value) = values.next()? {
            match value.split_first() {
                Some((&HELD, row)) => self.hold_row(key, row)?,
                Some((_, row)) => {
                    streamed = true;
                    self.emission.streamed_row(&[row], self.rows.iter(), out);
                }
                None => return Err(TaskError::new("a value of a join has no tag")),
            }
        }
        if !streamed {
            for row in self.rows.iter() {
                self.emission.lone_row(self.held, &[row], out);
            }
        }
        Ok(())
    }

    fn groups_are_independent(&self) -> bool {
        true
    }
}
