//! Mappers and reducers made of one function, without setup and state.

use super::task::{MapOnly, Mapper, Reducer};
use crate::attempt::TaskResult;
use crate::collect::Emitter;
use crate::input::Record;
use crate::key::Key;
use crate::merge::Values;
use crate::output::Output;
use crate::value::Value;
use serde::de::DeserializeOwned;
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

/// Marker of the argument and result types of a function.
type Types<T, K, V> = PhantomData<fn() -> (T, K, V)>;

/// Mapper that calls a function for the value on each line.
pub(crate) struct MapJson<T, K, V, F>(pub(crate) Arc<F>, pub(crate) Types<T, K, V>);

impl<T, K, V, F> Mapper for MapJson<T, K, V, F>
where
    T: DeserializeOwned,
    K: Key,
    V: Value,
    F: Fn(T, &mut Emitter<K, V>) -> TaskResult,
{
    type Key = K;
    type Value = V;

    fn map(&mut self, line: Record<'_>, out: &mut Emitter<K, V>) -> TaskResult {
        (self.0)(line.json()?, out)
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

    /// No state is kept between keys.
    fn save(&self) -> Option<Vec<u8>> {
        Some(Vec::new())
    }
}
