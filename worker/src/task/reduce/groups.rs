//! Passes groups to the reducer, with the boundaries at which an attempt can stop.

use super::dividing::ReduceEnd;
use crate::api::{Counters, GroupPrefix, Reducer, TaskContext};
use crate::attempt::{Division, PartDone, Progress, ReadMeter, TaskFailure};
use crate::key::Key;
use crate::merge::{LoserTree, ValueSource, Values};
use crate::output::Output;
use crate::value::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Reducer with its output.
pub(super) struct KeyGroups<R> {
    pub(super) reducer: R,
    pub(super) output: Output,
    pub(super) meter: ReadMeter,
    pub(super) progress: Arc<Progress>,
    pub(super) counters: Counters,
}

/// Returns the encoded value of a group that consists of one total.
fn total_of<V: Value>(source: &ValueSource<'_, V>) -> Result<Option<Vec<u8>>, TaskFailure> {
    let ValueSource::One(Some(value)) = source else { return Ok(None) };
    let mut encoded = Vec::new();
    value.encode_owned(&mut encoded)?;
    Ok(Some(encoded))
}

impl<R: Reducer> KeyGroups<R> {
    pub(super) fn start(&mut self, context: &TaskContext) -> Result<(), TaskFailure> {
        Ok(self.reducer.setup(context, &mut self.output)?)
    }

    /// Boundary between two groups, where the attempt can be suspended.
    #[inline]
    pub(super) fn border(&mut self) -> Result<(), TaskFailure> {
        if self.progress.has_orders() { self.obey() } else { Ok(()) }
    }

    /// Obeys the orders of a reduce that cannot be divided.
    #[cold]
    fn obey(&self) -> Result<(), TaskFailure> {
        self.refuse_division();
        if self.progress.is_asked() { self.progress.stop_at_border() } else { Ok(()) }
    }

    /// Responds to an order to divide the input, if there is one.
    fn refuse_division(&self) {
        if self.progress.part_to_keep().is_some() {
            self.progress.divided(None);
        }
    }

    /// Obeys the orders of a merge before its next group.
    #[cold]
    fn obey_in_merge(&self, tree: &LoserTree, end: &mut ReduceEnd) -> Result<(), TaskFailure> {
        if let Some(part) = self.progress.part_to_keep() {
            let division = {
                let _engine = self.progress.engine();
                end.divide(tree, part)?
            };
            if let Some(Division::Key { given, .. }) = &division {
                let bytes = &self.progress.divisible_bytes;
                bytes.store(bytes.load(Relaxed).saturating_sub(*given), Relaxed);
            }
            self.progress.divided(division);
        }
        self.obey()
    }

    /// Boundary before the first group.
    #[inline]
    pub(super) fn border_before_all(
        &mut self,
        holds_bytes: impl FnOnce() -> usize,
    ) -> Result<(), TaskFailure> {
        if !self.progress.has_orders() {
            return Ok(());
        }
        self.progress.holds(holds_bytes());
        self.obey()
    }

    /// Calls the reducer for one group. Returns true if the merge has another one.
    #[inline]
    fn reduce(
        &mut self,
        key: &[u8],
        source: ValueSource<'_, R::Value>,
        group: Option<GroupPrefix>,
    ) -> Result<bool, TaskFailure> {
        if let Some(narrator) = &mut self.meter.narrator {
            narrator.start_group(key, total_of(&source)?.as_deref(), self.output.bytes());
        }
        let view = R::Key::decode(key)?;
        let mut values = Values::new(source, key, group, &mut self.meter);
        let result = self.reducer.reduce(view, &mut values, &mut self.output);
        // The failure below the reducer is the cause, whatever the reducer returned.
        if let Some(failure) = values.failed() {
            return Err(failure);
        }
        result?;
        let more = values.finish()?;
        self.output.check()?;
        if let Some(narrator) = &mut self.meter.narrator {
            narrator.end_group(self.output.bytes());
        }
        Ok(more)
    }

    pub(super) fn reduce_merged(
        &mut self,
        mut tree: LoserTree,
        mut end: ReduceEnd,
    ) -> Result<(), TaskFailure> {
        let mut more = {
            // This reads the first block of each segment.
            let _engine = self.progress.engine();
            let more = tree.advance()?;
            if more && end.may_divide {
                self.progress.divisible_bytes.store(end.bytes(&tree)?, Relaxed);
            }
            more
        };
        let mut key = Vec::new();
        while more {
            if self.progress.has_orders() {
                self.obey_in_merge(&tree, &mut end)?;
            }
            if let Some(until) = &end.until
                && tree.key() >= until.as_slice()
            {
                tree.check_unchanged()?;
                break;
            }
            key.clear();
            key.extend_from_slice(tree.key());
            let rank = tree.rank();
            more = self.reduce(&key, ValueSource::Tree(&mut tree, rank), end.group)?;
        }
        Ok(())
    }

    pub(super) fn reduce_one(&mut self, key: &[u8], value: R::Value) -> Result<(), TaskFailure> {
        self.reduce(key, ValueSource::One(Some(value)), None).map(|_| ())
    }

    pub(super) fn finish(mut self) -> Result<PartDone, TaskFailure> {
        self.refuse_division();
        self.reducer.finish(&mut self.output)?;
        self.output.move_counts(&self.counters);
        self.output.finish_part(self.counters.stats())
    }
}
