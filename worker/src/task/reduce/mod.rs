//! Reduce task: from the segments of a partition to a part.
//!
//! Segments of a job with a combiner are totalled in a table and sorted once; others are merged. In both cases the
//! reducer gets keys in ascending order and values in (map, position) order. Between groups, and while the table is
//! filled, it can be suspended.

mod aggregate;
mod dividing;
mod groups;
mod slices;

use super::map::write_setting;
use crate::api::{Counters, ErasedReduce, KeyOrder, MapReducePlan, ReducePart, Reducer, TaskContext};
use crate::attempt::{AttemptContext, PartDone, ReadMeter, TaskFailure};
use crate::collect::{SortMemory, TableMemory, pair_bytes_max};
use crate::fault;
use crate::key::Key;
use crate::merge::{FanIn, LoserTree, MergeError, limit_fan_in};
use crate::narration::{ITEMS_MAX, PairWords, ReduceNarrator, ReduceStory, StorySegment};
use crate::segment::{
    BLOCK_BYTES, FRAME_LENGTHS_BYTES_MAX, SegmentData, SegmentError, SegmentHeader, SegmentId, SegmentOrder,
    SegmentReader, WriteError, WriteSetting,
};
use crate::value::Value;
use aggregate::Aggregate;
use dividing::ReduceEnd;
use groups::KeyGroups;
use slices::{HashSlices, SliceRoom};
use std::collections::BTreeSet;

pub(super) fn run<K: Key, V: Value, R: Reducer<Key = K, Value = V>>(
    plan: &MapReducePlan<K, V>,
    reducer: R,
    erased: ErasedReduce<'_>,
) -> Result<PartDone, TaskFailure> {
    let ErasedReduce { context, segments, mut output, part } = erased;
    let ReducePart { partition, bounds, may_divide } = part;
    output.watch(context.progress.clone());
    let segments: Vec<SegmentData> = segments.into_iter().filter(|data| !data.is_empty()).collect();
    let headers = {
        let _engine = context.progress.engine();
        check_headers(&segments, &context, partition, plan.combine.is_some())?
    };
    let counters = Counters::default();
    let mut meter = ReadMeter::new(context.progress.clone());
    let narration = context.settings.narration_of(context.attempt);
    meter.narrator = narration.map(|_| narrator(plan, &segments, &headers));
    let progress = context.progress.clone();
    let mut groups = KeyGroups { reducer, output, meter, progress, counters };
    groups.progress.keeps_in(context.budget);
    groups.start(&TaskContext::from_attempt(&context, &groups.counters).of_partition(partition))?;
    let setting = WriteSetting { map: partition, order: SegmentOrder::Key, ..write_setting(&context, false) };
    match &plan.combine {
        Some(_) if !bounds.are_all() => {
            let message = "a reduce with a combiner is never divided, and cannot reduce some of its keys";
            return Err(TaskFailure::Config { message: message.to_owned() });
        }
        Some(combine) => {
            let by_hash = plan.partition.is_none() && plan.order == KeyOrder::EachPart;
            let share = if by_hash { (partition, context.settings.partitions) } else { (0, 1) };
            let room = SliceRoom { fan_in: fan_in(&context), share };
            let slices = HashSlices::plan::<V>(&headers, &segments, room)?;
            let memory = context.settings.recycler.take::<TableMemory<V>>().unwrap_or_default();
            let table = slices.table(combine.make(), context.settings.merge_bytes, memory);
            let aggregate = Aggregate { combining: table, slices, runs: Vec::new(), setting, partition };
            aggregate.run(segments, combine, &context, &mut groups)?;
        }
        None => {
            // A merge does not need this memory; both together would be too much.
            drop(context.settings.recycler.take::<SortMemory>());
            fault::place("merge");
            groups.progress.holds(2 * BLOCK_BYTES * segments.len().min(context.settings.fan_in()));
            let within = (partition, &bounds);
            let segments = limit_fan_in(segments, fan_in(&context), within, &setting, context.progress)?;
            groups.progress.holds(buffer_bytes(&segments));
            let tree = {
                let _engine = context.progress.engine();
                LoserTree::open_within(segments, &bounds)?
            };
            let may_divide = may_divide && narration.is_none() && groups.reducer.groups_are_independent();
            groups.reduce_merged(tree, ReduceEnd { until: bounds.until, group: plan.group, may_divide })?;
        }
    }
    let narrator = groups.meter.narrator.take();
    let done = groups.finish()?;
    if let (Some(narration), Some(narrator)) = (narration, narrator) {
        let _engine = context.progress.engine();
        narration.write(context.attempt, &narrator.into_story());
    }
    Ok(done)
}

/// Returns the recorder of the pairs that a reduce of these segments reads.
fn narrator<K: Key, V: Value>(
    plan: &MapReducePlan<K, V>,
    segments: &[SegmentData],
    headers: &[SegmentHeader],
) -> Box<ReduceNarrator> {
    let told = |(data, header): (&SegmentData, &SegmentHeader)| StorySegment {
        map: header.id.map,
        records: header.records,
        bytes: data.len() as u64,
    };
    let story = ReduceStory {
        combines: plan.combine.is_some(),
        segments: segments.iter().zip(headers).take(ITEMS_MAX).map(told).collect(),
        ..ReduceStory::default()
    };
    Box::new(ReduceNarrator::new(PairWords { key: K::words, value: V::words }, story))
}

/// Checks that the segments are of this job and partition, and each of another map.
fn check_headers(
    segments: &[SegmentData],
    context: &AttemptContext<'_>,
    partition: u32,
    combines: bool,
) -> Result<Vec<SegmentHeader>, TaskFailure> {
    let mut headers: Vec<SegmentHeader> = Vec::with_capacity(segments.len());
    let mut maps = BTreeSet::new();
    // The pair that fills a block is still added to it.
    let limit = pair_bytes_max(context.settings.merge_bytes);
    let block_max = limit + BLOCK_BYTES + FRAME_LENGTHS_BYTES_MAX;
    for data in segments {
        let reader = SegmentReader::open(data.clone()).map_err(|source| MergeError { map: None, source })?;
        let header = *reader.header();
        let id = header.id;
        let fail = |source| Err(TaskFailure::Corrupt { map: Some(id.map), source });
        let expected = SegmentId { job: context.attempt.task.job, partition, ..id };
        if id != expected {
            return fail(SegmentError::Identity { expected, found: id });
        }
        if !maps.insert(id.map) {
            return fail(SegmentError::Twice { map: id.map });
        }
        if header.order == SegmentOrder::Hash && !combines {
            return fail(SegmentError::Order { id });
        }
        let length = header.block_max as usize;
        if block_max < length && matches!(data, SegmentData::File { .. }) {
            // A segment in memory is part of the worker's budget, and is read in place.
            return Err(WriteError::PairTooLong { length, limit }.into());
        }
        headers.push(header);
    }
    Ok(headers)
}

fn fan_in(context: &AttemptContext<'_>) -> FanIn {
    FanIn { segments_max: context.settings.fan_in(), buffers_bytes: context.settings.merge_bytes }
}

/// Returns the memory of a merge of these segments: two blocks for each file.
fn buffer_bytes(segments: &[SegmentData]) -> usize {
    let files = segments.iter().filter(|data| matches!(data, SegmentData::File { .. })).count();
    2 * BLOCK_BYTES * files
}
