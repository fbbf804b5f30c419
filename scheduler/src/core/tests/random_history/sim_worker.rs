//! One simulated worker process of a random history: what it received, runs and keeps.

use crate::command::Command;
use crate::event::{Event, Failure, Slots};
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
    /// Carries out a command that concerns this worker alone.
    #[expect(clippy::collapsible_match, reason = "a guard should not change anything")]
    pub(super) fn obey(&mut self, command: &Command) {
        match *command {
            Command::Kill { attempt, .. } => {
                let place = self.queue.iter().position(|&other| other == attempt);
                if self.running.remove(&attempt).is_some() || place.is_some() || self.parked.remove(&attempt)
                {
                    place.map(|place| self.queue.remove(place));
                    self.outbox.push_back(Event::AttemptFailed { attempt, class: Failure::Cancelled });
                }
                self.outputs.remove(&attempt);
            }
            Command::Recall { attempt, .. } => {
                if let Some(place) = self.queue.iter().position(|&other| other == attempt) {
                    self.queue.remove(place);
                    self.outbox.push_back(Event::AttemptReturned { attempt });
                }
            }
            Command::Announce { job, map, from, .. } => {
                self.wanted.insert((job, map.task.index), (map, from));
            }
            Command::Retract { job, map, .. } => {
                self.wanted.retain(|&key, &mut (of, _)| key != (job, map.task.index) || of != map);
            }
            Command::RefuseCommit { attempt, .. } => {
                if self.running.remove(&attempt).is_some() {
                    self.outbox.push_back(Event::AttemptFailed { attempt, class: Failure::Cancelled });
                }
            }
            Command::Forget { job, .. } => {
                self.homes.retain(|key, _| key.0 != job);
                self.wanted.retain(|key, _| key.0 != job);
                self.outputs.retain(|output| output.task.job != job);
            }
            Command::Suspend { attempt, .. } => {
                let waits = self.queue.contains(&attempt);
                if waits || self.running.get(&attempt) == Some(&Phase::Working) {
                    self.asked.insert(attempt);
                }
            }
            _ => {}
        }
    }
}
