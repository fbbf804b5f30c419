//! Attempts: launched, finished, failed, allowed to publish. The rules of who is charged stand here.
//!
//! Invariant: a task has at most two attempts in the table that are not dying, the current one and its backup.

use crate::command::Command;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::Ledger;
use crate::ledger::suspensions::SlotHold;
use crate::ledger::tasks::{MapState, ReduceState};
use crate::plan::Line;
use crate::rules::{Rule, holds};
use crate::units::{Bytes, Span, Time};
use crate::view::Station;

/// One try that holds a slot, is queued behind one, or is suspended.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Attempt {
    pub(crate) worker: WorkerId,
    /// When it got its slot, or was queued while it waits for one.
    pub(crate) started: Time,
    pub(crate) queued: bool,
    /// It counts among the quick ones of its worker.
    pub(crate) quick: bool,
    /// The line it was granted in.
    #[serde(skip)]
    pub(crate) line: Option<Line>,
    /// Told to die because its job ended or another attempt of its task did; nothing is expected of it but to release
    /// its slot.
    pub(crate) dying: bool,
    /// Of a map attempt that holds a slot, but for backups: its place in [`JobAttempts::runs`].
    ///
    /// [`JobAttempts::runs`]: crate::ledger::job_parts::JobAttempts::runs
    pub(crate) place: Option<u32>,
    /// How much it had read, and when it said so last.
    pub(crate) read: Option<(Time, Bytes)>,
    pub(crate) hold: SlotHold,
    /// When it got its slot the last time.
    pub(crate) since: Time,
    /// How long it held a slot before it was suspended the last time.
    pub(crate) ran: Span,
}

impl Attempt {
    /// One that has got its slot now, outside of lines.
    pub(crate) fn begun(worker: WorkerId, now: Time) -> Self {
        Self {
            worker,
            started: now,
            queued: false,
            quick: false,
            line: None,
            dying: false,
            place: None,
            read: None,
            hold: SlotHold::Firm,
            since: now,
            ran: Span::default(),
        }
    }
}

/// The station of a kind of task.
pub(crate) fn station_of(kind: TaskKind) -> Station {
    match kind {
        TaskKind::Map => Station::Map,
        TaskKind::Reduce => Station::Reduce,
    }
}

impl Ledger {
    /// Starts the next try of a waiting map or ready reduce on a worker with a free slot, or queues it if there
    /// is none.
    pub(crate) fn launch(
        &mut self,
        task: TaskId,
        worker: WorkerId,
        locality: Locality,
        line: Option<Line>,
    ) -> AttemptId {
        let job = self.jobs.get_mut(&task.job).expect("launches are for live jobs");
        match task.kind {
            TaskKind::Map => {
                job.leave_line(task.index, &mut self.workers);
                job.set_map(task.index, MapState::Running);
            }
            TaskKind::Reduce => {
                let found = job.reduce_queue.ready.remove(worker, task.index, &mut self.workers);
                assert!(found, "{task} launched on {worker}, where it is not ready");
                job.set_reduce(task.index, ReduceState::Running);
                // What was written on a worker that is lost is lost as well.
                let continues = &mut job.reduces[task.index as usize].continues;
                continues.take_if(|continued| !self.workers.is_live(continued.at));
            }
        }
        let quick = job.is_quick(task, &self.config.ahead);
        let tries = job.tries_mut(task);
        let attempt = task.attempt(tries.launched);
        tries.current = tries.launched;
        tries.launched += 1;
        job.tally.launched += 1;
        job.tally.first_launch.get_or_insert(self.now);
        job.tally.localities[locality as usize] += 1;
        job.attempts.live.insert(attempt);
        job.workers.informed.insert(worker);
        self.workers.tell(worker, task.job);
        let queued = self.workers.get(worker).is_some_and(|worker| worker.free(task.kind) == 0);
        let mut place = None;
        if queued {
            self.workers.queue(worker, attempt);
            self.ahead.waiting.insert((self.now, attempt));
            job.counts.maps_queued += 1;
        } else {
            self.workers.take_slot(worker, attempt, quick);
            if task.kind == TaskKind::Map {
                place = Some(job.attempts.begin_run(attempt, self.now));
            }
        }
        if let Some(line) = line {
            self.lines[station_of(task.kind)].take(line);
        }
        let quick = quick && !queued;
        let record = Attempt { queued, quick, line, place, ..Attempt::begun(worker, self.now) };
        self.attempts.insert(attempt, record);
        if task.kind == TaskKind::Reduce {
            self.set_hold(attempt, SlotHold::Suspendable);
        }
        self.unseen.dirty.insert(task.job);
        attempt
    }

    /// Takes an attempt out of the table and gives its slot back, if it has one and its worker is live.
    pub(crate) fn release(&mut self, attempt: AttemptId) -> Option<Attempt> {
        let hold = self.attempts.get(&attempt)?.hold;
        if hold != SlotHold::Firm {
            self.set_hold(attempt, SlotHold::Firm);
        }
        let record = self.attempts.remove(&attempt)?;
        if record.queued {
            self.ahead.remove(record.started, attempt);
        }
        if hold.is_parked() {
            self.leave_parked(attempt, &record);
        } else if self.workers.is_live(record.worker)
            && let Some(next) = self.workers.leave(record.worker, attempt, record.quick)
        {
            self.promote(next);
        }
        if let Some(line) = record.line {
            self.lines[station_of(attempt.task.kind)].give_back(line);
        }
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.attempts.live.remove(&attempt);
            job.counts.maps_queued -= u32::from(record.queued);
            if let Some(place) = record.place {
                self.end_run(attempt.task.job, place);
            }
            self.unseen.dirty.insert(attempt.task.job);
        }
        Some(record)
    }

    /// The map attempt at this place is not among those any more that policies see running.
    pub(super) fn end_run(&mut self, job: JobId, place: u32) {
        let Some(job) = self.jobs.get_mut(&job) else { return };
        if let Some(moved) = job.attempts.end_run(place) {
            let moved = self.attempts.get_mut(&moved).expect("running attempts are in the table");
            moved.place = Some(place);
        }
    }

    /// A suspended attempt is over. Where its worker is gone, the lines there go with it.
    fn leave_parked(&mut self, attempt: AttemptId, record: &Attempt) {
        if self.workers.is_live(record.worker) {
            self.workers.forget_parked(record.worker, attempt);
            if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                job.reduce_queue.parked.remove(record.worker, attempt.task.index, &mut self.workers);
            }
        }
    }

    /// A queued attempt got its slot.
    pub(crate) fn promote(&mut self, attempt: AttemptId) {
        let record = self.attempts.get_mut(&attempt).expect("queued attempts are in the table");
        self.ahead.remove(record.started, attempt);
        record.queued = false;
        record.started = self.now;
        record.since = self.now;
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.counts.maps_queued -= 1;
        record.place = Some(job.attempts.begin_run(attempt, self.now));
        record.quick = job.is_quick(attempt.task, &self.config.ahead);
        self.workers.judge(record.worker, record.quick);
        self.unseen.dirty.insert(attempt.task.job);
    }

    /// An attempt asks to publish.
    pub(crate) fn commit(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        let Some(record) = self.attempts.get(&attempt) else { return self.late() };
        let (worker, hold) = (record.worker, record.hold);
        if hold.is_parked() {
            return self.late();
        }
        let job = self.jobs.get_mut(&attempt.task.job).filter(|_| !record.dying);
        let publishes = attempt.task.kind == TaskKind::Reduce;
        let Some(job) = job.filter(|job| publishes || job.map_only()) else {
            out.push(Command::RefuseCommit { attempt, worker });
            return;
        };
        let tries = job.tries_mut(attempt.task);
        let first = *tries.permit.get_or_insert(attempt.epoch) == attempt.epoch;
        if first || !holds(Rule::OneAttemptPublishes) {
            out.push(Command::GrantCommit { attempt, worker });
            // It was faster than an order to suspend, and ends in its slot.
            if hold != SlotHold::Firm {
                self.set_hold(attempt, SlotHold::Firm);
            }
        } else {
            out.push(Command::RefuseCommit { attempt, worker });
        }
    }
}
