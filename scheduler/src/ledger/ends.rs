//! Ends of attempts: success, failure, loss of the worker, or return. Defines who is charged for a failure.

use crate::command::{Cause, Command, Outcome};
use crate::event::Failure;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::ledger::Ledger;
use crate::ledger::attempts::{Attempt, TaskEnd};
use crate::ledger::backups::Race;
use crate::ledger::jobs::Job;
use crate::ledger::tasks::{MapRun, MapState};
use crate::ledger::workers::Workers;
use crate::rules::{Rule, holds};
use crate::units::Bytes;

/// Limits of retries, from the configuration.
#[derive(Clone, Copy)]
pub(crate) struct RetryLimits {
    losses_max: u32,
    deaths_max: u32,
    uncharged_max: u32,
    worker_failures: (u32, u32),
}

impl Ledger {
    /// Handles a queued attempt that was returned before it started.
    pub(crate) fn returned(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        let Some(record) = self.release(attempt).filter(|record| !record.dying) else { return self.late() };
        match attempt.task.kind {
            TaskKind::Map => self.map_again(attempt, out),
            // Reduces are not queued. If a worker still reports this, the reduce runs again.
            TaskKind::Reduce => self.stopped(attempt, &record, Failure::Cancelled, out),
        }
    }

    /// Puts a queued map that lost its place back in line, without counting a failure.
    pub(crate) fn map_again(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        if let Err(cause) = job.map_waits(attempt.task.index, &mut self.workers) {
            self.end(attempt.task.job, Outcome::Failed { cause }, out);
        }
    }

    /// Handles an attempt that succeeded.
    pub(crate) fn finished(
        &mut self,
        attempt: AttemptId,
        kind: TaskKind,
        end: TaskEnd,
        out: &mut Vec<Command>,
    ) {
        let TaskEnd { output, took, fingerprint } = end;
        assert!(attempt.task.kind == kind, "{attempt} reported as a {kind}");
        let Some(record) = self.release(attempt) else { return self.late() };
        if record.dying {
            // It ended before the order to stop arrived. That order also removes its files, or all files of its job if
            // the job is over.
            if !self.jobs.contains_key(&attempt.task.job) {
                out.push(Command::Forget { job: attempt.task.job, worker: record.worker });
            }
            return;
        }
        let now = self.now;
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of ended jobs are dying");
        let publishes = kind == TaskKind::Reduce || job.map_only();
        let permitted = job.tries(attempt.task).permit == Some(attempt.epoch);
        if publishes && !permitted && holds(Rule::OneAttemptPublishes) {
            // It was not allowed to publish, so its result does not count.
            return self.stopped(attempt, &record, Failure::Worker, out);
        }
        self.win(attempt, record.started, out);
        let job = self.jobs.get_mut(&attempt.task.job).expect("it was live a moment ago");
        match kind {
            TaskKind::Map => {
                job.tally.map_bytes += output;
                job.maps[attempt.task.index as usize].ran = MapRun { took, output };
                self.workers.measure(record.worker, took);
                job.attempts.pace.add(took);
                if let Err(cause) = job.compare(attempt, fingerprint) {
                    return self.end(attempt.task.job, Outcome::Failed { cause }, out);
                }
                if publishes {
                    job.set_map(attempt.task.index, MapState::Done { output: None });
                } else if output == Bytes::ZERO {
                    job.gain_nothing(attempt.task.index, &mut self.workers);
                } else {
                    job.gain_output(attempt.task.index, record.worker, out);
                }
                if job.counts.maps_done as usize == job.maps.len() {
                    job.tally.maps_done_at = Some(now);
                }
            }
            TaskKind::Reduce => {
                job.tally.reduce_bytes += output;
                job.tally.reduce_time += took;
                job.close_second(attempt.task.index, &self.workers, out);
                job.finish_reduce(attempt.task.index);
            }
        }
        let complete = job.complete();
        if !complete {
            let bar = self.config.worker_failures().0;
            job.worker_did_well(record.worker, bar, &mut self.workers, out);
        }
        let is_first = job.counts.maps_done == 1;
        self.learn_usual(attempt.task, record.worker, &end);
        if kind == TaskKind::Map {
            self.learn_map_time(took);
            if is_first {
                self.all_may_make_way(attempt.task.job);
            }
        }
        if complete {
            self.end(attempt.task.job, Outcome::Succeeded, out);
        } else if kind == TaskKind::Map {
            self.give_up_cut_off(attempt.task.job, out);
        }
    }

    /// Handles an attempt that ended without a result.
    pub(crate) fn failed(&mut self, attempt: AttemptId, class: Failure, out: &mut Vec<Command>) {
        let Some(record) = self.release(attempt) else { return self.late() };
        if !record.dying {
            self.stopped(attempt, &record, class, out);
        }
    }

    /// Applies the effects of a failure after the attempt left the table.
    pub(crate) fn stopped(
        &mut self,
        attempt: AttemptId,
        record: &Attempt,
        class: Failure,
        out: &mut Vec<Command>,
    ) {
        let worker = record.worker;
        let race = self.leave_race(attempt, record.started, out);
        if matches!(race, Race::LeftByBackup) {
            return self.backup_failed(attempt, worker, class);
        }
        let goes_on = matches!(race, Race::LeftByFirst);
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.tally.failed[class.index()] += 1;
        job.tries_mut(attempt.task).drop_permit(attempt.epoch);
        let limits = RetryLimits {
            losses_max: self.config.losses_max,
            deaths_max: self.config.deaths_max,
            uncharged_max: self.config.uncharged_max,
            worker_failures: self.config.worker_failures(),
        };
        let charged = job.charge((attempt.task, worker), class, limits).and_then(|()| match goes_on {
            true => Ok(()),
            false => job.requeue(attempt.task, class, &mut self.workers, out),
        });
        let blamed =
            charged.and_then(|()| job.blame((attempt.task, worker), class, limits, &mut self.workers, out));
        match blamed {
            Err(cause) => self.end(attempt.task.job, Outcome::Failed { cause }, out),
            Ok(()) if class.avoids_worker() && !goes_on => {
                self.waits.backing_off.insert((self.now + self.config.backoff, attempt.task));
            }
            Ok(()) => {}
        }
    }

    /// Handles an attempt that was lost because another one crashed its worker. It is not charged.
    pub(crate) fn stopped_by_another(
        &mut self,
        attempt: AttemptId,
        record: &Attempt,
        out: &mut Vec<Command>,
    ) {
        let race = self.leave_race(attempt, record.started, out);
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.tally.failed[Failure::Lost.index()] += 1;
        job.tries_mut(attempt.task).drop_permit(attempt.epoch);
        if !matches!(race, Race::None) {
            return;
        }
        match attempt.task.kind {
            TaskKind::Map => self.map_again(attempt, out),
            TaskKind::Reduce => {
                job.reduce_stopped(attempt.task.index, Failure::Lost, &mut self.workers, out);
            }
        }
    }

    /// Puts tasks whose pause after a worker's fault is over back in line.
    pub(crate) fn end_backoff(&mut self, out: &mut Vec<Command>) {
        while let Some(&(due, task)) = self.waits.backing_off.first().filter(|(due, _)| *due <= self.now) {
            self.waits.backing_off.remove(&(due, task));
            let Some(job) = self.jobs.get_mut(&task.job) else { continue };
            self.unseen.dirty.insert(task.job);
            if let Err(cause) = job.end_backoff(task, &mut self.workers) {
                self.end(task.job, Outcome::Failed { cause }, out);
            }
        }
    }
}

impl Job {
    /// Charges a failure to the task, the worker or the job.
    ///
    /// # Errors
    /// If the job has to fail.
    fn charge(
        &mut self,
        (task, worker): (TaskId, WorkerId),
        class: Failure,
        limits: RetryLimits,
    ) -> Result<(), Cause> {
        let attempts_max = self.spec.attempts_max;
        // A job that makes progress may lose more workers.
        let deaths_max = limits.deaths_max.saturating_add(self.tasks_done());
        if matches!(class, Failure::User | Failure::Lost) && deaths_max <= self.workers.deaths {
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
        Ok(())
    }

    /// Puts a task whose attempt failed back in line.
    ///
    /// # Errors
    /// If the job has to fail.
    fn requeue(
        &mut self,
        task: TaskId,
        class: Failure,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        match task.kind {
            TaskKind::Map if class.avoids_worker() => self.map_backs_off(task.index),
            TaskKind::Map => self.map_waits(task.index, workers)?,
            TaskKind::Reduce => self.reduce_stopped(task.index, class, workers, out),
        }
        Ok(())
    }

    /// Applies the effects of a failure on the worker.
    ///
    /// # Errors
    /// If the job has to fail.
    fn blame(
        &mut self,
        (task, worker): (TaskId, WorkerId),
        class: Failure,
        limits: RetryLimits,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        match class {
            Failure::Worker => self.worker_failed(worker, task, limits.worker_failures, workers, out),
            Failure::Unreachable => self.cut_off(worker, task, limits.worker_failures.0, workers, out),
            _ => Ok(()),
        }
    }
}
