//! Context of a task for user code: its number, counters, side inputs, input.
//!
//! Values that differ between two attempts of the same task ([`TaskContext::attempt`], [`TaskContext::directory`]) are
//! meant for additional resources, such as a process; output must not depend on them.

use crate::attempt::{AttemptContext, Counter, Counters, Progress, SideInputs, TaskError, TaskResult};
use crate::input::{Block, Piece, Record};
use crate::segment::SpillDirs;
use gristmill_scheduler::ids::{AttemptId, TaskId};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;

/// Argument of `setup`. Counters created here are summed over all tasks that succeed, so a retry never counts twice.
/// They are reported in the summary, in `_SUCCESS` and in the client's report.
pub struct TaskContext {
    task: TaskId,
    attempt: AttemptId,
    partitions: u32,
    counters: Counters,
    side: Arc<SideInputs>,
    /// Progress that is notified when the task waits for something other than its own code.
    progress: Option<Arc<Progress>>,
    spill: Option<SpillDirs>,
    stretch: Option<InputRange>,
    held_bytes_max: usize,
}

/// First range of a map's input, in one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputRange {
    /// Path as given by the user.
    pub path: String,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl From<&Piece> for InputRange {
    fn from(piece: &Piece) -> Self {
        Self { path: piece.name.to_text(), offset: piece.offset, length: piece.length }
    }
}

/// Reports to the observers of an attempt that it makes progress, for code that waits for something else, such as a
/// process, and has its own time limit for that.
#[derive(Clone, Debug, Default)]
pub struct SignOfLife(Option<Arc<Progress>>);

impl SignOfLife {
    /// Reports progress.
    pub fn show(&self) {
        if let Some(progress) = &self.0 {
            progress.lives();
        }
    }
}

impl TaskContext {
    /// Creates a context, for the engine (and for tests of mappers).
    #[must_use]
    pub fn new(task: TaskId, partitions: u32, counters: Counters, side: Arc<SideInputs>) -> Self {
        let attempt = task.attempt(0);
        let (progress, spill, stretch, held_bytes_max) = (None, None, None, usize::MAX);
        Self { task, attempt, partitions, counters, side, progress, spill, stretch, held_bytes_max }
    }

    /// Creates the context of an observed attempt.
    pub(crate) fn from_attempt(context: &AttemptContext<'_>, counters: &Counters) -> Self {
        let AttemptContext { attempt, side, settings, progress, .. } = context;
        let progress = Some(Arc::clone(progress));
        let counters = counters.clone();
        Self {
            task: attempt.task,
            attempt: *attempt,
            partitions: settings.partitions,
            counters,
            side: side.clone(),
            progress,
            spill: Some(settings.spill.clone()),
            stretch: None,
            held_bytes_max: usize::try_from(settings.limits.held_max).unwrap_or(usize::MAX),
        }
    }

    /// Sets the first range of its map's input.
    pub(crate) fn reading(self, stretch: Option<InputRange>) -> Self {
        Self { stretch, ..self }
    }

    /// Sets the partition of a reduce, which differs from the task index of an attempt for a part of the partition.
    pub(crate) fn of_partition(self, partition: u32) -> Self {
        Self { task: TaskId { index: partition, ..self.task }, ..self }
    }

    /// Returns the task: its kind and index, which is the partition of a reduce. The same for every attempt, and for all
    /// pieces of a reduce that is divided while it runs.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Returns the attempt, which is unique in its job. It must not affect the output.
    #[must_use]
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Returns a directory of this worker process, removed with it, for files of the task; `None` in tests of single
    /// functions. The task removes its own files.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.spill.as_ref().map(SpillDirs::first)
    }

    /// Returns the first range of a map's input; `None` for a reduce, and for a map without files.
    #[must_use]
    pub fn stretch(&self) -> Option<&InputRange> {
        self.stretch.as_ref()
    }

    /// Returns the bytes that a task may hold in addition to what is sorted and merged for it. With much more its
    /// worker is terminated.
    #[must_use]
    pub fn held_bytes_max(&self) -> usize {
        self.held_bytes_max
    }

    /// Returns the handle by which the task reports progress while it neither reads nor writes.
    #[must_use]
    pub fn life(&self) -> SignOfLife {
        SignOfLife(self.progress.clone())
    }

    /// Returns the number of partitions of the job; 0 if map-only.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// Returns the counter of this name; the same one for the same name. At most [`Counters::NAMES_MAX`] names.
    #[must_use]
    pub fn counter(&self, name: &str) -> Counter {
        self.counters.get(name)
    }

    /// Returns the value that `build` creates of the plan's side input `index` (in the order of `JobPlan::side` calls).
    /// It receives one block for each file, with all its records. It is built once on each worker for each job and then
    /// shared by its tasks.
    ///
    /// # Errors
    /// A side input that cannot be read, or the error of `build`.
    pub fn side<T: Any + Send + Sync>(
        &self,
        index: usize,
        build: impl FnOnce(&[Block<'_>]) -> TaskResult<T>,
    ) -> TaskResult<Arc<T>> {
        self.side_refusing(index, |files, _| build(files))
    }

    /// As [`TaskContext::side`]. `build` may skip a record with its second argument, if the job may skip bad records.
    ///
    /// # Errors
    /// As [`TaskContext::side`], and one more bad record than the job may skip.
    pub fn side_refusing<T: Any + Send + Sync>(
        &self,
        index: usize,
        build: impl FnOnce(&[Block<'_>], &dyn Fn(Record<'_>, TaskError) -> TaskResult) -> TaskResult<T>,
    ) -> TaskResult<Arc<T>> {
        let (built, bad) = self.side.get_watched(index, self.progress.as_ref(), build)?;
        // All tasks use it, and the first one reports the skipped records, so that they count once.
        if let Some(progress) = self.progress.as_ref().filter(|_| self.attempt.task.index == 0) {
            progress.bad_records().leave_out_all(&bad.found())?;
        }
        Ok(built)
    }
}
