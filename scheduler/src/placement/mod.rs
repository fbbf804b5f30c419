//! Which worker gets a task of the job that was granted a slot, and where partitions are gathered.
//!
//! Not here: which job comes next (`policy`). A placement reads the ledger and cannot change them; the core
//! checks every choice.

pub mod catalogue;
pub mod dm_ep;
pub mod fair_split;
pub mod g_m_1;
pub mod m_ep;
pub mod optimal;
pub mod pull;
pub mod pure_deterministic;
pub mod pure_stochastic;
pub mod split;

pub use catalogue::{PlaceError, Placed, by_name, catalogue, place, place_by, split_by_name, splits};
pub use pull::Pull;
pub use split::{Division, Split, SplitPlacement};

use crate::ids::{TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::{Job, Worker, Workers};

/// A slot for one task of this job.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Offer<'a> {
    /// The job that was granted the slot.
    pub job: &'a Job,
    /// Which kind of task.
    pub kind: TaskKind,
    pub workers: &'a Workers,
}

/// What a placement made of an offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// A worker with a free slot.
    pub worker: WorkerId,
    /// A waiting map that may run there, or a ready reduce whose home it is.
    pub index: u32,
    /// How near it is to its input.
    pub locality: Locality,
}

/// A partition that needs a home.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct HomeRequest<'a> {
    pub job: &'a Job,
    pub partition: u32,
    /// Its reduce has begun elsewhere and goes on where it gets a slot: workers with a free one come first.
    pub goes_on: bool,
    /// The workers; at least one is live.
    pub workers: &'a Workers,
}

/// Maps of a job that arrived, or that were assigned to a worker that is gone.
#[derive(Clone, Copy, Debug)]
pub struct AssignmentRequest<'a> {
    /// Their job.
    pub job: &'a Job,
    /// How many there are; at least 1.
    pub maps: usize,
    /// The workers, with their [`Worker::service_rate`]; at least one is live.
    pub workers: &'a Workers,
    /// Maps of all jobs that arrive in a second, as measured; `None` before two jobs arrived at different times.
    pub tasks_per_second: Option<f64>,
}

impl AssignmentRequest<'_> {
    /// The workers that the maps may be assigned to, by id; at least one.
    pub fn usable(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| self.job.may_use(worker.id(), self.workers))
    }
}

/// Chooses workers.
pub trait Placement: Send {
    /// Its name, as in `--placement`.
    fn name(&self) -> &'static str;

    /// The task to start and where; `None` if no idle worker can take one now. Must find a task if there is
    /// one that [`Job::fits`] an idle worker, was assigned to one or is ready at one, or jobs would stand still.
    /// [`Pull`] does.
    fn choose(&mut self, offer: Offer<'_>) -> Option<Choice>;

    /// A waiting map and one of [`Workers::behind`] this depth, for a job that no idle worker can take a map of
    /// and whose maps are soon done; by default none. The map must be one that may run anywhere and has not
    /// failed ([`Job::first_near`], [`Job::first_near_host`], [`Job::first_open`], [`Job::first_preferring`]).
    fn choose_ahead(&mut self, _offer: Offer<'_>, _depth: u32) -> Option<Choice> {
        None
    }

    /// Deals maps to the queues of workers, one of [`AssignmentRequest::usable`] for each; there they wait for that
    /// worker and no other. `None`, the default, leaves them waiting for any. Maps that have failed once are not
    /// assigned.
    fn assign(&mut self, _request: AssignmentRequest<'_>) -> Option<Vec<WorkerId>> {
        None
    }

    /// The live worker that gathers this partition; one that [`Job::may_use`] allows.
    fn home(&mut self, request: HomeRequest<'_>) -> WorkerId;
}
