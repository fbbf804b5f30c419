//! The traits of user code: what happens to a record, to two values of a key, to a group.

use super::context::TaskContext;
use crate::attempt::{TaskResult, heed};
use crate::collect::Emitter;
use crate::input::{Block, Record};
use crate::key::Key;
use crate::merge::Values;
use crate::output::Output;
use crate::value::Value;

/// Turns records into key-value pairs. One object serves one map task; it lives on one thread.
///
/// A mapper must be deterministic: the same records must give the same pairs each time, whatever their order. When a
/// worker is lost its maps run again, and a reduce may have taken from the first run what another takes from the
/// second. Random numbers come from a seed in the job's parameters, times and host names from nowhere. When two
/// attempts of a map put out different pairs after a reduce took some, the job fails and says so. A combiner may round
/// (sums of `f64`): of what it made the keys alone are compared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a mapper",
    note = "a function is handed to `map_each`; a type implements `Mapper`, and the plan is given what makes it: `|| Words`"
)]
pub trait Mapper {
    /// What the pairs are grouped and ordered by.
    type Key: Key;
    /// What is carried along.
    type Value: Value;

    /// Called once before the first record: read parameters, create counters, load side inputs.
    fn setup(&mut self, _task: &TaskContext) -> TaskResult {
        Ok(())
    }

    /// One record. Emit any number of pairs, as views: `out.emit(&str, …)` where the key is a `String`; see
    /// [`Key::View`](crate::key::Key::View) and [`Value::View`](crate::value::Value::View). A record that makes no sense
    /// is refused by [`TaskError::bad_record`](crate::attempt::TaskError::bad_record), before anything is emitted of it.
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<Self::Key, Self::Value>) -> TaskResult;

    /// A block of whole records, in input order. The default calls [`map`](Mapper::map) for each; a mapper that
    /// can work on many records at once (a tokeniser that does not care about lines) overrides it and may
    /// then leave `map` unused.
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

    /// One record.
    fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult;

    /// A block of whole records; see [`Mapper::block`].
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

/// Turns a key and the stream of its values into output. One object serves one partition; keys come in
/// ascending order of their bytes.
///
/// A reduce that is suspended keeps its reducer and goes on with it. It can also go on at another worker, with a new
/// reducer, if [`save`](Reducer::save) and [`restore`](Reducer::restore) carry over what the reducer keeps between two
/// groups:
///
/// ```
/// # use gristmill_worker::{api::{Reducer, TaskError, TaskResult}, merge::Values, output::Output};
/// /// Numbers the keys.
/// struct Number(u64);
///
/// impl Reducer for Number {
///     type Key = String;
///     type Value = u64;
///
///     fn reduce(&mut self, key: &str, _: &mut Values<'_, String, u64>, out: &mut Output) -> TaskResult {
///         self.0 += 1;
///         out.pair(key, self.0);
///         Ok(())
///     }
///
///     fn save(&self) -> Option<Vec<u8>> {
///         Some(self.0.to_le_bytes().to_vec())
///     }
///
///     fn restore(&mut self, saved: &[u8]) -> TaskResult {
///         let saved = saved.try_into().map_err(|_| TaskError::new("a saved number has eight bytes"))?;
///         self.0 = u64::from_le_bytes(saved);
///         Ok(())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reducer",
    note = "a function is handed to `reduce_each`; a type implements `Reducer`, and the plan is given what makes it: \
            `|| WriteFiles`"
)]
pub trait Reducer {
    /// The key of the job's mappers.
    type Key: Key;
    /// The value of the job's mappers.
    type Value: Value;

    /// Called once before the first group: read parameters, create counters, load side inputs.
    fn setup(&mut self, _task: &TaskContext, _out: &mut Output) -> TaskResult {
        Ok(())
    }

    /// One group. `key` comes as its view: write `key: &str` where the key is a `String`, `key: &[u8]` for a
    /// `ByteString`, and the key's own type otherwise. `values` streams: a group is never held in memory as a
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

    /// What it keeps between two groups (or after `setup`, before the first), so that another can go on in its place;
    /// called only when that is about to happen. Counters and what was written are carried over without it. A reducer
    /// that keeps nothing answers `Some` with no bytes. The default, `None`, says that this one cannot be replaced: a
    /// suspended reduce then goes on where it is. At most 1 MiB is taken.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes over what an earlier one saved. Called after `setup`, what that wrote and counted is dropped, and before
    /// the first group that is left.
    ///
    /// # Errors
    /// Bytes that no `save` has written. They fail the attempt like any other error of a reducer.
    fn restore(&mut self, _saved: &[u8]) -> TaskResult {
        Ok(())
    }
}
