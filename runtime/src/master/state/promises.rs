//! Guarantees that are given only after they are written down: acknowledged submissions, commit permits, and ends of
//! jobs.
//!
//! Everything else follows a weaker rule: it is written before it is reported, and synced together with the next
//! guarantee. All guarantees that wait for one sync are given together. A job whose output is not synced (`--no-sync`)
//! does not ask for syncs of its guarantees.

use super::MasterState;
use super::journal_writer::{SyncOrder, Synced};
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_worker::protocol::MasterFrame;
use std::collections::VecDeque;

/// Condition of a guarantee: a position in the written lines, and if they must be on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Promised {
    pub(super) at: u64,
    pub(super) sync: bool,
}

/// Guarantees that wait to be given.
#[derive(Default)]
pub(super) struct Promises {
    permits: VecDeque<(Promised, AttemptId, WorkerId)>,
    ends: VecDeque<(Promised, JobId)>,
}

impl MasterState {
    /// Creates a guarantee that depends on everything entered so far. `sync` is true for a job whose output is synced.
    pub(crate) fn promise(&mut self, sync: bool) -> Promised {
        self.journal.promise(sync)
    }

    /// True if the guarantee may be given.
    pub(crate) fn stands(&self, promised: Promised) -> bool {
        self.journal.stands(promised)
    }

    /// Reason why no new guarantee can be given, if there is one.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.journal.trouble()
    }

    /// Checks if the next master would find what this one writes.
    pub(crate) fn look_for_file(&mut self) {
        self.journal.look_for_file();
    }

    /// Returns lines to be synced on another thread, if a sync is needed.
    pub(crate) fn sync_order(&mut self) -> Option<SyncOrder> {
        self.journal.sync_order()
    }

    /// Enters the result of a sync.
    pub(crate) fn synced(&mut self, synced: Synced) {
        self.journal.synced(synced);
    }

    /// Permits an attempt to commit. The permit is sent when it is written down.
    pub(super) fn promise_permit(&mut self, attempt: AttemptId, worker: WorkerId) {
        let sync = self.jobs.get(&attempt.task.job).is_some_and(|job| job.submission.sync);
        if !sync || self.reliving || !self.journal.is_recoverable() {
            // Frames queued now are sent after this instant is written down.
            return self.send_permit(attempt, worker);
        }
        let promised = self.journal.promise(sync);
        self.promises.permits.push_back((promised, attempt, worker));
    }

    /// Delays the report of a job's end until it is written down.
    pub(super) fn promise_end(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id).filter(|_| !self.reliving) else { return };
        let promised = self.journal.promise(job.submission.sync);
        if !self.journal.stands(promised) {
            job.end_is_kept_back = true;
            self.promises.ends.push_back((promised, id));
        }
    }

    /// Drops the waiting permits of a worker that lost its route to this master: it asks for them again.
    pub(super) fn forget_permits(&mut self, worker: WorkerId) {
        self.promises.permits.retain(|(.., to)| *to != worker);
    }

    /// Gives the guarantees whose conditions hold now.
    pub(super) fn keep_promises(&mut self) {
        let journal = &self.journal;
        let stands = |promised: &Promised| journal.stands(*promised);
        let (stand, wait) =
            self.promises.permits.drain(..).partition::<VecDeque<_>, _>(|(it, ..)| stands(it));
        self.promises.permits = wait;
        let (ended, wait) = self.promises.ends.drain(..).partition::<VecDeque<_>, _>(|(it, _)| stands(it));
        self.promises.ends = wait;
        for (_, attempt, worker) in stand {
            self.send_permit(attempt, worker);
        }
        for (_, id) in ended {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.end_is_kept_back = false;
                job.touch();
            }
        }
    }

    fn send_permit(&mut self, attempt: AttemptId, worker: WorkerId) {
        let Some(job) = self.jobs.get(&attempt.task.job) else { return };
        if job.output.permits.get(&attempt.task) == Some(&attempt) {
            let permit = crate::submitter::permit(&job.keys.permits, &attempt.file_name());
            self.send(worker, attempt.task.job, &MasterFrame::CommitGranted { attempt, permit });
        }
    }
}
