//! Attempts: launched, finished, failed, allowed to publish. The rules of who is charged stand here.
//!
//! Not here: which attempt is launched where (`core`, with policy and placement).
//!
//! Invariant: a task has at most one attempt in the table that is not dying, and it is the current one.

use crate::command::{Cause, Command, Outcome};
use crate::event::{Failure, Fingerprint};
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::ledger::Books;
use crate::ledger::jobs::Job;
use crate::ledger::suspensions::Hold;
use crate::ledger::tasks::{MapState, ReduceState};
use crate::ledger::workers::Workers;
use crate::placement::Locality;
use crate::plan::Line;
use crate::units::{Bytes, Span, Time};
use crate::view::Station;

/// One try that holds a slot, is queued behind one, or is suspended.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) worker: WorkerId,
    /// When it got its slot, or was queued while it waits for one.
    pub(crate) started: Time,
    pub(crate) queued: bool,
    /// It counts among the quick ones of its worker.
    pub(crate) quick: bool,
    /// The line it was granted in.
    pub(crate) line: Option<Line>,
    /// Told to die because its job ended; nothing is expected of it but to release its slot.
    pub(crate) dying: bool,
    /// Of a map attempt that holds a slot: its place in [`Job::runs`].
    pub(crate) place: u32,
    pub(crate) hold: Hold,
    /// When it got its slot the last time.
    pub(crate) since: Time,
    /// How long it held a slot before it was suspended the last time.
    pub(crate) ran: Span,
}

/// The station of a kind of task.
pub(crate) fn station_of(kind: TaskKind) -> Station {
    match kind {
        TaskKind::Map => Station::Map,
        TaskKind::Reduce => Station::Reduce,
    }
}

impl Books {
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
                let found = job.ready.remove(worker, task.index, &mut self.workers);
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
        tries.launched += 1;
        job.tally.launched += 1;
        job.tally.first_launch.get_or_insert(self.now);
        job.tally.localities[locality as usize] += 1;
        job.running.insert(attempt);
        job.told.insert(worker);
        self.workers.tell(worker, task.job);
        let queued = self.workers.get(worker).is_some_and(|worker| worker.free(task.kind) == 0);
        let mut place = 0;
        if queued {
            self.workers.queue(worker, attempt);
            self.ahead.waiting.insert((self.now, attempt));
            job.maps_queued += 1;
        } else {
            self.workers.take_slot(worker, attempt, quick);
            if task.kind == TaskKind::Map {
                place = job.begin_run(attempt, self.now);
            }
        }
        if let Some(line) = line {
            self.lines[station_of(task.kind).index()].take(line);
        }
        let quick = quick && !queued;
        let (started, hold, ran) = (self.now, Hold::Firm, Span::default());
        let record =
            Attempt { worker, started, queued, quick, line, dying: false, place, hold, since: started, ran };
        self.attempts.insert(attempt, record);
        if task.kind == TaskKind::Reduce {
            self.set_hold(attempt, Hold::Suspendable);
        }
        self.dirty.insert(task.job);
        attempt
    }

    /// Takes an attempt out of the table and gives its slot back, if it has one and its worker is live.
    pub(crate) fn release(&mut self, attempt: AttemptId) -> Option<Attempt> {
        let hold = self.attempts.get(&attempt)?.hold;
        if hold != Hold::Firm {
            self.set_hold(attempt, Hold::Firm);
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
            self.lines[station_of(attempt.task.kind).index()].give_back(line);
        }
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.running.remove(&attempt);
            job.maps_queued -= u32::from(record.queued);
            if attempt.task.kind == TaskKind::Map
                && !record.queued
                && let Some(moved) = job.end_run(record.place)
            {
                let moved = self.attempts.get_mut(&moved).expect("running attempts are in the table");
                moved.place = record.place;
            }
            self.dirty.insert(attempt.task.job);
        }
        Some(record)
    }

    /// A suspended attempt is over. Where its worker is gone, the lines there go with it.
    fn leave_parked(&mut self, attempt: AttemptId, record: &Attempt) {
        if self.workers.is_live(record.worker) {
            self.workers.forget_parked(record.worker, attempt);
            if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                job.parked.remove(record.worker, attempt.task.index, &mut self.workers);
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
        job.maps_queued -= 1;
        record.place = job.begin_run(attempt, self.now);
        record.quick = job.is_quick(attempt.task, &self.config.ahead);
        self.workers.judge(record.worker, record.quick);
        self.dirty.insert(attempt.task.job);
    }

    /// A queued attempt came back before it began.
    pub(crate) fn returned(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        let Some(record) = self.release(attempt).filter(|record| !record.dying) else { return self.late() };
        match attempt.task.kind {
            TaskKind::Map => self.map_again(attempt, out),
            // Reduces are not queued; a worker that says otherwise has it run again.
            TaskKind::Reduce => self.stopped(attempt, record.worker, Failure::Cancelled, out),
        }
    }

    /// A queued map lost its place: it waits again, at nobody's cost.
    pub(crate) fn map_again(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        if let Err(cause) = job.map_waits(attempt.task.index, &mut self.workers) {
            self.end(attempt.task.job, Outcome::Failed { cause }, out);
        }
    }

    /// An attempt ended well.
    pub(crate) fn finished(
        &mut self,
        attempt: AttemptId,
        kind: TaskKind,
        output: Bytes,
        took: Span,
        print: Option<Fingerprint>,
        out: &mut Vec<Command>,
    ) {
        assert!(attempt.task.kind == kind, "{attempt} reported as a {kind}");
        let Some(record) = self.release(attempt) else { return self.late() };
        if record.dying {
            // It was faster than the order to die: what it left behind goes as well.
            out.push(Command::Forget { job: attempt.task.job, worker: record.worker });
            return;
        }
        let now = self.now;
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of ended jobs are dying");
        let publishes = kind == TaskKind::Reduce || job.map_only();
        if publishes && job.tries(attempt.task).permit != Some(attempt.epoch) {
            // Whatever it published, it was not allowed to; its word is worth nothing.
            return self.stopped(attempt, record.worker, Failure::Worker, out);
        }
        match kind {
            TaskKind::Map => {
                job.tally.map_bytes += output;
                job.tally.map_time += took;
                self.workers.measure(record.worker, took);
                job.pace.add(took);
                if let Err(cause) = job.compare(attempt, print) {
                    return self.end(attempt.task.job, Outcome::Failed { cause }, out);
                }
                if publishes {
                    job.set_map(attempt.task.index, MapState::Done { output: None });
                } else if output == Bytes::ZERO {
                    job.gain_nothing(attempt.task.index, &mut self.workers);
                } else {
                    job.gain_output(attempt.task.index, record.worker, out);
                }
                if job.maps_done as usize == job.maps.len() {
                    job.tally.maps_done_at = Some(now);
                }
            }
            TaskKind::Reduce => {
                job.tally.reduce_bytes += output;
                job.tally.reduce_time += took;
                job.finish_reduce(attempt.task.index);
            }
        }
        if job.complete() {
            self.end(attempt.task.job, Outcome::Succeeded, out);
        }
    }

    /// An attempt ended without result.
    pub(crate) fn failed(&mut self, attempt: AttemptId, class: Failure, out: &mut Vec<Command>) {
        let Some(record) = self.release(attempt) else { return self.late() };
        if !record.dying {
            self.stopped(attempt, record.worker, class, out);
        }
    }

    /// What follows from a failure, after the attempt left the table.
    pub(crate) fn stopped(
        &mut self,
        attempt: AttemptId,
        worker: WorkerId,
        class: Failure,
        out: &mut Vec<Command>,
    ) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.tally.failed[class.index()] += 1;
        job.tries_mut(attempt.task).drop_permit();
        let limits = Limits {
            losses_max: self.config.losses_max,
            deaths_max: self.config.deaths_max,
            uncharged_max: self.config.uncharged_max,
            troubles: self.config.troubles(),
        };
        match job.retry(attempt.task, worker, class, limits, &mut self.workers, out) {
            Err(cause) => self.end(attempt.task.job, Outcome::Failed { cause }, out),
            Ok(()) if class.avoids_worker() => {
                self.resting.insert((self.now + self.config.trouble_pause, attempt.task));
            }
            Ok(()) => {}
        }
    }

    /// An attempt was lost because another one brought its worker down: that is not held against it.
    pub(crate) fn stopped_by_another(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.tally.failed[Failure::Lost.index()] += 1;
        job.tries_mut(attempt.task).drop_permit();
        match attempt.task.kind {
            TaskKind::Map => self.map_again(attempt, out),
            TaskKind::Reduce => {
                job.reduce_stopped(attempt.task.index, Failure::Lost, &mut self.workers, out);
            }
        }
    }

    /// Tasks whose pause after a worker's fault is over stand in line again.
    pub(crate) fn rouse(&mut self, out: &mut Vec<Command>) {
        while let Some(&(due, task)) = self.resting.first().filter(|(due, _)| *due <= self.now) {
            self.resting.remove(&(due, task));
            let Some(job) = self.jobs.get_mut(&task.job) else { continue };
            self.dirty.insert(task.job);
            if let Err(cause) = job.rouse(task, &mut self.workers) {
                self.end(task.job, Outcome::Failed { cause }, out);
            }
        }
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
        if *tries.permit.get_or_insert(attempt.epoch) == attempt.epoch {
            out.push(Command::GrantCommit { attempt, worker });
            // It was faster than an order to suspend, and ends in its slot.
            if hold != Hold::Firm {
                self.set_hold(attempt, Hold::Firm);
            }
        } else {
            out.push(Command::RefuseCommit { attempt, worker });
        }
    }
}

/// Limits of retries, from the configuration.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    losses_max: u32,
    deaths_max: u32,
    uncharged_max: u32,
    troubles: (u32, u32),
}

impl Job {
    /// Charges a failure to whom it belongs and puts the task in line again.
    ///
    /// # Errors
    /// The job has to be given up.
    fn retry(
        &mut self,
        task: TaskId,
        worker: WorkerId,
        class: Failure,
        limits: Limits,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        let attempts_max = self.attempts_max;
        // Whoever gets on with its work may lose workers on its way.
        let deaths_max = limits.deaths_max.saturating_add(self.tasks_done());
        if matches!(class, Failure::User | Failure::Lost) && deaths_max <= self.deaths {
            return Err(Cause::WorkersLost { task });
        }
        let tries = self.tries_mut(task);
        match class {
            Failure::Input => return Err(Cause::Input { task }),
            Failure::Config => return Err(Cause::Config { task }),
            Failure::User => {
                tries.charged += 1;
                tries.avoid(worker);
                if attempts_max <= tries.charged {
                    return Err(Cause::UserCode { task });
                }
            }
            Failure::Lost => {
                tries.lost += 1;
                tries.alone = true;
                if limits.losses_max <= tries.lost {
                    return Err(Cause::WorkersLost { task });
                }
            }
            Failure::Worker
            | Failure::Unreachable
            | Failure::Fetch
            | Failure::Corrupt
            | Failure::Cancelled => {
                tries.uncharged += 1;
                if limits.uncharged_max <= tries.uncharged {
                    return Err(match class {
                        Failure::Fetch | Failure::Corrupt => Cause::OutputUnreadable { task },
                        Failure::Unreachable => Cause::Unreachable { task },
                        _ => Cause::WorkersUnfit { task },
                    });
                }
                if class.avoids_worker() {
                    tries.avoid(worker);
                }
            }
        }
        match task.kind {
            TaskKind::Map if class.avoids_worker() => self.map_rests(task.index),
            TaskKind::Map => self.map_waits(task.index, workers)?,
            TaskKind::Reduce => self.reduce_stopped(task.index, class, workers, out),
        }
        match class {
            Failure::Worker => self.trouble(worker, task, limits.troubles, workers, out),
            Failure::Unreachable => self.cut_off(worker, task, limits.troubles.0, workers, out),
            _ => Ok(()),
        }
    }
}
