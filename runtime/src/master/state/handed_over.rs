//! Reduces that were handed over: where they stood, until the attempt that goes on from there has finished.
//!
//! What they wrote stays at their workers. Who continues whom is the core's to say.

use super::MasterState;
use super::attempts::EndedAttempt;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{AttemptId, TaskId, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::protocol::{Continuation, HandOver};
use std::collections::BTreeMap;

/// Where the reduces of one job stood that were handed over, each with the worker that has what it wrote. One at most
/// for each task, because its next attempt begins after it.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct HandedOver {
    by_task: BTreeMap<TaskId, (AttemptId, WorkerId, HandOver)>,
}

impl HandedOver {
    /// The worker is gone, and what was written there.
    pub(super) fn lose(&mut self, worker: WorkerId) {
        self.by_task.retain(|_, (_, holder, _)| *holder != worker);
    }

    /// The task is done.
    pub(super) fn done(&mut self, task: TaskId) {
        self.by_task.remove(&task);
    }
}

impl MasterState {
    /// A suspended attempt has ended, and another can go on where it stood.
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

    /// What an attempt goes on from that continues this one; `None` if that is lost.
    pub(super) fn continuation(&self, of: AttemptId) -> Option<Continuation> {
        let (attempt, holder, state) = self.jobs.get(&of.task.job)?.handed_over.by_task.get(&of.task)?;
        let endpoint = self.workers.get(holder)?.endpoint.clone();
        (*attempt == of).then(|| Continuation { attempt: of, endpoint, state: state.clone() })
    }
}
