//! Collectors: what a mapper emits, gathered, combined or sorted, and written as one map output.
//!
//! Jobs with a combiner total values in a table; others sort. Either spills runs when its memory is full and
//! merges them at the end. Not here: reading input and calling the mapper (`task`), merging (`merge`).

mod batch;
mod combine;
mod partition;
mod sample;
mod sort;
pub(crate) mod table;
mod window;

pub use combine::{CombineFactory, Combiner};
pub(crate) use combine::{CombineRun, Combining, Room};
pub use partition::Partitioner;
pub(crate) use partition::{Partitioning, Ranges};
pub use sample::{KeySample, SAMPLE_KEYS_MAX};
pub(crate) use sort::{SortMemory, Sorting};
pub(crate) use table::TableMemory;

use crate::attempt::{Progress, TaskFailure};
use crate::budget::Budget;
use crate::input::Block;
use crate::key::Key;
use crate::key::hash::hash_share;
use crate::merge;
use crate::recycle::Recycler;
use crate::segment::{Look, MapOutput, PAIR_BYTES_MAX, SegmentOrder, SegmentsWriter, WriteSetting};
use crate::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use table::{Slot, Sorted, Table, key_bytes};
use window::Window;

/// Pairs after which whoever watches the attempt sees that it moves, also within a block.
const SHOW_PAIRS: usize = 64;

/// A large pair is in memory so many times at once: where it was collected and in front of the file, or as a block that
/// is read and where it goes.
const PAIR_COPIES: usize = 2;

/// A pair of so many bytes fits everywhere.
const PAIR_BYTES_ALWAYS: usize = 1 << 20;

/// The largest pair that may be collected within `limit_bytes`, bytes of key and value.
pub(crate) fn pair_bytes_max(limit_bytes: usize) -> usize {
    (limit_bytes / PAIR_COPIES).clamp(PAIR_BYTES_ALWAYS, PAIR_BYTES_MAX)
}

/// Takes what a mapper emits.
///
/// Emitting never fails where it stands: a failure (a full disk, a value that refuses to be encoded) is kept,
/// what is emitted after it is dropped, and the task ends with the block.
pub struct Emitter<K: Key, V: Value> {
    target: Target<V>,
    partitioning: Partitioning<K>,
    setting: EmitterSetting,
    runs: Vec<MapOutput>,
    key_scratch: Vec<u8>,
    value_scratch: Vec<u8>,
    window: Window,
    /// Pairs of the sorting collector that have left it.
    drained: u64,
    failure: Option<TaskFailure>,
}

/// Where pairs go.
pub(crate) enum Target<V: Value> {
    /// Sorted by key.
    Sort(Sorting),
    /// Totalled by key.
    Combine(Combining<V>),
    /// Keys alone, for cutting ranges; also where pairs go after a failure, with no sample.
    Sample(Option<KeySample>),
}

/// What an emitter needs to know of its task.
pub(crate) struct EmitterSetting {
    pub write: WriteSetting,
    pub fan_in_max: usize,
    pub progress: Arc<Progress>,
    pub recycler: Recycler,
    pub kept_in_files: Budget,
}

impl<K: Key, V: Value> Emitter<K, V> {
    pub(crate) fn new(target: Target<V>, partitioning: Partitioning<K>, setting: EmitterSetting) -> Self {
        Self {
            target,
            partitioning,
            setting,
            runs: Vec::new(),
            key_scratch: Vec::new(),
            value_scratch: Vec::new(),
            window: Window::none(),
            drained: 0,
            failure: None,
        }
    }

    /// Emits one pair.
    #[inline]
    pub fn emit(&mut self, key: K::View<'_>, value: V::View<'_>) {
        // The short way, made to be compiled into the loop of the mapper: most pairs end here.
        if let Target::Combine(combining) = &mut self.target {
            let (value, window) = (V::own(value), &self.window);
            let full =
                K::with_bytes(key, &mut self.key_scratch, |key| combining.push(key, window.load(key), value));
            if full {
                self.settle();
            }
        } else {
            self.emit_to_sort(key, value);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        let Target::Combine(combining) = &mut self.target else { return };
        let settled = combining.settle();
        self.setting.progress.records_out.store(combining.added(), Relaxed);
        self.go_on(settled);
    }

    #[inline(never)]
    fn emit_to_sort(&mut self, key: K::View<'_>, value: V::View<'_>) {
        let added = match &mut self.target {
            Target::Sort(sorting) => {
                let (partitioning, partitions) = (&self.partitioning, self.setting.write.partitions);
                let value_scratch = &mut self.value_scratch;
                if sorting.len().is_multiple_of(SHOW_PAIRS) {
                    let emitted = self.drained + sorting.len() as u64;
                    self.setting.progress.records_out.store(emitted, Relaxed);
                }
                K::with_bytes(key, &mut self.key_scratch, |key| {
                    let partition = partitioning.of(key, partitions)?;
                    let added =
                        V::with_bytes(value, value_scratch, |value| sorting.add(partition, key, value));
                    Ok(added??)
                })
            }
            Target::Sample(Some(sample)) => {
                K::with_bytes(key, &mut self.key_scratch, |key| sample.add(key));
                Ok(Room::Left)
            }
            Target::Sample(None) | Target::Combine(_) => Ok(Room::Left),
        };
        self.go_on(added);
    }

    #[inline]
    fn go_on(&mut self, added: Result<Room, TaskFailure>) {
        if !matches!(added, Ok(Room::Left)) {
            self.spill_or_fail(added);
        }
    }

    /// Whether the task is not wanted any more. Only code that runs long without emitting need ask: the engine
    /// looks after each block of input. If the worker's slots are slower than its machine, this waits: code that passes
    /// time must count what it passes itself, not what went by between two questions.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.setting.progress.rest()
    }

    /// A block of input that the mapper gets next. It must be left before its bytes go.
    pub(crate) fn begin_block(&mut self, block: &Block<'_>) {
        self.window.set(block.bytes);
        if let Target::Sort(sorting) = &mut self.target {
            sorting.begin_block(block);
        }
    }

    /// The mapper has returned: the bytes of the block may go.
    pub(crate) fn leave_block(&mut self) {
        self.window.clear();
    }

    /// The end of a block of input: reports what failed since the last one, and whether the task is cancelled.
    pub(crate) fn end_block(&mut self) -> Result<(), TaskFailure> {
        let progress = &self.setting.progress;
        match &self.target {
            Target::Combine(combining) => progress.records_out.store(combining.added(), Relaxed),
            Target::Sort(sorting) => {
                progress.records_out.store(self.drained + sorting.len() as u64, Relaxed);
            }
            Target::Sample(_) => {}
        }
        progress.check()?;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// The sample that was collected.
    pub(crate) fn into_sample(self) -> Option<KeySample> {
        match self.target {
            Target::Sample(sample) => sample,
            _ => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn spill_or_fail(&mut self, added: Result<Room, TaskFailure>) {
        if let Err(failure) = added.and_then(|_| self.spill()) {
            self.failure.get_or_insert(failure);
            self.target = Target::Sample(None);
        }
    }

    /// Writes everything collected so far as a run.
    fn spill(&mut self) -> Result<(), TaskFailure> {
        let progress = self.setting.progress.clone();
        progress.check()?;
        let mut writer = SegmentsWriter::on_disk(self.setting.write.clone())?;
        match &mut self.target {
            Target::Sort(sorting) => {
                self.drained += sorting.len() as u64;
                sorting.drain(&mut writer, &progress)?;
            }
            Target::Combine(combining) => {
                let table = combining.take();
                let sorted = in_engine(&progress, || table.into_sorted_by_hash());
                let partitions = self.setting.write.partitions;
                write_sorted(&sorted, &self.partitioning, partitions, &mut writer, &progress)?;
                combining.give_back(sorted.into_memory());
            }
            Target::Sample(_) => {}
        }
        let run = writer.finish()?;
        self.setting.progress.spilled(run.bytes());
        self.runs.push(run);
        if self.setting.fan_in_max <= self.runs.len() {
            // More runs than may be merged at once become one, so that the last merge opens few files.
            let writer = SegmentsWriter::on_disk(self.setting.write.clone())?;
            let merged = self.merge_runs(writer)?;
            self.setting.progress.spilled(merged.bytes());
            self.runs.push(merged);
        }
        Ok(())
    }

    /// Merges all runs into `writer`; the runs are gone then.
    fn merge_runs(&mut self, mut writer: SegmentsWriter) -> Result<MapOutput, TaskFailure> {
        let runs = std::mem::take(&mut self.runs);
        let progress = self.setting.progress.clone();
        let mut combining = match &mut self.target {
            Target::Combine(combining) => Some(combining),
            _ => None,
        };
        // Of many partitions a map of little input fills few.
        let filled: BTreeSet<u32> = runs.iter().flat_map(MapOutput::filled).copied().collect();
        for partition in filled {
            let segments: Vec<_> = runs
                .iter()
                .filter_map(|run| run.segment(partition))
                .filter(|data| !data.is_empty())
                .collect();
            progress.step()?;
            match &mut combining {
                Some(combining) => {
                    let combiner = combining.combiner();
                    combine::merge_combining::<V>(segments, partition, combiner, &mut writer, &progress)?;
                }
                None => merge::merge_into(segments, partition, &mut writer, &progress)?,
            }
        }
        Ok(writer.finish()?)
    }

    /// What two attempts have in common: of combined values that hangs on their order and on the memory there was.
    fn look(&self) -> Look {
        if matches!(self.target, Target::Combine(_)) { Look::Keys } else { Look::Pairs }
    }

    /// Ends the collection: the map's output, in memory if `budget` grants it.
    pub(crate) fn finish(mut self, budget: &Budget) -> Result<MapOutput, TaskFailure> {
        self.end_block()?;
        if !self.runs.is_empty() {
            self.spill()?;
            let most: usize = self.runs.iter().map(MapOutput::memory_bytes).sum();
            let look = self.look();
            let writer = SegmentsWriter::in_memory(self.setting.write.clone(), budget, most)?;
            return self.merge_runs(writer.printing(look));
        }
        let write = self.setting.write.clone();
        let partitions = write.partitions;
        let progress = self.setting.progress.clone();
        let look = self.look();
        match &mut self.target {
            Target::Sort(sorting) => {
                let kept_in_files = &self.setting.kept_in_files;
                let left = in_engine(&progress, || sorting.leave_in_file(&write, budget, kept_in_files));
                if let Some(output) = left {
                    self.setting.recycler.keep(sorting.take_memory());
                    return Ok(output);
                }
                let bytes = if sorting.is_empty() { 0 } else { sorting.segment_bytes(partitions) };
                let writer = SegmentsWriter::in_memory(write, budget, bytes)?;
                let mut writer = writer.printing(look);
                sorting.drain(&mut writer, &progress)?;
                self.setting.recycler.keep(sorting.take_memory());
                Ok(writer.finish()?)
            }
            Target::Combine(combining) => {
                let table = combining.take();
                let writer = SegmentsWriter::in_memory(write, budget, estimated_bytes(&table))?;
                let mut writer = writer.printing(look);
                write_table(&table, &self.partitioning, partitions, &mut writer, &progress)?;
                self.setting.recycler.keep(table.into_memory());
                Ok(writer.finish()?)
            }
            Target::Sample(_) => Ok(SegmentsWriter::in_memory(write, budget, 0)?.finish()?),
        }
    }
}

/// The order in which the segments of a job lie.
pub(crate) fn segment_order(combines: bool) -> SegmentOrder {
    if combines { SegmentOrder::Hash } else { SegmentOrder::Key }
}

/// What a table will have as segments if keys and values are short. More is asked for as it turns out.
fn estimated_bytes<V>(table: &Table<V>) -> usize {
    const PAIR_BYTES: usize = 12;
    if table.len() == 0 { 0 } else { table.len() * PAIR_BYTES + table.long_bytes() + 256 }
}

/// Does something that is the engine's own and not user code's.
fn in_engine<T>(progress: &Arc<Progress>, work: impl FnOnce() -> T) -> T {
    let _engine = progress.engine();
    work()
}

/// Writes a whole table in partition order; within a partition roughly in hash order.
fn write_table<K: Key, V: Value>(
    table: &Table<V>,
    partitioning: &Partitioning<K>,
    partitions: u32,
    writer: &mut SegmentsWriter,
    progress: &Progress,
) -> Result<(), TaskFailure> {
    let (mut buffer, mut encoded) = ([0; 16], Vec::new());
    let mut write = |partition: u32, slot: &Slot<V>| {
        progress.step()?;
        encoded.clear();
        slot.value.encode_owned(&mut encoded)?;
        Ok(writer.pair(partition, table.key(slot, &mut buffer), &encoded)?)
    };
    if matches!(partitioning, Partitioning::Hash) {
        return table.for_each_by_share(partitions, write);
    }
    let mut placed = Vec::with_capacity(table.len());
    let mut key_buffer = [0; 16];
    for slot in table.iter() {
        progress.step()?;
        placed.push((partitioning.of(table.key(slot, &mut key_buffer), partitions)?, slot));
    }
    placed.sort_by_key(|(partition, _)| *partition);
    placed.into_iter().try_for_each(|(partition, slot)| write(partition, slot))
}

/// Writes a list sorted by hash and key, in partition order.
fn write_sorted<K: Key, V: Value>(
    sorted: &Sorted<V>,
    partitioning: &Partitioning<K>,
    partitions: u32,
    writer: &mut SegmentsWriter,
    progress: &Progress,
) -> Result<(), TaskFailure> {
    let (mut buffer, mut encoded) = ([0; 16], Vec::new());
    if matches!(partitioning, Partitioning::Hash) {
        // Partitions are shares of the hash space, so the order is right already.
        for slot in sorted.iter() {
            progress.step()?;
            encoded.clear();
            slot.value.encode_owned(&mut encoded)?;
            let key = key_bytes(&sorted.long, slot.key, &mut buffer);
            writer.pair(hash_share(slot.hash, partitions), key, &encoded)?;
        }
        return Ok(());
    }
    let mut placed = Vec::new();
    for slot in sorted.iter() {
        progress.step()?;
        placed.push((partitioning.of(key_bytes(&sorted.long, slot.key, &mut buffer), partitions)?, slot));
    }
    placed.sort_by_key(|(partition, _)| *partition);
    for (partition, slot) in placed {
        progress.step()?;
        encoded.clear();
        slot.value.encode_owned(&mut encoded)?;
        writer.pair(partition, key_bytes(&sorted.long, slot.key, &mut buffer), &encoded)?;
    }
    Ok(())
}
