//! Read-only queries of clients about jobs.

use super::MasterState;
use super::job::{JobEntry, StatusContext};
use crate::api::{JobState, JobStatus, JobTrace, LogEntry, WorkLeft};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Time;
use gristmill_worker::protocol::ProgramSum;
use std::collections::BTreeSet;
use tokio::sync::watch;

/// Reason why a job cannot be described.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Absence {
    /// An earlier master ran it, and only its end is known.
    Past,
    /// It existed and has been forgotten.
    Forgotten,
    /// No job has had this number.
    Unknown,
}

impl MasterState {
    /// Status of a job; `None` if it does not exist.
    pub(crate) fn status(&self, now: Time, id: JobId) -> Option<JobStatus> {
        self.status_with(now, id, true, false).or_else(|| self.register.past(id).cloned())
    }

    /// Statuses of all jobs, oldest first, without their parts.
    pub(crate) fn statuses(&self, now: Time) -> Vec<JobStatus> {
        let present = self.jobs.keys().filter_map(|job| self.status_with(now, *job, false, false));
        self.register.past_jobs().cloned().chain(present).collect()
    }

    /// Reason why jobs of earlier masters may be missing from the list, if they may.
    pub(crate) fn register_gap(&self) -> Option<&str> {
        self.register.gap()
    }

    /// Reason why a job is absent.
    pub(crate) fn absence(&self, id: JobId) -> Absence {
        match (self.register.past(id), self.register.was_given_out(id)) {
            (Some(_), _) => Absence::Past,
            (None, true) => Absence::Forgotten,
            (None, false) => Absence::Unknown,
        }
    }

    /// True if it is a job of this master.
    pub(crate) fn has(&self, id: JobId) -> bool {
        self.jobs.contains_key(&id)
    }

    /// Status of a job for a follower. Parts are listed once the job has ended. For the process that closes the output,
    /// they are listed with their places once the job is to be published.
    pub(crate) fn followed_status(&self, now: Time, id: JobId, closes: bool) -> Option<JobStatus> {
        let Some(job) = self.jobs.get(&id) else { return self.register.past(id).cloned() };
        let publishes = closes && job.output_is_open();
        self.status_with(now, id, publishes || job.shown_state().ended(), publishes)
    }

    /// Status of a job without its parts.
    pub(super) fn followed_status_without_parts(&self, now: Time, id: JobId) -> Option<JobStatus> {
        self.status_with(now, id, false, false)
    }

    fn status_with(&self, now: Time, id: JobId, parts: bool, built: bool) -> Option<JobStatus> {
        let job = self.jobs.get(&id)?;
        let in_core = self.core.job(id).filter(|_| !job.state.ended());
        let running = in_core.as_ref().map_or([0; 2], |job| [job.maps.running, job.reduces.running]);
        let sizes = in_core.as_ref().and_then(|_| self.core.sizes(id));
        let work =
            sizes.map(|sizes| WorkLeft { whole: sizes.whole.0.map(finite), left: sizes.left.0.map(finite) });
        let backups = in_core.map(|job| job.attempts.backups);
        let (workers, slots) = (self.workers.len() as u32, self.fleet.slots);
        Some(job.status(now, id, StatusContext { running, workers, slots, parts, built, backups, work }))
    }

    /// True if another master can continue with this master's state.
    pub(crate) fn is_recoverable(&self) -> bool {
        self.journal.is_recoverable()
    }

    /// Channel on which changes of a job are announced.
    pub(crate) fn watch(&self, job: JobId) -> Option<watch::Receiver<bool>> {
        match self.jobs.get(&job) {
            Some(job) => Some(job.followers.changed.subscribe()),
            None => self.register.past(job).map(|_| watch::channel(true).1),
        }
    }

    /// Trace of a job.
    pub(crate) fn trace(&self, now: Time, job: JobId) -> Option<JobTrace> {
        let status = self.status(now, job)?;
        Some(self.jobs.get(&job)?.trace(now, status))
    }

    /// True if the job is in memory and ended under an earlier master, whose files hold more details.
    pub(crate) fn ended_before(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|job| job.ended_before)
    }

    /// User output of a job.
    pub(crate) fn logs(&self, job: JobId) -> Option<Vec<LogEntry>> {
        self.jobs.get(&job).map(|job| job.logs.entries())
    }

    /// Number of slots that run maps and reduces.
    pub(crate) fn running_by_kind(&self) -> [u32; 2] {
        let live = self.jobs.keys().filter_map(|job| self.core.job(*job));
        live.fold([0; 2], |[maps, reduces], job| [maps + job.maps.running, reduces + job.reduces.running])
    }

    /// States of all jobs whose tasks are remembered.
    pub(crate) fn job_states(&self) -> Vec<JobState> {
        self.jobs.values().map(JobEntry::shown_state).collect()
    }

    /// Programs of the jobs that have not ended.
    pub(crate) fn live_programs(&self) -> BTreeSet<ProgramSum> {
        let live = self.jobs.values().filter(|job| !job.state.ended());
        live.filter_map(|job| job.submission.program.map(|program| program.sum)).collect()
    }

    /// Number of jobs that have not ended.
    pub(crate) fn jobs_live(&self) -> u32 {
        (self.jobs.len() - self.ended.len()) as u32
    }
}

/// Replaces infinities, which JSON does not have.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { f64::MAX }
}
