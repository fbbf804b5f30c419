//! Backups: second attempts of tasks whose first one is slow. Whichever ends well first counts; the other is stopped.
//!
//! A backup holds a slot that nobody else wanted when it began, and policies do not see it: for them its task runs, in the
//! slot of the first attempt. When that one fails, the backup takes its place.
//!
//! Not here: which tasks are slow, and where their backups run (`core/backup`).
//!
//! Invariant: `racing` holds exactly the tasks with a [`Tries::backup`](crate::ledger::tasks::Tries::backup).

mod config;
mod second;
mod usual;

pub use config::BackupLimits;
pub(crate) use second::SecondHome;
pub(crate) use usual::UsualTime;

use crate::command::Command;
use crate::event::Failure;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::Ledger;
use crate::ledger::attempts::Attempt;
use crate::ledger::ends::TaskEnd;
use crate::ledger::suspensions::SlotHold;
use crate::rules::{Rule, holds};
use crate::units::{Bytes, Span, Time};
use std::collections::BTreeSet;

/// The backups of all jobs.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Backups {
    /// Tasks of which two attempts run.
    pub(crate) racing: BTreeSet<TaskId>,
    /// Not before this time anybody looks for slow attempts again.
    pub(crate) next_look: Time,
}

/// What the backups of a job have come to.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct BackupTally {
    pub(crate) launched: u32,
    /// Those that ended well before the first attempt of their task did.
    pub(crate) won: u32,
    /// How long they have held slots.
    pub(crate) slot_time: Span,
}

/// What an attempt that ended without result leaves behind.
pub(crate) enum Race {
    /// Its task has no attempt any more.
    None,
    /// It was the backup: the first attempt goes on.
    LeftByBackup,
    /// It was the first: its backup goes on in its place.
    LeftByFirst,
}

impl Ledger {
    /// Starts a second attempt of a running task on a worker with a free slot; of a reduce at its second home. Two reduces
    /// that race keep their slots.
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
        self.workers.tell(worker, task.job);
        self.workers.take_slot(worker, attempt, false);
        let first = task.attempt(current);
        self.attempts.insert(attempt, Attempt::begun(worker, self.now));
        self.backups.racing.insert(task);
        if task.kind == TaskKind::Reduce {
            self.set_hold(first, SlotHold::Firm);
        }
        attempt
    }

    /// A worker says how much a running attempt has read.
    pub(crate) fn progressed(&mut self, attempt: AttemptId, bytes: Bytes) {
        let now = self.now;
        match self.attempts.get_mut(&attempt).filter(|record| !record.queued && !record.dying) {
            Some(record) => record.read = Some((now, bytes)),
            None => self.late(),
        }
    }

    /// An attempt that has left the table ended well: it counts, and the other one of its task is stopped.
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

    /// An attempt that has left the table ended without result, after it had begun at that time.
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
            TaskKind::Map => record.place = Some(job.attempts.begin_run(heir, record.started)),
            TaskKind::Reduce => {
                job.second_becomes_home(attempt.task.index, &self.workers, out);
                self.runs_alone(heir);
            }
        }
        Race::LeftByFirst
    }

    /// A reduce runs without a rival, so that it can be suspended again, unless it may publish.
    fn runs_alone(&mut self, reduce: AttemptId) {
        let permitted = |job: &crate::ledger::Job| job.tries(reduce.task).permit == Some(reduce.epoch);
        if self.jobs.get(&reduce.task.job).is_some_and(|job| !permitted(job)) {
            self.set_hold(reduce, SlotHold::Suspendable);
        }
    }

    /// A backup failed while the first attempt goes on, which will tell whether it was the task's fault.
    pub(crate) fn backup_failed(&mut self, backup: AttemptId, worker: WorkerId, class: Failure) {
        let Some(job) = self.jobs.get_mut(&backup.task.job) else { return };
        job.tally.failed[class.index()] += 1;
        if !matches!(class, Failure::Cancelled | Failure::Lost) {
            job.tries_mut(backup.task).avoid(worker);
        }
        self.unseen.dirty.insert(backup.task.job);
    }

    /// A job is over, and with it its backups.
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

    /// What a task that ended well teaches of its job and its worker.
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

    /// A backup was faster than an attempt that ran there for so long, which says something of that worker too.
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
