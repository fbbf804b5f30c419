//! What is promised only when it is written down: submissions that are acknowledged, permits to commit, ends of jobs.
//!
//! All else lags behind: it is written before anybody is told of it, and synced when something else is. What waits for
//! one sync goes out together. A job whose output is not synced (`--no-sync`) does not ask for syncs of its promises.

use super::MasterState;
use super::journal_writer::{SyncOrder, Synced};
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_worker::protocol::MasterFrame;
use std::collections::VecDeque;

/// What a promise hangs on: a place in what is written down, and whether it must be on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Promised {
    pub(super) at: u64,
    pub(super) sync: bool,
}

/// Those that wait.
#[derive(Default)]
pub(super) struct Promises {
    permits: VecDeque<(Promised, AttemptId, WorkerId)>,
    ends: VecDeque<(Promised, JobId)>,
}

impl MasterState {
    /// What stands written down now is promised, for a job that is synced or not.
    pub(crate) fn promise(&mut self, sync: bool) -> Promised {
        self.journal.promise(sync)
    }

    /// Whether a promise may be given.
    pub(crate) fn stands(&self, promised: Promised) -> bool {
        self.journal.stands(promised)
    }

    /// Why nothing new is promised, if that is so.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.journal.trouble()
    }

    /// Looks whether the next master would find what this one writes.
    pub(crate) fn look_for_file(&mut self) {
        self.journal.look_for_file();
    }

    /// Something to be synced, off this thread.
    pub(crate) fn sync_order(&mut self) -> Option<SyncOrder> {
        self.journal.sync_order()
    }

    /// What came of it.
    pub(crate) fn synced(&mut self, synced: Synced) {
        self.journal.synced(synced);
    }

    /// An attempt may commit: it is told when that is written down.
    pub(super) fn promise_permit(&mut self, attempt: AttemptId, worker: WorkerId) {
        let sync = self.jobs.get(&attempt.task.job).is_some_and(|job| job.submission.sync);
        if !sync || self.reliving || !self.journal.is_recoverable() {
            // What is said now goes out when this instant is written down.
            return self.send_permit(attempt, worker);
        }
        let promised = self.journal.promise(sync);
        self.promises.permits.push_back((promised, attempt, worker));
    }

    /// A job has ended: that is told when it is written down.
    pub(super) fn promise_end(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id).filter(|_| !self.reliving) else { return };
        let promised = self.journal.promise(job.submission.sync);
        if !self.journal.stands(promised) {
            job.end_is_kept_back = true;
            self.promises.ends.push_back((promised, id));
        }
    }

    /// A worker has lost the way to this master: what it was to be told it asks for again.
    pub(super) fn forget_permits(&mut self, worker: WorkerId) {
        self.promises.permits.retain(|(.., to)| *to != worker);
    }

    /// Gives the promises that stand now.
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
