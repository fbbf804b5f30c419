//! Trait that a placement implements: it chooses the worker of each task, and the home of each partition, which is the
//! worker that gathers it.

use crate::ids::{TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::{Job, Worker, Workers};

/// Slot for one task of this job.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Offer<'a> {
    /// Job that was granted the slot.
    pub job: &'a Job,
    /// Kind of the task.
    pub kind: TaskKind,
    pub workers: &'a Workers,
}

/// Choice of a placement for an offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Worker with a free slot.
    pub worker: WorkerId,
    /// Waiting map that may run there, or ready reduce whose home it is.
    pub index: u32,
    /// Locality of the task there.
    pub locality: Locality,
}

/// Partition that needs a home.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct HomeRequest<'a> {
    pub job: &'a Job,
    pub partition: u32,
    /// Workers; at least one is live.
    pub workers: &'a Workers,
}

/// Maps of a job that arrived, or that were assigned to a lost worker.
#[derive(Clone, Copy, Debug)]
pub struct AssignmentRequest<'a> {
    /// Job of the maps.
    pub job: &'a Job,
    /// Number of maps; at least 1.
    pub maps: usize,
    /// Workers, with their [`Worker::service_rate`]; at least one is live.
    pub workers: &'a Workers,
    /// Measured arrival rate of maps of all jobs per second; `None` before two jobs arrived at different times.
    pub tasks_per_second: Option<f64>,
}

impl AssignmentRequest<'_> {
    /// Returns the workers that the maps may be assigned to, by id; at least one.
    pub fn usable(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| self.job.may_use(worker.id(), self.workers))
    }
}

/// Chooses the workers of tasks and partitions.
pub trait Placement: Send {
    /// Returns its name, as in `--placement`.
    fn name(&self) -> &'static str;

    /// Returns the task to start and its worker; `None` if no idle worker can take one now. It must find a task if
    /// there is one that [`Job::fits`] an idle worker, was assigned to one or is ready at one, or jobs would make no
    /// progress. [`Pull`](super::Pull) does.
    fn choose(&mut self, offer: Offer<'_>) -> Option<Choice>;

    /// Returns a waiting map and one of [`Workers::behind`] this depth, for a job with short maps of which no idle
    /// worker can take one; by default none. The map must be one that may run anywhere and has not failed
    /// ([`Job::first_near`], [`Job::first_near_host`], [`Job::first_open`], [`Job::first_preferring`]).
    fn choose_ahead(&mut self, _offer: Offer<'_>, _depth: u32) -> Option<Choice> {
        None
    }

    /// Assigns maps to the queues of workers, one of [`AssignmentRequest::usable`] for each. There they wait for that
    /// worker only. `None`, the default, lets them wait for any worker. Maps that have failed once are not assigned.
    fn assign(&mut self, _request: AssignmentRequest<'_>) -> Option<Vec<WorkerId>> {
        None
    }

    /// Returns the live worker that gathers this partition; [`Job::may_use`] must allow it.
    fn home(&mut self, request: HomeRequest<'_>) -> WorkerId;
}
