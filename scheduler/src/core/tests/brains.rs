//! Policies and placements for random histories: legal but random decisions.

use crate::ids::WorkerId;
use crate::placement::{AssignmentRequest, Choice, HomeRequest, Offer, Placement, Pull};
use crate::plan::{Plan, Reason, Share};
use crate::policy::{Fair, Policy};
use crate::view::{Change, Handle, Station, View};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Placement that assigns to any worker, chosen by its own random numbers.
pub(super) struct Dealer {
    pull: Pull,
    rng: ChaCha8Rng,
}

impl Dealer {
    pub(super) fn new(seed: u64) -> Self {
        Self { pull: Pull::new(), rng: ChaCha8Rng::seed_from_u64(seed) }
    }
}

impl Placement for Dealer {
    fn name(&self) -> &'static str {
        "dealer"
    }
    fn choose(&mut self, offer: Offer<'_>) -> Option<Choice> {
        self.pull.choose(offer)
    }
    fn choose_ahead(&mut self, offer: Offer<'_>, depth: u32) -> Option<Choice> {
        self.pull.choose_ahead(offer, depth)
    }
    fn assign(&mut self, request: AssignmentRequest<'_>) -> Option<Vec<WorkerId>> {
        let workers: Vec<WorkerId> = request.usable().map(|worker| worker.id()).collect();
        // Sometimes maps are left to the next idle worker.
        if self.rng.random_range(0..4) == 0 {
            return None;
        }
        Some((0..request.maps).map(|_| workers[self.rng.random_range(0..workers.len())]).collect())
    }
    fn home(&mut self, request: HomeRequest<'_>) -> WorkerId {
        self.pull.home(request)
    }
}

/// Preemptive policy with random ranks that change from time to time.
pub(super) struct RandomPolicy {
    rng: ChaCha8Rng,
    /// Ranks by job.
    jobs: BTreeMap<Handle, u32>,
}

impl RandomPolicy {
    pub(super) fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), jobs: BTreeMap::new() }
    }
}

impl Policy for RandomPolicy {
    fn name(&self) -> &'static str {
        "moody"
    }
    fn preempts(&self) -> bool {
        true
    }
    fn observe(&mut self, view: View<'_>, change: Change) {
        match change {
            Change::Left(job) => drop(self.jobs.remove(&job)),
            Change::Arrived(job) => drop(self.jobs.insert(job, self.rng.random_range(0..10))),
            Change::Progress | Change::Tick => {}
        }
        for job in view.touched {
            assert!(self.jobs.contains_key(job), "{job:?} was touched before it arrived");
            if self.rng.random_range(0..5) == 0 {
                self.jobs.insert(*job, self.rng.random_range(0..10));
            }
        }
    }
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let mut order: Vec<(u32, u64, Handle)> =
            self.jobs.iter().map(|(&job, &rank)| (rank, view.row(job).seq, job)).collect();
        order.sort_unstable();
        for (rank, _, job) in order {
            for station in [Station::Reduce, Station::Map, Station::Shuffle] {
                let share = match rank % 3 {
                    0 => Share::All,
                    1 => Share::Weight(f64::from(1 + rank)),
                    // No job may wait forever.
                    _ => Share::Slots(1 + rank),
                };
                plan.grant(job, station, share, Reason::Own("a mood"));
            }
        }
    }
}

/// Fair policy that panics at regular calls, before, within or after its plan.
pub(super) struct Nervous {
    calls: u32,
    fair: Fair,
}

impl Nervous {
    pub(super) fn new() -> Self {
        Self { calls: 0, fair: Fair::new() }
    }

    /// Panics without the output of the panic hook, which would appear a thousand times.
    fn may_panic(&mut self) {
        self.calls += 1;
        if self.calls.is_multiple_of(7) {
            std::panic::resume_unwind(Box::new("please, no more"));
        }
    }
}

impl Policy for Nervous {
    fn name(&self) -> &'static str {
        "nervous"
    }
    fn observe(&mut self, view: View<'_>, change: Change) {
        self.may_panic();
        self.fair.observe(view, change);
    }
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        self.may_panic();
        self.fair.plan(view, plan);
        self.may_panic();
    }
}
