//! Policies of the pairs paper: jobs run one after the other, with shuffle-heavy ones before map-heavy ones.
//!
//! Paper: Zheng and Wu, "Joint Scheduling of Overlapping MapReduce Phases: Pair Jobs for Optimization", sections 4
//! to 6. With map time `m` and shuffle time `s` of a job, each at full use:
//!
//! - baselines (6.1): `max-diff` by `m - s`; `pairwise` alternates between the most shuffle-heavy and the most
//!   map-heavy job; `max-shuffle` by `s`, largest first;
//! - Algorithms 1 to 3: by `max(m, s)` (`pair`), `m + s` (`couple`) or `alpha max(m, s) + (1 - alpha) (m + s)`
//!   (`generalized`), with jobs within a step of `delta` taken pairwise;
//! - Algorithm 4, equation 1 (`group`): by the same mixture in `k` groups with the smallest spread, each pairwise;
//!   Algorithm 5 (`o-group`): an arrival joins the nearest group;
//! - Algorithm 6 (`n-couple`): pairs with the same `|m - s|` in steps of `delta`, smallest first;
//! - Algorithm 7, equation 2 (`match`): pairs of a minimum-weight perfect matching; Algorithm 8 (`o-match`): an arrival
//!   is inserted next to its best match.
//!
//! Parameters: `delta` 0.1 s (0: exact equality), `alpha` 0.5, `k` 20, `seed` 0 of the draws by which Algorithms 5 and
//! 8 sometimes reorder all jobs.
//! Required: map and shuffle work of every job.
//! Favours small jobs that pair well and harms large ones, which wait while smaller ones arrive (`max-diff`, `pairwise`
//! and `max-shuffle` ignore size).
//! Cost: per batch of arrivals the cost of the rule (see each function), else O(log n) per changed job; `o-group` and
//! `o-match` take O(n) steps of some nanoseconds per arrival.
//!
//! With arrivals over time: a started job ranks before all waiting ones, in the order of starts, and is not preempted
//! at the map. Waiting jobs are reordered on arrivals, without those that started. Within a job ready reduces go before
//! maps.
//! Deviations: capacity that one job leaves idle goes to the next in order, so stations are work-conserving, and jobs
//! without map work may shuffle while others map. A new estimate of a size counts as a new arrival of that job.
//! Grouping cuts at the largest gaps, which gives the value of the dynamic program. Misprints of the algorithms are
//! corrected as documented at each function. Theorems 1 to 3 and Corollary 1 hold with `delta=0`. Theorem 4 (strict
//! weak pairs) is false: see the tests.
//! Limits: they are not optimal with a step above 0, nor across arrivals.

mod entries;
mod grouped;
mod matched;
pub mod optimum;
mod rule;
mod sequence;
mod sorted;
mod waiting;

use crate::job::Size;
use crate::plan::{Plan, Reason, Share};
use crate::policy::Ranked;
use crate::policy::interface::Policy;
use crate::policy::ordered::{can, merged, walk};
use crate::station::PerStation;
use crate::view::{Change, Handle, Row, Station, View};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use waiting::WaitingOrder;

pub(super) use entries::ENTRIES;
pub use grouped::{Branch, OnlineGroups, group, spread};
pub use matched::{Schedule, matched, n_couple, smallest_weight};
pub use rule::{OrderError, OrderedJobs, PairsRule, RULES, SIZE_MAX, order, rule};
pub use sequence::{Averages, OrderTimes, averages, times, total};
pub use sorted::{JobBlocks, in_pairs, max_diff, max_shuffle, max_srpt, pairwise};

/// Rule applied to jobs that arrive and end.
#[derive(Debug)]
pub struct Pairs {
    rule: PairsRule,
    queue: WaitingOrder,
    /// Live jobs by handle.
    jobs: Vec<Option<RankedJob>>,
    /// Jobs that have not started, by seq.
    waiting: BTreeMap<u64, Handle>,
    /// Waiting jobs that nevertheless have segments to shuffle.
    waiting_to_shuffle: BTreeSet<u64>,
    /// Waiting jobs that are not in the queue yet.
    fresh: BTreeSet<u64>,
    /// Started jobs that can use a slot, in the order of their start.
    hungry: Ranked<u64, Handle>,
    /// Started jobs with segments to shuffle.
    fetching: Ranked<u64, Handle>,
    starts: u64,
    /// Capacities with which sizes were computed.
    capacity: PerStation<f64>,
    /// Jobs that this plan's maps feed. Kept only to reuse its memory.
    fed: Vec<(Option<u64>, Handle)>,
}

/// Remembered data of a live job.
#[derive(Clone, Copy, Debug)]
struct RankedJob {
    seq: u64,
    size: Size,
    /// Number of its start, from 0; `None` while it waits.
    start: Option<u64>,
}

impl Pairs {
    /// Creates a policy without jobs.
    #[must_use]
    pub fn new(rule: PairsRule) -> Self {
        let queue = match rule {
            PairsRule::OnlineGroup { alpha, k, seed } => {
                WaitingOrder::OnlineGroups(OnlineGroups::new(alpha, k), ChaCha8Rng::seed_from_u64(seed))
            }
            PairsRule::OnlineMatch { alpha, seed } => {
                WaitingOrder::Schedule(Schedule::new(alpha), ChaCha8Rng::seed_from_u64(seed))
            }
            _ => WaitingOrder::Anew(VecDeque::new()),
        };
        Self {
            rule,
            queue,
            jobs: Vec::new(),
            waiting: BTreeMap::new(),
            waiting_to_shuffle: BTreeSet::new(),
            fresh: BTreeSet::new(),
            hungry: Ranked::new(),
            fetching: Ranked::new(),
            starts: 0,
            capacity: PerStation::default(),
            fed: Vec::new(),
        }
    }

    fn known(&mut self, job: Handle) -> &mut Option<RankedJob> {
        if self.jobs.len() <= job.index() {
            self.jobs.resize(job.index() + 1, None);
        }
        &mut self.jobs[job.index()]
    }

    fn size(&self, seq: u64) -> Size {
        let known = self.jobs[self.waiting[&seq].index()];
        known.expect("waiting jobs are live").size
    }

    fn leave(&mut self, job: Handle) {
        let Some(known) = self.known(job).take() else { return };
        self.hungry.place(job, None);
        self.fetching.place(job, None);
        if known.start.is_none() {
            self.end_wait(known.seq);
        }
    }

    fn end_wait(&mut self, seq: u64) {
        self.waiting.remove(&seq);
        self.waiting_to_shuffle.remove(&seq);
        if !self.fresh.remove(&seq) {
            self.queue.leave(seq);
        }
    }

    /// Numbers jobs that started at one instant, in the order in which they waited.
    fn start(&mut self, view: View<'_>) {
        let begun = |job: &Handle| view.row(*job).started && self.is_waiting(*job);
        let mut begun: Vec<Handle> = view.touched.iter().copied().filter(begun).collect();
        if 1 < begun.len() {
            let seqs: BTreeSet<u64> = begun.iter().map(|&job| view.row(job).seq).collect();
            let order: Vec<u64> = self.queue.order().filter(|seq| seqs.contains(seq)).collect();
            begun.sort_by_key(|&job| {
                let seq = view.row(job).seq;
                (order.iter().position(|&other| other == seq).unwrap_or(usize::MAX), seq)
            });
            begun.dedup();
        }
        for job in begun {
            let number = self.starts;
            self.starts += 1;
            self.end_wait(view.row(job).seq);
            if let Some(known) = self.known(job) {
                known.start = Some(number);
            }
        }
    }

    fn is_waiting(&self, job: Handle) -> bool {
        self.jobs.get(job.index()).copied().flatten().is_some_and(|known| known.start.is_none())
    }

    /// Updates a waiting job from its row: a changed size is an arrival.
    fn take_in(&mut self, view: View<'_>, job: Handle) {
        let size = size_of(view, job);
        let seq = view.row(job).seq;
        let before = self.known(job).replace(RankedJob { seq, size, start: None });
        match before {
            Some(before) if before.size == size => return,
            // Fresh jobs are not in the queue.
            Some(_) if !self.fresh.contains(&seq) => self.queue.leave(seq),
            _ => {}
        }
        self.waiting.insert(seq, job);
        self.fresh.insert(seq);
    }

    /// Orders the waiting jobs if there are new ones among them.
    fn settle(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        let fresh = std::mem::take(&mut self.fresh);
        // If all waiting jobs are new, the system starts as in the papers: all are ordered at once.
        let begins = fresh.len() == self.waiting.len() && 1 < fresh.len();
        let come: Vec<(u64, Size)> = fresh.iter().map(|&seq| (seq, self.size(seq))).collect();
        match &mut self.queue {
            WaitingOrder::Anew(order) => {
                let seqs: Vec<u64> = self.waiting.keys().copied().collect();
                let size = |job: &Handle| self.jobs[job.index()].expect("waiting jobs are live").size;
                let sizes: Vec<Size> = self.waiting.values().map(size).collect();
                *order = self.rule.blocks(&sizes).concat().into_iter().map(|index| seqs[index]).collect();
            }
            WaitingOrder::OnlineGroups(groups, _) if begins => groups.reschedule(&come),
            WaitingOrder::Schedule(schedule, _) if begins => schedule.reschedule(&come),
            WaitingOrder::OnlineGroups(groups, draws) => {
                for (seq, size) in come {
                    groups.arrive(seq, size, draws.random());
                }
            }
            WaitingOrder::Schedule(schedule, draws) => {
                for (seq, size) in come {
                    schedule.arrive(seq, size, draws.random());
                }
            }
        }
    }
}

fn size_of(view: View<'_>, job: Handle) -> Size {
    let [map, shuffle] = [Station::Map, Station::Shuffle].map(|station| {
        let time = view.time_whole(job, station);
        if time.is_nan() { 0.0 } else { time.clamp(0.0, SIZE_MAX) }
    });
    Size { map, shuffle }
}

impl Policy for Pairs {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Left(job) = change {
            self.leave(job);
        }
        if view.cap != self.capacity {
            self.capacity = view.cap;
            let waiting: Vec<Handle> = self.waiting.values().copied().collect();
            for job in waiting {
                self.take_in(view, job);
            }
        }
        for &job in view.touched {
            let known = *self.known(job);
            if known.is_none_or(|known| known.start.is_none()) {
                self.take_in(view, job);
            }
        }
        self.start(view);
        for &job in view.touched {
            let row: &Row = view.row(job);
            let [maps, shuffles, reduces] = Station::ALL.map(|station| can(view, job, station));
            match self.jobs[job.index()].and_then(|known| known.start) {
                Some(start) => {
                    self.hungry.place(job, (maps || reduces).then_some(start));
                    self.fetching.place(job, shuffles.then_some(start));
                }
                None if shuffles => {
                    self.waiting_to_shuffle.insert(row.seq);
                }
                None => {
                    self.waiting_to_shuffle.remove(&row.seq);
                }
            }
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        self.settle();
        self.plan_slots(view, plan);
        self.plan_shuffle(plan);
    }
}

impl Pairs {
    fn plan_slots(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        self.fed.clear();
        let started = self.hungry.entries().map(|(start, job)| (Some(start), job));
        let waiting = self.queue.order().map(|seq| (None, self.waiting[&seq]));
        let order = self.rule.name();
        let mut place = 0;
        let reason = |_| {
            place += 1;
            Reason::Place { order, place }
        };
        walk(view, plan, started.chain(waiting), &[Station::Reduce, Station::Map], reason, &mut self.fed);
    }

    /// Grants the shuffle to started jobs that have segments to shuffle or are fed, then to waiting ones.
    fn plan_shuffle(&self, plan: &mut Plan<'_>) {
        let numbered = self.fed.iter().filter_map(|&(start, job)| Some((start?, job)));
        let started = merged(&self.fetching, numbered);
        let mut waiting_fed: BTreeSet<Handle> =
            self.fed.iter().filter(|(start, _)| start.is_none()).map(|&(_, job)| job).collect();
        let wishes = waiting_fed.len() + self.waiting_to_shuffle.len();
        // Only jobs whose maps were done on arrival can shuffle before they start, so this walk is mostly short.
        let waiting = self
            .queue
            .order()
            .map(|seq| (seq, self.waiting[&seq]))
            .filter(|(seq, job)| waiting_fed.remove(job) || self.waiting_to_shuffle.contains(seq))
            .take(wishes);
        let order = started.chain(waiting.map(|(_, job)| job));
        for (place, job) in (1..).zip(order) {
            let reason = Reason::Place { order: self.rule.name(), place };
            if !plan.grant(job, Station::Shuffle, Share::All, reason) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;
