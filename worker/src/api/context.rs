//! What a task may know about itself: its number, counters, side inputs, what it reads.
//!
//! What differs between two attempts at the same task ([`TaskContext::attempt`], [`TaskContext::folder`]) is for who
//! starts something of its own beside the task, such as a process; output must not depend on it.

use crate::attempt::{AttemptContext, Counter, Counters, Progress, SideInputs, TaskError, TaskResult};
use crate::input::{Block, Piece, Record};
use crate::segment::SpillDirs;
use gristmill_scheduler::ids::{AttemptId, TaskId};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;

/// Handed to `setup`. Counters made here are summed over all tasks that succeed, so a retry never counts twice.
/// They end up in the summary, in `_SUCCESS` and in the client's report.
pub struct TaskContext {
    attempt: AttemptId,
    partitions: u32,
    counters: Counters,
    side: Arc<SideInputs>,
    /// Who is informed when the task waits for something that is not its own code.
    progress: Option<Arc<Progress>>,
    spill: Option<SpillDirs>,
    stretch: Option<InputStretch>,
    held_bytes_max: usize,
}

/// What a map reads first: a stretch of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputStretch {
    /// The file as the user named it.
    pub path: String,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl From<&Piece> for InputStretch {
    fn from(piece: &Piece) -> Self {
        Self { path: piece.name.to_text(), offset: piece.offset, length: piece.length }
    }
}

/// Shows whoever watches an attempt that it goes on, for code that waits for something of its own, such as a process,
/// and has a limit of its own for that.
#[derive(Clone, Debug, Default)]
pub struct SignOfLife(Option<Arc<Progress>>);

impl SignOfLife {
    /// The attempt is well.
    pub fn show(&self) {
        if let Some(progress) = &self.0 {
            progress.lives();
        }
    }
}

impl TaskContext {
    /// For whoever runs tasks (and for tests of mappers).
    #[must_use]
    pub fn new(task: TaskId, partitions: u32, counters: Counters, side: Arc<SideInputs>) -> Self {
        let attempt = task.attempt(0);
        let (progress, spill, stretch, held_bytes_max) = (None, None, None, usize::MAX);
        Self { attempt, partitions, counters, side, progress, spill, stretch, held_bytes_max }
    }

    /// Of an attempt that somebody watches.
    pub(crate) fn of(context: &AttemptContext<'_>, counters: &Counters) -> Self {
        let AttemptContext { attempt, side, settings, progress, .. } = context;
        let progress = Some(Arc::clone(progress));
        let counters = counters.clone();
        Self {
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

    /// With what its map reads first.
    pub(crate) fn reading(self, stretch: Option<InputStretch>) -> Self {
        Self { stretch, ..self }
    }

    /// The task: its kind and index. The same for every attempt.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.attempt.task
    }

    /// The attempt at the task. Its number must not find its way into the output.
    #[must_use]
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// A folder that belongs to this worker alone and goes with it, for what the task needs on disk; `None` in tests of
    /// single functions. Whoever makes something there removes it.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.spill.as_ref().map(SpillDirs::first)
    }

    /// The first stretch of what a map reads; `None` for a reduce, and for a map without files.
    #[must_use]
    pub fn stretch(&self) -> Option<&InputStretch> {
        self.stretch.as_ref()
    }

    /// Bytes that a task may hold besides what is sorted and merged for it: with much more its worker is ended.
    #[must_use]
    pub fn held_bytes_max(&self) -> usize {
        self.held_bytes_max
    }

    /// By which the task shows that it goes on while it neither reads nor writes.
    #[must_use]
    pub fn life(&self) -> SignOfLife {
        SignOfLife(self.progress.clone())
    }

    /// How many partitions the job has; 0 if map-only.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// The counter of this name; the same one for the same name. At most [`Counters::NAMES_MAX`] names.
    #[must_use]
    pub fn counter(&self, name: &str) -> Counter {
        self.counters.get(name)
    }

    /// What `build` makes of the plan's side input `index` (in the order of `JobPlan::side` calls): it gets one
    /// block for each file, with all its records. Built once on each worker for each job and then shared by its
    /// tasks.
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

    /// As [`TaskContext::side`]; `build` may leave a record out by what it is given for that, if the job may leave out
    /// bad records.
    ///
    /// # Errors
    /// As [`TaskContext::side`], and one bad record more than the job may leave out.
    pub fn side_refusing<T: Any + Send + Sync>(
        &self,
        index: usize,
        build: impl FnOnce(&[Block<'_>], &dyn Fn(Record<'_>, TaskError) -> TaskResult) -> TaskResult<T>,
    ) -> TaskResult<Arc<T>> {
        let (built, bad) = self.side.get_watched(index, self.progress.as_ref(), build)?;
        // All tasks use it, and the first one reports what was left out, so that it counts once.
        if let Some(progress) = self.progress.as_ref().filter(|_| self.attempt.task.index == 0) {
            progress.bad_records().leave_out_all(&bad.found())?;
        }
        Ok(built)
    }
}
