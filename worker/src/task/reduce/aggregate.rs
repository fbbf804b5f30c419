//! Reduces of combined values: a table over all segments instead of a merge.

use super::groups::KeyGroups;
use super::slices::{HashSlices, SliceFill, SliceReader};
use super::{buffer_bytes, fan_in};
use crate::api::Reducer;
use crate::attempt::{AttemptContext, Progress, TaskFailure};
use crate::collect::table::{CombineTable, Slot, SortedTable, key_bytes};
use crate::collect::{CombineFactory, CombineRun, Combining, TableMemory, TableRoom};
use crate::merge::{LoserTree, limit_fan_in};
use crate::segment::{KeyBounds, MapOutput, SegmentData, SegmentsWriter, WriteSetting};
use crate::value::Value;
use std::sync::Arc;

/// Totals of a partition: a table, and runs sorted by key if it was too small.
pub(super) struct Aggregate<V: Value> {
    pub(super) combining: Combining<V>,
    pub(super) slices: HashSlices,
    pub(super) runs: Vec<SegmentData>,
    pub(super) setting: WriteSetting,
    pub(super) partition: u32,
}

impl<V: Value> Aggregate<V> {
    pub(super) fn run<R: Reducer<Value = V>>(
        mut self,
        segments: Vec<SegmentData>,
        combine: &CombineFactory<V>,
        context: &AttemptContext<'_>,
        groups: &mut KeyGroups<R>,
    ) -> Result<(), TaskFailure> {
        let mut left = segments.into_iter();
        let mut fill = SliceFill::default();
        while 0 < left.len() {
            let readers = left.by_ref().take(self.slices.segments_at_once).map(SliceReader::open);
            let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
            for slice in 0..self.slices.count {
                for reader in &mut readers {
                    self.add_slice(reader, slice, context.progress, groups)?;
                }
                if 1 < self.slices.count && fill.is_to_be_written(self.combining.fill()) {
                    self.spill(context.progress)?;
                }
            }
        }
        let table = self.combining.take();
        if self.runs.is_empty() {
            context.settings.recycler.keep(reduce_table(table, groups)?);
            return Ok(());
        }
        if 0 < table.len() {
            let writer = SegmentsWriter::in_memory(self.setting.clone(), context.budget, 0)?;
            self.write_run(table, writer, context.progress)?;
        }
        let all = (self.partition, &KeyBounds::default());
        let runs = limit_fan_in(self.runs, fan_in(context), all, &self.setting, context.progress)?;
        reduce_runs(runs, &mut *combine.make(), groups)
    }

    /// Adds the pairs of one segment in a slice to the totals.
    fn add_slice<R: Reducer<Value = V>>(
        &mut self,
        segment: &mut SliceReader,
        slice: u32,
        progress: &Arc<Progress>,
        groups: &mut KeyGroups<R>,
    ) -> Result<(), TaskFailure> {
        let slices = self.slices;
        while let Some(pair) = segment.next(&slices, slice)? {
            groups.meter.pair(pair.key().len() + pair.value().len())?;
            if let Some(narrator) = &mut groups.meter.narrator {
                narrator.read(pair.header().id.map, pair.key(), pair.value());
            }
            groups.border_before_all(|| self.combining.bytes())?;
            let value = V::from_view(V::decode(pair.value())?);
            if self.combining.push(pair.key(), pair.key_loaded(), value)
                && self.combining.settle()? == TableRoom::Full
            {
                self.spill(progress)?;
            }
        }
        Ok(())
    }

    /// Writes the table as a run, and leaves it empty.
    fn spill(&mut self, progress: &Arc<Progress>) -> Result<(), TaskFailure> {
        let table = self.combining.take();
        if table.len() == 0 {
            return Ok(());
        }
        let writer = SegmentsWriter::on_disk(self.setting.clone())?;
        self.write_run(table, writer, progress)
    }

    fn write_run(
        &mut self,
        table: CombineTable<V>,
        mut writer: SegmentsWriter,
        progress: &Arc<Progress>,
    ) -> Result<(), TaskFailure> {
        let sorted = sorted_by_key(table, progress);
        let (mut buffer, mut encoded) = ([0; 16], Vec::new());
        for slot in sorted.iter() {
            progress.step()?;
            encoded.clear();
            slot.value.encode_owned(&mut encoded)?;
            writer.pair(self.partition, key_bytes(&sorted.long, slot.key, &mut buffer), &encoded)?;
        }
        self.combining.give_back(sorted.into_memory());
        let run: MapOutput = writer.finish()?;
        if run.is_on_disk() {
            progress.spilled(run.bytes());
        }
        self.runs.extend(run.segment(self.partition));
        Ok(())
    }
}

/// Sorts a table; this calls no user code.
fn sorted_by_key<V>(table: CombineTable<V>, progress: &Arc<Progress>) -> SortedTable<V> {
    let _engine = progress.engine();
    table.into_sorted_by_key()
}

/// Reduces a whole table; its memory is kept.
fn reduce_table<R: Reducer>(
    table: CombineTable<R::Value>,
    groups: &mut KeyGroups<R>,
) -> Result<TableMemory<R::Value>, TaskFailure> {
    groups.progress.holds(table.bytes());
    let mut sorted = sorted_by_key(table, &groups.progress);
    let (slots, long) = sorted.take_slots();
    reduce_slots(slots, long, groups)?;
    Ok(sorted.into_memory())
}

fn reduce_slots<R: Reducer>(
    slots: impl Iterator<Item = Slot<R::Value>>,
    long: &[u8],
    groups: &mut KeyGroups<R>,
) -> Result<(), TaskFailure> {
    let mut buffer = [0; 16];
    for Slot { key, value, .. } in slots {
        groups.border()?;
        groups.reduce_one(key_bytes(long, key, &mut buffer), value)?;
    }
    Ok(())
}

fn reduce_runs<R: Reducer>(
    runs: Vec<SegmentData>,
    combiner: &mut dyn CombineRun<R::Value>,
    groups: &mut KeyGroups<R>,
) -> Result<(), TaskFailure> {
    let own = |bytes: &[u8]| R::Value::decode(bytes).map(R::Value::from_view);
    groups.progress.holds(buffer_bytes(&runs));
    let mut tree = LoserTree::open(runs)?;
    let mut more = tree.advance()?;
    let mut key = Vec::new();
    while more {
        groups.border()?;
        key.clear();
        key.extend_from_slice(tree.key());
        let rank = tree.rank();
        let mut total = own(tree.value())?;
        more = tree.advance()?;
        while more && tree.stands_at(&key, rank) {
            combiner.fold(&mut total, own(tree.value())?);
            groups.progress.step()?;
            more = tree.advance()?;
        }
        groups.reduce_one(&key, total)?;
    }
    Ok(())
}
