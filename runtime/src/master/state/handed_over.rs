//! Reduces that were handed over: their state, kept until the attempt that continues from it has finished.
//!
//! Their output stays on their workers. The core decides which attempt continues which.

use super::fleet::Fleet;
use gristmill_scheduler::ids::{AttemptId, TaskId, WorkerId};
use gristmill_worker::protocol::{Continuation, HandOver};
use std::collections::BTreeMap;

/// State of the handed-over reduces of one job, each with the worker that holds its output. There is at most one for
/// each task, because its next attempt starts after it.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct HandedOver {
    by_task: BTreeMap<TaskId, (AttemptId, WorkerId, HandOver)>,
}

impl HandedOver {
    /// Drops the states of a lost worker, because the output written there is gone.
    pub(super) fn lose(&mut self, worker: WorkerId) {
        self.by_task.retain(|_, (_, holder, _)| *holder != worker);
    }

    /// Drops the state of a task that is done.
    pub(super) fn done(&mut self, task: TaskId) {
        self.by_task.remove(&task);
    }

    /// Keeps the state of an attempt whose output is on this worker.
    pub(super) fn keep(&mut self, attempt: AttemptId, holder: WorkerId, state: HandOver) {
        self.by_task.insert(attempt.task, (attempt, holder, state));
    }

    /// State from which an attempt that continues this one starts; `None` if it is lost.
    pub(super) fn continuation(&self, of: AttemptId, fleet: &Fleet) -> Option<Continuation> {
        let (attempt, holder, state) = self.by_task.get(&of.task)?;
        let endpoint = fleet.get(*holder)?.endpoint.clone();
        (*attempt == of).then(|| Continuation { attempt: of, endpoint, state: state.clone() })
    }
}
