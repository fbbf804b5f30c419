//! Quotas: how many slots the jobs of one owner may hold together, whatever a policy would give them.
//!
//! An owner is a number that the driver gives to whoever submits jobs. Slots count with the places behind them where
//! attempts are queued, and with second attempts; attempts that are suspended hold none.

use crate::ids::JobId;
use crate::ledger::{Job, Ledger};
use std::collections::{BTreeMap, BTreeSet};

/// The live jobs of each owner that has a quota.
#[derive(Debug, Default)]
pub(crate) struct Owners(BTreeMap<u32, BTreeSet<JobId>>);

impl Owners {
    /// A job is live.
    pub(crate) fn add(&mut self, job: &Job) {
        if let Some(quota) = job.spec.quota {
            self.0.entry(quota.owner).or_default().insert(job.id);
        }
    }

    /// A job is over. Answers the other jobs of its owner, which may have more room now.
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
    /// How many more slots this job may get by its owner's quota; `None`: as many as there are.
    pub(crate) fn room(&self, job: &Job) -> Option<u32> {
        let quota = job.spec.quota?;
        let jobs = self.owners.0.get(&quota.owner).into_iter().flatten();
        let held: u32 = jobs.filter_map(|id| self.jobs.get(id)).map(|job| self.slots_held(job)).sum();
        Some(quota.slots_max.saturating_sub(held))
    }

    /// Whether the quota of the job's owner lets it have another slot.
    pub(crate) fn has_room(&self, job: &Job) -> bool {
        self.room(job).is_none_or(|room| 0 < room)
    }

    fn slots_held(&self, job: &Job) -> u32 {
        let holds = |attempt: &_| self.attempts.get(attempt).is_some_and(|record| !record.hold.is_parked());
        job.attempts.live.iter().filter(|attempt| holds(*attempt)).count() as u32
    }

    /// What one job of an owner holds is room that the others lack: their rows are counted anew with it.
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

    /// The owners of the jobs that there are.
    pub(crate) fn find_owners(&mut self) {
        self.owners = Owners::default();
        for job in self.jobs.values() {
            self.owners.add(job);
        }
    }
}
