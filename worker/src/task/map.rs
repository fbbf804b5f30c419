//! Map task: from blocks of input to segments, or to a part if the job has no reduce.

use crate::api::{
    Counters, ErasedMap, InputRange, JobFunctions, JobPlan, KeyOrder, MapReducePlan, TaskContext,
};
use crate::attempt::{AttemptContext, Division, MapDone, PartDone, Progress, TaskFailure};
use crate::collect::{
    Combining, EmitTarget, Emitter, EmitterSetting, KeyRanges, Partitioning, SortMemory, Sorting,
    TableMemory, map_story, segment_order,
};
use crate::input::{Block, Blocks, InputError, RecordFormat, SplitBlocks};
use crate::key::Key;
use crate::narration::{RecordNarrator, StoryRecord, Told};
use crate::output::Output;
use crate::segment::WriteSetting;
use crate::text::count_plain_rows;
use crate::value::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn run<K: Key, V: Value>(
    plan: &MapReducePlan<K, V>,
    erased: ErasedMap<'_>,
) -> Result<MapDone, TaskFailure> {
    let ErasedMap { context, input, input_bytes, stretch, blocks } = erased;
    let settings = context.settings;
    let target = match &plan.combine {
        Some(combine) => {
            let memory = settings.recycler.take::<TableMemory<V>>().unwrap_or_default();
            let limit_bytes = settings.collector_bytes;
            EmitTarget::Combine(Combining::new(combine.make(), limit_bytes, input_bytes, memory))
        }
        None => {
            let memory = settings.recycler.take::<SortMemory>().unwrap_or_default();
            EmitTarget::Sort(Sorting::new(settings.collector_bytes, memory))
        }
    };
    let setting = EmitterSetting {
        write: write_setting(&context, plan.combine.is_some()),
        fan_in_max: settings.fan_in(),
        progress: context.progress.clone(),
        recycler: settings.recycler.clone(),
        kept_in_files: settings.kept_in_files.clone(),
    };
    let narrates = settings.narration_of(context.attempt).is_some();
    let target = if narrates { target.narrated::<K>() } else { target };
    let counters = Counters::default();
    let mut emitter = Emitter::new(target, partitioning(plan, &settings.cuts), setting);
    let mapper = plan.mappers.get(input).ok_or_else(|| no_such_input(input, plan.mappers.len()))?;
    let task = TaskContext::from_attempt(&context, &counters).reading(stretch);
    mapper().run(&task, blocks, &mut emitter)?;
    emitter.counts().move_to(&counters);
    let narrator = emitter.end_narration();
    let output = emitter.finish(context.budget)?;
    context.progress.bytes_out.store(output.bytes(), Relaxed);
    if output.is_on_disk() {
        context.progress.spilled(output.bytes());
    }
    let kinds = (plan.combine.is_some(), settings.partitions);
    let told =
        |narrator| map_story(narrator, &partitioning(plan, &settings.cuts), &output, kinds).map(Box::new);
    let story = narrator.map(told).transpose()?;
    Ok(MapDone { output, stats: counters.stats(), story })
}

pub(super) fn no_such_input(input: usize, inputs: usize) -> TaskFailure {
    TaskFailure::Config { message: format!("the plan has {inputs} inputs, none of number {input}") }
}

/// Returns the settings for writing an attempt's segments and runs. A reduce attempt writes runs under its partition
/// number.
pub(super) fn write_setting(context: &AttemptContext<'_>, combines: bool) -> WriteSetting {
    let settings = context.settings;
    WriteSetting {
        job: settings.job,
        map: context.attempt.task.index,
        epoch: context.attempt.epoch,
        partitions: settings.partitions,
        order: segment_order(combines),
        spill: settings.spill.clone(),
        compression: settings.compression,
    }
}

/// Returns the partitioning of the plan.
pub(super) fn partitioning<K: Key, V: Value>(
    plan: &MapReducePlan<K, V>,
    cuts: &Arc<Vec<Vec<u8>>>,
) -> Partitioning<K> {
    match (&plan.partition, plan.order, plan.group) {
        (Some(partitioner), _, _) => Partitioning::User(partitioner.clone()),
        (None, KeyOrder::Total, _) => Partitioning::Ranges(KeyRanges::new(cuts.clone())),
        (None, KeyOrder::EachPart, Some(prefix)) => Partitioning::GroupHash(prefix),
        (None, KeyOrder::EachPart, None) => Partitioning::Hash,
    }
}

/// Input of a map of a map-only job.
pub(super) struct MapOnlyInput<'a> {
    /// Index of the input in the plan.
    pub input: usize,
    /// First range of the input.
    pub stretch: Option<InputRange>,
    pub blocks: &'a mut dyn Blocks,
}

pub(super) fn run_map_only(
    plan: &JobPlan,
    context: &AttemptContext<'_>,
    reads: MapOnlyInput<'_>,
    mut output: Output,
) -> Result<PartDone, TaskFailure> {
    let MapOnlyInput { input, stretch, blocks } = reads;
    let JobFunctions::MapOnly(mappers) = &plan.work else {
        return Err(TaskFailure::Config { message: "a job with a reduce cannot run as map-only".into() });
    };
    let mapper = mappers.get(input).ok_or_else(|| no_such_input(input, mappers.len()))?;
    let counters = Counters::default();
    output.watch(context.progress.clone());
    let task = TaskContext::from_attempt(context, &counters).reading(stretch);
    mapper().run(&task, blocks, &mut output)?;
    output.move_counts(&counters);
    output.finish_part(counters.stats())
}

/// Blocks of a split that are counted as they are read, and of which the last are given up if the attempt is ordered to.
pub(super) struct WatchedBlocks<'a> {
    blocks: SplitBlocks<'a>,
    progress: Arc<Progress>,
    may_divide: bool,
    /// Recorder of their records, if requested.
    narrator: Option<RecordNarrator>,
}

impl<'a> WatchedBlocks<'a> {
    pub fn new(blocks: SplitBlocks<'a>, progress: &Arc<Progress>, narrates: bool) -> Self {
        let narrator = narrates.then(RecordNarrator::default);
        Self { blocks, progress: progress.clone(), may_divide: false, narrator }
    }

    /// Allows the attempt to give up the end of its split. A story of a map has the whole split.
    pub fn divisible(self, may_divide: bool) -> Self {
        Self { may_divide: may_divide && self.narrator.is_none(), ..self }
    }

    /// Returns the remaining blocks and the recorded records.
    pub fn into_inner(self) -> (SplitBlocks<'a>, Told<StoryRecord>) {
        (self.blocks, self.narrator.map(|narrator| narrator.records).unwrap_or_default())
    }
}

impl Blocks for WatchedBlocks<'_> {
    fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError> {
        // A slow disk or network is not the fault of user code.
        let _engine = self.progress.engine();
        if let Some(part) = self.progress.part_to_keep().filter(|_| self.blocks.has_started()) {
            let kept = if self.may_divide { self.blocks.divide(part) } else { None };
            self.progress.divided(kept.map(Division::Bytes));
        }
        let mut block = self.blocks.next_block()?;
        if let Some(block) = &mut block {
            self.progress.bytes_in.fetch_add(block.bytes().len() as u64, Relaxed);
            self.progress.records_in.fetch_add(count(block), Relaxed);
            if let Some(narrator) = &mut self.narrator {
                block.records().for_each(|record| narrator.record(record.offset(), record.bytes()));
            }
        }
        Ok(block)
    }
}

/// Counts the records of a block. For lines this is a fast count of line ends, far cheaper than the mapper; the same
/// applies to tables without quotes.
fn count(block: &mut Block<'_>) -> u64 {
    let bytes = block.bytes();
    match block.format() {
        RecordFormat::Lines => {
            let ends = memchr::memchr_iter(b'\n', bytes).count() as u64;
            ends + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
        }
        RecordFormat::WholeFile => u64::from(!bytes.is_empty()),
        RecordFormat::Fixed { length } => bytes.len() as u64 / u64::from(length.max(1)),
        RecordFormat::Csv { .. } => {
            let plain = count_plain_rows(bytes);
            block.plain = Some(plain.is_some());
            plain.unwrap_or_else(|| block.records().count() as u64)
        }
    }
}
