//! Submission of jobs, which are checked before anything starts, and ends that their clients cause.

use super::super::recovery::RecoveryNote;
use super::super::translate;
use super::MasterState;
use super::job::JobEntry;
use super::job_parts::JobKeys;
use super::quotas::check_quota;
use crate::api::{ApiError, BAD_RECORDS_MAX, ErrorCode, SCHEMA, Submission};
use crate::journal::JournalRecord;
use crate::output_dir::{ClaimedOutput, check_output};
use crate::registry::Registry;
use data_encoding::HEXLOWER_PERMISSIVE;
use gristmill_scheduler::catalogue::nearest;
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::{MAPS_MAX, Time};
use gristmill_worker::http::Secret;
use gristmill_worker::sanitize;
use tokio::sync::watch;

/// Longest parameters of a job as JSON, bytes.
const PARAMETERS_BYTES_MAX: usize = 1 << 20;

/// Longest total of the column names of an output, bytes.
const COLUMNS_BYTES_MAX: usize = 1 << 20;

/// Maximum number of remarks of a plan.
const REMARKS_MAX: usize = 100;

/// Rejects texts of a submission that are too many, too long or unsafe to display.
fn check_words(submission: &mut Submission) -> Result<(), ApiError> {
    let names = [("the name of the job", Some(&submission.name)), ("the label", submission.label.as_ref())];
    let submitter = submission.submitter.as_ref().map(|submitter| &submitter.host);
    let more = [("the pool", submission.pool.as_ref()), ("the submitter's host", submitter)];
    for (what, name) in names.into_iter().chain(more) {
        let checked = name.map_or(Ok(()), |name| sanitize::check_name(what, name));
        checked.map_err(|error| refuse(ErrorCode::Name, error.to_string()))?;
    }
    let counts = [
        ("bytes of parameters", submission.parameters.len(), PARAMETERS_BYTES_MAX),
        ("remarks", submission.remarks.len(), REMARKS_MAX),
        (
            "bytes of names of columns",
            submission.columns.iter().flatten().map(String::len).sum(),
            COLUMNS_BYTES_MAX,
        ),
    ];
    for (what, count, most) in counts {
        if most < count {
            return Err(refuse(ErrorCode::Name, format!("the job has {count} {what}; {most} are allowed")));
        }
    }
    for remark in &mut submission.remarks {
        *remark = sanitize::message(remark);
    }
    Ok(())
}

/// Rejects numbers of tasks, of cuts and of bytes that are too large for the ledger.
fn check_counts(submission: &Submission) -> Result<(), ApiError> {
    let Submission { splits, reduces, cuts, .. } = submission;
    let bytes = splits.iter().try_fold(0_u64, |sum, split| sum.checked_add(split.bytes()));
    let words = match () {
        () if splits.len() > MAPS_MAX as usize => {
            format!("{} maps are more than the {MAPS_MAX} that a job can have", splits.len())
        }
        () if cuts.len() > reduces.saturating_sub(1) as usize => {
            format!("{} cuts are too many for {reduces} reduces", cuts.len())
        }
        () if bytes.is_none() => format!("the splits together have more than {} bytes", u64::MAX),
        () => return Ok(()),
    };
    Err(refuse(ErrorCode::Spec, words))
}

fn refuse(code: ErrorCode, message: impl Into<String>) -> ApiError {
    ApiError { code, message: message.into() }
}

impl MasterState {
    /// Submits a job. Returns its number and the channel on which its changes are announced.
    ///
    /// # Errors
    /// A submission that cannot be carried out.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        mut submission: Submission,
    ) -> Result<(JobId, watch::Receiver<bool>), ApiError> {
        if submission.schema != SCHEMA {
            return Err(refuse(ErrorCode::Schema, format!("schema {} is not {SCHEMA}", submission.schema)));
        }
        if let Some(trouble) = self.journal.trouble() {
            let words = format!("the master takes no jobs for now, as it could not keep them: {trouble}");
            return Err(refuse(ErrorCode::Journal, words));
        }
        check_words(&mut submission)?;
        check_program(&submission, &self.join_terms.build, &self.deciders.registry)?;
        check_counts(&submission)?;
        check_output(&submission.output).map_err(|error| refuse(ErrorCode::Spec, error.to_string()))?;
        let parsed = ParsedTexts::parse(&submission)?;
        submission.bad_records_max = submission.bad_records_max.min(BAD_RECORDS_MAX);
        if submission.deadline_ns == Some(0) {
            return Err(refuse(
                ErrorCode::Deadline,
                "the deadline is over already: it is 0 s after the job's arrival",
            ));
        }
        if let Some(exact) = &submission.exact {
            exact.validate().map_err(|reason| refuse(ErrorCode::Exact, reason))?;
        }
        self.pools.check(submission.pool.as_deref())?;
        check_quota(&self.jobs, submission.owner.as_ref())?;
        translate::job_spec(&submission, now)
            .check()
            .map_err(|error| refuse(ErrorCode::Spec, error.to_string()))?;
        let job = self.jobs.register.next_job().map_err(|error| {
            refuse(
                ErrorCode::Register,
                format!("no number could be reserved for the job in the state directory: {error}"),
            )
        })?;
        if !submission.attached {
            // No file stays open for a job that waits. The claim names this process, and is opened again by its name.
            ClaimedOutput::adopt(&submission, Some(job)).map_err(|error| {
                let why = gristmill_worker::error_text::chain(&error);
                let code = if error.is_of_resources() { ErrorCode::Resources } else { ErrorCode::NotShared };
                refuse(code, format!("the master cannot use the output directory of a detached job: {why}"))
            })?;
        }
        if submission.pool.is_some() && !self.core.knows_pools() {
            let policy = self.core.policy_name();
            let words = format!("the policy `{policy}` does not look at pools; `fair` does");
            submission.remarks.push(words);
        }
        self.journal.note(|| JournalRecord::Job {
            job,
            name: submission.name.clone(),
            parameters: submission.parameters.clone(),
        });
        self.journal.keep(|| RecoveryNote::Submitted { at: now, job, submission: &submission });
        Ok((job, self.enter_job(now, job, submission, parsed)))
    }

    /// Adds a job to this master's jobs.
    fn enter_job(
        &mut self,
        now: Time,
        job: JobId,
        submission: Submission,
        parsed: ParsedTexts,
    ) -> watch::Receiver<bool> {
        let mut spec = translate::job_spec(&submission, now);
        spec.pool = submission.pool.as_ref().map(|name| self.pools.number(name));
        spec.quota = self.pools.slot_quota(submission.owner.as_ref());
        spec.pool_weight = submission.pool.as_ref().and_then(|name| self.pools.weight(name));
        let (changed, receiver) = watch::channel(false);
        let entry = JobEntry::new(submission, parsed.keys, parsed.cuts, now, changed);
        let divided = self.fleet.workers.values().any(|worker| worker.is_divided());
        self.jobs.arrive(now, job, entry, divided);
        self.events.push(Event::JobArrived { job, spec: spec.into() });
        receiver
    }

    /// Enters a job again that an earlier master accepted.
    ///
    /// # Errors
    /// A submission that no master accepts.
    pub(super) fn submitted_before(
        &mut self,
        at: Time,
        job: JobId,
        submission: Submission,
    ) -> Result<(), ApiError> {
        check_counts(&submission)?;
        let parsed = ParsedTexts::parse(&submission)?;
        self.enter_job(at, job, submission, parsed);
        Ok(())
    }

    /// Cancels a job. Returns true if the job exists.
    pub(crate) fn cancel(&mut self, job: JobId) -> bool {
        self.events.push(Event::JobCancelled { job });
        self.jobs.has(job)
    }

    /// Enters that the client on which a job depends is gone.
    pub(crate) fn client_lost(&mut self, job: JobId) {
        let Some(entry) = self.jobs.get_mut(job) else { return };
        entry.followers.client = false;
        self.journal.keep(|| RecoveryNote::ClientLost { job });
        if !entry.state.ended() {
            self.events.push(Event::JobFailed { job, cause: External::ClientLost });
        } else if !*entry.output.closed.borrow() && !self.replaying {
            // The job ended while its client was already gone, and its output is still open.
            self.jobs.close_for_client(job);
        }
    }

    /// Enters that the output of a job has been finished or abandoned.
    pub(crate) fn closed(&mut self, now: Time, job: JobId, failed: Option<String>) {
        if let Some(outcome) = self.jobs.closed(now, job, failed, &mut self.journal) {
            self.jobs.end(now, job, outcome, self.fleet.size(), &mut self.journal);
        }
    }
}

/// Checks the program of a submission. The cluster runs its own code under the names it knows, so a submitter with
/// other code would get results of the wrong code.
fn check_program(submission: &Submission, build: &str, registry: &Registry) -> Result<(), ApiError> {
    if submission.build != build {
        let its = match submission.build.as_str() {
            "" => "not named",
            its => its,
        };
        return Err(refuse(
            ErrorCode::Build,
            format!(
                "the submitting program differs from the cluster's (build {its} instead of {build}): user functions \
                 are compiled in, so submit with the executable that master and workers run; for a job of your own, \
                 start them from its program"
            ),
        ));
    }
    if registry.has_plan(&submission.name) {
        return Ok(());
    }
    let near = nearest(&submission.name, registry.job_names());
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let words = format!(
        "no job `{}` is registered in the cluster's program{near}; for a job of your own, start master and workers from \
         its program",
        submission.name
    );
    Err(refuse(ErrorCode::JobName, words))
}

/// Values of a submission parsed from text.
struct ParsedTexts {
    keys: JobKeys,
    cuts: Vec<Vec<u8>>,
}

impl ParsedTexts {
    fn parse(submission: &Submission) -> Result<Self, ApiError> {
        let key = |text: &str, why: &str| -> Result<Secret, ApiError> {
            text.parse().map_err(|_| refuse(ErrorCode::Key, why))
        };
        let segments = key(&submission.key, "the job's key is not a secret")?;
        let permits = key(&submission.permit_key, "the key of the job's permits is not a secret")?;
        let cuts = submission.cuts.iter().map(|cut| HEXLOWER_PERMISSIVE.decode(cut.as_bytes()));
        let cuts = cuts.collect::<Result<_, _>>();
        let cuts = cuts.map_err(|_| refuse(ErrorCode::Cuts, "a cut is not hexadecimal text"))?;
        Ok(Self { keys: JobKeys { segments, permits }, cuts })
    }
}
