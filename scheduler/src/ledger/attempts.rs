//! Attempts: launch, finish, failure, permission to publish. The rules for charging failures are defined here.
//!
//! Invariant: a task has at most two attempts in the table that are not dying, the current one and a speculative one.

use crate::command::Command;
use crate::event::Fingerprint;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::Ledger;
use crate::ledger::tasks::{MapState, ReduceState};
use crate::plan::Line;
use crate::rules::{Rule, holds};
use crate::units::{Bytes, Span, Time};
use crate::view::Station;

/// One attempt of a task that holds a slot, is queued behind one, or is suspended.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Attempt {
    pub(crate) worker: WorkerId,
    /// Time when the attempt got its slot, or was queued if it waits for one.
    pub(crate) started: Time,
    pub(crate) queued: bool,
    /// True if it counts among the quick attempts of its worker.
    pub(crate) quick: bool,
    /// Line in which it was granted.
    #[serde(skip)]
    pub(crate) line: Option<Line>,
    /// True if it was ordered to stop because its job or another attempt of its task ended. It only has to release its
    /// slot.
    pub(crate) dying: bool,
    /// Index in [`JobAttempts::runs`] of a map attempt that holds a slot. `None` for speculative attempts.
    ///
    /// [`JobAttempts::runs`]: crate::ledger::job_parts::JobAttempts::runs
    pub(crate) place: Option<u32>,
    /// Last reported number of bytes read, with the time of the report.
    pub(crate) read: Option<(Time, Bytes)>,
    /// Bytes that a reduce reads in all, if it has reported them: then it may be divided.
    #[serde(default)]
    pub(crate) reads: Bytes,
    pub(crate) hold: SlotHold,
    /// State with respect to divisions of its input.
    #[serde(default)]
    pub(crate) division: DivisionState,
    /// Time when it last got its slot.
    pub(crate) since: Time,
    /// Time for which it held a slot before its last suspension.
    pub(crate) ran: Span,
}

impl Attempt {
    /// Creates an attempt that got its slot at `now`, outside of lines.
    pub(crate) fn running(worker: WorkerId, now: Time) -> Self {
        Self {
            worker,
            started: now,
            queued: false,
            quick: false,
            line: None,
            dying: false,
            place: None,
            read: None,
            reads: Bytes::ZERO,
            hold: SlotHold::Firm,
            division: DivisionState::Possible,
            since: now,
            ran: Span::default(),
        }
    }
}

/// State of an attempt with respect to its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum SlotHold {
    /// Until its end, such as reduces that may publish or were killed.
    Firm,
    /// The attempt runs, and can be ordered to leave its slot: a reduce is suspended, a map gives up what it has not
    /// read.
    Suspendable,
    /// The attempt was ordered to leave its slot.
    Leaving,
    /// The attempt was ordered to leave its slot and cannot.
    Staying,
    /// The attempt is suspended.
    Suspended,
}

impl SlotHold {
    /// True if policies see its slot as free. A reduce that is leaving its slot could still keep it; a map that has
    /// given up its end could not.
    pub(crate) fn yields(self, kind: TaskKind) -> bool {
        self == SlotHold::Suspendable || self == SlotHold::Leaving && kind == TaskKind::Reduce
    }

    /// True if it has no slot.
    pub(crate) fn is_parked(self) -> bool {
        self == SlotHold::Suspended
    }
}

/// Report of an attempt that succeeded.
#[derive(Clone, Copy)]
pub(crate) struct TaskEnd {
    pub(crate) output: Bytes,
    pub(crate) took: Span,
    /// Fingerprint of a map output that others read.
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// State of an attempt with respect to divisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) enum DivisionState {
    /// It may be ordered to divide its input.
    #[default]
    Possible,
    /// It was ordered to at this time and has not responded.
    Ordered(Time),
    /// It was ordered to, and the order was withdrawn for a speculative attempt. If it responds after all, it makes
    /// progress: then the speculative attempt is stopped.
    Withdrawn,
    /// Its worker cannot divide it.
    Refused,
}

/// Returns the station of a kind of task.
pub(crate) fn station_of(kind: TaskKind) -> Station {
    match kind {
        TaskKind::Map => Station::Map,
        TaskKind::Reduce => Station::Reduce,
    }
}

impl Ledger {
    /// Starts the next attempt of a waiting map or ready reduce on a worker with a free slot. Queues it if no slot is
    /// free.
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
        self.workers.mark_informed(worker, task.job);
        let queued = self.workers.get(worker).is_some_and(|worker| worker.free(task.kind) == 0);
        let mut place = None;
        if queued {
            self.workers.queue(worker, attempt);
            self.ahead.waiting.insert((self.now, attempt));
            job.counts.maps_queued += 1;
        } else {
            self.workers.take_slot(worker, attempt, quick);
            if task.kind == TaskKind::Map {
                place = Some(job.attempts.start_run(attempt, self.now));
            }
        }
        if let Some(line) = line {
            self.lines[station_of(task.kind)].use_credit(line);
        }
        let quick = quick && !queued;
        let record = Attempt { queued, quick, line, place, ..Attempt::running(worker, self.now) };
        self.attempts.insert(attempt, record);
        match task.kind {
            TaskKind::Map => self.may_make_way(attempt),
            TaskKind::Reduce => self.set_hold(attempt, SlotHold::Suspendable),
        }
        self.unseen.dirty.insert(task.job);
        attempt
    }

    /// Removes an attempt from the table. Releases its slot if it has one and its worker is live.
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

    /// Removes the map attempt at this index from the running attempts visible to policies.
    pub(super) fn end_run(&mut self, job: JobId, place: u32) {
        let Some(job) = self.jobs.get_mut(&job) else { return };
        if let Some(moved) = job.attempts.end_run(place) {
            let moved = self.attempts.get_mut(&moved).expect("running attempts are in the table");
            moved.place = Some(place);
        }
    }

    /// Cleans up after a suspended attempt that ended. If its worker is lost, its lines were removed with it.
    fn leave_parked(&mut self, attempt: AttemptId, record: &Attempt) {
        if self.workers.is_live(record.worker) {
            self.workers.forget_parked(record.worker, attempt);
            // One that is dying was removed from the line before; another attempt of its task may be there.
            if record.dying {
                return;
            }
            if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                job.reduce_queue.parked.remove(record.worker, attempt.task.index, &mut self.workers);
            }
        }
    }

    /// Marks a queued attempt as running in its slot.
    pub(crate) fn promote(&mut self, attempt: AttemptId) {
        let record = self.attempts.get_mut(&attempt).expect("queued attempts are in the table");
        self.ahead.remove(record.started, attempt);
        record.queued = false;
        record.started = self.now;
        record.since = self.now;
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.counts.maps_queued -= 1;
        record.place = Some(job.attempts.start_run(attempt, self.now));
        record.quick = job.is_quick(attempt.task, &self.config.ahead);
        self.workers.judge(record.worker, record.quick);
        self.unseen.dirty.insert(attempt.task.job);
    }

    /// Handles an attempt's request to publish.
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
            // The attempt requested this before the order to suspend arrived, so it ends in its slot.
            if hold != SlotHold::Firm {
                self.set_hold(attempt, SlotHold::Firm);
            }
        } else {
            out.push(Command::RefuseCommit { attempt, worker });
        }
    }
}
