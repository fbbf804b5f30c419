//! Traits of user code: functions for a record, for two values of a key, for a group.

use super::context::TaskContext;
use crate::attempt::{TaskResult, heed};
use crate::collect::Emitter;
use crate::input::{Block, Record};
use crate::key::Key;
use crate::merge::Values;
use crate::output::Output;
use crate::value::Value;

/// Turns records into key-value pairs. One object serves one map task; it stays on one thread.
///
/// A mapper must be deterministic: the same records must give the same pairs each time, in any order. When a worker is
/// lost its maps run again, and different reduces may read the outputs of different runs. Random numbers must come from
/// a seed in the job's parameters; times and host names must not be used. If two attempts of a map output different
/// pairs after a reduce read some, the job fails with this error. A combiner may round (sums of `f64`): of its output
/// only the keys are compared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a mapper",
    note = "a function is handed to `map_each`; a type implements `Mapper`, and the plan is given what makes it: `|| Words`"
)]
pub trait Mapper {
    /// Key by which the pairs are grouped and ordered.
    type Key: Key;
    /// Value of the pairs.
    type Value: Value;

    /// Called once before the first record: read parameters, create counters, load side inputs.
    fn setup(&mut self, _task: &TaskContext) -> TaskResult {
        Ok(())
    }

    /// Maps one record. It may emit any number of pairs, as views: `out.emit(&str, …)` for a key of `String`; see
    /// [`Key::View`](crate::key::Key::View) and [`Value::View`](crate::value::Value::View). It reports an invalid
    /// record with [`TaskError::bad_record`](crate::attempt::TaskError::bad_record), before it emits anything for it.
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<Self::Key, Self::Value>) -> TaskResult;

    /// Maps a block of whole records, in input order. The default calls [`map`](Mapper::map) for each. A mapper that
    /// can process many records at once (a tokeniser that ignores lines) overrides it and may then leave `map` unused.
    fn block(&mut self, block: Block<'_>, out: &mut Emitter<Self::Key, Self::Value>) -> TaskResult {
        for record in block.records() {
            let before = out.emitted();
            let result = self.map(record, out);
            heed(result, before < out.emitted(), |error| out.refuse(record, error))?;
        }
        Ok(())
    }

    /// Called once after the last record. May still emit.
    fn finish(&mut self, _out: &mut Emitter<Self::Key, Self::Value>) -> TaskResult {
        Ok(())
    }
}

/// Turns records into output bytes without a reduce: one part for each split, in input order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a mapper of a job without a reduce",
    note = "a function is handed to `map_only_each`; a type implements `MapOnly`, which writes to an `Output`"
)]
pub trait MapOnly {
    /// Called once before the first record.
    fn setup(&mut self, _task: &TaskContext) -> TaskResult {
        Ok(())
    }

    /// Maps one record.
    fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult;

    /// Maps a block of whole records; see [`Mapper::block`].
    fn block(&mut self, block: Block<'_>, out: &mut Output) -> TaskResult {
        for record in block.records() {
            let before = out.bytes();
            let result = self.map(record, out);
            heed(result, before < out.bytes(), |error| out.refuse(record, error))?;
        }
        Ok(())
    }

    /// Called once after the last record.
    fn finish(&mut self, _out: &mut Output) -> TaskResult {
        Ok(())
    }
}

/// Turns a key and the stream of its values into output. One object serves one partition; keys come in ascending order
/// of their bytes.
///
/// A suspended reduce keeps its reducer and continues with it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reducer",
    note = "a function is handed to `reduce_each`; a type implements `Reducer`, and the plan is given what makes it: \
            `|| WriteFiles`"
)]
pub trait Reducer {
    /// Key of the job's mappers.
    type Key: Key;
    /// Value of the job's mappers.
    type Value: Value;

    /// Called once before the first group: read parameters, create counters, load side inputs.
    fn setup(&mut self, _task: &TaskContext, _out: &mut Output) -> TaskResult {
        Ok(())
    }

    /// Reduces one group. `key` is passed as its view: write `key: &str` for a key of `String`, `key: &[u8]` for a
    /// `ByteString`, and the key's own type otherwise. `values` is a stream: a group is never held in memory as a
    /// whole. Values not read are skipped.
    ///
    /// With `group_by_first`, `key` is the first whole key of the group and [`Values::key`] the current one.
    fn reduce(
        &mut self,
        key: <Self::Key as Key>::View<'_>,
        values: &mut Values<'_, Self::Key, Self::Value>,
        out: &mut Output,
    ) -> TaskResult;

    /// Called once after the last group.
    fn finish(&mut self, _out: &mut Output) -> TaskResult {
        Ok(())
    }

    /// True if `reduce` of a group depends on nothing that earlier groups left in the reducer. Then a running reduce may
    /// be divided between workers: each piece has some consecutive groups and its own reducer, and `setup` and `finish`
    /// run once for each piece.
    fn groups_are_independent(&self) -> bool {
        false
    }
}
