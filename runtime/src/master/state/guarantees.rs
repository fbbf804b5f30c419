//! Guarantees that are given only after they are written down: acknowledged submissions, commit permits, and ends of
//! jobs.
//!
//! Everything else follows a weaker rule: it is written before it is reported, and synced together with the next
//! guarantee. All guarantees that wait for one sync are given together. A job whose output is not synced (`--no-sync`)
//! does not ask for syncs of its guarantees.

use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};

/// Condition of a guarantee: a position in the written lines, and if they must be on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Guarantee {
    pub(super) at: u64,
    pub(super) sync: bool,
}

/// Guarantees that wait to be given.
#[derive(Default)]
pub(super) struct Guarantees {
    permits: Vec<(Guarantee, AttemptId, WorkerId)>,
    ends: Vec<(Guarantee, JobId)>,
}

impl Guarantees {
    pub(super) fn wait_for_permit(&mut self, guarantee: Guarantee, attempt: AttemptId, worker: WorkerId) {
        self.permits.push((guarantee, attempt, worker));
    }

    pub(super) fn wait_for_end(&mut self, guarantee: Guarantee, job: JobId) {
        self.ends.push((guarantee, job));
    }

    /// Drops the waiting permits of a worker that lost its route to this master: it asks for them again.
    pub(super) fn forget_permits(&mut self, worker: WorkerId) {
        self.permits.retain(|(.., to)| *to != worker);
    }

    /// Removes the permits and the ends of jobs whose conditions hold now.
    pub(super) fn take(
        &mut self,
        stands: impl Fn(Guarantee) -> bool,
    ) -> (Vec<(AttemptId, WorkerId)>, Vec<JobId>) {
        let permits = self.permits.extract_if(.., |(guarantee, ..)| stands(*guarantee));
        let permits = permits.map(|(_, attempt, worker)| (attempt, worker)).collect();
        let ends = self.ends.extract_if(.., |(guarantee, _)| stands(*guarantee));
        (permits, ends.map(|(_, job)| job).collect())
    }
}
