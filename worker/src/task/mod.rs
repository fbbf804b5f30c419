//! Execution of one attempt from start to end: blocking, on one thread, no async.
//!
//! The caller decides which attempt runs where, catches panics, and publishes parts.

mod erased;
mod map;
mod reduce;
mod sample;
#[cfg(test)]
mod tests;

pub use crate::api::ReducePart;
pub use crate::attempt::{
    AttemptContext, Fault, MapDone, Parking, PartDone, Progress, TaskFailure, TaskSettings, TaskStats,
};
pub use crate::collect::{KeySample, SAMPLE_KEYS_MAX};
pub use sample::cut_points;

use crate::api::{
    ErasedMap, ErasedReduce, ErasedSample, InputRange, JobFunctions, JobPlan, MapReduceWork, SideInputs,
};
use crate::attempt::kept_inputs;
use crate::input::{Blocks, FileAccess, Split, open_split};
use crate::narration::MapStory;
use crate::output::Output;
use crate::segment::SegmentData;
use std::sync::Arc;

fn map_reduce(plan: &JobPlan) -> Result<&dyn MapReduceWork, TaskFailure> {
    match &plan.work {
        JobFunctions::MapReduce(work) => Ok(&**work),
        JobFunctions::MapOnly(_) => {
            Err(TaskFailure::Config { message: "a map-only job has no reduce".into() })
        }
    }
}

/// Runs one map task of a job with a reduce.
///
/// The output is in memory if the budget grants it, in a spill file otherwise.
///
/// # Errors
/// See [`TaskFailure`].
pub fn run_map(
    plan: &JobPlan,
    context: AttemptContext<'_>,
    split: &Split,
    access: &dyn FileAccess,
) -> Result<MapDone, TaskFailure> {
    let progress = context.progress;
    let blocks = open_split(split, access, &context.settings.limits);
    progress.collect_bad_records(blocks.bad_records());
    let (attempt, narration) = (context.attempt, context.settings.narration_of(context.attempt));
    let side = context.side.clone();
    let work = map_reduce(plan)?;
    let blocks = map::WatchedBlocks::new(blocks, progress, narration.is_some());
    let mut blocks = blocks.divisible(!work.reads_whole_splits());
    let input_bytes = split.pieces.iter().map(|piece| piece.length).sum();
    let stretch = split.pieces.first().map(InputRange::from);
    let erased =
        ErasedMap { context, input: split.input as usize, input_bytes, stretch, blocks: &mut blocks };
    let mut done = work.run_map(erased)?;
    let (blocks, records) = blocks.into_inner();
    done.stats.note_input(&blocks);
    if let (Some(narration), Some(story)) = (narration, done.story.take()) {
        let _engine = progress.engine();
        let (input, sides) = (kept_inputs(split, records), side.kept_inputs());
        narration.write(attempt, &MapStory { input, sides, ..*story });
    }
    Ok(done)
}

/// Runs one map task of a map-only job.
///
/// # Errors
/// See [`TaskFailure`].
pub(crate) fn run_map_only(
    plan: &JobPlan,
    context: &AttemptContext<'_>,
    split: &Split,
    access: &dyn FileAccess,
    output: Output,
) -> Result<PartDone, TaskFailure> {
    let blocks = open_split(split, access, &context.settings.limits);
    context.progress.collect_bad_records(blocks.bad_records());
    let narration = context.settings.narration_of(context.attempt);
    let mut blocks = map::WatchedBlocks::new(blocks, context.progress, narration.is_some());
    let stretch = split.pieces.first().map(InputRange::from);
    let reads = map::MapOnlyInput { input: split.input as usize, stretch, blocks: &mut blocks };
    let mut done = map::run_map_only(plan, context, reads, output)?;
    let (blocks, records) = blocks.into_inner();
    done.stats.note_input(&blocks);
    if let Some(narration) = narration {
        let _engine = context.progress.engine();
        let (input, sides) = (kept_inputs(split, records), context.side.kept_inputs());
        let story = MapStory { input, sides, ..MapStory::default() };
        narration.write(context.attempt, &story);
    }
    Ok(done)
}

/// Runs one reduce task, for these keys. `segments` are those of its partition in the order of the input, one for each
/// map; empty ones may be left out. They have pairs before and after the keys too.
///
/// # Errors
/// See [`TaskFailure`].
pub fn run_reduce(
    plan: &JobPlan,
    context: AttemptContext<'_>,
    segments: Vec<SegmentData>,
    output: Output,
    part: ReducePart,
) -> Result<PartDone, TaskFailure> {
    map_reduce(plan)?.run_reduce(ErasedReduce { context, segments, output, part })
}

/// Runs the mapper of input `input` over some blocks and adds the keys it emits to `sample`. Values and counters are
/// discarded.
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
    map_reduce(plan)?.sample(ErasedSample { input, blocks, side, sample })
}
