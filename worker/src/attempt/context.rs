//! What an attempt is given, besides what it is to work on.

use super::{Progress, SideInputs};
use crate::budget::{Budget, KeptInFiles};
use crate::input::InputLimits;
use crate::narration::Narration;
use crate::recycle::Recycler;
use crate::segment::{BLOCK_BYTES, SpillCompression, SpillDirs};
use gristmill_scheduler::ids::{AttemptId, JobId};
use std::sync::Arc;

/// What every attempt is given.
#[derive(Clone)]
pub struct AttemptContext<'a> {
    /// Which one it is.
    pub attempt: AttemptId,
    /// The side inputs of its job.
    pub side: Arc<SideInputs>,
    /// What it has in common with all tasks of its job on this worker.
    pub settings: &'a TaskSettings,
    /// Grants memory to what outlives the attempt, or is held while it is suspended.
    pub budget: &'a Budget,
    /// How far it is, and what is wanted of it.
    pub progress: &'a Arc<Progress>,
}

/// What all tasks of a job on a worker have in common.
#[derive(Clone, Debug)]
pub struct TaskSettings {
    /// Whose segments these are.
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
    /// Input that map outputs may rely on instead of copying it.
    pub kept_in_files: KeptInFiles,
    /// Where attempts write down their pairs, if somebody wants to read them.
    pub narration: Option<Narration>,
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
            kept_in_files: KeptInFiles::none(),
            narration: None,
        }
    }

    /// Where this attempt writes down its pairs, if it is to.
    pub(crate) fn narration_of(&self, attempt: AttemptId) -> Option<&Narration> {
        self.narration.as_ref().filter(|narration| narration.tells(attempt))
    }

    /// The same for a task of which memory ran out before: it collects and merges in half of it.
    #[must_use]
    pub(crate) fn in_less_memory(&self) -> Self {
        const PART: usize = 2;
        let (collector_bytes, merge_bytes) = (self.collector_bytes / PART, self.merge_bytes / PART);
        Self { collector_bytes, merge_bytes, ..self.clone() }
    }

    /// Files that may be merged at once within `merge_bytes`: each needs a block, stored and unpacked, which are longer
    /// than usual where there are large pairs.
    pub(crate) fn fan_in(&self) -> usize {
        self.fan_in_max.min(self.merge_bytes / (2 * BLOCK_BYTES)).max(2)
    }
}
