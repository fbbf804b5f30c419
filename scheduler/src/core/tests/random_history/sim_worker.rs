//! One simulated worker process of a random history: what it received, runs and keeps.

use crate::command::Command;
use crate::event::{Event, Slots};
use crate::ids::{AttemptId, JobId, WorkerId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Phase {
    Working,
    Asked,
    Granted,
}

/// One simulated worker process.
#[derive(Default)]
pub(super) struct SimWorker {
    pub(super) slots: Option<Slots>,
    pub(super) inbox: VecDeque<Command>,
    pub(super) outbox: VecDeque<Event>,
    pub(super) running: BTreeMap<AttemptId, Phase>,
    /// Attempts launched or resumed that wait for a slot.
    pub(super) queue: VecDeque<AttemptId>,
    /// Attempts ordered to suspend. Running ones do so at the next record boundary, unless they end first.
    pub(super) asked: BTreeSet<AttemptId>,
    /// Suspended attempts.
    pub(super) parked: BTreeSet<AttemptId>,
    /// Files of attempts that were handed over.
    pub(super) handed_over: BTreeSet<AttemptId>,
    /// Empty maps that were sent with the launch of a reduce.
    pub(super) empty: BTreeMap<AttemptId, Vec<u32>>,
    pub(super) outputs: BTreeSet<AttemptId>,
    /// Maps whose segment has arrived, by partition.
    pub(super) homes: BTreeMap<(JobId, u32), BTreeSet<u32>>,
    /// Announced outputs, by map.
    pub(super) wanted: BTreeMap<(JobId, u32), (AttemptId, WorkerId)>,
    /// Attempts launched and not reported to the core yet.
    pub(super) booked: BTreeSet<AttemptId>,
}

impl SimWorker {
    /// Starts the oldest queued attempts in free slots.
    pub(super) fn start_queued(&mut self) {
        let Some(slots) = self.slots else { return };
        let pool = |attempt: &AttemptId| slots.pool(attempt.task.kind);
        let fits = |sim_worker: &SimWorker, attempt: &AttemptId| {
            let used = sim_worker.running.keys().filter(|other| pool(other) == pool(attempt)).count();
            used < slots.count(attempt.task.kind) as usize
        };
        while let Some(place) = self.queue.iter().position(|attempt| fits(self, attempt)) {
            let attempt = self.queue.remove(place).expect("it was found there");
            self.running.insert(attempt, Phase::Working);
        }
    }
}
