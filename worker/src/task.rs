//! One attempt at a task, start to finish: blocking, on one thread, no async.
//!
//! This file is the border at which the types of keys and values are erased: outside there is one virtual call
//! per task, inside everything is monomorphic. Not here: which attempt runs where (the agent and the master),
//! catching panics (the slot), and publishing parts (`commit`).

mod failure;
mod hold;
mod map;
mod pace;
mod progress;
mod reduce;
mod sample;
#[cfg(test)]
mod tests;

pub use failure::{Fault, TaskFailure};
pub use hold::Parking;
pub(crate) use progress::Meter;
pub use progress::Progress;
pub use sample::{KeySample, SAMPLE_KEYS_MAX, cut_points};

use crate::api::{
    Counters, GroupPrefix, JobPlan, MapReducePlan, Order, Reducer, TaskContext, TaskError, TaskResult, Work,
};
use crate::budget::Budget;
use crate::input::{Blocks, FileAccess, InputLimits, SideInputs, Split, SplitBlocks, open_split};
use crate::key::Key;
use crate::output::Output;
use crate::protocol::HandOver;
use crate::recycle::Recycler;
use crate::segment::{BLOCK_BYTES, MapOutput, SegmentData, SpillCompression, SpillDirs};
use crate::value::Value;
use gristmill_scheduler::ids::{AttemptId, JobId};
use std::sync::Arc;

/// What all tasks of a job on a worker have in common.
#[derive(Clone, Debug)]
pub struct TaskSettings {
    /// The job.
    pub job: JobId,
    /// Number of partitions; 0 if map-only.
    pub partitions: u32,
    /// For a total order: the first key of each partition but the first, ascending; may be fewer than needed.
    /// Empty otherwise.
    pub cuts: Arc<Vec<Vec<u8>>>,
    /// Limits of reading input.
    pub limits: InputLimits,
    /// Bytes a map collects before it spills.
    pub collector_bytes: usize,
    /// Bytes a reduce aggregates before it spills; also bounds the buffers of a merge.
    pub merge_bytes: usize,
    /// Files that are merged at once.
    pub fan_in_max: usize,
    /// Folders for runs and outputs that do not fit.
    pub spill: SpillDirs,
    /// How their blocks are compressed.
    pub compression: SpillCompression,
    /// Memory that tasks hand on.
    pub recycler: Recycler,
    /// Bytes of input that map outputs may rely on to stay near, in the page cache, instead of copying them.
    pub kept_in_files: Budget,
}

impl TaskSettings {
    /// Files that are merged at once by default: with two buffers of a block each, 32 MiB.
    pub const FAN_IN_MAX: usize = 256;

    /// Defaults: 64 MiB to collect, 64 MiB to merge, LZ4 on disk.
    #[must_use]
    pub fn new(job: JobId, partitions: u32, spill: SpillDirs) -> Self {
        Self {
            job,
            partitions,
            cuts: Arc::default(),
            limits: InputLimits::default(),
            collector_bytes: 64 << 20,
            merge_bytes: 64 << 20,
            fan_in_max: Self::FAN_IN_MAX,
            spill,
            compression: SpillCompression::default(),
            recycler: Recycler::default(),
            kept_in_files: Budget::new(0),
        }
    }

    /// Files that may be merged at once within `merge_bytes`: each needs a block, stored and unpacked, which are longer
    /// than usual where there are large pairs.
    fn fan_in(&self) -> usize {
        self.fan_in_max.min(self.merge_bytes / (2 * BLOCK_BYTES)).max(2)
    }
}

/// What is known of an attempt when it has ended well, besides its [`Progress`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskStats {
    /// Counters of user code, by name.
    pub counters: Vec<(String, u64)>,
    /// Bytes of input that lie on this machine; the rest came from another process.
    pub local_bytes: u64,
}

/// Counts bytes behind the last member of gzip files: they are no data, but the user should know of them.
pub const LEFT_OUT_COUNTER: &str = "bytes behind gzip data, left out";

impl TaskStats {
    fn note_input(&mut self, read: &SplitBlocks<'_>) {
        self.local_bytes = read.local_bytes();
        if 0 < read.left_out() {
            self.counters.push((LEFT_OUT_COUNTER.to_owned(), read.left_out()));
        }
    }
}

/// A finished map.
#[derive(Debug)]
pub struct MapDone {
    /// Its segments.
    pub output: MapOutput,
    /// What else is known.
    pub stats: TaskStats,
}

/// A finished reduce, or a finished map of a map-only job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartDone {
    /// Bytes of the part.
    pub bytes: u64,
    /// Records of the part.
    pub records: u64,
    /// CRC-32C of the part.
    pub crc32c: u32,
    /// What else is known.
    pub stats: TaskStats,
}

/// How a reduce attempt ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReduceEnd {
    /// Its part is built.
    Part(PartDone),
    /// It was suspended and has written down where it stands; what it wrote so far is in its output.
    HandedOver(Box<HandOver>),
}

/// What every attempt gets.
pub(crate) struct Run<'a> {
    pub attempt: AttemptId,
    pub side: Arc<SideInputs>,
    pub settings: &'a TaskSettings,
    pub progress: &'a Arc<Progress>,
}

impl Run<'_> {
    fn context(&self, counters: &Counters) -> TaskContext {
        let (task, partitions) = (self.attempt.task, self.settings.partitions);
        TaskContext::new(task, partitions, counters.clone(), self.side.clone()).watched(self.progress)
    }
}

/// The functions of a job with a reduce, its types erased.
pub trait MapReduceWork: Send + Sync {
    /// # Errors
    /// Settings that exclude each other.
    fn validate(&self) -> TaskResult;

    /// Bytes of a key by which it is grouped, if not all.
    fn group(&self) -> Option<GroupPrefix>;

    #[doc(hidden)]
    fn run_map(&self, erased: ErasedMap<'_>) -> Result<MapDone, TaskFailure>;

    #[doc(hidden)]
    fn run_reduce(&self, erased: ErasedReduce<'_>) -> Result<ReduceEnd, TaskFailure>;

    #[doc(hidden)]
    fn sample(&self, erased: ErasedSample<'_>) -> Result<KeySample, TaskFailure>;
}

/// What a map needs, on its way through [`MapReduceWork`].
#[doc(hidden)]
pub struct ErasedMap<'a> {
    run: Run<'a>,
    input: usize,
    /// Bytes of the split.
    input_bytes: u64,
    blocks: &'a mut dyn Blocks,
    budget: &'a Budget,
}

/// What a reduce needs, on its way through [`MapReduceWork`].
#[doc(hidden)]
pub struct ErasedReduce<'a> {
    run: Run<'a>,
    segments: Vec<SegmentData>,
    budget: &'a Budget,
    output: Output,
    resume: Option<&'a HandOver>,
}

/// What sampling needs, on its way through [`MapReduceWork`].
#[doc(hidden)]
pub struct ErasedSample<'a> {
    input: usize,
    blocks: &'a mut dyn Blocks,
    side: Arc<SideInputs>,
    sample: KeySample,
    spill: SpillDirs,
}

struct Typed<K: Key, V: Value, F> {
    plan: MapReducePlan<K, V>,
    reducer: F,
}

/// Erases the types of a plan.
pub(crate) fn erase<K, V, R, F>(plan: MapReducePlan<K, V>, reducer: F) -> Arc<dyn MapReduceWork>
where
    K: Key,
    V: Value,
    R: Reducer<Key = K, Value = V> + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    Arc::new(Typed { plan, reducer })
}

impl<K, V, R, F> MapReduceWork for Typed<K, V, F>
where
    K: Key,
    V: Value,
    R: Reducer<Key = K, Value = V> + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    fn validate(&self) -> TaskResult {
        let plan = &self.plan;
        if plan.combine.is_some() && plan.group.is_some() {
            return Err(TaskError::config(
                "a combiner cannot be used together with group_by_first: it would merge values before they are sorted",
            ));
        }
        if plan.partition.is_some() && plan.order == Order::Total {
            return Err(TaskError::config(
                "a partitioner cannot be used together with total_order, which chooses partitions itself",
            ));
        }
        Ok(())
    }

    fn group(&self) -> Option<GroupPrefix> {
        self.plan.group
    }

    fn run_map(&self, erased: ErasedMap<'_>) -> Result<MapDone, TaskFailure> {
        map::run(&self.plan, erased)
    }

    fn run_reduce(&self, erased: ErasedReduce<'_>) -> Result<ReduceEnd, TaskFailure> {
        reduce::run(&self.plan, (self.reducer)(), erased)
    }

    fn sample(&self, erased: ErasedSample<'_>) -> Result<KeySample, TaskFailure> {
        sample::run(&self.plan, erased)
    }
}

fn map_reduce(plan: &JobPlan) -> Result<&dyn MapReduceWork, TaskFailure> {
    match &plan.work {
        Work::MapReduce(work) => Ok(&**work),
        Work::MapOnly(_) => Err(TaskFailure::Config { message: "a map-only job has no reduce".into() }),
    }
}

/// Runs one map task of a job with a reduce.
///
/// The output is in memory if `budget` grants it, in a spill file otherwise.
///
/// # Errors
/// See [`TaskFailure`].
#[allow(
    clippy::too_many_arguments,
    reason = "one call site; what differs per attempt and what does not is told apart"
)]
pub fn run_map(
    plan: &JobPlan,
    attempt: AttemptId,
    split: &Split,
    access: &dyn FileAccess,
    side: Arc<SideInputs>,
    settings: &TaskSettings,
    budget: &Budget,
    progress: &Arc<Progress>,
) -> Result<MapDone, TaskFailure> {
    let mut blocks = map::Watched::new(open_split(split, access, &settings.limits), progress);
    let run = Run { attempt, side, settings, progress };
    let input_bytes = split.pieces.iter().map(|piece| piece.length).sum();
    let erased = ErasedMap { run, input: split.input as usize, input_bytes, blocks: &mut blocks, budget };
    let mut done = map_reduce(plan)?.run_map(erased)?;
    done.stats.note_input(&blocks.into_inner());
    Ok(done)
}

/// Runs one map task of a map-only job.
///
/// # Errors
/// See [`TaskFailure`].
#[allow(
    clippy::too_many_arguments,
    reason = "one call site; what differs per attempt and what does not is told apart"
)]
pub fn run_map_only(
    plan: &JobPlan,
    attempt: AttemptId,
    split: &Split,
    access: &dyn FileAccess,
    side: Arc<SideInputs>,
    settings: &TaskSettings,
    progress: &Arc<Progress>,
    output: Output,
) -> Result<PartDone, TaskFailure> {
    let mut blocks = map::Watched::new(open_split(split, access, &settings.limits), progress);
    let run = Run { attempt, side, settings, progress };
    let mut done = map::run_map_only(plan, &run, split.input as usize, &mut blocks, output)?;
    done.stats.note_input(&blocks.into_inner());
    Ok(done)
}

/// Runs one reduce task. `segments` are those of its partition in map index order, one for each map; empty ones
/// may be left out. With `resume` it goes on where an earlier attempt was handed over: `output` already has what that
/// one wrote, and all segments are there again.
///
/// # Errors
/// See [`TaskFailure`].
#[allow(
    clippy::too_many_arguments,
    reason = "one call site; what differs per attempt and what does not is told apart"
)]
pub fn run_reduce_in_steps(
    plan: &JobPlan,
    attempt: AttemptId,
    segments: Vec<SegmentData>,
    side: Arc<SideInputs>,
    settings: &TaskSettings,
    budget: &Budget,
    progress: &Arc<Progress>,
    output: Output,
    resume: Option<&HandOver>,
) -> Result<ReduceEnd, TaskFailure> {
    let run = Run { attempt, side, settings, progress };
    map_reduce(plan)?.run_reduce(ErasedReduce { run, segments, budget, output, resume })
}

/// Runs one reduce task from its beginning to its end, for those who never ask it to write down where it stands; see
/// [`run_reduce_in_steps`].
///
/// # Errors
/// See [`TaskFailure`]; [`TaskFailure::Cancelled`] if it was asked to do so all the same.
#[allow(
    clippy::too_many_arguments,
    reason = "one call site; what differs per attempt and what does not is told apart"
)]
pub fn run_reduce(
    plan: &JobPlan,
    attempt: AttemptId,
    segments: Vec<SegmentData>,
    side: Arc<SideInputs>,
    settings: &TaskSettings,
    budget: &Budget,
    progress: &Arc<Progress>,
    output: Output,
) -> Result<PartDone, TaskFailure> {
    match run_reduce_in_steps(plan, attempt, segments, side, settings, budget, progress, output, None)? {
        ReduceEnd::Part(done) => Ok(done),
        ReduceEnd::HandedOver(_) => Err(TaskFailure::Cancelled),
    }
}

/// Runs the mapper of input `input` over some blocks and adds the keys it emits to `sample`. Values and
/// counters are thrown away.
///
/// # Errors
/// See [`TaskFailure`].
pub fn sample_keys(
    plan: &JobPlan,
    input: usize,
    blocks: &mut dyn Blocks,
    side: Arc<SideInputs>,
    sample: KeySample,
) -> Result<KeySample, TaskFailure> {
    // Sampling never spills, so it does not matter where.
    let spill = SpillDirs::new(vec![std::env::temp_dir()]);
    map_reduce(plan)?.sample(ErasedSample { input, blocks, side, sample, spill })
}
