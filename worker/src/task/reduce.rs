//! One reduce task: from the segments of a partition to a part.
//!
//! Segments of a job with a combiner are totalled in a table and sorted once; others are merged. Either way the
//! reducer sees keys in ascending order and values in (map, position) order. Not here: fetching (`shuffle`).

use super::map::write_setting;
use super::{ErasedReduce, Meter, PartDone, Progress, Run, TaskFailure, TaskStats};
use crate::api::{Counters, GroupPrefix, MapReducePlan, Order, Reducer, TaskContext};
use crate::budget::Budget;
use crate::collect::table::{Slot, Table, key_bytes};
use crate::collect::{CombineFactory, CombineRun, Combining, Room, SortMemory, TableMemory};
use crate::key::Key;
use crate::merge::{LoserTree, MergeError, Source, Values, limit_fan_in};
use crate::output::Output;
use crate::segment::{
    MapOutput, SegmentData, SegmentError, SegmentHeader, SegmentId, SegmentOrder, SegmentReader,
    SegmentsWriter, WriteSetting,
};
use crate::value::Value;
use std::sync::Arc;

pub(super) fn run<K: Key, V: Value, R: Reducer<Key = K, Value = V>>(
    plan: &MapReducePlan<K, V>,
    reducer: R,
    erased: ErasedReduce<'_>,
) -> Result<PartDone, TaskFailure> {
    let ErasedReduce { run, segments, budget, mut output } = erased;
    output.watch(run.progress.clone());
    let segments: Vec<SegmentData> = segments.into_iter().filter(|data| !data.is_empty()).collect();
    let headers = check_headers(&segments, &run, plan.combine.is_some())?;
    let counters = Counters::default();
    let meter = Meter::new(run.progress.clone());
    let mut groups = Groups { reducer, output, meter };
    groups.setup(&run.context(&counters))?;
    let setting = WriteSetting { order: SegmentOrder::Key, ..write_setting(&run, false) };
    let partition = run.attempt.task.index;
    match &plan.combine {
        Some(combine) => {
            let by_hash = plan.partition.is_none() && plan.order == Order::EachPart;
            let shares = if by_hash { run.settings.partitions } else { 1 };
            let most = headers.iter().map(|header| header.records).max().unwrap_or(0);
            let sum: u64 = headers.iter().map(|header| header.records).sum();
            // Twice the largest: a table that doubles when it is full then never fills up ahead of itself.
            let keys = sum.min(2 * most) as usize;
            let memory = run.settings.recycler.take::<TableMemory<V>>().unwrap_or_default();
            let limit_bytes = run.settings.merge_bytes;
            let table = Combining::for_partition(combine.make(), limit_bytes, keys, shares, memory);
            let aggregate = Aggregate { combining: table, runs: Vec::new(), setting, partition };
            aggregate.run(segments, combine, &run, budget, &mut groups)?;
        }
        None => {
            // A merge needs none of it; together they would be too much.
            drop(run.settings.recycler.take::<SortMemory>());
            let segments = limit_fan_in(segments, run.settings.fan_in(), partition, &setting, run.progress)?;
            groups.reduce_merged(LoserTree::open(segments)?, plan.group)?;
        }
    }
    let sum = groups.finish()?;
    let stats = TaskStats { counters: counters.values(), local_bytes: 0 };
    Ok(PartDone { bytes: sum.bytes, records: sum.records, crc32c: sum.crc32c, stats })
}

/// Checks that the segments are of this job and partition and in map order, each map once.
fn check_headers(
    segments: &[SegmentData],
    run: &Run<'_>,
    combines: bool,
) -> Result<Vec<SegmentHeader>, TaskFailure> {
    let mut headers: Vec<SegmentHeader> = Vec::with_capacity(segments.len());
    for data in segments {
        let reader = SegmentReader::open(data.clone()).map_err(|source| MergeError { map: None, source })?;
        let header = *reader.header();
        let id = header.id;
        let fail = |source| Err(TaskFailure::Corrupt { map: Some(id.map), source });
        let expected = SegmentId { job: run.attempt.task.job, partition: run.attempt.task.index, ..id };
        if id != expected {
            return fail(SegmentError::Identity { expected, found: id });
        }
        if let Some(before) = headers.last().map(|header| header.id.map).filter(|before| id.map <= *before) {
            return fail(SegmentError::Sequence { before, found: id.map });
        }
        if header.order == SegmentOrder::Hash && !combines {
            return fail(SegmentError::Order { id });
        }
        headers.push(header);
    }
    Ok(headers)
}

/// A reducer and what it writes to.
struct Groups<R> {
    reducer: R,
    output: Output,
    meter: Meter,
}

impl<R: Reducer> Groups<R> {
    fn setup(&mut self, context: &TaskContext) -> Result<(), TaskFailure> {
        Ok(self.reducer.setup(context, &mut self.output)?)
    }

    /// Calls the reducer for one group. Answers whether the merge stands at another one.
    #[inline]
    fn reduce(
        &mut self,
        key: &[u8],
        source: Source<'_, R::Value>,
        group: Option<GroupPrefix>,
    ) -> Result<bool, TaskFailure> {
        let view = R::Key::decode(key)?;
        let mut values = Values::new(source, key, group, &mut self.meter);
        let result = self.reducer.reduce(view, &mut values, &mut self.output);
        // What failed below the reducer is the cause, whatever it made of it.
        if let Some(failure) = values.failed() {
            return Err(failure);
        }
        result?;
        let more = values.finish()?;
        self.output.check()?;
        Ok(more)
    }

    fn reduce_merged(&mut self, mut tree: LoserTree, group: Option<GroupPrefix>) -> Result<(), TaskFailure> {
        let mut more = tree.advance()?;
        let mut key = Vec::new();
        while more {
            key.clear();
            key.extend_from_slice(tree.key());
            let rank = tree.rank();
            more = self.reduce(&key, Source::Tree(&mut tree, rank), group)?;
        }
        Ok(())
    }

    fn reduce_one(&mut self, key: &[u8], value: R::Value) -> Result<(), TaskFailure> {
        self.reduce(key, Source::One(Some(value)), None).map(|_| ())
    }

    fn finish(mut self) -> Result<crate::output::OutputSum, TaskFailure> {
        self.reducer.finish(&mut self.output)?;
        self.output.finish()
    }
}

/// Totals of a partition: a table, and runs sorted by key where it was too small.
struct Aggregate<V: Value> {
    combining: Combining<V>,
    runs: Vec<SegmentData>,
    setting: WriteSetting,
    partition: u32,
}

impl<V: Value> Aggregate<V> {
    fn run<R: Reducer<Value = V>>(
        mut self,
        segments: Vec<SegmentData>,
        combine: &CombineFactory<V>,
        run: &Run<'_>,
        budget: &Budget,
        groups: &mut Groups<R>,
    ) -> Result<(), TaskFailure> {
        for data in segments {
            self.add_segment(data, run.progress, &mut groups.meter)?;
        }
        let table = self.combining.take();
        if self.runs.is_empty() {
            run.settings.recycler.keep(reduce_table(table, groups)?);
            return Ok(());
        }
        if 0 < table.len() {
            let writer = SegmentsWriter::in_memory(self.setting.clone(), budget, 0)?;
            self.write_run(table, writer, run.progress)?;
        }
        let runs =
            limit_fan_in(self.runs, run.settings.fan_in(), self.partition, &self.setting, run.progress)?;
        reduce_runs(runs, &mut *combine.make(), groups)
    }

    fn add_segment(
        &mut self,
        data: SegmentData,
        progress: &Arc<Progress>,
        meter: &mut Meter,
    ) -> Result<(), TaskFailure> {
        let mut reader = SegmentReader::open(data).map_err(|source| MergeError { map: None, source })?;
        let map = Some(reader.header().id.map);
        while reader.advance().map_err(|source| MergeError { map, source })? {
            meter.pair(reader.key().len() + reader.value().len())?;
            let value = V::own(V::decode(reader.value())?);
            if self.combining.push(reader.key(), reader.key_loaded(), value)
                && self.combining.settle()? == Room::Full
            {
                let table = self.combining.take();
                let writer = SegmentsWriter::on_disk(self.setting.clone())?;
                self.write_run(table, writer, progress)?;
            }
        }
        Ok(())
    }

    fn write_run(
        &mut self,
        table: Table<V>,
        mut writer: SegmentsWriter,
        progress: &Progress,
    ) -> Result<(), TaskFailure> {
        let sorted = table.into_sorted_by_key();
        let (mut buffer, mut encoded) = ([0; 16], Vec::new());
        for slot in sorted.iter() {
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

/// Reduces a whole table; its memory is left.
fn reduce_table<R: Reducer>(
    table: Table<R::Value>,
    groups: &mut Groups<R>,
) -> Result<TableMemory<R::Value>, TaskFailure> {
    let mut sorted = table.into_sorted_by_key();
    let mut buffer = [0; 16];
    let (slots, long) = sorted.take_slots();
    for Slot { key, value, .. } in slots {
        groups.reduce_one(key_bytes(long, key, &mut buffer), value)?;
    }
    Ok(sorted.into_memory())
}

fn reduce_runs<R: Reducer>(
    runs: Vec<SegmentData>,
    combiner: &mut dyn CombineRun<R::Value>,
    groups: &mut Groups<R>,
) -> Result<(), TaskFailure> {
    let own = |bytes: &[u8]| R::Value::decode(bytes).map(R::Value::own);
    let mut tree = LoserTree::open(runs)?;
    let mut more = tree.advance()?;
    let mut key = Vec::new();
    while more {
        key.clear();
        key.extend_from_slice(tree.key());
        let rank = tree.rank();
        let mut total = own(tree.value())?;
        more = tree.advance()?;
        while more && tree.stands_at(&key, rank) {
            combiner.fold(&mut total, own(tree.value())?);
            more = tree.advance()?;
        }
        groups.reduce_one(&key, total)?;
    }
    Ok(())
}
