//! Speculative attempts: second attempts of tasks whose first attempt is slow. The first to succeed counts; the other
//! is stopped.
//!
//! A speculative attempt holds a slot that had no other use when it started. Policies do not see it: for them its task
//! runs in the slot of the first attempt. If the first attempt fails, the speculative attempt replaces it.
//!
//! `core/backup` decides which tasks are slow and where their speculative attempts run.
//!
//! Invariant: `racing` holds exactly the tasks with a [`Tries::backup`](crate::ledger::tasks::Tries::backup).

mod config;
mod second;
mod usual;

pub use config::{BackupLimits, CloneLimits};
pub(crate) use usual::UsualTime;

use crate::command::Command;
use crate::event::Failure;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::Ledger;
use crate::ledger::attempts::{Attempt, DivisionState, SlotHold, TaskEnd};
use crate::rules::{Rule, holds};
use crate::units::{Bytes, Span, Time};
use std::collections::BTreeSet;

/// Speculative attempts of all jobs.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Backups {
    /// Tasks with two running attempts.
    pub(crate) racing: BTreeSet<TaskId>,
    /// Earliest time of the next search for slow attempts.
    pub(crate) next_look: Time,
}

/// State of a task after one of its attempts ended without a result.
pub(crate) enum Race {
    /// No attempt of the task is left.
    None,
    /// The speculative attempt ended; the first attempt continues.
    LeftByBackup,
    /// The first attempt ended; the speculative attempt replaces it.
    LeftByFirst,
}

impl Ledger {
    /// Starts a speculative attempt of a running task on a worker with a free slot. A reduce runs at its second home.
    /// While two attempts of a reduce run, neither can be suspended.
    pub(crate) fn launch_backup(&mut self, task: TaskId, worker: WorkerId, locality: Locality) -> AttemptId {
        let job = self.jobs.get_mut(&task.job).expect("backups are for live jobs");
        let tries = job.tries_mut(task);
        assert!(tries.backup.is_none(), "{task} has a backup already");
        let attempt = task.attempt(tries.launched);
        let current = tries.current;
        tries.launched += 1;
        tries.backup = Some(attempt.epoch);
        job.tally.launched += 1;
        job.tally.backups.launched += 1;
        job.tally.localities[locality as usize] += 1;
        job.attempts.live.insert(attempt);
        job.workers.informed.insert(worker);
        self.workers.mark_informed(worker, task.job);
        self.workers.take_slot(worker, attempt, false);
        let first = task.attempt(current);
        if let Some(record) = self.attempts.get_mut(&first)
            && matches!(record.division, DivisionState::Ordered(_))
        {
            // Both attempts must read the same input.
            record.division = DivisionState::Withdrawn;
        }
        self.attempts.insert(attempt, Attempt::running(worker, self.now));
        self.backups.racing.insert(task);
        self.set_hold(first, SlotHold::Firm);
        attempt
    }

    /// Records how much a running attempt has read, as reported by its worker.
    pub(crate) fn progressed(&mut self, attempt: AttemptId, bytes: Bytes, of: Bytes) {
        let now = self.now;
        match self.attempts.get_mut(&attempt).filter(|record| !record.queued && !record.dying) {
            Some(record) => (record.read, record.reads) = (Some((now, bytes)), of),
            None => self.late(),
        }
    }

    /// Records the success of an attempt that has left the table. The other attempt of its task is stopped.
    pub(crate) fn win(&mut self, winner: AttemptId, started: Time, out: &mut Vec<Command>) {
        let Some(job) =
            self.jobs.get_mut(&winner.task.job).filter(|_| self.backups.racing.remove(&winner.task))
        else {
            return;
        };
        let tries = job.tries_mut(winner.task);
        let backup = tries.backup.take().expect("a task that races has a backup");
        let loser = winner.task.attempt(if winner.epoch == backup { tries.current } else { backup });
        tries.current = winner.epoch;
        let won = winner.epoch == backup;
        let record = self.attempts.get_mut(&loser).expect("both attempts of a race are in the table");
        record.dying = true;
        if holds(Rule::LosersAreStopped) {
            out.push(Command::Kill { attempt: loser, worker: record.worker });
        }
        job.attempts.live.remove(&loser);
        job.tally.backups.won += u32::from(won);
        job.tally.backups.slot_time += self.now.since(if won { started } else { record.started });
        let (at, ran) = (record.worker, self.now.since(record.started));
        if let Some(place) = record.place.take() {
            self.end_run(winner.task.job, place);
        }
        if won {
            self.learn_of_loser(winner.task, at, ran);
        }
        if let Some(job) =
            self.jobs.get_mut(&winner.task.job).filter(|_| won && winner.task.kind == TaskKind::Reduce)
        {
            job.second_becomes_home(winner.task.index, &self.workers, out);
        }
    }

    /// Stops the speculative attempt of a task whose first attempt has divided its input. Returns false if that attempt
    /// may publish already.
    pub(crate) fn keep_first(&mut self, first: AttemptId, out: &mut Vec<Command>) -> bool {
        let Some(job) = self.jobs.get(&first.task.job) else { return false };
        let tries = job.tries(first.task);
        if tries.backup.is_none() || tries.permit.is_some() {
            return tries.backup.is_none() && tries.current == first.epoch;
        }
        self.win(first, self.now, out);
        if first.task.kind == TaskKind::Reduce
            && let Some(job) = self.jobs.get_mut(&first.task.job)
        {
            job.tries_mut(first.task).backups_failed += 1;
            job.close_second(first.task.index, &self.workers, out);
            self.runs_alone(first);
        }
        true
    }

    /// Handles an attempt that started at `started` and left the table without a result.
    pub(crate) fn leave_race(&mut self, attempt: AttemptId, started: Time, out: &mut Vec<Command>) -> Race {
        let Some(job) =
            self.jobs.get_mut(&attempt.task.job).filter(|_| self.backups.racing.remove(&attempt.task))
        else {
            return Race::None;
        };
        let tries = job.tries_mut(attempt.task);
        let backup = tries.backup.take().expect("a task that races has a backup");
        tries.drop_permit(attempt.epoch);
        if attempt.epoch == backup {
            tries.backups_failed += 1;
            let first = attempt.task.attempt(tries.current);
            job.tally.backups.slot_time += self.now.since(started);
            if attempt.task.kind == TaskKind::Reduce {
                job.close_second(attempt.task.index, &self.workers, out);
                self.runs_alone(first);
            }
            return Race::LeftByBackup;
        }
        tries.current = backup;
        let heir = attempt.task.attempt(backup);
        let record = self.attempts.get_mut(&heir).expect("both attempts of a race are in the table");
        job.tally.backups.slot_time += self.now.since(record.started);
        match attempt.task.kind {
            TaskKind::Map => record.place = Some(job.attempts.start_run(heir, record.started)),
            TaskKind::Reduce => {
                job.second_becomes_home(attempt.task.index, &self.workers, out);
                self.runs_alone(heir);
            }
        }
        Race::LeftByFirst
    }

    /// Makes a reduce that is again the only attempt of its task suspendable, unless it may publish.
    fn runs_alone(&mut self, reduce: AttemptId) {
        let permitted = |job: &crate::ledger::Job| job.tries(reduce.task).permit == Some(reduce.epoch);
        if self.jobs.get(&reduce.task.job).is_some_and(|job| !permitted(job)) {
            self.set_hold(reduce, SlotHold::Suspendable);
        }
    }

    /// Records a failed speculative attempt. The outcome of the first attempt decides if the task is at fault.
    pub(crate) fn backup_failed(&mut self, backup: AttemptId, worker: WorkerId, class: Failure) {
        let Some(job) = self.jobs.get_mut(&backup.task.job) else { return };
        job.tally.failed[class.index()] += 1;
        if !matches!(class, Failure::Cancelled | Failure::Lost) {
            job.tries_mut(backup.task).avoid(worker);
        }
        self.unseen.dirty.insert(backup.task.job);
    }

    /// Ends the speculative attempts of a job that is over.
    pub(super) fn end_races(&mut self, job: &mut crate::ledger::Job) {
        let (first, last) = (TaskId::map(job.id, 0), TaskId::reduce(job.id, u32::MAX));
        for task in self.backups.racing.range(first..=last).copied().collect::<Vec<_>>() {
            self.backups.racing.remove(&task);
            let backup = job.tries(task).backup.map(|epoch| task.attempt(epoch));
            if let Some(record) = backup.and_then(|backup| self.attempts.get(&backup)) {
                job.tally.backups.slot_time += self.now.since(record.started);
            }
        }
    }

    /// Updates the usual times of the job and the worker after a task succeeded.
    pub(crate) fn learn_usual(&mut self, task: TaskId, worker: WorkerId, end: &TaskEnd) {
        let (Some(limits), Some(job)) = (&self.config.backups, self.jobs.get_mut(&task.job)) else { return };
        let input = job.input_of(task);
        let usual = &mut job.attempts.usual[task.kind as usize];
        if let Some(span) = usual.span(input, limits.peers_min) {
            let longer = span.max(end.took);
            if limits.judge_min <= longer {
                self.workers.compare(worker, times(end.took, span), limits.slow_times);
            }
        }
        usual.add(end.took, input);
    }

    /// Updates the worker's speed with an attempt that ran for `ran` and lost to its speculative attempt.
    fn learn_of_loser(&mut self, task: TaskId, worker: WorkerId, ran: Span) {
        let (Some(limits), Some(job)) = (&self.config.backups, self.jobs.get(&task.job)) else { return };
        let usual = job.attempts.usual[task.kind as usize].span(job.input_of(task), limits.peers_min);
        if let Some(usual) = usual.filter(|_| limits.judge_min <= ran) {
            self.workers.lags(worker, times(ran, usual), limits.slow_times);
        }
    }
}

fn times(took: Span, usual: Span) -> f64 {
    took.seconds() / usual.seconds().max(1e-9)
}
