//! Output of an emitter's pairs: runs on disk while it emits, and the map output at its end.

use super::combine::TableRoom;
use super::partition::Partitioning;
use super::table::{CombineTable, Slot, SortedTable, key_bytes};
use super::{EmitTarget, Emitter, combine};
use crate::attempt::{Progress, TaskFailure};
use crate::budget::Budget;
use crate::key::Key;
use crate::key::hash::hash_share;
use crate::merge;
use crate::segment::{MapOutput, SegmentOrder, SegmentsWriter};
use crate::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Mean bytes of a pair from which sorted pairs stay in their file even if there is memory for them. Shorter ones are
/// copied: to merge pairs at random positions of large files costs a miss of the cache and of the page tables for each.
/// CPU seconds of a sort of 1 GB, in the file and copied: 3.7 and 2.4 for 100 bytes, 2.1 and 2.0 for 250, 1.5 and 1.5
/// for 500, 1.1 and 1.3 for 1000.
const LEFT_PAIR_BYTES_MIN: usize = 256;

impl<K: Key, V: Value> Emitter<K, V> {
    #[cold]
    #[inline(never)]
    pub(super) fn spill_or_fail(&mut self, added: Result<TableRoom, TaskFailure>) {
        if let Err(failure) = added.and_then(|_| self.spill()) {
            self.failure.get_or_insert(failure);
            *self.target.collector_mut() = EmitTarget::Sample(None);
        }
    }

    /// Writes all collected pairs as a run.
    fn spill(&mut self) -> Result<(), TaskFailure> {
        let progress = self.setting.progress.clone();
        progress.check()?;
        let mut writer = SegmentsWriter::on_disk(self.setting.write.clone())?;
        match self.target.collector_mut() {
            EmitTarget::Sort(sorting) => {
                self.drained += sorting.len() as u64;
                sorting.drain(&mut writer, &progress)?;
            }
            EmitTarget::Combine(combining) => {
                let table = combining.take();
                let sorted = in_engine(&progress, || table.into_sorted_by_hash());
                let partitions = self.setting.write.partitions;
                write_sorted(&sorted, &self.partitioning, partitions, &mut writer, &progress)?;
                combining.give_back(sorted.into_memory());
            }
            EmitTarget::Sample(_) | EmitTarget::Narrated(_) | EmitTarget::Kept(_) => {}
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

    /// Merges all runs into `writer` and removes them.
    fn merge_runs(&mut self, mut writer: SegmentsWriter) -> Result<MapOutput, TaskFailure> {
        let runs = std::mem::take(&mut self.runs);
        let progress = self.setting.progress.clone();
        let mut combining = match self.target.collector_mut() {
            EmitTarget::Combine(combining) => Some(combining),
            _ => None,
        };
        // A map of little input fills few of many partitions.
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

    /// Ends the collection. Returns the map's output, in memory if `budget` grants it.
    pub(crate) fn finish(mut self, budget: &Budget) -> Result<MapOutput, TaskFailure> {
        self.end_block()?;
        if !self.runs.is_empty() {
            self.spill()?;
            let most: usize = self.runs.iter().map(MapOutput::memory_bytes).sum();
            let writer = SegmentsWriter::in_memory(self.setting.write.clone(), budget, most)?;
            return match self.target.collector() {
                EmitTarget::Sort(sorting) => {
                    let fingerprint = sorting.fingerprint();
                    Ok(self.merge_runs(writer)?.with_fingerprint(fingerprint))
                }
                _ => self.merge_runs(writer.printing_keys()),
            };
        }
        let write = self.setting.write.clone();
        let partitions = write.partitions;
        let progress = self.setting.progress.clone();
        match self.target.collector_mut() {
            EmitTarget::Sort(sorting) => {
                let bytes = if sorting.is_empty() { 0 } else { sorting.segment_bytes(partitions) };
                let kept_in_files = &self.setting.kept_in_files;
                let is_short = bytes < sorting.len().saturating_mul(LEFT_PAIR_BYTES_MIN);
                let left_bytes = kept_in_files.budget.used_bytes().saturating_add(bytes);
                let is_much = kept_in_files.short_bytes_max < left_bytes;
                let memory = if is_short && is_much { budget.try_reserve(bytes) } else { None };
                if memory.is_none() {
                    let left =
                        in_engine(&progress, || sorting.leave_in_file(&write, budget, &kept_in_files.budget));
                    if let Some(output) = left {
                        self.setting.recycler.keep(sorting.take_memory());
                        return Ok(output);
                    }
                }
                let mut writer = match memory {
                    Some(memory) => SegmentsWriter::in_reserved(write, memory),
                    None => SegmentsWriter::in_memory(write, budget, bytes)?,
                };
                let fingerprint = sorting.drain_whole(&mut writer, &progress)?;
                self.setting.recycler.keep(sorting.take_memory());
                Ok(writer.finish()?.with_fingerprint(fingerprint))
            }
            EmitTarget::Combine(combining) => {
                let table = combining.take();
                let writer = SegmentsWriter::in_memory(write, budget, estimated_bytes(&table))?;
                let mut writer = writer.printing_keys();
                write_table(&table, &self.partitioning, partitions, &mut writer, &progress)?;
                self.setting.recycler.keep(table.into_memory());
                Ok(writer.finish()?)
            }
            EmitTarget::Sample(_) | EmitTarget::Narrated(_) | EmitTarget::Kept(_) => {
                Ok(SegmentsWriter::in_memory(write, budget, 0)?.finish()?)
            }
        }
    }
}

/// Returns the order of the segments of a job.
pub(crate) fn segment_order(combines: bool) -> SegmentOrder {
    if combines { SegmentOrder::Hash } else { SegmentOrder::Key }
}

/// Estimates the size of a table as segments if keys and values are short. More is requested as needed.
fn estimated_bytes<V>(table: &CombineTable<V>) -> usize {
    const PAIR_BYTES: usize = 12;
    if table.len() == 0 { 0 } else { table.len() * PAIR_BYTES + table.long_bytes() + 256 }
}

/// Runs work of the engine, not of user code.
fn in_engine<T>(progress: &Arc<Progress>, work: impl FnOnce() -> T) -> T {
    let _engine = progress.engine();
    work()
}

/// Writes a whole table in partition order; within a partition approximately in hash order.
fn write_table<K: Key, V: Value>(
    table: &CombineTable<V>,
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
        placed.push((partitioning.partition(table.key(slot, &mut key_buffer), partitions)?, slot));
    }
    placed.sort_by_key(|(partition, _)| *partition);
    placed.into_iter().try_for_each(|(partition, slot)| write(partition, slot))
}

/// Writes a list sorted by hash and key, in partition order.
fn write_sorted<K: Key, V: Value>(
    sorted: &SortedTable<V>,
    partitioning: &Partitioning<K>,
    partitions: u32,
    writer: &mut SegmentsWriter,
    progress: &Progress,
) -> Result<(), TaskFailure> {
    let (mut buffer, mut encoded) = ([0; 16], Vec::new());
    if matches!(partitioning, Partitioning::Hash) {
        // Partitions are shares of the hash space, so the order is already right.
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
        placed.push((
            partitioning.partition(key_bytes(&sorted.long, slot.key, &mut buffer), partitions)?,
            slot,
        ));
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
