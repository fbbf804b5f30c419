//! Maps queued on a worker behind its running attempts, so that a slot need not wait for the next order.
//!
//! A queued map is decided early, so little is queued and only what is soon done: maps of jobs whose maps are
//! short by measurement, tried for the first time, behind attempts of the same kind, and never while a slot
//! that the map could use is free.
//!
//! Invariant: a worker with queued attempts has no free slot.

use crate::ids::{AttemptId, TaskId, TaskKind};
use crate::ledger::Ledger;
use crate::ledger::jobs::Job;
use crate::units::{Span, Time};
use std::collections::BTreeSet;

/// How much is queued ahead.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct AheadConfig {
    /// Most maps queued behind one slot; 32. With 0 nothing is queued.
    pub maps_max: u32,
    /// Work queued behind one slot, by the mean time of the job's maps, but at least one map; 1 ms.
    pub work: Span,
    /// Maps of a job whose mean time is above this are not queued; 10 ms. Beyond that the round trip to the
    /// master is below a hundredth of a task.
    pub mean_max: Span,
    /// A map that was queued this long ago is asked back when a slot elsewhere is idle; 50 ms. This bounds
    /// what a wrong guess about the time of maps can cost.
    pub patience: Span,
}

impl Default for AheadConfig {
    fn default() -> Self {
        Self {
            maps_max: 32,
            work: Span::milliseconds(1),
            mean_max: Span::milliseconds(10),
            patience: Span::milliseconds(50),
        }
    }
}

/// The mean time of a job's maps, the last ones counting most.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pace(Option<Span>);

/// The newest map counts as one part in this many.
const PACE_PARTS: u64 = 8;

impl Pace {
    pub(crate) fn add(&mut self, took: Span) {
        let mean = self.0.map_or(took, |mean| Span(mean.0 - mean.0 / PACE_PARTS + took.0 / PACE_PARTS));
        self.0 = Some(mean);
    }

    /// Maps that may be queued behind one slot.
    pub(crate) fn depth(self, config: &AheadConfig) -> u32 {
        let Some(mean) = self.0.filter(|mean| *mean <= config.mean_max) else { return 0 };
        let maps = (config.work.0 / mean.0.max(1)).clamp(1, u64::from(u32::MAX)) as u32;
        maps.min(config.maps_max)
    }
}

/// The queued attempts of all workers.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ahead {
    /// By when they were queued; those asked back are not among them.
    pub(crate) waiting: BTreeSet<(Time, AttemptId)>,
    /// Asked back, and not answered yet.
    pub(crate) recalled: BTreeSet<AttemptId>,
}

impl Ahead {
    /// The attempt has left its queue.
    pub(crate) fn remove(&mut self, queued: Time, attempt: AttemptId) {
        if !self.recalled.remove(&attempt) {
            self.waiting.remove(&(queued, attempt));
        }
    }
}

impl Job {
    /// Whether this task is soon done as far as anybody knows. A task that has failed or was lost goes alone:
    /// should it bring its worker down, it must be clear which attempt it was.
    pub(crate) fn is_quick(&self, task: TaskId, config: &AheadConfig) -> bool {
        task.kind == TaskKind::Map && self.tries(task).unblemished() && 0 < self.attempts.pace.depth(config)
    }
}

impl Ledger {
    /// Asks the oldest queued maps back for idle slots. Answers when to look again.
    pub(crate) fn call_back(&mut self, mut ask: impl FnMut(AttemptId, crate::ids::WorkerId)) -> Option<Time> {
        let free = self.workers.free_of(TaskKind::Map) as usize;
        while self.ahead.recalled.len() < free {
            let &(queued, attempt) = self.ahead.waiting.first()?;
            let due = queued + self.config.ahead.patience;
            if self.now < due {
                return Some(due);
            }
            self.ahead.waiting.pop_first();
            let job = self.jobs.get(&attempt.task.job);
            let usable = |job: &Job| {
                self.workers.idle(TaskKind::Map).any(|worker| job.may_use(worker.id(), &self.workers))
            };
            if job.is_some_and(usable) {
                self.ahead.recalled.insert(attempt);
                ask(attempt, self.attempts[&attempt].worker);
            }
        }
        None
    }
}
