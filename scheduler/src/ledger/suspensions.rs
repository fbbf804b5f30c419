//! Reduce attempts that leave their slot before they end: suspended, resumed, handed over.
//!
//! A suspended attempt keeps what it has at its worker and holds no slot; it goes on there, or it writes down where it
//! stands and the next attempt of its task goes on from there on another worker.
//!
//! Invariants: an attempt that may publish keeps its slot; a partition stands in
//! [`ReduceQueue::parked`](crate::ledger::ReduceQueue::parked) exactly while its attempt is suspended and not handing
//! over.

use crate::command::Command;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::ledger::attempts::station_of;
use crate::ledger::tasks::ReduceState;
use crate::ledger::workers::Workers;
use crate::ledger::{Job, Ledger};
use crate::plan::Line;
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Attempts by what can be done with their slots.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Suspensions {
    /// Live attempts that could be ordered to suspend.
    pub(crate) suspendable: BTreeSet<AttemptId>,
    /// Suspended attempts that can be handed over, and since when each could only go on elsewhere.
    pub(crate) stranded: BTreeMap<AttemptId, Option<Time>>,
    /// Reduces that were ordered to go on elsewhere; some may do so already.
    pub(crate) moving: BTreeSet<TaskId>,
}

/// How an attempt has its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum SlotHold {
    /// To its end: maps, and reduces that may publish or were killed.
    Firm,
    /// A running reduce that can be ordered to suspend.
    Suspendable,
    /// A running reduce that was ordered to.
    Leaving,
    /// A running reduce that was ordered to and cannot.
    Staying,
    /// Not any more. With `stays` it cannot be handed over.
    Suspended { stays: bool },
    /// Not any more, and it was ordered to hand over.
    HandingOver,
}

impl SlotHold {
    /// It has a slot that can be taken back, or that it is about to give back.
    pub(crate) fn yields(self) -> bool {
        matches!(self, SlotHold::Suspendable | SlotHold::Leaving)
    }

    /// It has no slot.
    pub(crate) fn is_parked(self) -> bool {
        matches!(self, SlotHold::Suspended { .. } | SlotHold::HandingOver)
    }
}

/// Where the next attempt of a reduce goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Continued {
    /// The attempt that was handed over.
    pub(crate) attempt: AttemptId,
    /// The worker that keeps what it wrote.
    pub(crate) at: WorkerId,
}

impl Ledger {
    pub(crate) fn set_hold(&mut self, attempt: AttemptId, hold: SlotHold) {
        let record = self.attempts.get_mut(&attempt).expect("only attempts of the table hold slots");
        let before = std::mem::replace(&mut record.hold, hold);
        let worker = record.worker;
        let movable = hold == SlotHold::Suspended { stays: false } && !record.dying;
        self.workers.count_hold(worker, before, hold);
        if before == SlotHold::Suspendable {
            self.suspensions.suspendable.remove(&attempt);
        }
        if hold == SlotHold::Suspendable {
            self.suspensions.suspendable.insert(attempt);
        }
        self.suspensions.stranded.remove(&attempt);
        if movable {
            self.suspensions.stranded.insert(attempt, None);
        }
        if before.yields() != hold.yields()
            && let Some(job) = self.jobs.get_mut(&attempt.task.job)
        {
            job.counts.yielding = job.counts.yielding + u32::from(hold.yields()) - u32::from(before.yields());
            self.unseen.dirty.insert(attempt.task.job);
        }
    }

    /// An attempt has left its slot, or reports again that it is suspended because it cannot be handed over.
    pub(crate) fn suspended(&mut self, attempt: AttemptId) {
        match self.attempts.get(&attempt).map(|record| record.hold) {
            Some(SlotHold::Leaving) => self.park(attempt),
            Some(SlotHold::HandingOver) => {
                self.set_hold(attempt, SlotHold::Suspended { stays: true });
                self.wait_for_slot(attempt);
            }
            // It ended first, or this is old news.
            _ => self.late(),
        }
    }

    /// An attempt that was ordered to leave its slot keeps it.
    pub(crate) fn suspension_refused(&mut self, attempt: AttemptId) {
        match self.attempts.get(&attempt).map(|record| record.hold) {
            Some(SlotHold::Leaving) => self.set_hold(attempt, SlotHold::Staying),
            // It ended first, or this is old news.
            _ => self.late(),
        }
    }

    fn park(&mut self, attempt: AttemptId) {
        self.set_hold(attempt, SlotHold::Suspended { stays: false });
        let now = self.now;
        let record = self.attempts.get_mut(&attempt).expect("it was found in the table");
        record.ran += now.since(record.since);
        let (worker, line) = (record.worker, record.line.take());
        if let Some(line) = line {
            self.lines[station_of(TaskKind::Reduce)].give_back(line);
        }
        if let Some(next) = self.workers.park(worker, attempt) {
            self.promote(next);
        }
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.set_reduce(attempt.task.index, ReduceState::Suspended);
            job.tally.suspended += 1;
            self.unseen.dirty.insert(attempt.task.job);
        }
        self.wait_for_slot(attempt);
    }

    /// A suspended attempt may be resumed, if its job is live.
    fn wait_for_slot(&mut self, attempt: AttemptId) {
        let worker = self.attempts[&attempt].worker;
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.reduce_queue.parked.insert(attempt.task.job, worker, attempt.task.index, &mut self.workers);
            self.unseen.dirty.insert(attempt.task.job);
        }
    }

    /// A suspended attempt gets a slot of its worker.
    pub(crate) fn resume(&mut self, attempt: AttemptId, line: Option<Line>) -> WorkerId {
        let now = self.now;
        let record = self.attempts.get_mut(&attempt).expect("suspended attempts are in the table");
        assert!(
            matches!(record.hold, SlotHold::Suspended { .. }),
            "{attempt} resumed, which is not suspended"
        );
        record.since = now;
        record.line = line;
        let worker = record.worker;
        if let Some(line) = line {
            self.lines[station_of(TaskKind::Reduce)].take(line);
        }
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of live jobs are resumed");
        job.reduce_queue.parked.remove(worker, attempt.task.index, &mut self.workers);
        job.set_reduce(attempt.task.index, ReduceState::Running);
        self.workers.unpark(worker, attempt);
        self.set_hold(attempt, SlotHold::Suspendable);
        worker
    }

    /// A suspended attempt is ordered to hand over.
    pub(crate) fn ask_to_hand_over(&mut self, attempt: AttemptId) -> WorkerId {
        self.set_hold(attempt, SlotHold::HandingOver);
        let worker = self.attempts[&attempt].worker;
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of live jobs are handed over");
        job.reduce_queue.parked.remove(worker, attempt.task.index, &mut self.workers);
        self.unseen.dirty.insert(attempt.task.job);
        self.suspensions.moving.insert(attempt.task);
        worker
    }

    /// A suspended attempt has written down where it stands: its partition gets another home.
    pub(crate) fn handed_over(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        let handing = |record: &crate::ledger::attempts::Attempt| record.hold == SlotHold::HandingOver;
        if !self.attempts.get(&attempt).is_some_and(handing) {
            return self.late();
        }
        let Some(record) = self.release(attempt).filter(|record| !record.dying) else { return };
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of ended jobs are dying");
        job.tally.reduce_time += record.ran;
        job.tally.handed_over += 1;
        let reduce = &mut job.reduces[attempt.task.index as usize];
        reduce.continues = Some(Continued { attempt, at: record.worker });
        job.unhome(attempt.task.index, &mut self.workers, out);
    }

    /// The first suspended attempt of the job that a free slot waits for, on the emptiest worker.
    pub(crate) fn resumable(&self, job: &Job) -> Option<AttemptId> {
        let free = |&(&worker, _): &(&WorkerId, _)| {
            self.workers.get(worker).map_or(0, |worker| worker.free(TaskKind::Reduce))
        };
        let homes = job.reduce_queue.parked.at.iter().filter(|home| 0 < free(home));
        let (_, line) = homes.min_by_key(|home| (std::cmp::Reverse(free(home)), *home.0))?;
        let index = line.first().copied()?;
        Some(job.current_reduce(index))
    }

    /// Whether the slot that this task is to go on in on another worker is still to be taken.
    pub(crate) fn is_moving(&self, task: TaskId) -> bool {
        let Some(job) = self.jobs.get(&task.job) else { return false };
        let reduce = &job.reduces[task.index as usize];
        match reduce.state {
            ReduceState::Suspended => {
                let attempt = self.attempts.get(&job.current_reduce(task.index));
                attempt.is_some_and(|record| record.hold == SlotHold::HandingOver)
            }
            ReduceState::Gathering | ReduceState::Ready => reduce.continues.is_some(),
            ReduceState::Running | ReduceState::Done => false,
        }
    }

    /// The attempt that this one goes on from; `None` if it began from its inputs or is over.
    pub(crate) fn continued(&self, attempt: AttemptId) -> Option<AttemptId> {
        self.attempts.get(&attempt).filter(|_| attempt.task.kind == TaskKind::Reduce)?;
        let job = self.jobs.get(&attempt.task.job)?;
        let continued = job.reduces.get(attempt.task.index as usize)?.continues?;
        (continued.attempt.epoch < attempt.epoch).then_some(continued.attempt)
    }

    /// How long the attempt has its slot.
    pub(crate) fn slot_since(&self, attempt: AttemptId) -> Time {
        self.attempts.get(&attempt).map_or(self.now, |record| record.since)
    }
}

impl Job {
    /// The attempt of this reduce that runs or is suspended, or was the last to do so.
    pub(crate) fn current_reduce(&self, index: u32) -> AttemptId {
        let tries = &self.reduces[index as usize].tries;
        assert!(0 < tries.launched, "{}: reduce {index} was never launched", self.id);
        TaskId::reduce(self.id, index).attempt(tries.current)
    }

    /// What a handed-over attempt wrote is of no use any more after its successor failed like this: the successor could
    /// not have it, or it may be what makes it fail.
    pub(crate) fn drop_continuation(
        &mut self,
        partition: u32,
        class: crate::event::Failure,
        workers: &Workers,
    ) -> bool {
        use crate::event::Failure;
        let spoilt = matches!(class, Failure::Fetch | Failure::Corrupt | Failure::User);
        let continues = &mut self.reduces[partition as usize].continues;
        continues.take_if(|continued| spoilt || !workers.is_live(continued.at)).is_some()
    }
}
