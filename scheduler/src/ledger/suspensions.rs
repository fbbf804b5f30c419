//! Reduce attempts that leave their slot before they end: suspended, resumed, given up.
//!
//! A suspended attempt keeps its state at its worker and holds no slot. It either continues there, or it is given up and
//! its task starts again on another worker.
//!
//! Invariants: an attempt that may publish keeps its slot; a partition is in
//! [`ReduceQueue::parked`](crate::ledger::ReduceQueue::parked) exactly while its attempt is suspended and not given
//! up.

use crate::command::Command;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::ledger::attempts::{SlotHold, station_of};
use crate::ledger::tasks::ReduceState;
use crate::ledger::{Job, Ledger};
use crate::plan::Line;
use std::collections::BTreeSet;

/// Attempts by the possible changes of their slots.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Suspensions {
    /// Live attempts that can be ordered to suspend.
    pub(crate) suspendable: BTreeSet<AttemptId>,
}

impl Ledger {
    pub(crate) fn set_hold(&mut self, attempt: AttemptId, hold: SlotHold) {
        let record = self.attempts.get_mut(&attempt).expect("only attempts of the table hold slots");
        let before = std::mem::replace(&mut record.hold, hold);
        let worker = record.worker;
        self.workers.count_hold(worker, before, hold);
        if before == SlotHold::Suspendable {
            self.suspensions.suspendable.remove(&attempt);
        }
        if hold == SlotHold::Suspendable {
            self.suspensions.suspendable.insert(attempt);
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

    /// Handles an attempt that has left its slot.
    pub(crate) fn suspended(&mut self, attempt: AttemptId) {
        match self.attempts.get(&attempt).map(|record| record.hold) {
            Some(SlotHold::Leaving) => self.park(attempt),
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
        self.set_hold(attempt, SlotHold::Suspended);
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
        // Nothing waits for a slot in a job that has ended.
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.set_reduce(attempt.task.index, ReduceState::Suspended);
            job.tally.suspended += 1;
            job.reduce_queue.parked.insert(attempt.task.job, worker, attempt.task.index, &mut self.workers);
            self.unseen.dirty.insert(attempt.task.job);
        }
    }

    /// Gives a suspended attempt a slot of its worker.
    pub(crate) fn resume(&mut self, attempt: AttemptId, line: Option<Line>) -> WorkerId {
        let now = self.now;
        let record = self.attempts.get_mut(&attempt).expect("suspended attempts are in the table");
        assert!(record.hold == SlotHold::Suspended, "{attempt} resumed, which is not suspended");
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

    /// Stops a suspended attempt, whose task starts again elsewhere.
    pub(crate) fn give_up_suspended(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        let record = self.attempts.get_mut(&attempt).expect("suspended attempts are in the table");
        record.dying = true;
        let worker = record.worker;
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of ended jobs are dying");
        job.attempts.live.remove(&attempt);
        job.reduce_queue.parked.remove(worker, attempt.task.index, &mut self.workers);
        self.unseen.dirty.insert(attempt.task.job);
        out.push(Command::Kill { attempt, worker });
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
}
