//! Reduces that were handed over: their state, kept until the attempt that continues from it has finished.
//!
//! Their output stays on their workers. The core decides which attempt continues which.

use super::MasterState;
use super::attempts::EndedAttempt;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{AttemptId, TaskId, WorkerId};
use gristmill_scheduler::units::Time;
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
}

impl MasterState {
    /// Enters that a suspended attempt has ended and another can continue from its state.
    pub(super) fn handed_over(&mut self, now: Time, ended: EndedAttempt, state: HandOver) {
        let EndedAttempt { attempt, worker: from, report } = ended;
        self.events.push(Event::AttemptHandedOver { attempt });
        let offset = self.clock_offset(from);
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.records.handed_over(attempt, now, report, offset);
        if !job.state.ended() {
            job.handed_over.by_task.insert(attempt.task, (attempt, from, state));
        }
        job.touch();
    }

    /// State from which an attempt that continues this one starts; `None` if it is lost.
    pub(super) fn continuation(&self, of: AttemptId) -> Option<Continuation> {
        let (attempt, holder, state) = self.jobs.get(&of.task.job)?.handed_over.by_task.get(&of.task)?;
        let endpoint = self.workers.get(holder)?.endpoint.clone();
        (*attempt == of).then(|| Continuation { attempt: of, endpoint, state: state.clone() })
    }
}
