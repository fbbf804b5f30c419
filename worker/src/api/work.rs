//! Boundary at which the types of keys and values are erased: outside there is one virtual call per task, inside
//! everything is monomorphic. The implementation is in [`task`](crate::task).

use super::context::InputRange;
use crate::attempt::{AttemptContext, MapDone, PartDone, SideInputs, TaskFailure, TaskResult};
use crate::collect::KeySample;
use crate::input::Blocks;
use crate::key::GroupPrefix;
use crate::output::Output;
use crate::segment::{KeyBounds, SegmentData};
use std::sync::Arc;

/// Functions of a job with a reduce, with erased types.
pub(crate) trait MapReduceWork: Send + Sync {
    /// # Errors
    /// Settings that exclude each other.
    fn validate(&self) -> TaskResult;

    /// True if values of equal keys are merged before the shuffle.
    fn combines(&self) -> bool;

    /// True if running maps must not be divided.
    fn reads_whole_splits(&self) -> bool;

    /// Returns the prefix of a key by which it is grouped, if not the whole key.
    fn group(&self) -> Option<GroupPrefix>;

    #[doc(hidden)]
    fn run_map(&self, erased: ErasedMap<'_>) -> Result<MapDone, TaskFailure>;

    #[doc(hidden)]
    fn run_reduce(&self, erased: ErasedReduce<'_>) -> Result<PartDone, TaskFailure>;

    #[doc(hidden)]
    fn sample(&self, erased: ErasedSample<'_>) -> Result<KeySample, TaskFailure>;
}

/// Arguments of a map, passed through [`MapReduceWork`].
#[doc(hidden)]
pub(crate) struct ErasedMap<'a> {
    pub(crate) context: AttemptContext<'a>,
    pub(crate) input: usize,
    /// Bytes of the split.
    pub(crate) input_bytes: u64,
    /// First range of the split.
    pub(crate) stretch: Option<InputRange>,
    pub(crate) blocks: &'a mut dyn Blocks,
}

/// Arguments of a reduce, passed through [`MapReduceWork`].
#[doc(hidden)]
pub(crate) struct ErasedReduce<'a> {
    pub(crate) context: AttemptContext<'a>,
    pub(crate) segments: Vec<SegmentData>,
    pub(crate) output: Output,
    pub(crate) part: ReducePart,
}

/// Part of the keys of a job that a reduce attempt processes.
#[derive(Clone, Debug)]
pub struct ReducePart {
    /// Partition of the job. The task index of an attempt for a given-up part of a partition is greater than all
    /// partitions.
    pub partition: u32,
    /// Keys of the partition.
    pub bounds: KeyBounds,
    /// True if the attempt may give up keys while it runs. It does so only if its job allows it.
    pub may_divide: bool,
}

impl ReducePart {
    /// Creates the part that has all keys of a partition, and that is not divided.
    #[must_use]
    pub fn whole(partition: u32) -> Self {
        Self { partition, bounds: KeyBounds::default(), may_divide: false }
    }
}

/// Arguments of sampling, passed through [`MapReduceWork`].
#[doc(hidden)]
pub(crate) struct ErasedSample<'a> {
    pub(crate) input: usize,
    pub(crate) blocks: &'a mut dyn Blocks,
    pub(crate) side: Arc<SideInputs>,
    pub(crate) sample: KeySample,
}
