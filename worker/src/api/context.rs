//! What a task may know about itself: its number, counters, side inputs.
//!
//! Not here: anything that differs between two attempts at the same task (worker, time), because output
//! must not depend on it.

use crate::attempt::{AttemptContext, Counter, Counters, Progress, SideInputs, TaskResult};
use crate::input::Block;
use gristmill_scheduler::ids::TaskId;
use std::any::Any;
use std::sync::Arc;

/// Handed to `setup`. Counters made here are summed over all tasks that succeed, so a retry never counts twice.
/// They end up in the summary, in `_SUCCESS` and in the client's report.
pub struct TaskContext {
    task: TaskId,
    partitions: u32,
    counters: Counters,
    side: Arc<SideInputs>,
    /// Who is informed when the task waits for something that is not its own code.
    progress: Option<Arc<Progress>>,
}

impl TaskContext {
    /// For whoever runs tasks (and for tests of mappers).
    #[must_use]
    pub fn new(task: TaskId, partitions: u32, counters: Counters, side: Arc<SideInputs>) -> Self {
        Self { task, partitions, counters, side, progress: None }
    }

    /// Of an attempt that somebody watches.
    pub(crate) fn of(context: &AttemptContext<'_>, counters: &Counters) -> Self {
        let AttemptContext { attempt, side, settings, progress, .. } = context;
        let progress = Some(Arc::clone(progress));
        let counters = counters.clone();
        Self { task: attempt.task, partitions: settings.partitions, counters, side: side.clone(), progress }
    }

    /// The task: its kind and index. The same for every attempt.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
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
        self.side.get_watched(index, self.progress.as_ref(), build)
    }
}
