//! Quotas of tokens: limits on what the jobs submitted with one token may use together.
//!
//! Jobs are counted when one arrives. Slots are limited by the core, by a number for each token. Bytes are checked when
//! a job arrives, and whenever a job has written output.

use super::job::JobEntry;
use super::jobs::Jobs;
use crate::api::{ApiError, ErrorCode, FailureCode, JobFailure, JobOwner};
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::JobId;

fn refuse(words: String) -> ApiError {
    ApiError { code: ErrorCode::Quota, message: words }
}

/// Bytes used by a live job: the output of its maps that need not run again, and the parts that are built.
fn put_out(job: &JobEntry) -> u64 {
    let totals = &job.records.sums.totals;
    let of_maps = if job.submission.reduces == 0 { 0 } else { totals.map_bytes_out };
    of_maps.saturating_add(totals.bytes_out)
}

fn live_jobs_of<'a>(jobs: &'a Jobs, token: &'a str) -> impl Iterator<Item = &'a JobEntry> {
    jobs.live().filter(move |job| job.submission.owner.as_ref().is_some_and(|owner| owner.token == token))
}

/// Bytes used by the live jobs of a token.
fn bytes_of(jobs: &Jobs, token: &str) -> u64 {
    live_jobs_of(jobs, token).map(put_out).fold(0, u64::saturating_add)
}

/// Rejects a job that exceeds the quota of its token.
pub(super) fn check_quota(jobs: &Jobs, owner: Option<&JobOwner>) -> Result<(), ApiError> {
    let Some(JobOwner { token, quota }) = owner else { return Ok(()) };
    if let Some(most) = quota.jobs_max {
        let live = live_jobs_of(jobs, token).count();
        if most as usize <= live {
            return Err(refuse(format!(
                "{live} jobs of the token {token} have not ended, and its quota is {most}: wait for one of them to end, \
                 or cancel one"
            )));
        }
    }
    let taken = bytes_of(jobs, token);
    match quota.disk_bytes_max {
        Some(most) if most <= taken => Err(refuse(format!(
            "the live jobs of the token {token} take {taken} bytes of disk, and its quota is {most}: wait for one of \
             them to end, or cancel one"
        ))),
        _ => Ok(()),
    }
}

/// Fails a job that has written output if its token's jobs now exceed their quota. Returns the fact to be entered then.
pub(super) fn hold_to_quota(jobs: &mut Jobs, job: JobId) -> Option<Event> {
    let entry = jobs.get(job).filter(|entry| !entry.state.ended())?;
    let JobOwner { token, quota } = entry.submission.owner.as_ref()?;
    let most = quota.disk_bytes_max?;
    let taken = bytes_of(jobs, token);
    if taken <= most || entry.failures.of_job.is_some() || entry.output.closing.is_some() {
        return None;
    }
    let detail =
        format!("the live jobs of the token {token} take {taken} bytes of disk, and its quota is {most}");
    jobs.get_mut(job)?.failures.of_job = Some(JobFailure {
        code: FailureCode::Limit,
        message: "passed the quota of its token".to_owned(),
        detail: Some(detail),
    });
    Some(Event::JobFailed { job, cause: External::LimitPassed })
}
