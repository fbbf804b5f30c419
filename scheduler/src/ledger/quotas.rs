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
}

impl Ledger {
    /// Returns how many more slots this job may get under its owner's quota; `None` means no limit.
    pub(crate) fn room(&self, job: &Job) -> Option<u32> {
        let quota = job.spec.quota?;
        let jobs = self.owners.0.get(&quota.owner).into_iter().flatten();
        let held: u32 = jobs.filter_map(|id| self.jobs.get(id)).map(|job| self.slots_held(job)).sum();
        Some(quota.slots_max.saturating_sub(held))
    }

    /// True if the quota of the job's owner allows another slot.
    pub(crate) fn has_room(&self, job: &Job) -> bool {
        self.room(job).is_none_or(|room| 0 < room)
    }

    fn slots_held(&self, job: &Job) -> u32 {
        let holds = |attempt: &_| self.attempts.get(attempt).is_some_and(|record| !record.hold.is_parked());
        job.attempts.live.iter().filter(|attempt| holds(*attempt)).count() as u32
    }

    /// Marks all jobs of owners whose jobs changed: a slot held by one job is not available to the others.
    pub(crate) fn touch_owners(&mut self) {
        if self.owners.0.is_empty() {
            return;
        }
        let quota = |id: &JobId| self.jobs.get(id)?.spec.quota;
        let touched: BTreeSet<u32> =
            self.unseen.dirty.iter().filter_map(quota).map(|quota| quota.owner).collect();
        for owner in touched {
            self.unseen.dirty.extend(self.owners.0.get(&owner).into_iter().flatten());
        }
    }

    /// Rebuilds the owners from the existing jobs.
    pub(crate) fn find_owners(&mut self) {
        self.owners = Owners::default();
        for job in self.jobs.values() {
            self.owners.add(job);
        }
    }
}
