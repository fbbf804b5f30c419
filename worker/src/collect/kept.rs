//! Emitter that keeps its pairs, for tests of mappers.

use super::{EmitTarget, Emitter, EmitterSetting, Partitioning};
use crate::attempt::{TaskFailure, TaskResult};
use crate::key::Key;
use crate::value::Value;

impl<K: Key, V: Value> Emitter<K, V> {
    /// Creates an emitter that keeps all pairs in memory in order, for inspection with
    /// `into_pairs`. It is for the functions of `testing`, not for tasks.
    #[must_use]
    pub fn in_memory() -> Self {
        let setting = EmitterSetting::without_spills();
        Self::new(EmitTarget::Kept(Vec::new()), Partitioning::Hash, setting)
    }

    /// Returns the pairs of an emitter created by [`in_memory`](Emitter::in_memory), in the order of emission. They
    /// have been encoded and decoded once, as on their way to a reducer.
    ///
    /// # Errors
    /// A pair that cannot be encoded or decoded.
    pub(crate) fn into_pairs(mut self) -> TaskResult<Vec<(K, V)>> {
        self.end_block()?;
        let EmitTarget::Kept(pairs) = self.target else { return Ok(Vec::new()) };
        let decoded = pairs.iter().map(|(key, value)| {
            Ok::<_, TaskFailure>((K::from_view(K::decode(key)?), V::from_view(V::decode(value)?)))
        });
        Ok(decoded.collect::<Result<_, _>>()?)
    }
}
