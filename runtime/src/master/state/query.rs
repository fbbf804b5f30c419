//! Read-only queries of clients about jobs and workers.

use super::deciders::LiveDeciders;
use super::fleet::Fleet;
use super::forecast::Forecast;
use super::job::StatusContext;
use super::jobs::Jobs;
use crate::api::{JobStatus, JobTrace, WorkLeft, WorkerStatus};
use gristmill_scheduler::core::Core;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Time;

/// View of the parts of the state that queries combine.
#[derive(Clone, Copy)]
pub(crate) struct Queries<'a> {
    pub(super) core: &'a Core,
    pub(super) jobs: &'a Jobs,
    pub(super) fleet: &'a Fleet,
    /// The last forecast and what another one needs; `None` to forecast nothing.
    pub(super) forecast: Option<(&'a Forecast, &'a LiveDeciders)>,
}

impl Queries<'_> {
    /// Live workers.
    pub(crate) fn workers(&self) -> Vec<WorkerStatus> {
        self.fleet.statuses(self.core)
    }

    /// Status of a job; `None` if it does not exist.
    pub(crate) fn status(&self, now: Time, id: JobId) -> Option<JobStatus> {
        self.status_with(now, id, true, false).or_else(|| self.jobs.register.past(id).cloned())
    }

    /// Statuses of all jobs, oldest first, without their parts.
    pub(crate) fn statuses(&self, now: Time) -> Vec<JobStatus> {
        let present = self.jobs.entries.keys().filter_map(|job| self.status_with(now, *job, false, false));
        self.jobs.register.past_jobs().cloned().chain(present).collect()
    }

    /// Status of a job for a follower. Parts are listed once the job has ended. For the process that closes the output,
    /// they are listed with their places once the job is to be published.
    pub(crate) fn followed_status(&self, now: Time, id: JobId, closes: bool) -> Option<JobStatus> {
        let Some(job) = self.jobs.get(id) else { return self.jobs.register.past(id).cloned() };
        let publishes = closes && job.output_is_open();
        self.status_with(now, id, publishes || job.shown_state().ended(), publishes)
    }

    /// Status of a job without its parts.
    pub(super) fn status_without_parts(&self, now: Time, id: JobId) -> Option<JobStatus> {
        self.status_with(now, id, false, false)
    }

    fn status_with(&self, now: Time, id: JobId, parts: bool, built: bool) -> Option<JobStatus> {
        let job = self.jobs.get(id)?;
        let in_core = self.core.job(id).filter(|_| !job.state.ended());
        let running = in_core.as_ref().map_or([0; 2], |job| [job.maps.running, job.reduces.running]);
        let sizes = in_core.as_ref().and_then(|_| self.core.sizes(id));
        let work =
            sizes.map(|sizes| WorkLeft { whole: sizes.whole.0.map(finite), left: sizes.left.0.map(finite) });
        let backups = in_core.map(|job| job.attempts.backups);
        let time_left =
            self.forecast.and_then(|(forecast, deciders)| forecast.of_job(now, id, self.core, deciders));
        let (workers, slots) = self.fleet.size();
        let context = StatusContext { running, workers, slots, parts, built, backups, work, time_left };
        Some(job.status(now, id, context))
    }

    /// Trace of a job.
    pub(crate) fn trace(&self, now: Time, job: JobId) -> Option<JobTrace> {
        let status = self.status(now, job)?;
        Some(self.jobs.get(job)?.trace(now, status))
    }

    /// Number of slots that run maps and reduces.
    pub(crate) fn running_by_kind(&self) -> [u32; 2] {
        let live = self.jobs.entries.keys().filter_map(|job| self.core.job(*job));
        live.fold([0; 2], |[maps, reduces], job| [maps + job.maps.running, reduces + job.reduces.running])
    }
}

/// Replaces infinities, which JSON does not have.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { f64::MAX }
}
