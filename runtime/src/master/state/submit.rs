//! Submission of jobs: a job is checked before anything starts, and the records of old jobs are trimmed.

use super::super::recovery::RecoveryNote;
use super::super::translate;
use super::MasterState;
use super::job::{JobEntry, StatusContext};
use super::job_parts::JobKeys;
use crate::api::{ApiError, BAD_RECORDS_MAX, ErrorCode, SCHEMA, Submission};
use crate::journal::JournalRecord;
use crate::output_dir::{ClaimedOutput, check_output};
use gristmill_scheduler::catalogue::nearest;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::{MAPS_MAX, Time};
use gristmill_worker::http::Secret;
use gristmill_worker::sanitize;
use tokio::sync::watch;

/// Maximum number of maps, attempts, transfers and parts kept of all ended jobs together, the newest first; about 200
/// MB. The newest job is kept whole, however many it has.
pub(super) const TRACED_RECORDS_MAX: usize = 500_000;

/// Number of ended jobs whose logs are kept.
const LOGGED_JOBS_MAX: usize = 20;

/// Number of ended jobs that are remembered, those of earlier masters included.
pub(crate) const ENDED_JOBS_MAX: usize = 1000;

/// Maximum number of distinct pool names, if any name is a pool.
const POOLS_MAX: usize = 10_000;

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
        self.check_program(&submission)?;
        check_counts(&submission)?;
        check_output(&submission.output).map_err(|error| refuse(ErrorCode::Spec, error.to_string()))?;
        let parsed = ParsedTexts::of(&submission)?;
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
        self.check_pool(submission.pool.as_deref())?;
        self.check_quota(submission.owner.as_ref())?;
        translate::job_spec(&submission, now)
            .check()
            .map_err(|error| refuse(ErrorCode::Spec, error.to_string()))?;
        let job = self.register.next_job().map_err(|error| {
            refuse(
                ErrorCode::Register,
                format!("no number could be reserved for the job in the state folder: {error}"),
            )
        })?;
        if !submission.attached {
            // No file stays open for a job that waits. The claim names this process, and is opened again by its name.
            ClaimedOutput::adopt(&submission, Some(job)).map_err(|error| {
                let why = crate::chain(&error);
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
        let pools = self.pools.numbers.len() as u32;
        spec.pool =
            submission.pool.as_ref().map(|name| *self.pools.numbers.entry(name.clone()).or_insert(pools));
        spec.quota = self.slot_quota(submission.owner.as_ref());
        spec.pool_weight = submission.pool.as_ref().and_then(|name| self.pools.weights.get(name).copied());
        let (changed, receiver) = watch::channel(false);
        let mut entry = JobEntry::new(submission, parsed.keys, parsed.cuts, now, changed);
        let others = 0 < self.jobs_live();
        entry.shared = others || self.workers.values().any(|worker| worker.is_divided());
        if others {
            // All other jobs became shared when the second of them arrived.
            if let Some(alone) = self.alone.take().and_then(|job| self.jobs.get_mut(&job)) {
                alone.shared |= !alone.state.ended();
            }
        } else {
            self.alone = Some(job);
        }
        self.register.job_arrived(|| Some(entry.status(now, job, StatusContext::default())));
        self.jobs.insert(job, entry);
        self.events.push(Event::JobArrived { job, spec: spec.into() });
        self.forget_old_jobs();
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
        let parsed = ParsedTexts::of(&submission)?;
        self.enter_job(at, job, submission, parsed);
        Ok(())
    }

    /// Checks the program of a submission. The cluster runs its own code under the names it knows, so a submitter with
    /// other code would get results of the wrong code.
    fn check_program(&self, submission: &Submission) -> Result<(), ApiError> {
        if submission.program.is_some() {
            // Its own processes run it, and report if they do not know the job.
            return Ok(());
        }
        if submission.build != self.join_terms.build {
            let its = match submission.build.as_str() {
                "" => "not named",
                build => build,
            };
            return Err(refuse(
                ErrorCode::Build,
                format!(
                    "the submitting program differs from the cluster's (build {its} instead of {}): user functions \
                     are compiled in, so submit with the executable that master and workers run",
                    self.join_terms.build
                ),
            ));
        }
        let registry = &self.deciders.registry;
        if registry.has_plan(&submission.name) {
            return Ok(());
        }
        let near = nearest(&submission.name, registry.job_names());
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let words = format!("no job `{}` is registered in the cluster's program{near}", submission.name);
        Err(refuse(ErrorCode::JobName, words))
    }

    /// Checks the pool: if pools are defined, no other is accepted.
    fn check_pool(&self, pool: Option<&str>) -> Result<(), ApiError> {
        let Some(pool) = pool.filter(|pool| !self.pools.numbers.contains_key(*pool)) else { return Ok(()) };
        if self.pools.weights.is_empty() {
            return match self.pools.numbers.len() < POOLS_MAX {
                true => Ok(()),
                false => Err(refuse(
                    ErrorCode::Pool,
                    format!("there are {POOLS_MAX} pools already, and `{pool}` is none of them"),
                )),
            };
        }
        let near = nearest(pool, self.pools.numbers.keys().map(String::as_str));
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let known: Vec<&str> = self.pools.numbers.keys().map(String::as_str).collect();
        Err(refuse(
            ErrorCode::Pool,
            format!("there is no pool `{pool}`; {near}There is {}", known.join(", ")),
        ))
    }

    /// Trims what is kept of ended jobs. A job that is still followed is kept whole.
    fn forget_old_jobs(&mut self) {
        // Those of earlier masters are dropped first.
        let past = self.register.past_jobs().len();
        for _ in 0..past.min((past + self.ended.len()).saturating_sub(ENDED_JOBS_MAX)) {
            self.register.forget_oldest();
        }
        let too_many = self.ended.len().saturating_sub(ENDED_JOBS_MAX);
        let jobs = &mut self.jobs;
        // The parts of a job whose output is still open are needed to close it.
        let open = |job: &JobEntry| job.followers.client && !*job.output.closed.borrow();
        let followed = |job: &JobEntry| 0 < job.followers.changed.receiver_count() || open(job);
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
}

/// Values of a submission parsed from text.
struct ParsedTexts {
    keys: JobKeys,
    cuts: Vec<Vec<u8>>,
}

impl ParsedTexts {
    fn of(submission: &Submission) -> Result<Self, ApiError> {
        let key = |text: &str, why: &str| -> Result<Secret, ApiError> {
            text.parse().map_err(|_| refuse(ErrorCode::Key, why))
        };
        let segments = key(&submission.key, "the job's key is not a secret")?;
        let permits = key(&submission.permit_key, "the key of the job's permits is not a secret")?;
        let cuts = submission.cuts.iter().map(|cut| from_hex(cut)).collect::<Option<Vec<_>>>();
        let cuts = cuts.ok_or_else(|| refuse(ErrorCode::Cuts, "a cut is not hexadecimal text"))?;
        Ok(Self { keys: JobKeys { segments, permits }, cuts })
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|pair| {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            Some((high? * 16 + low?) as u8)
        })
        .collect()
}
