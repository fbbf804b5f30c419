//! Reduce attempts that leave their slot before they end: suspended, resumed, handed over.
//!
//! A suspended attempt keeps its state at its worker and holds no slot. It either continues there, or it writes its
//! state to files, from which the next attempt of its task continues on another worker.
//!
//! Invariants: an attempt that may publish keeps its slot; a partition is in
//! [`ReduceQueue::parked`](crate::ledger::ReduceQueue::parked) exactly while its attempt is suspended and not handing
//! over.

use crate::command::Command;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::ledger::attempts::{SlotHold, station_of};
use crate::ledger::tasks::{Continued, ReduceState};
use crate::ledger::workers::Workers;
use crate::ledger::{Job, Ledger};
use crate::plan::Line;
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Attempts by the possible changes of their slots.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Suspensions {
    /// Live attempts that can be ordered to suspend.
    pub(crate) suspendable: BTreeSet<AttemptId>,
    /// Suspended attempts that can be handed over, and since when each could only continue elsewhere.
    pub(crate) stranded: BTreeMap<AttemptId, Option<Time>>,
    /// Reduces that were ordered to continue elsewhere. Some may have done so already.
    pub(crate) moving: BTreeSet<TaskId>,
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
        let kind = attempt.task.kind;
        let [before, after] = [before, hold].map(|hold| u32::from(hold.yields(kind)));
        if before != after
            && let Some(job) = self.jobs.get_mut(&attempt.task.job)
        {
            let yielding = job.counts.yielding_of(kind);
            *yielding = *yielding + after - before;
            self.unseen.dirty.insert(attempt.task.job);
        }
    }

    /// Handles an attempt that has left its slot, or that is still suspended because it cannot be handed over.
    pub(crate) fn suspended(&mut self, attempt: AttemptId) {
        match self.attempts.get(&attempt).map(|record| record.hold) {
            Some(SlotHold::Leaving) => self.park(attempt),
            Some(SlotHold::HandingOver) => {
                self.set_hold(attempt, SlotHold::Suspended { stays: true });
                self.wait_for_slot(attempt);
            }
            // It ended first, or the report is outdated.
            _ => self.late(),
        }
    }

    /// Handles an attempt that keeps its slot although it was ordered to leave it.
    pub(crate) fn suspension_refused(&mut self, attempt: AttemptId) {
        match self.attempts.get(&attempt).map(|record| record.hold) {
            Some(SlotHold::Leaving) => self.set_hold(attempt, SlotHold::Staying),
            // It ended first, or the report is outdated.
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

    /// Lets a suspended attempt wait for a slot, if its job is live.
    fn wait_for_slot(&mut self, attempt: AttemptId) {
        let worker = self.attempts[&attempt].worker;
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.reduce_queue.parked.insert(attempt.task.job, worker, attempt.task.index, &mut self.workers);
            self.unseen.dirty.insert(attempt.task.job);
        }
    }

    /// Gives a suspended attempt a slot of its worker.
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
            self.lines[station_of(TaskKind::Reduce)].use_credit(line);
        }
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of live jobs are resumed");
        job.reduce_queue.parked.remove(worker, attempt.task.index, &mut self.workers);
        job.set_reduce(attempt.task.index, ReduceState::Running);
        self.workers.unpark(worker, attempt);
        self.set_hold(attempt, SlotHold::Suspendable);
        worker
    }

    /// Marks a suspended attempt as ordered to hand over.
    pub(crate) fn ask_to_hand_over(&mut self, attempt: AttemptId) -> WorkerId {
        self.set_hold(attempt, SlotHold::HandingOver);
        let worker = self.attempts[&attempt].worker;
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of live jobs are handed over");
        job.reduce_queue.parked.remove(worker, attempt.task.index, &mut self.workers);
        self.unseen.dirty.insert(attempt.task.job);
        self.suspensions.moving.insert(attempt.task);
        worker
    }

    /// Handles a suspended attempt that has written its state: its partition gets another home.
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
}

impl Job {
    /// Returns the attempt of this reduce that runs or is suspended, or the last one that did.
    pub(crate) fn current_reduce(&self, index: u32) -> AttemptId {
        let tries = &self.reduces[index as usize].tries;
        assert!(0 < tries.launched, "{}: reduce {index} was never launched", self.id);
        TaskId::reduce(self.id, index).attempt(tries.current)
    }

    /// Drops the files of a handed-over attempt after its successor failed: the successor could not fetch them, or they
    /// may be the cause of the failure.
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
