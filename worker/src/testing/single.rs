//! Runs one mapper, combiner or reducer, without a job around it.

use super::trial::{Trial, TrialError, Written};
use crate::api::{Combiner, Counters, JobPlan, MapOnly, Mapper, Reducer, SideInputs, TaskContext};
use crate::attempt::{TaskFailure, TaskResult};
use crate::collect::Emitter;
use crate::input::{Block, Input, Record, RecordFormat, Source};
use crate::key::{CompositeKey, Key};
use crate::value::Value;
use gristmill_scheduler::ids::{JobId, TaskId};
use std::marker::PhantomData;
use std::sync::Arc;

/// File name of a mapper's input.
const FILE: &str = "input";

/// Returns the pairs that a mapper emits for these lines, in order: its `setup`, one block of all records, its
/// `finish`. Its counters are lost; a [`Trial`] has counters.
///
/// # Errors
/// Errors of the mapper, and a pair that cannot be encoded.
pub fn map<M: Mapper>(mut mapper: M, lines: impl AsRef<[u8]>) -> TaskResult<Vec<(M::Key, M::Value)>> {
    let source = Source { path: FILE.to_owned(), input: 0 };
    let mut out = Emitter::in_memory();
    mapper.setup(&context())?;
    if !lines.as_ref().is_empty() {
        mapper.block(Block::new(lines.as_ref(), 0, RecordFormat::Lines, &source), &mut out)?;
    }
    mapper.finish(&mut out)?;
    out.into_pairs()
}

/// Returns what the mapper of a job without a reduce writes for these lines.
///
/// # Errors
/// Errors of the mapper.
pub fn map_only<M, F>(mapper: F, lines: impl AsRef<[u8]>) -> Result<Written, TrialError>
where
    M: MapOnly + 'static,
    F: Fn() -> M + Send + Sync + 'static,
{
    Trial::from_plan(JobPlan::map_only(Input::lines([FILE]), mapper)).file(FILE, lines.as_ref()).run()
}

/// Returns a combiner's result for the values of one key; `None` without values.
pub fn combine<C: Combiner>(mut combiner: C, values: impl IntoIterator<Item = C::Value>) -> Option<C::Value> {
    values.into_iter().reduce(|mut total, value| {
        combiner.combine(&mut total, value);
        total
    })
}

/// Returns what a reducer writes for these pairs, sorted and grouped by their keys. Keys are given as a mapper emits
/// them: `&str` for `String`.
///
/// # Errors
/// Errors of the reducer, and a pair that cannot be encoded.
pub fn reduce<'a, R, F>(
    reducer: F,
    pairs: impl IntoIterator<Item = (<R::Key as Key>::View<'a>, R::Value)>,
) -> Result<Written, TrialError>
where
    R: Reducer + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    let given = Given::<R::Key, R::Value>::encode(pairs)?;
    Trial::from_plan(JobPlan::map(Input::bare_tasks(1), move || given.again()).reduce(reducer)).run()
}

/// Runs a reducer as [`reduce`], in a job that [groups by the first
/// component](crate::api::MapReducePlan::group_by_first) of its keys.
///
/// # Errors
/// As those of [`reduce`].
pub fn reduce_by_first<'a, R, F>(
    reducer: F,
    pairs: impl IntoIterator<Item = (<R::Key as Key>::View<'a>, R::Value)>,
) -> Result<Written, TrialError>
where
    R: Reducer<Key: CompositeKey> + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    let given = Given::<R::Key, R::Value>::encode(pairs)?;
    Trial::from_plan(
        JobPlan::map(Input::bare_tasks(1), move || given.again()).group_by_first().reduce(reducer),
    )
    .run()
}

fn context() -> TaskContext {
    TaskContext::new(TaskId::map(JobId(0), 0), 1, Counters::default(), Arc::new(SideInputs::none()))
}

/// Mapper that emits given pairs.
struct Given<K, V> {
    encoded: Arc<Vec<(Vec<u8>, Vec<u8>)>>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> Given<K, V> {
    fn encode<'a>(pairs: impl IntoIterator<Item = (K::View<'a>, V)>) -> Result<Self, TrialError> {
        let encoded = pairs.into_iter().map(|(view, owned)| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            K::encode(view, &mut key);
            owned.encode_owned(&mut value)?;
            Ok::<_, TaskFailure>((key, value))
        });
        let encoded = encoded.collect::<Result<Vec<_>, _>>();
        let encoded = Arc::new(encoded.map_err(|failure| TrialError::Pair { failure })?);
        Ok(Given { encoded, types: PhantomData })
    }

    /// Returns another one that emits the same pairs.
    fn again(&self) -> Self {
        Given { encoded: self.encoded.clone(), types: PhantomData }
    }
}

impl<K: Key, V: Value> Mapper for Given<K, V> {
    type Key = K;
    type Value = V;

    fn map(&mut self, _: Record<'_>, _: &mut Emitter<K, V>) -> TaskResult {
        Ok(())
    }

    fn finish(&mut self, out: &mut Emitter<K, V>) -> TaskResult {
        for (key, value) in self.encoded.iter() {
            out.emit(K::decode(key)?, V::decode(value)?);
        }
        Ok(())
    }
}
