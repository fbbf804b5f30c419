//! Clients of attached jobs that lose their connection to the master, or whose master is replaced, and reconnect.

use super::super::recovery::RecoveryNote;
use super::MasterState;
use crate::api::{ApiError, ErrorCode};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Time;
use gristmill_worker::http::Secret;
use tokio::sync::watch;

/// Connection by which a client has reached its master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClientWay {
    /// On the same machine.
    Local,
    /// Over a network, which may break, and from a machine that may sleep.
    Network,
}

impl MasterState {
    /// Attached jobs whose client is not lost and has not closed the output.
    pub(crate) fn attended(&self) -> Vec<JobId> {
        let attended = |job: &super::JobEntry| job.followers.client && !*job.output.closed.borrow();
        self.jobs.iter().filter(|(_, job)| attended(job)).map(|(id, _)| *id).collect()
    }

    /// Enters that this job's client is disconnected. Returns since when; the next master continues from that time.
    pub(crate) fn client_away(&mut self, now: Time, job: JobId) -> Time {
        let Some(entry) = self.jobs.get_mut(&job) else { return now };
        if entry.followers.away.is_none() {
            entry.followers.away = Some(now);
            self.journal.keep(|| RecoveryNote::ClientAway { job, since: Some(now) });
        }
        entry.followers.away.unwrap_or(now)
    }

    /// Connection by which the client of this job may return. `None` if it need not, or if this master is not
    /// recoverable.
    pub(crate) fn client_returns(&self, job: JobId) -> Option<ClientWay> {
        let entry = self.jobs.get(&job).filter(|_| self.journal.is_recoverable())?;
        let waited_for = entry.followers.client && !*entry.output.closed.borrow();
        waited_for.then_some(match entry.submission.submitter {
            None => ClientWay::Local,
            Some(_) => ClientWay::Network,
        })
    }

    /// True if a job with this key exists here.
    pub(crate) fn has_key(&self, key: &Secret) -> bool {
        self.jobs.values().any(|job| job.keys.permits == *key)
    }

    /// Finds the job that a client submitted with this key. The client may not have received its number. Returns the
    /// job, the channel on which its changes are announced, and if that client still closes its output.
    ///
    /// # Errors
    /// A key that belongs to no job here.
    pub(crate) fn attend(&mut self, key: &Secret) -> Result<(JobId, watch::Receiver<bool>, bool), ApiError> {
        let found = self.jobs.iter_mut().find(|(_, job)| job.keys.permits == *key);
        let Some((id, job)) = found else {
            let message = "the master knows no job of this client any more".to_owned();
            return Err(ApiError { code: ErrorCode::Job, message });
        };
        if job.followers.away.take().is_some() {
            self.journal.keep(|| RecoveryNote::ClientAway { job: *id, since: None });
        }
        Ok((*id, job.followers.changed.subscribe(), job.followers.client))
    }
}
