//! All jobs that this master remembers: those that are live, and the last ones that ended.
//!
//! A job ends for the core when its last task is done, and for its clients when its output is closed and the end is
//! written down.

use super::super::kept_job::KeptJob;
use super::super::recovery::RecoveryNote;
use super::super::register::Register;
use super::estimates::outlook;
use super::job::{JobEntry, StatusContext};
use super::journal_writer::JournalWriter;
use crate::api::{ApiError, BuiltPart, ErrorCode, FailureCode, JobFailure, JobState, LogEntry, Submission};
use crate::output_dir::{ClaimedOutput, Success};
use gristmill_scheduler::command::{Cause, Outcome};
use gristmill_scheduler::core::Core;
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::http::Secret;
use gristmill_worker::sanitize;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::watch;

/// Maximum number of maps, attempts, transfers and parts kept of all ended jobs together, the newest first; about 200
/// MB. The newest job is kept whole, however many it has.
pub(super) const TRACED_RECORDS_MAX: usize = 500_000;

/// Number of ended jobs whose logs are kept.
const LOGGED_JOBS_MAX: usize = 20;

/// Number of ended jobs that are remembered, those of earlier masters included.
pub(crate) const ENDED_JOBS_MAX: usize = 1000;

/// The jobs.
pub(crate) struct Jobs {
    pub(super) entries: BTreeMap<JobId, JobEntry>,
    /// Ended jobs, by their end.
    ended: BTreeSet<(Time, JobId)>,
    /// The last job that arrived when no other was live, until another arrives.
    alone: Option<JobId>,
    /// Allocates job numbers and keeps the outcomes of jobs of earlier masters.
    pub(in super::super) register: Register,
    /// Outputs to be finished or abandoned by the master, because no submitter closes them.
    pub(in super::super) closings: Vec<Closing>,
    /// Ended jobs, to be archived for later masters.
    pub(in super::super) archived: Vec<KeptJob>,
}

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

/// Connection by which a client has reached its master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClientRoute {
    /// On the same machine.
    Local,
    /// Over a network, which may break, and from a machine that may sleep.
    Network,
}

impl Jobs {
    pub(super) fn new(register: Register) -> Self {
        Self {
            entries: BTreeMap::new(),
            ended: BTreeSet::new(),
            alone: None,
            register,
            closings: Vec::new(),
            archived: Vec::new(),
        }
    }

    pub(super) fn get(&self, id: JobId) -> Option<&JobEntry> {
        self.entries.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: JobId) -> Option<&mut JobEntry> {
        self.entries.get_mut(&id)
    }

    /// Jobs that have not ended.
    pub(super) fn live(&self) -> impl Iterator<Item = &JobEntry> {
        self.entries.values().filter(|job| !job.state.ended())
    }

    /// Jobs that have not ended.
    pub(super) fn live_mut(&mut self) -> impl Iterator<Item = &mut JobEntry> {
        self.entries.values_mut().filter(|job| !job.state.ended())
    }

    /// Number of jobs that have not ended.
    pub(crate) fn live_count(&self) -> u32 {
        (self.entries.len() - self.ended.len()) as u32
    }

    /// Adds an incident to every live job.
    pub(super) fn incident_in_all(&mut self, now: Time, text: &str) {
        for job in self.live_mut() {
            job.incident(now, text);
            job.touch();
        }
    }

    /// Adds a job that arrived. `divided` is true if workers have separate slots for maps and reduces.
    pub(super) fn arrive(&mut self, now: Time, id: JobId, mut entry: JobEntry, divided: bool) {
        let others = 0 < self.live_count();
        entry.shared = others || divided;
        if others {
            // All other jobs became shared when the second of them arrived.
            if let Some(alone) = self.alone.take().and_then(|job| self.get_mut(job)) {
                alone.shared |= !alone.state.ended();
            }
        } else {
            self.alone = Some(id);
        }
        self.register.job_arrived(|| entry.status(now, id, StatusContext::default()));
        self.entries.insert(id, entry);
        self.forget_old();
    }

    /// Adds a job of an earlier master as it was.
    pub(super) fn restore(&mut self, id: JobId, entry: JobEntry) {
        if let Some(ended) = entry.times.ended.filter(|_| entry.state.ended()) {
            self.ended.insert((ended, id));
        }
        if !entry.state.ended() && !entry.shared {
            self.alone = Some(id);
        }
        self.entries.insert(id, entry);
    }

    /// Enters all jobs into another register, that of the master that continues with them.
    pub(super) fn move_to(&mut self, now: Time, register: Register) {
        self.register = register;
        for (id, job) in &mut self.entries {
            self.register.came_back(*id);
            job.times.count_back(now);
            let status = job.status(now, *id, StatusContext::default());
            job.ended_before = status.state.ended();
            match job.ended_before {
                true => self.register.ended(|| status),
                false => self.register.job_arrived(|| status),
            }
        }
    }

    /// Trims what is kept of ended jobs. A job that is still followed is kept whole.
    fn forget_old(&mut self) {
        // Those of earlier masters are dropped first.
        let past = self.register.past_jobs().len();
        for _ in 0..past.min((past + self.ended.len()).saturating_sub(ENDED_JOBS_MAX)) {
            self.register.forget_oldest();
        }
        let too_many = self.ended.len().saturating_sub(ENDED_JOBS_MAX);
        let jobs = &mut self.entries;
        // The parts of a job whose output is still open are needed to close it.
        let followed = |job: &JobEntry| 0 < job.followers.changed.receiver_count() || job.is_attended();
        for (at, id) in self.ended.iter().copied().take(too_many).collect::<Vec<_>>() {
            if !jobs.get(&id).is_some_and(followed) {
                jobs.remove(&id);
                self.ended.remove(&(at, id));
                self.register.forget(id);
            }
        }
        let mut records = 0;
        for (newer, (_, id)) in self.ended.iter().rev().enumerate() {
            let Some(job) = jobs.get_mut(id) else { continue };
            if LOGGED_JOBS_MAX <= newer {
                job.logs = Default::default();
            }
            records += job.records.len() + job.output.parts.len() + job.bad_records.total() as usize;
            if 0 < newer && TRACED_RECORDS_MAX < records && !followed(job) {
                job.records.forget_trace();
                job.estimates = Default::default();
                job.output.parts = Default::default();
                job.bad_records = Default::default();
            }
        }
    }

    /// Enters that a running attempt has read `bytes` bytes in total, after `before` at the last report.
    pub(super) fn read_in_flight(&mut self, attempt: AttemptId, before: u64, bytes: u64) {
        if attempt.task.kind == TaskKind::Map
            && let Some(job) = self.get_mut(attempt.task.job)
        {
            job.input.bytes_in_flight =
                job.input.bytes_in_flight.saturating_add(bytes).saturating_sub(before);
        }
    }

    /// Notes the jobs whose last segment has arrived with these facts. A reduce that moves later fetches its segments
    /// again, and the shuffle stays done.
    pub(super) fn notice_shuffles_done(&mut self, now: Time, facts: &[Event], core: &Core) {
        for fact in facts {
            let (Event::Fetched { job, .. }
            | Event::MapFinished { attempt: AttemptId { task: TaskId { job, .. }, .. }, .. }) = fact
            else {
                continue;
            };
            let Some(entry) = self.get_mut(*job) else { continue };
            let awaited = entry.times.maps_done.is_some() && entry.times.shuffle_done.is_none();
            if awaited && 0 < entry.submission.reduces && core.shuffle_is_done(*job) {
                entry.times.shuffle_done = Some(now);
            }
        }
    }

    /// Samples the sizes of jobs whose tasks finished with these facts, and the deadlines of jobs that arrived.
    pub(super) fn sample_estimates(&mut self, now: Time, facts: &[Event], core: &Core) {
        let mut last = None;
        for fact in facts {
            let job = match fact {
                Event::MapFinished { attempt, .. } | Event::ReduceFinished { attempt, .. } => {
                    attempt.task.job
                }
                Event::JobArrived { job, spec } => {
                    if let Some(outlook) = outlook(now, *job, spec.deadline, core)
                        && let Some(entry) = self.get_mut(*job)
                    {
                        entry.outlook = Some(outlook);
                    }
                    *job
                }
                _ => continue,
            };
            // Facts of one job mostly follow each other.
            if last.replace(job) != Some(job)
                && let Some(entry) = self.get_mut(job)
            {
                entry.estimates.sample(now, job, entry.records.maps_succeeded, core);
            }
        }
    }

    /// Adds user output of a worker. Output of an unknown attempt is kept with every job that runs there.
    pub(super) fn add_log(
        &mut self,
        jobs: &[JobId],
        from: WorkerId,
        attempt: Option<AttemptId>,
        bytes: &[u8],
    ) {
        for job in jobs {
            if let Some(job) = self.get_mut(*job) {
                job.logs.add(attempt, from, bytes);
            }
        }
    }
}

/// Queries that need nothing but the jobs.
impl Jobs {
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
        self.entries.contains_key(&id)
    }

    /// Channel on which changes of a job are announced.
    pub(crate) fn watch(&self, job: JobId) -> Option<watch::Receiver<bool>> {
        match self.get(job) {
            Some(job) => Some(job.followers.changed.subscribe()),
            None => self.register.past(job).map(|_| watch::channel(true).1),
        }
    }

    /// True if the job is in memory and ended under an earlier master, whose files hold more details.
    pub(crate) fn ended_before(&self, job: JobId) -> bool {
        self.get(job).is_some_and(|job| job.ended_before)
    }

    /// User output of a job.
    pub(crate) fn logs(&self, job: JobId) -> Option<Vec<LogEntry>> {
        self.get(job).map(|job| job.logs.entries())
    }

    /// States of all jobs whose tasks are remembered.
    pub(crate) fn states(&self) -> Vec<JobState> {
        self.entries.values().map(JobEntry::shown_state).collect()
    }

    /// True if a job with this key exists here.
    pub(crate) fn has_key(&self, key: &Secret) -> bool {
        self.entries.values().any(|job| job.keys.permits == *key)
    }

    /// Channel on which the client's closing of a job's output is announced.
    pub(crate) fn output_closed(&self, job: JobId) -> Option<watch::Receiver<bool>> {
        self.get(job).map(|job| job.output.closed.subscribe())
    }
}

/// Clients of attached jobs that lose their connection to the master, or whose master is replaced, and reconnect.
impl Jobs {
    /// Attached jobs whose client is not lost and has not closed the output.
    pub(crate) fn attended(&self) -> Vec<JobId> {
        self.entries.iter().filter(|(_, job)| job.is_attended()).map(|(id, _)| *id).collect()
    }

    /// Enters that this job's client is disconnected. Returns since when; the next master continues from that time.
    pub(crate) fn client_away(&mut self, now: Time, job: JobId, journal: &mut JournalWriter) -> Time {
        let Some(entry) = self.get_mut(job) else { return now };
        if entry.followers.away.is_none() {
            entry.followers.away = Some(now);
            journal.keep(|| RecoveryNote::ClientAway { job, since: Some(now) });
        }
        entry.followers.away.unwrap_or(now)
    }

    /// Connection by which the client of this job may return to a recoverable master. `None` if it need not.
    pub(crate) fn client_returns(&self, job: JobId) -> Option<ClientRoute> {
        let entry = self.get(job).filter(|job| job.is_attended())?;
        Some(match entry.submission.submitter {
            None => ClientRoute::Local,
            Some(_) => ClientRoute::Network,
        })
    }

    /// Finds the job that a client submitted with this key. The client may not have received its number. Returns the
    /// job, the channel on which its changes are announced, and if that client still closes its output.
    ///
    /// # Errors
    /// A key that belongs to no job here.
    pub(crate) fn follow_again(
        &mut self,
        key: &Secret,
        journal: &mut JournalWriter,
    ) -> Result<(JobId, watch::Receiver<bool>, bool), ApiError> {
        let found = self.entries.iter_mut().find(|(_, job)| job.keys.permits == *key);
        let Some((id, job)) = found else {
            let message = "the master knows no job of this client any more".to_owned();
            return Err(ApiError { code: ErrorCode::Job, message });
        };
        if job.followers.away.take().is_some() {
            journal.keep(|| RecoveryNote::ClientAway { job: *id, since: None });
        }
        Ok((*id, job.followers.changed.subscribe(), job.followers.client))
    }
}

/// Ends of jobs, and the closing of their output before they count as ended.
impl Jobs {
    /// Closes the output of a job that is over for the core. `left` is true if another master may have closed it.
    pub(super) fn close_output(&mut self, now: Time, id: JobId, outcome: Outcome, left: bool) {
        let Some(job) = self.get_mut(id) else { return };
        let submission = job.submission_without_inputs();
        let status =
            job.status(now, id, StatusContext { parts: true, built: true, ..StatusContext::default() });
        let success = (outcome == Outcome::Succeeded)
            .then(|| Success::from_status(&status, submission.columns.clone()));
        self.closings.push(Closing { job: id, submission, success, built: status.built, left });
    }

    /// Closes the output of an ended job whose client died before it had done so.
    pub(super) fn close_for_client(&mut self, id: JobId) {
        let Some(job) = self.get(id) else { return };
        let outcome = match job.state {
            JobState::Succeeded => Outcome::Succeeded,
            _ => Outcome::Cancelled,
        };
        self.close_output(Time::ZERO, id, outcome, outcome == Outcome::Succeeded);
    }

    /// Enters that the client that follows a job has closed its output, or failed to.
    pub(crate) fn client_closed(
        &mut self,
        now: Time,
        id: JobId,
        failed: Option<String>,
        journal: &mut JournalWriter,
    ) {
        let Some(job) = self.get_mut(id).filter(|job| job.state.ended()) else { return };
        if *job.output.closed.borrow() {
            return;
        }
        job.output.closed.send_replace(true);
        journal.keep(|| RecoveryNote::ClientClosed { at: now, job: id, failed: failed.as_deref() });
        match failed {
            Some(reason) => job.output_lost(FailureCode::Output, "the output could not be finished", &reason),
            None => job.touch(),
        }
        self.register_end(now, id);
    }

    /// Enters that the output of a job has been finished or abandoned. Returns the outcome with which the job ends now,
    /// if it had not ended before.
    pub(super) fn closed(
        &mut self,
        now: Time,
        job: JobId,
        failed: Option<String>,
        journal: &mut JournalWriter,
    ) -> Option<Outcome> {
        let entry = self.get_mut(job)?;
        journal.keep(|| RecoveryNote::Closed { at: now, job, failed: failed.as_deref() });
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
            return None;
        };
        let Some(reason) = failed else { return Some(outcome) };
        let message = "the output could not be finished".to_owned();
        let detail = Some(sanitize::message(&reason));
        entry.failures.of_job = Some(JobFailure { code: FailureCode::Output, message, detail });
        let cause = Cause::External { cause: External::OutputUnavailable };
        Some(Outcome::Failed { cause })
    }

    /// Ends a job for good, and writes the end to the register. `fleet` is the number of workers and of their slots.
    pub(super) fn end(
        &mut self,
        now: Time,
        id: JobId,
        outcome: Outcome,
        fleet: (u32, u32),
        journal: &mut JournalWriter,
    ) {
        let Some(job) = self.get_mut(id) else { return };
        job.end(now, outcome);
        job.fleet_at_end = Some(fleet);
        let open = job.output_is_open();
        job.end_is_kept_back |= journal.keeps_back_end(id, job.submission.sync);
        self.ended.insert((now, id));
        // A success requires an output. If the client closes it, the success is written down after that.
        if !open {
            self.register_end(now, id);
        }
    }

    /// Writes the end of a job to the register.
    fn register_end(&mut self, now: Time, id: JobId) {
        let Some(job) = self.entries.get_mut(&id) else { return };
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
        self.archived.extend(kept);
        self.register.ended(|| status);
    }

    /// Reports ends that are written down now.
    pub(super) fn report_ends(&mut self, ended: impl IntoIterator<Item = JobId>) {
        for id in ended {
            if let Some(job) = self.get_mut(id) {
                job.end_is_kept_back = false;
                job.touch();
            }
        }
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
        self.entries.values().filter(lacks_end).filter_map(|job| adopted(&job.submission)).collect()
    }
}

/// Opens the output of a job whose client does not close it, if this master can reach it.
fn adopted(submission: &Submission) -> Option<ClaimedOutput> {
    match ClaimedOutput::adopt(submission, None) {
        Ok(output) => Some(output),
        Err(error) => {
            tracing::debug!(output = %submission.output, error = gristmill_worker::error_text::chain(&error), "not adopted");
            None
        }
    }
}
