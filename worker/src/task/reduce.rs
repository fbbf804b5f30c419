//! One reduce task: from the segments of a partition to a part.
//!
//! Segments of a job with a combiner are totalled in a table and sorted once; others are merged. Either way the
//! reducer sees keys in ascending order and values in (map, position) order. Between groups, and while the table is
//! filled, it can be suspended. Not here: fetching (`shuffle`), waiting (`hold`).

use super::map::write_setting;
use crate::api::{Counters, ErasedReduce, GroupPrefix, MapReducePlan, Order, Reducer, TaskContext};
use crate::attempt::{AttemptContext, Meter, PartDone, Progress, ReduceEnd, TaskFailure, TaskStats};
use crate::collect::table::{Slot, Sorted, Table, key_bytes};
use crate::collect::{CombineFactory, CombineRun, Combining, Room, SortMemory, TableMemory, pair_bytes_max};
use crate::key::Key;
use crate::key::hash::Packed;
use crate::merge::{FanIn, LoserTree, MergeError, Source, Values, limit_fan_in};
use crate::output::Output;
use crate::protocol::HandOver;
use crate::segment::{
    BLOCK_BYTES, FRAME_LENGTHS_BYTES_MAX, MapOutput, SegmentData, SegmentError, SegmentHeader, SegmentId,
    SegmentOrder, SegmentReader, SegmentsWriter, WriteError, WriteSetting,
};
use crate::value::Value;
use std::sync::Arc;

/// Most bytes of keys, counters' names and a reducer's state that are handed over. An attempt with more stays.
const STATE_BYTES_MAX: usize = 1 << 20;

/// Where an attempt stood that does not go on here; `None` once it is through.
type Stopped = Option<Box<HandOver>>;

pub(super) fn run<K: Key, V: Value, R: Reducer<Key = K, Value = V>>(
    plan: &MapReducePlan<K, V>,
    reducer: R,
    erased: ErasedReduce<'_>,
) -> Result<ReduceEnd, TaskFailure> {
    let ErasedReduce { context, segments, mut output, resume } = erased;
    output.watch(context.progress.clone());
    let segments: Vec<SegmentData> = segments.into_iter().filter(|data| !data.is_empty()).collect();
    let headers = {
        let _engine = context.progress.engine();
        check_headers(&segments, &context, plan.combine.is_some())?
    };
    let counters = Counters::default();
    let meter = Meter::new(context.progress.clone());
    let progress = context.progress.clone();
    let mut groups = Groups { reducer, output, meter, progress, counters, count: 0, last: None };
    groups.progress.keeps_in(context.budget);
    groups.begin(&TaskContext::of(&context, &groups.counters), resume)?;
    let setting = WriteSetting { order: SegmentOrder::Key, ..write_setting(&context, false) };
    let partition = context.attempt.task.index;
    let stopped = match &plan.combine {
        Some(combine) => {
            let by_hash = plan.partition.is_none() && plan.order == Order::EachPart;
            let shares = if by_hash { context.settings.partitions } else { 1 };
            let most = headers.iter().map(|header| header.records).max().unwrap_or(0);
            let sum = headers.iter().fold(0_u64, |sum, header| sum.saturating_add(header.records));
            // Twice the largest: a table that doubles when it is full then never fills up ahead of itself.
            let keys = sum.min(most.saturating_mul(2)) as usize;
            let memory = context.settings.recycler.take::<TableMemory<V>>().unwrap_or_default();
            let limit_bytes = context.settings.merge_bytes;
            let table = Combining::for_partition(combine.make(), limit_bytes, keys, shares, memory);
            let aggregate = Aggregate { combining: table, runs: Vec::new(), setting, partition };
            aggregate.run(segments, combine, &context, &mut groups)?
        }
        None => {
            // A merge needs none of it; together they would be too much.
            drop(context.settings.recycler.take::<SortMemory>());
            groups.progress.holds(2 * BLOCK_BYTES * segments.len().min(context.settings.fan_in()));
            let segments = limit_fan_in(segments, fan_in(&context), partition, &setting, context.progress)?;
            groups.progress.holds(buffer_bytes(&segments));
            let tree = {
                let _engine = context.progress.engine();
                LoserTree::open(segments)?
            };
            groups.reduce_merged(tree, plan.group)?
        }
    };
    match stopped {
        Some(state) => Ok(ReduceEnd::HandedOver(state)),
        None => groups.finish().map(ReduceEnd::Part),
    }
}

/// Checks that the segments are of this job and partition and in map order, each map once.
fn check_headers(
    segments: &[SegmentData],
    context: &AttemptContext<'_>,
    combines: bool,
) -> Result<Vec<SegmentHeader>, TaskFailure> {
    let mut headers: Vec<SegmentHeader> = Vec::with_capacity(segments.len());
    // A block is full with the first pair that makes it so.
    let limit = pair_bytes_max(context.settings.merge_bytes);
    let block_max = limit + BLOCK_BYTES + FRAME_LENGTHS_BYTES_MAX;
    for data in segments {
        let reader = SegmentReader::open(data.clone()).map_err(|source| MergeError { map: None, source })?;
        let header = *reader.header();
        let id = header.id;
        let fail = |source| Err(TaskFailure::Corrupt { map: Some(id.map), source });
        let expected =
            SegmentId { job: context.attempt.task.job, partition: context.attempt.task.index, ..id };
        if id != expected {
            return fail(SegmentError::Identity { expected, found: id });
        }
        if let Some(before) = headers.last().map(|header| header.id.map).filter(|before| id.map <= *before) {
            return fail(SegmentError::Sequence { before, found: id.map });
        }
        if header.order == SegmentOrder::Hash && !combines {
            return fail(SegmentError::Order { id });
        }
        let length = header.block_max as usize;
        if block_max < length && matches!(data, SegmentData::File { .. }) {
            // In memory it lies in the worker's budget, and is read where it is.
            return Err(WriteError::PairTooLong { length, limit }.into());
        }
        headers.push(header);
    }
    Ok(headers)
}

fn fan_in(context: &AttemptContext<'_>) -> FanIn {
    FanIn { segments_max: context.settings.fan_in(), buffers_bytes: context.settings.merge_bytes }
}

/// What it takes to merge these: two blocks for each file.
fn buffer_bytes(segments: &[SegmentData]) -> usize {
    let files = segments.iter().filter(|data| matches!(data, SegmentData::File { .. })).count();
    2 * BLOCK_BYTES * files
}

/// A reducer and what it writes to.
struct Groups<R> {
    reducer: R,
    output: Output,
    meter: Meter,
    progress: Arc<Progress>,
    counters: Counters,
    /// Groups that are in the output.
    count: u64,
    /// First key of the last group that an earlier attempt has reduced: up to there groups are skipped.
    last: Option<Vec<u8>>,
}

impl<R: Reducer> Groups<R> {
    fn begin(&mut self, context: &TaskContext, resume: Option<&HandOver>) -> Result<(), TaskFailure> {
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

    /// A place between two groups, of which `last` is the first key of the one before.
    #[inline]
    fn border(&mut self, last: Option<&[u8]>) -> Result<Stopped, TaskFailure> {
        if self.progress.is_asked() { self.stop(last) } else { Ok(None) }
    }

    #[cold]
    #[inline(never)]
    fn stop(&mut self, last: Option<&[u8]>) -> Result<Stopped, TaskFailure> {
        let progress = self.progress.clone();
        progress.stop_at_border(|| self.save(last))
    }

    /// A place before the first group that is left, in which nothing has been reduced yet.
    #[inline]
    fn border_before_all(&mut self, holds_bytes: impl FnOnce() -> usize) -> Result<Stopped, TaskFailure> {
        if !self.progress.is_asked() {
            return Ok(None);
        }
        self.progress.holds(holds_bytes());
        let last = self.last.clone();
        self.stop(last.as_deref())
    }

    /// Writes down where it stands; `None` if the reducer, or what it has become, cannot move.
    fn save(&mut self, last: Option<&[u8]>) -> Result<Stopped, TaskFailure> {
        let Some(reducer) = self.reducer.save() else { return Ok(None) };
        let counters = self.counters.values();
        let names: usize = counters.iter().map(|(name, _)| name.len() + size_of::<u64>()).sum();
        if STATE_BYTES_MAX < reducer.len() + last.map_or(0, <[u8]>::len) + names {
            return Ok(None);
        }
        let sum = self.output.write_out()?;
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
        self.count += 1;
        Ok(more)
    }

    fn reduce_merged(
        &mut self,
        mut tree: LoserTree,
        group: Option<GroupPrefix>,
    ) -> Result<Stopped, TaskFailure> {
        let mut more = {
            // The first block of each segment is read here.
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
            more = self.reduce(&key, Source::Tree(&mut tree, rank), group)?;
        }
        Ok(None)
    }

    fn reduce_one(&mut self, key: &[u8], value: R::Value) -> Result<(), TaskFailure> {
        self.reduce(key, Source::One(Some(value)), None).map(|_| ())
    }

    fn finish(mut self) -> Result<PartDone, TaskFailure> {
        self.reducer.finish(&mut self.output)?;
        let sum = self.output.finish()?;
        let stats = TaskStats { counters: self.counters.values(), local_bytes: 0 };
        Ok(PartDone { bytes: sum.bytes, records: sum.records, crc32c: sum.crc32c, stats })
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
        context: &AttemptContext<'_>,
        groups: &mut Groups<R>,
    ) -> Result<Stopped, TaskFailure> {
        for data in segments {
            if let Some(state) = self.add_segment(data, context.progress, groups)? {
                return Ok(Some(state));
            }
        }
        let table = self.combining.take();
        if self.runs.is_empty() {
            let (memory, stopped) = reduce_table(table, groups)?;
            context.settings.recycler.keep(memory);
            return Ok(stopped);
        }
        if 0 < table.len() {
            let writer = SegmentsWriter::in_memory(self.setting.clone(), context.budget, 0)?;
            self.write_run(table, writer, context.progress)?;
        }
        let runs = limit_fan_in(self.runs, fan_in(context), self.partition, &self.setting, context.progress)?;
        reduce_runs(runs, &mut *combine.make(), groups)
    }

    fn add_segment<R: Reducer<Value = V>>(
        &mut self,
        data: SegmentData,
        progress: &Arc<Progress>,
        groups: &mut Groups<R>,
    ) -> Result<Stopped, TaskFailure> {
        let mut reader = SegmentReader::open(data).map_err(|source| MergeError { map: None, source })?;
        let map = Some(reader.header().id.map);
        while reader.advance().map_err(|source| MergeError { map, source })? {
            groups.meter.pair(reader.key().len() + reader.value().len())?;
            if let Some(state) = groups.border_before_all(|| self.combining.bytes())? {
                return Ok(Some(state));
            }
            let value = V::own(V::decode(reader.value())?);
            if self.combining.push(reader.key(), reader.key_loaded(), value)
                && self.combining.settle()? == Room::Full
            {
                let table = self.combining.take();
                let writer = SegmentsWriter::on_disk(self.setting.clone())?;
                self.write_run(table, writer, progress)?;
            }
        }
        Ok(None)
    }

    fn write_run(
        &mut self,
        table: Table<V>,
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

/// Sorting calls no user code.
fn sorted_by_key<V>(table: Table<V>, progress: &Arc<Progress>) -> Sorted<V> {
    let _engine = progress.engine();
    table.into_sorted_by_key()
}

/// Reduces a whole table; its memory is left.
fn reduce_table<R: Reducer>(
    table: Table<R::Value>,
    groups: &mut Groups<R>,
) -> Result<(TableMemory<R::Value>, Stopped), TaskFailure> {
    groups.progress.holds(table.bytes());
    let mut sorted = sorted_by_key(table, &groups.progress);
    let stopped = {
        let (slots, long) = sorted.take_slots();
        reduce_slots(slots, long, groups)?
    };
    Ok((sorted.into_memory(), stopped))
}

fn reduce_slots<R: Reducer>(
    slots: impl Iterator<Item = Slot<R::Value>>,
    long: &[u8],
    groups: &mut Groups<R>,
) -> Result<Stopped, TaskFailure> {
    let (mut buffer, mut buffer_before) = ([0; 16], [0; 16]);
    let last = groups.last.take();
    let mut before: Option<Packed> = None;
    for Slot { key, value, .. } in slots {
        let bytes = key_bytes(long, key, &mut buffer);
        if last.as_deref().is_some_and(|last| before.is_none() && bytes <= last) {
            continue;
        }
        if groups.progress.is_asked() {
            let before = before.map(|key| key_bytes(long, key, &mut buffer_before)).or(last.as_deref());
            if let Some(state) = groups.stop(before)? {
                return Ok(Some(state));
            }
        }
        groups.reduce_one(bytes, value)?;
        before = Some(key);
    }
    Ok(None)
}

fn reduce_runs<R: Reducer>(
    runs: Vec<SegmentData>,
    combiner: &mut dyn CombineRun<R::Value>,
    groups: &mut Groups<R>,
) -> Result<Stopped, TaskFailure> {
    let own = |bytes: &[u8]| R::Value::decode(bytes).map(R::Value::own);
    groups.progress.holds(buffer_bytes(&runs));
    let mut tree = LoserTree::open(runs)?;
    let mut more = tree.advance()?;
    let mut key = groups.last.take().unwrap_or_default();
    let skips = 0 < groups.count;
    while skips && more && tree.key() <= &*key {
        groups.progress.step()?;
        more = tree.advance()?;
    }
    while more {
        if let Some(state) = groups.border((0 < groups.count).then_some(&key))? {
            return Ok(Some(state));
        }
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
    Ok(None)
}
