//! Quotas: maximum number of slots that the jobs of one owner may hold together, regardless of the policy.
//!
//! An owner is a number that the driver assigns to a submitter. Slots include the queue places behind them and those of
//! speculative attempts. Suspended attempts hold no slot.

use crate::ids::JobId;
use crate::ledger::{Job, Ledger};
use std::collections::{BTreeMap, BTreeSet};

/// Live jobs of each owner that has a quota.
#[derive(Debug, Default)]
pub(crate) struct Owners(BTreeMap<u32, BTreeSet<JobId>>);

impl Owners {
    /// Collects the owners of these live jobs.
    pub(crate) fn from_jobs<'a>(jobs: impl Iterator<Item = &'a Job>) -> Owners {
        let mut owners = Owners::default();
        jobs.for_each(|job| owners.add(job));
        owners
    }

    /// Adds a live job.
    pub(crate) fn add(&mut self, job: &Job) {
        if let Some(quota) = job.spec.quota {
            self.0.entry(quota.owner).or_default().insert(job.id);
        }
    }

    /// Removes a job that is over. Returns the other jobs of its owner, which may get more slots now.
    pub(crate) fn remove(&mut self, job: &Job) -> BTreeSet<JobId> {
        let Some(quota) = job.spec.quota else { return BTreeSet::new() };
        let Some(jobs) = self.0.get_mut(&quota.owner) else { return BTreeSet::new() };
        jobs.remove(&job.id);
        let others = jobs.clone();
        if others.is_empty() {
            self.0.remove(&quota.owner);
        }
        others
    }

    /// Adds all jobs of owners whose jobs are in the set: a slot held by one job is not available to the others.
    pub(crate) fn spread(&self, jobs: &BTreeMap<JobId, Job>, dirty: &mut BTreeSet<JobId>) {
        if self.0.is_empty() {
            return;
        }
        let quota = |id: &JobId| jobs.get(id)?.spec.quota;
        let touched: BTreeSet<u32> = dirty.iter().filter_map(quota).map(|quota| quota.owner).collect();
        for owner in touched {
            dirty.extend(self.0.get(&owner).into_iter().flatten());
        }
    }
}

/// Returns how many more slots this job may get under its owner's quota; `None` means no limit.
pub(crate) fn room(ledger: &Ledger, job: &Job) -> Option<u32> {
    let quota = job.spec.quota?;
    let jobs = ledger.owners.0.get(&quota.owner).into_iter().flatten();
    let held: u32 = jobs.filter_map(|id| ledger.jobs.get(id)).map(|job| slots_held(ledger, job)).sum();
    Some(quota.slots_max.saturating_sub(held))
}

/// True if the quota of the job's owner allows another slot.
pub(crate) fn has_room(ledger: &Ledger, job: &Job) -> bool {
    room(ledger, job).is_none_or(|room| 0 < room)
}

fn slots_held(ledger: &Ledger, job: &Job) -> u32 {
    let holds = |attempt: &_| ledger.attempts.get(attempt).is_some_and(|record| !record.hold.is_parked());
    job.attempts.live.iter().filter(|attempt| holds(*attempt)).count() as u32
}
