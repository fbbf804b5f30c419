//! Environment of an attempt, apart from its input.

use super::{Progress, SideInputs};
use crate::budget::{Budget, KeptInFiles};
use crate::input::InputLimits;
use crate::narration::Narration;
use crate::recycle::Recycler;
use crate::segment::{BLOCK_BYTES, SpillCompression, SpillDirs};
use gristmill_scheduler::ids::{AttemptId, JobId};
use std::sync::Arc;

/// Environment of every attempt.
#[derive(Clone)]
pub struct AttemptContext<'a> {
    /// Id of the attempt.
    pub attempt: AttemptId,
    /// Side inputs of its job.
    pub side: Arc<SideInputs>,
    /// Settings shared by all tasks of its job on this worker.
    pub settings: &'a TaskSettings,
    /// Budget for memory that outlives the attempt, or is held while it is suspended.
    pub budget: &'a Budget,
    /// Progress of the attempt, and requests to it.
    pub progress: &'a Arc<Progress>,
}

/// Settings shared by all tasks of a job on a worker.
#[derive(Clone, Debug)]
pub struct TaskSettings {
    /// Job of the segments.
    pub job: JobId,
    /// Number of partitions; 0 if map-only.
    pub partitions: u32,
    /// For a total order: the first key of each partition except the first, ascending; may be fewer than needed. Empty
    /// otherwise.
    pub cuts: Arc<Vec<Vec<u8>>>,
    /// Limits of reading input.
    pub limits: InputLimits,
    /// Bytes that a map collects before it spills.
    pub collector_bytes: usize,
    /// Bytes that a reduce aggregates before it spills; also limits the buffers of a merge.
    pub merge_bytes: usize,
    /// Maximum files merged at once.
    pub fan_in_max: usize,
    /// Directories for runs and outputs that do not fit into memory.
    pub spill: SpillDirs,
    /// Compression of their blocks.
    pub compression: SpillCompression,
    /// Memory reused between tasks.
    pub recycler: Recycler,
    /// Input files that map outputs may refer to instead of copying pairs.
    pub kept_in_files: KeptInFiles,
    /// Recorder of the attempts' pairs, if they are requested.
    pub narration: Option<Narration>,
}

impl TaskSettings {
    /// Default maximum of files merged at once: with two buffers of a block each, 32 MiB.
    pub(crate) const FAN_IN_MAX: usize = 256;

    /// Creates default settings: 64 MiB to collect, 64 MiB to merge, LZ4 on disk.
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

    /// Returns the recorder of this attempt's pairs, if requested.
    pub(crate) fn narration_of(&self, attempt: AttemptId) -> Option<&Narration> {
        self.narration.as_ref().filter(|narration| narration.tells(attempt))
    }

    /// Returns settings for a task that ran out of memory before: it collects and merges in half the memory.
    #[must_use]
    pub(crate) fn in_less_memory(&self) -> Self {
        const PART: usize = 2;
        let (collector_bytes, merge_bytes) = (self.collector_bytes / PART, self.merge_bytes / PART);
        Self { collector_bytes, merge_bytes, ..self.clone() }
    }

    /// Returns the maximum files merged at once within `merge_bytes`: each needs a block, stored and unpacked, which is
    /// longer than usual if there are large pairs.
    pub(crate) fn fan_in(&self) -> usize {
        self.fan_in_max.min(self.merge_bytes / (2 * BLOCK_BYTES)).max(2)
    }
}
