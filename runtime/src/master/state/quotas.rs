//! Quotas of tokens: limits on what the jobs submitted with one token may use together.
//!
//! Jobs are counted when one arrives. Slots are limited by the core, by a number for each token. Bytes are checked when
//! a job arrives, when a program arrives, and whenever a job has written output.

use super::MasterState;
use super::job::JobEntry;
use crate::api::{ApiError, ErrorCode, FailureCode, JobFailure, JobOwner};
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::job::SlotQuota;
use gristmill_worker::protocol::ProgramSum;
use std::collections::BTreeMap;

fn refuse(words: String) -> ApiError {
    ApiError { code: ErrorCode::Quota, message: words }
}

/// Bytes used by a live job: the output of its maps that need not run again, and the parts that are built.
fn put_out(job: &JobEntry) -> u64 {
    let totals = &job.records.sums.totals;
    let of_maps = if job.submission.reduces == 0 { 0 } else { totals.map_bytes_out };
    of_maps.saturating_add(totals.bytes_out)
}

impl MasterState {
    fn live_jobs_of<'a>(&'a self, token: &'a str) -> impl Iterator<Item = &'a JobEntry> {
        self.jobs.values().filter(move |job| {
            !job.state.ended() && job.submission.owner.as_ref().is_some_and(|owner| owner.token == token)
        })
    }

    /// Bytes used by the live jobs of a token, with the programs they were shipped with.
    fn bytes_of(&self, token: &str) -> u64 {
        let programs: BTreeMap<ProgramSum, u64> = self
            .live_jobs_of(token)
            .filter_map(|job| job.submission.program)
            .map(|program| (program.sum, program.bytes))
            .collect();
        let bytes = self.live_jobs_of(token).map(put_out).chain(programs.into_values());
        bytes.fold(0, u64::saturating_add)
    }

    /// Rejects a job that exceeds the quota of its token.
    pub(super) fn check_quota(&self, owner: Option<&JobOwner>) -> Result<(), ApiError> {
        let Some(JobOwner { token, quota }) = owner else { return Ok(()) };
        if let Some(most) = quota.jobs_max {
            let live = self.live_jobs_of(token).count();
            if most as usize <= live {
                return Err(refuse(format!(
                    "{live} jobs of the token {token} have not ended, and its quota is {most}: wait for one of them to end, \
                     or cancel one"
                )));
            }
        }
        self.check_bytes(owner, 0)
    }

    /// Rejects this many more bytes if they exceed the quota of the token.
    pub(crate) fn check_bytes(&self, owner: Option<&JobOwner>, more: u64) -> Result<(), ApiError> {
        let Some(JobOwner { token, quota }) = owner else { return Ok(()) };
        let Some(most) = quota.disk_bytes_max else { return Ok(()) };
        let taken = self.bytes_of(token);
        if taken.saturating_add(more.max(1)) <= most {
            return Ok(());
        }
        Err(refuse(format!(
            "the live jobs of the token {token} take {taken} bytes of disk, and its quota is {most}: wait for one of them \
             to end, or cancel one"
        )))
    }

    /// Slot quota that the core enforces for a job.
    pub(super) fn slot_quota(&mut self, owner: Option<&JobOwner>) -> Option<SlotQuota> {
        let JobOwner { token, quota } = owner?;
        let slots_max = quota.slots_max?;
        let next = self.pools.owners.len() as u32;
        let owner = *self.pools.owners.entry(token.clone()).or_insert(next);
        Some(SlotQuota { owner, slots_max })
    }

    /// Fails a job that has written output if its token's jobs now exceed their quota.
    pub(super) fn hold_to_quota(&mut self, job: JobId) {
        let Some(entry) = self.jobs.get(&job).filter(|entry| !entry.state.ended()) else { return };
        let Some(JobOwner { token, quota }) = &entry.submission.owner else { return };
        let Some(most) = quota.disk_bytes_max else { return };
        let taken = self.bytes_of(token);
        if taken <= most || entry.failures.of_job.is_some() || entry.output.closing.is_some() {
            return;
        }
        let detail =
            format!("the live jobs of the token {token} take {taken} bytes of disk, and its quota is {most}");
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        entry.failures.of_job = Some(JobFailure {
            code: FailureCode::Limit,
            message: "passed the quota of its token".to_owned(),
            detail: Some(detail),
        });
        self.events.push(Event::JobFailed { job, cause: External::LimitPassed });
    }
}
