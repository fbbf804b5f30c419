//! Passes groups to the reducer, with the boundaries at which an attempt can stop.

use crate::api::{Counters, GroupPrefix, Reducer, TaskContext};
use crate::attempt::{PartDone, Progress, ReadMeter, TaskFailure};
use crate::key::Key;
use crate::merge::{LoserTree, ValueSource, Values};
use crate::output::Output;
use crate::protocol::HandOver;
use crate::value::Value;
use std::sync::Arc;

/// Maximum bytes of keys, counters' names and a reducer's state that are handed over. An attempt with more stays.
const STATE_BYTES_MAX: usize = 1 << 20;

/// State of an attempt that does not continue here; `None` if it is complete.
pub(super) type Stopped = Option<Box<HandOver>>;

/// Reducer with its output.
pub(super) struct KeyGroups<R> {
    pub(super) reducer: R,
    pub(super) output: Output,
    pub(super) meter: ReadMeter,
    pub(super) progress: Arc<Progress>,
    pub(super) counters: Counters,
    /// Number of groups in the output.
    pub(super) count: u64,
    /// First key of the last group that an earlier attempt has reduced: groups up to there are skipped.
    pub(super) last: Option<Vec<u8>>,
}

/// Returns the encoded value of a group that consists of one total.
fn total_of<V: Value>(source: &ValueSource<'_, V>) -> Result<Option<Vec<u8>>, TaskFailure> {
    let ValueSource::One(Some(value)) = source else { return Ok(None) };
    let mut encoded = Vec::new();
    value.encode_owned(&mut encoded)?;
    Ok(Some(encoded))
}

impl<R: Reducer> KeyGroups<R> {
    pub(super) fn start(
        &mut self,
        context: &TaskContext,
        resume: Option<&HandOver>,
    ) -> Result<(), TaskFailure> {
        let Some(state) = resume else {
            return Ok(self.reducer.setup(context, &mut self.output)?);
        };
        let mut nowhere = self.output.nowhere();
        nowhere.watch(self.progress.clone());
        self.reducer.setup(context, &mut nowhere)?;
        self.counters.restore(&state.counters);
        self.reducer.restore(&state.reducer)?;
        (self.count, self.last) = (state.groups, state.last_key.clone());
        Ok(())
    }

    /// Boundary between two groups, of which `last` is the first key of the previous one.
    #[inline]
    pub(super) fn border(&mut self, last: Option<&[u8]>) -> Result<Stopped, TaskFailure> {
        if self.progress.is_asked() { self.stop(last) } else { Ok(None) }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn stop(&mut self, last: Option<&[u8]>) -> Result<Stopped, TaskFailure> {
        let progress = self.progress.clone();
        progress.stop_at_border(|| self.save(last))
    }

    /// Boundary before the first remaining group, when nothing has been reduced yet.
    #[inline]
    pub(super) fn border_before_all(
        &mut self,
        holds_bytes: impl FnOnce() -> usize,
    ) -> Result<Stopped, TaskFailure> {
        if !self.progress.is_asked() {
            return Ok(None);
        }
        self.progress.holds(holds_bytes());
        let last = self.last.clone();
        self.stop(last.as_deref())
    }

    /// Writes the state; `None` if the reducer, or its state, cannot move.
    fn save(&mut self, last: Option<&[u8]>) -> Result<Stopped, TaskFailure> {
        if !self.output.can_move() {
            return Ok(None);
        }
        let Some(reducer) = self.reducer.save() else { return Ok(None) };
        self.output.move_counts(&self.counters);
        let counters = self.counters.values();
        let names: usize = counters.iter().map(|(name, _)| name.len() + size_of::<u64>()).sum();
        if STATE_BYTES_MAX < reducer.len() + last.map_or(0, <[u8]>::len) + names {
            return Ok(None);
        }
        let sum = self.output.written()?;
        self.output.end()?;
        Ok(Some(Box::new(HandOver {
            last_key: last.map(<[u8]>::to_vec),
            groups: self.count,
            bytes: sum.bytes,
            records: sum.records,
            crc32c: sum.crc32c,
            reducer,
            counters,
        })))
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
        self.count += 1;
        Ok(more)
    }

    pub(super) fn reduce_merged(
        &mut self,
        mut tree: LoserTree,
        group: Option<GroupPrefix>,
    ) -> Result<Stopped, TaskFailure> {
        let mut more = {
            // This reads the first block of each segment.
            let _engine = self.progress.engine();
            tree.advance()?
        };
        let mut key = Vec::new();
        if let Some(last) = self.last.take() {
            let prefix = group.map(|length| &last[..length(&last)]);
            while more
                && (tree.key() <= &*last || prefix.is_some_and(|prefix| tree.key().starts_with(prefix)))
            {
                self.meter.pair(tree.key().len() + tree.value().len())?;
                more = tree.advance()?;
                if let Some(state) = self.border(Some(&last))? {
                    return Ok(Some(state));
                }
            }
            key = last;
        }
        while more {
            if let Some(state) = self.border((0 < self.count).then_some(&key))? {
                return Ok(Some(state));
            }
            key.clear();
            key.extend_from_slice(tree.key());
            let rank = tree.rank();
            more = self.reduce(&key, ValueSource::Tree(&mut tree, rank), group)?;
        }
        Ok(None)
    }

    pub(super) fn reduce_one(&mut self, key: &[u8], value: R::Value) -> Result<(), TaskFailure> {
        self.reduce(key, ValueSource::One(Some(value)), None).map(|_| ())
    }

    pub(super) fn finish(mut self) -> Result<PartDone, TaskFailure> {
        self.reducer.finish(&mut self.output)?;
        self.output.move_counts(&self.counters);
        self.output.finish_part(self.counters.stats())
    }
}
