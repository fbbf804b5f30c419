//! Ends of jobs: cancelled, abandoned by their client or done, and the closing of their output before they count as
//! ended.

use super::super::kept_job::KeptJob;
use super::super::recovery::RecoveryNote;
use super::MasterState;
use super::job::{JobEntry, StatusContext};
use crate::api::{BuiltPart, FailureCode, JobFailure, JobState, Submission};
use crate::output_dir::{ClaimedOutput, Success};
use gristmill_scheduler::command::{Cause, Outcome};
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Time;
use gristmill_worker::sanitize;
use tokio::sync::watch;

/// An output that the master has to finish or abandon.
pub(crate) struct Closing {
    /// The job, which ends when this is done.
    pub job: JobId,
    /// Its submission without inputs, which names the output. No file is open until the output is closed.
    pub submission: Box<Submission>,
    /// Content of `_SUCCESS`; `None` to abandon the output.
    pub success: Option<Success>,
    /// Where the parts of the job were built.
    pub built: Vec<BuiltPart>,
    /// True if its client or master died, and may have closed the output before.
    pub left: bool,
}

impl MasterState {
    /// Cancels a job. Returns true if the job exists.
    pub(crate) fn cancel(&mut self, job: JobId) -> bool {
        self.events.push(Event::JobCancelled { job });
        self.jobs.contains_key(&job)
    }

    /// Enters that the client on which a job depends is gone.
    pub(crate) fn client_lost(&mut self, job: JobId) {
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        entry.followers.client = false;
        self.journal.keep(|| RecoveryNote::ClientLost { job });
        let Some(entry) = self.jobs.get(&job) else { return };
        if entry.state.ended() {
            // The job ended while its client was already gone, and its output is still open.
            if !*entry.output.closed.borrow() {
                self.close_for_client(job);
            }
        } else {
            self.events.push(Event::JobFailed { job, cause: External::ClientLost });
        }
    }

    /// Enters that the core is done with a job. If no client closes its output, the job ends when the master has closed
    /// it.
    pub(super) fn job_ended(&mut self, now: Time, id: JobId, outcome: Outcome) {
        self.pending.learned = true;
        let backups = self.core.job(id).map(|job| job.attempts.backups).unwrap_or_default();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.records.counts = job.records.counts.with_backups(backups);
        if job.followers.client {
            return self.end(now, id, outcome);
        }
        job.output.closing = Some(outcome);
        if !self.reliving {
            self.close_output(now, id, outcome, false);
        }
    }

    /// Closes the output of a job that is over for the core. `left` is true if another master may have closed it.
    pub(super) fn close_output(&mut self, now: Time, id: JobId, outcome: Outcome, left: bool) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let submission = job.submission_without_inputs();
        let status =
            job.status(now, id, StatusContext { parts: true, built: true, ..StatusContext::default() });
        let success =
            (outcome == Outcome::Succeeded).then(|| Success::of(&status, submission.columns.clone()));
        self.pending.closings.push(Closing { job: id, submission, success, built: status.built, left });
    }

    /// Closes the output of an ended job whose client died before it had done so.
    fn close_for_client(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id).filter(|_| !self.reliving) else { return };
        let outcome = match job.state {
            JobState::Succeeded => Outcome::Succeeded,
            _ => Outcome::Cancelled,
        };
        self.close_output(Time::ZERO, id, outcome, outcome == Outcome::Succeeded);
    }

    /// Enters that the client that follows a job has closed its output, or failed to.
    pub(crate) fn client_closed(&mut self, now: Time, id: JobId, failed: Option<String>) {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.state.ended()) else { return };
        if *job.output.closed.borrow() {
            return;
        }
        job.output.closed.send_replace(true);
        self.journal.keep(|| RecoveryNote::ClientClosed { at: now, job: id, failed: failed.as_deref() });
        match failed {
            Some(reason) => job.output_lost(FailureCode::Output, "the output could not be finished", &reason),
            None => job.touch(),
        }
        self.register_end(now, id);
    }

    /// Channel on which the client's closing of a job's output is announced.
    pub(crate) fn output_closed(&self, job: JobId) -> Option<watch::Receiver<bool>> {
        self.jobs.get(&job).map(|job| job.output.closed.subscribe())
    }

    /// Enters that the output of a job has been finished or abandoned.
    pub(crate) fn closed(&mut self, now: Time, job: JobId, failed: Option<String>) {
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        self.journal.keep(|| RecoveryNote::Closed { at: now, job, failed: failed.as_deref() });
        entry.output.closed.send_replace(true);
        let Some(outcome) = entry.output.closing.take() else {
            match (failed, entry.state) {
                (Some(reason), JobState::Succeeded) => {
                    entry.output_lost(
                        FailureCode::ClientLost,
                        "its client died before it had closed the output",
                        &reason,
                    );
                }
                _ => entry.touch(),
            }
            self.register_end(now, job);
            return;
        };
        match failed {
            None => self.end(now, job, outcome),
            Some(reason) => {
                let message = "the output could not be finished".to_owned();
                let detail = Some(sanitize::message(&reason));
                entry.failures.of_job = Some(JobFailure { code: FailureCode::Output, message, detail });
                let cause = Cause::External { cause: External::OutputUnavailable };
                self.end(now, job, Outcome::Failed { cause });
            }
        }
    }

    /// Ends a job for good, and writes the end to the register.
    fn end(&mut self, now: Time, id: JobId, outcome: Outcome) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.end(now, outcome);
        job.fleet_at_end = Some((self.workers.len() as u32, self.fleet.slots));
        let open = job.output_is_open();
        self.ended.insert((now, id));
        self.promise_end(id);
        // A success requires an output. If the client closes it, the success is written down after that.
        if !open {
            self.register_end(now, id);
        }
    }

    /// Writes the end of a job to the register.
    fn register_end(&mut self, now: Time, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let notified = job.followers.notified.get();
        // The register holds the actual state, not the reported one.
        let kept_back = std::mem::take(&mut job.end_is_kept_back);
        let status = job.status(now, id, StatusContext::default());
        let whole = StatusContext { parts: true, ..StatusContext::default() };
        let kept = self
            .register
            .is_kept()
            .then(|| KeptJob::new(job.trace(now, job.status(now, id, whole)), job.logs.entries()));
        job.end_is_kept_back = kept_back;
        job.followers.notified.set(notified);
        self.pending.archived.extend(kept);
        self.register.ended(|| Some(status));
    }

    /// Closes the register when the master ends in order and all its work has been given up.
    pub(crate) fn close_register(&mut self) {
        self.register.close();
    }

    /// Outputs to abandon as the master ends: those of jobs that will no longer end because of that, and of failed jobs
    /// whose client has not reported. Such a client may have died before it abandoned the output.
    pub(crate) fn unfinished(&self) -> Vec<ClaimedOutput> {
        let unheard = |job: &JobEntry| {
            job.submission.attached && job.state != JobState::Succeeded && !*job.output.closed.borrow()
        };
        let lacks_end = |job: &&JobEntry| match job.state.ended() {
            true => unheard(job),
            false => job.output.closing.is_none(),
        };
        self.jobs.values().filter(lacks_end).filter_map(|job| adopted(&job.submission)).collect()
    }
}

/// Opens the output of a job whose client does not close it, if this master can reach it.
fn adopted(submission: &Submission) -> Option<ClaimedOutput> {
    match ClaimedOutput::adopt(submission, None) {
        Ok(output) => Some(output),
        Err(error) => {
            tracing::debug!(output = %submission.output, error = crate::chain(&error), "not adopted");
            None
        }
    }
}
