//! What a task may know about itself: its number, counters, side inputs.
//!
//! Not here: anything that differs between two attempts at the same task (worker, time), because output
//! must not depend on it.

use crate::attempt::{AttemptContext, Progress, SideInputs, TaskResult};
use crate::input::Block;
use gristmill_scheduler::ids::TaskId;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
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

/// A number that user code adds to. Cheap: no lock, no atomic.
///
/// `Counter::default()` counts for nobody: it keeps the place in a mapper or reducer until `setup` puts the
/// task's own there, as in `self.rows = task.counter("rows")`.
#[derive(Clone, Debug, Default)]
pub struct Counter(Rc<Cell<u64>>);

impl Counter {
    /// Adds `n`, stopping at the largest u64.
    pub fn add(&self, n: u64) {
        self.0.set(self.0.get().saturating_add(n));
    }
}

/// The counters of one attempt, by name.
#[derive(Clone, Debug, Default)]
pub struct Counters(Rc<RefCell<BTreeMap<String, Rc<Cell<u64>>>>>);

impl Counters {
    /// Different names in one task; further ones are all counted under [`Counters::OVERFLOW`].
    pub const NAMES_MAX: usize = 1000;
    /// Where counts go when a task has used too many names.
    pub const OVERFLOW: &'static str = "(more than 1,000 counter names)";

    /// The counter of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Counter {
        let mut all = self.0.borrow_mut();
        let name = if all.len() < Self::NAMES_MAX || all.contains_key(name) { name } else { Self::OVERFLOW };
        Counter(all.entry(name.to_owned()).or_default().clone())
    }

    /// Sets all counters as they were elsewhere: those that are not named begin at 0.
    pub(crate) fn restore(&self, values: &[(String, u64)]) {
        let mut all = self.0.borrow_mut();
        for count in all.values() {
            count.set(0);
        }
        for (name, value) in values {
            all.entry(name.clone()).or_default().set(*value);
        }
    }

    /// All values, in the order of names.
    #[must_use]
    pub fn values(&self) -> Vec<(String, u64)> {
        self.0.borrow().iter().map(|(name, count)| (name.clone(), count.get())).collect()
    }
}
