//! Order of jobs at the lanes of a worker, by the master's standing [`LaneOrder`]. Pure.
//!
//! It has two users: the fetch plan, for the job that sends the next request, and the pacer, for the job whose bytes
//! come next. Both report which jobs have something to fetch and what was fetched; it does not know requests and
//! sources.
//!
//! Jobs are in tiers. A job with `All` or `Requests` is a tier of its own; neighbours in the order with weights are one
//! tier, and so are neighbours with lines. Jobs that are not named follow by age, each in a tier of its own, or get
//! nothing if the order has `only` set. Without any order all jobs are one tier with equal weights.
//!
//! Between tiers priority is strict. Inside a tier it is deficit round robin over bytes: the current job continues
//! while it has credit. When no job that could continue has credit, all that have something to fetch get credit by
//! their weights, a quantum for the heaviest. The cost of a turn is known afterwards, so credit may be negative.
//!
//! Invariants, with `can` as defined by the caller:
//! * A turn is given exactly if a served job can take it.
//! * It goes to the most urgent tier with such a job.
//! * While two jobs of a tier have something to fetch, their bytes per weight differ by at most the credit that one can
//!   save up, a quantum and a turn.
//! * A job without anything to fetch saves no credit.

use crate::protocol::{LaneOrder, LaneShare};
use gristmill_scheduler::ids::JobId;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum quanta that a job can save up while its sources have no room for it.
const SAVED_QUANTA_MAX: f64 = 16.0;

/// Minimum weight relative to the heaviest of a tier; smaller ones count as this.
const WEIGHT_RATIO_MIN: f64 = 1e-6;

/// Priority of a job; lower is more urgent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tier(u64);

impl Tier {
    /// Tier after all that are served.
    pub const LAST: Tier = Tier(u64::MAX);

    /// First tier of jobs that the order does not name.
    const UNNAMED: u64 = 1 << 32;

    /// Returns the next less urgent tier.
    #[must_use]
    pub fn behind(self) -> Tier {
        Tier(self.0.saturating_add(1))
    }
}

/// Position of a job in the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    tier: Tier,
    /// Index in the list; jobs without one follow by age.
    place: u32,
    job: JobId,
}

/// Holder of credit in a tier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Account {
    Job(JobId),
    Line(u32),
}

/// Member of a tier with something to fetch.
struct Sharer {
    account: Account,
    /// Relative to the others of the tier; 0 gets only what all others leave.
    weight: f64,
    /// Job that would take the turn, if one can.
    candidate: Option<JobId>,
}

/// Standing order, jobs with something to fetch, and what each has received.
#[derive(Debug)]
pub struct Lanes {
    /// Bytes per round for the heaviest of a tier.
    quantum: f64,
    order: LaneOrder,
    /// Tier and index of the jobs that the order names.
    named: BTreeMap<JobId, (Tier, u32)>,
    /// Jobs that have something to fetch.
    waiting: BTreeSet<JobId>,
    /// Waiting jobs that the order serves.
    ranks: BTreeSet<Rank>,
    /// Bytes that may be received before others; negative after receiving too many.
    credit: BTreeMap<Account, f64>,
    /// Account of the last turn that was given by credit.
    turn: Option<Account>,
}

impl Lanes {
    /// Creates lanes without an order. A round of a tier gives its heaviest this many bytes of credit, at least 1.
    #[must_use]
    pub fn new(quantum_bytes: u64) -> Self {
        Self {
            quantum: quantum_bytes.max(1) as f64,
            order: LaneOrder::default(),
            named: BTreeMap::new(),
            waiting: BTreeSet::new(),
            ranks: BTreeSet::new(),
            credit: BTreeMap::new(),
            turn: None,
        }
    }

    /// True if the master has sent an order.
    #[must_use]
    pub fn in_order(&self) -> bool {
        !self.order.grants.is_empty() || self.order.only
    }

    /// Sets the order. Credit of jobs that stay is kept. A job that is named twice counts where it is named first.
    /// O(jobs).
    pub fn order(&mut self, order: &LaneOrder) {
        if self.order == *order {
            return;
        }
        self.order = order.clone();
        self.named.clear();
        let mut before: Option<(LaneShare, Tier)> = None;
        for (place, &(job, share)) in (0..).zip(&self.order.grants) {
            let tier = match before {
                Some((other, tier)) if alike(other, share) => tier,
                _ => Tier(u64::from(place)),
            };
            before = Some((share, tier));
            self.named.entry(job).or_insert((tier, place));
        }
        self.ranks = self.waiting.iter().filter_map(|&job| self.rank(job)).collect();
        let lines = self.order.lines.len();
        self.credit.retain(|account, _| match account {
            Account::Job(job) => self.named.contains_key(job) || self.waiting.contains(job),
            Account::Line(line) => (*line as usize) < lines,
        });
    }

    fn rank(&self, job: JobId) -> Option<Rank> {
        if let Some(&(tier, place)) = self.named.get(&job) {
            return Some(Rank { tier, place, job });
        }
        let tier = match (self.in_order(), self.order.only) {
            (_, true) => return None,
            (true, false) => Tier(Tier::UNNAMED + u64::from(job.0)),
            (false, false) => Tier(0),
        };
        Some(Rank { tier, place: u32::MAX, job })
    }

    /// Returns the tier of the job; [`Tier::LAST`] if it is not served.
    #[must_use]
    pub(crate) fn tier(&self, job: JobId) -> Tier {
        self.rank(job).map_or(Tier::LAST, |rank| rank.tier)
    }

    fn share(&self, job: JobId) -> LaneShare {
        match self.named.get(&job) {
            Some(&(_, place)) => self.order.grants[place as usize].1,
            None if self.in_order() => LaneShare::All,
            None => LaneShare::Weight(1.0),
        }
    }

    fn account(&self, job: JobId) -> Option<Account> {
        match self.share(job) {
            LaneShare::Weight(_) => Some(Account::Job(job)),
            LaneShare::Line(line) => Some(Account::Line(line)),
            LaneShare::All | LaneShare::Requests(_) => None,
        }
    }

    /// Adds a job with something to fetch.
    pub fn enter(&mut self, job: JobId) {
        if self.waiting.insert(job)
            && let Some(rank) = self.rank(job)
        {
            self.ranks.insert(rank);
        }
    }

    /// Removes a job without anything more to fetch.
    pub fn leave(&mut self, job: JobId) {
        if !self.waiting.remove(&job) {
            return;
        }
        if let Some(rank) = self.rank(job) {
            self.ranks.remove(&rank);
        }
        let account = Account::Job(job);
        if self.credit.get(&account).is_some_and(|credit| 0.0 <= *credit) {
            self.credit.remove(&account);
        }
    }

    /// Returns the next job among those that `can` take the turn and are more urgent than `before`. `can` receives each
    /// job with its tier and its maximum requests in flight, if the order sets one. O(jobs that have something to
    /// fetch), and less if the first of them can.
    pub fn next(&mut self, before: Tier, can: impl Fn(JobId, Tier, Option<u32>) -> bool) -> Option<JobId> {
        let can = |job: JobId, tier: Tier| {
            let most = match self.share(job) {
                LaneShare::Requests(most) => Some(most),
                LaneShare::All | LaneShare::Weight(_) | LaneShare::Line(_) => None,
            };
            can(job, tier, most)
        };
        let mut from = *self.ranks.first()?;
        while from.tier < before {
            let shared = self.account(from.job).is_some();
            if !shared && can(from.job, from.tier) {
                return Some(from.job);
            }
            if shared {
                let sharers = self.sharers(from.tier, can);
                if sharers.iter().any(|sharer| sharer.candidate.is_some()) {
                    return self.by_credit(&sharers);
                }
            }
            let behind = Rank { tier: from.tier.behind(), place: 0, job: JobId(0) };
            from = *self.ranks.range(behind..).next()?;
        }
        None
    }

    /// Returns the members of this tier, in the order of the list.
    fn sharers(&self, tier: Tier, can: impl Fn(JobId, Tier) -> bool) -> Vec<Sharer> {
        let first = Rank { tier, place: 0, job: JobId(0) };
        let mut sharers: Vec<Sharer> = Vec::new();
        for rank in self.ranks.range(first..).take_while(|rank| rank.tier == tier) {
            let job = rank.job;
            let candidate = can(job, tier).then_some(job);
            match self.share(job) {
                LaneShare::Line(line) => {
                    let account = Account::Line(line);
                    // The first job of a line takes all that the line gets.
                    if let Some(known) = sharers.iter_mut().find(|sharer| sharer.account == account) {
                        known.candidate = known.candidate.or(candidate);
                        continue;
                    }
                    let weight = self.order.lines.get(line as usize).copied().unwrap_or(0.0);
                    sharers.push(Sharer { account, weight, candidate });
                }
                LaneShare::Weight(weight) => {
                    sharers.push(Sharer { account: Account::Job(job), weight, candidate });
                }
                LaneShare::All | LaneShare::Requests(_) => {}
            }
        }
        // A line without a fraction gets its turn only if no other can take one.
        let drawn = |sharer: &Sharer| 0.0 < sharer.weight || matches!(sharer.account, Account::Job(_));
        if sharers.iter().any(|sharer| drawn(sharer) && sharer.candidate.is_some()) {
            sharers.retain(drawn);
        }
        sharers
    }

    fn credit(&self, account: Account) -> f64 {
        self.credit.get(&account).copied().unwrap_or(0.0)
    }

    /// Returns the next job by credit; at least one member must have a candidate.
    fn by_credit(&mut self, sharers: &[Sharer]) -> Option<JobId> {
        let able =
            |lanes: &Self, sharer: &Sharer| sharer.candidate.is_some() && 0.0 < lanes.credit(sharer.account);
        if !sharers.iter().any(|sharer| able(self, sharer)) {
            self.refill(sharers);
        }
        // The current member continues if it can; then the next ones follow.
        let last = sharers.iter().position(|sharer| Some(sharer.account) == self.turn).unwrap_or(0);
        let (before, after) = sharers.split_at(last);
        let mut turns = after.iter().chain(before);
        // Only if a debt is so large that its last byte is lost in rounding, no member has credit now.
        let taker = turns.find(|sharer| able(self, sharer));
        let taker = taker.or_else(|| sharers.iter().find(|sharer| sharer.candidate.is_some()))?;
        self.turn = Some(taker.account);
        taker.candidate
    }

    /// Adds rounds of credit until a member that can continue has some.
    fn refill(&mut self, sharers: &[Sharer]) {
        let heaviest = sharers.iter().map(|sharer| sharer.weight).fold(0.0, f64::max);
        let gain = |sharer: &Sharer| self.quantum * (sharer.weight / heaviest).max(WEIGHT_RATIO_MIN);
        let rounds = |sharer: &Sharer| (-self.credit(sharer.account) / gain(sharer)).floor() + 1.0;
        let able = sharers.iter().filter(|sharer| sharer.candidate.is_some());
        let rounds = able.map(rounds).fold(f64::INFINITY, f64::min);
        let gained: BTreeMap<Account, f64> =
            sharers.iter().map(|sharer| (sharer.account, rounds * gain(sharer))).collect();
        for account in gained.keys() {
            self.credit.entry(*account).or_insert(0.0);
        }
        let (quantum, saved_max) = (self.quantum, self.saved_max());
        self.credit.retain(|account, credit| {
            match gained.get(account) {
                Some(gained) => *credit = (*credit + gained).min(saved_max),
                // A debt is also paid off over time by those without anything to fetch.
                None if *credit < 0.0 || matches!(account, Account::Line(_)) => {
                    *credit = (*credit + rounds * quantum).min(0.0);
                }
                None => {}
            }
            *credit != 0.0
        });
    }

    fn saved_max(&self) -> f64 {
        self.quantum * SAVED_QUANTA_MAX
    }

    /// Charges the job for bytes that were fetched or are expected; negative if fewer came than expected.
    pub(crate) fn charge(&mut self, job: JobId, bytes: f64) {
        let Some(account) = self.account(job) else { return };
        let most = if self.waiting.contains(&job) { self.saved_max() } else { 0.0 };
        let credit = self.credit.entry(account).or_insert(0.0);
        *credit = (*credit - bytes).min(most.max(*credit));
    }
}

/// True if neighbours with these shares are one tier.
fn alike(one: LaneShare, other: LaneShare) -> bool {
    matches!(
        (one, other),
        (LaneShare::Weight(_), LaneShare::Weight(_)) | (LaneShare::Line(_), LaneShare::Line(_))
    )
}

#[cfg(test)]
mod tests;
