//! Mappers and reducers made of one function, without setup and state.

use super::task::{MapOnly, Mapper, Reducer};
use crate::attempt::TaskResult;
use crate::collect::Emitter;
use crate::input::Record;
use crate::key::Key;
use crate::merge::Values;
use crate::output::Output;
use crate::value::Value;
use std::marker::PhantomData;
use std::sync::Arc;

/// Mapper that calls a function for each record.
pub(crate) struct MapEach<K, V, F>(pub(crate) Arc<F>, pub(crate) PhantomData<fn() -> (K, V)>);

impl<K, V, F> Mapper for MapEach<K, V, F>
where
    K: Key,
    V: Value,
    F: Fn(Record<'_>, &mut Emitter<K, V>) -> TaskResult,
{
    type Key = K;
    type Value = V;

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<K, V>) -> TaskResult {
        (self.0)(record, out)
    }
}

/// Mapper of a job without a reduce that calls a function for each record.
pub(crate) struct MapOnlyEach<F>(pub(crate) Arc<F>);

impl<F: Fn(Record<'_>, &mut Output) -> TaskResult> MapOnly for MapOnlyEach<F> {
    fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult {
        (self.0)(record, out)
    }
}

/// Reducer that calls a function for each group.
pub(crate) struct ReduceEach<K, V, F>(pub(crate) Arc<F>, pub(crate) PhantomData<fn() -> (K, V)>);

impl<K, V, F> Reducer for ReduceEach<K, V, F>
where
    K: Key,
    V: Value,
    F: Fn(K::View<'_>, &mut Values<'_, K, V>, &mut Output) -> TaskResult,
{
    type Key = K;
    type Value = V;

    fn reduce(&mut self, key: K::View<'_>, values: &mut Values<'_, K, V>, out: &mut Output) -> TaskResult {
        (self.0)(key, values, out)
    }

    fn groups_are_independent(&self) -> bool {
        true
    }
}
