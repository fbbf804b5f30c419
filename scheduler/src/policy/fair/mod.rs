//! Max-min fair sharing of slots over pools, and over the jobs of a pool.
//!
//! Paper: the "fair" of the ASRPT and deadlines papers; Hadoop's fair scheduler. Rule: the next slot goes to
//! the pool with the fewest slots per weight among those that can use it. In the pool it goes to the job with
//! the fewest slots per weight: `argmin held / weight`, ties to the older. Filling in that order is max-min.
//! Favours short jobs and harms long ones, which share their slots with all newcomers. Deviations: slots are
//! not preempted, so shares are reached as attempts end. The shuffle is shared by weight, by the workers.
//! Parameters: weight of each named pool; the default is the weight given by its first job, or 1. A job
//! without a pool is a pool of its own weight. Limits: it is not fair in time or in bytes; a slot counts the
//! same however long it is held. With slots as the only resource it is dominant resource fairness too.
//!
//! `capacity` shares over pools in the same way, and serves the jobs of a pool in the order of arrival, as Hadoop's
//! capacity scheduler does; that one's hierarchy of queues and its maximum capacities are not here.

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason, Share, order_of};
use crate::policy::Ranked;
use crate::policy::interface::Policy;
use crate::policy::ranked::Walk;
use crate::station::PerStation;
use crate::view::{Change, Handle, Row, Station, View};
use std::collections::BTreeMap;

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[
    Entry {
        paper: "ASRPT VII, deadlines V",
        ..Entry::new("fair", "max-min sharing of slots over pools and jobs, by weight", |_| {
            Ok(Box::new(Fair::new()))
        })
    },
    Entry {
        paper: "Hadoop's capacity scheduler",
        ..Entry::new("capacity", "max-min sharing over pools by weight, first in first out in a pool", |_| {
            Ok(Box::new(Fair { in_order: true, ..Fair::new() }))
        })
    },
];

/// Key of a pool: a named one, or that of one job without pool, by seq.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum PoolKey {
    Named(u32),
    Single(u64),
}

/// Level (slots held per weight, as ordered bits), then age.
type PoolRank = (u64, u64);

/// Remembered data of a job.
#[derive(Clone, Copy, Debug)]
struct PoolMember {
    pool: PoolKey,
    held: u32,
}

#[derive(Debug, Default)]
struct FairPool {
    weight: f64,
    held: u32,
    /// Order of its first job's arrival.
    age: u64,
    members: u32,
    hungry: Ranked<PoolRank, Handle>,
}

/// Sharing of one set of slots: all slots if unified, else those of one station.
#[derive(Debug, Default)]
struct Sharing {
    stations: Vec<Station>,
    /// True if the jobs of a pool go by age.
    in_order: bool,
    members: BTreeMap<Handle, PoolMember>,
    pools: BTreeMap<PoolKey, FairPool>,
    /// Pools with a job that can use a slot.
    hungry: Ranked<PoolRank, PoolKey>,
}

/// Max-min over pools and jobs.
#[derive(Debug, Default)]
pub struct Fair {
    /// Created on the first observation, which shows if slots are unified.
    sharings: Vec<Sharing>,
    /// True if the jobs of a pool go by age.
    in_order: bool,
    fetching: Ranked<u64, Handle>,
}

impl Fair {
    /// Creates fair sharing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn draw_up(&mut self, unified: bool) {
        let in_order = self.in_order;
        let sharing =
            |stations: &[Station]| Sharing { stations: stations.to_vec(), in_order, ..Sharing::default() };
        self.sharings = match unified {
            // Reduces first: they free memory and finish their job.
            true => vec![sharing(&[Station::Reduce, Station::Map])],
            false => vec![sharing(&[Station::Reduce]), sharing(&[Station::Map])],
        };
    }
}

impl Policy for Fair {
    fn name(&self) -> &'static str {
        if self.in_order { "capacity" } else { "fair" }
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn knows_pools(&self) -> bool {
        true
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        if self.sharings.is_empty() {
            self.draw_up(view.unified);
        }
        if let Change::Left(job) = change {
            self.fetching.place(job, None);
            for sharing in &mut self.sharings {
                sharing.leave(job);
            }
        }
        for &job in view.touched {
            let row = view.row(job);
            let fetches = 0.0 < row.can[Station::Shuffle];
            self.fetching.place(job, fetches.then_some(row.seq));
            let (pool, weight) = match row.pool {
                Some(name) => (PoolKey::Named(name), row.pool_weight.unwrap_or(1.0)),
                None => (PoolKey::Single(row.seq), row.weight),
            };
            for sharing in &mut self.sharings {
                sharing.place(job, row, pool, weight);
            }
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        for job in self.fetching.iter() {
            let row = view.row(job);
            let reason = Reason::LowestShare { held: 0, weight: row.weight };
            if !plan.grant(job, Station::Shuffle, Share::Weight(row.weight), reason) {
                break;
            }
        }
        for sharing in &self.sharings {
            sharing.plan(view, plan);
        }
    }
}

fn rank(held: u32, weight: f64, age: u64) -> PoolRank {
    (order_of(f64::from(held) / weight), age)
}

impl Sharing {
    fn place(&mut self, job: Handle, row: &Row, key: PoolKey, weight: f64) {
        let sum = |table: &PerStation<f64>| self.stations.iter().map(|&station| table[station]).sum::<f64>();
        let held = sum(&row.held) as u32;
        let hungry = 0.0 < sum(&row.can);
        let pool =
            self.pools.entry(key).or_insert_with(|| FairPool { weight, age: row.seq, ..FairPool::default() });
        match self.members.insert(job, PoolMember { pool: key, held }) {
            Some(before) => pool.held -= before.held,
            None => pool.members += 1,
        }
        pool.held += held;
        let rank = if self.in_order { rank(0, 1.0, row.seq) } else { rank(held, row.weight, row.seq) };
        pool.hungry.place(job, hungry.then_some(rank));
        self.rank_pool(key);
    }

    fn leave(&mut self, job: Handle) {
        let Some(member) = self.members.remove(&job) else { return };
        let pool = self.pools.get_mut(&member.pool).expect("a member has a pool");
        pool.held -= member.held;
        pool.members -= 1;
        pool.hungry.place(job, None);
        if pool.members == 0 {
            self.pools.remove(&member.pool);
        }
        self.rank_pool(member.pool);
    }

    fn rank_pool(&mut self, key: PoolKey) {
        let pool = self.pools.get(&key).filter(|pool| !pool.hungry.is_empty());
        self.hungry.place(key, pool.map(|pool| rank(pool.held, pool.weight, pool.age)));
    }

    fn has_capacity(&self, plan: &Plan<'_>) -> bool {
        self.stations.iter().any(|&station| 0.0 < plan.remaining(station))
    }

    /// Grants one slot at a time to the lowest job of the lowest pool, as long as any job can use one.
    fn plan(&self, view: View<'_>, plan: &mut Plan<'_>) {
        let mut pools = self.hungry.walk();
        let mut open: BTreeMap<PoolKey, (u32, Walk<'_, PoolRank, Handle>)> = BTreeMap::new();
        while self.has_capacity(plan) {
            let Some((_, key)) = pools.take() else { return };
            let pool = &self.pools[&key];
            let (held, jobs) = open.entry(key).or_insert_with(|| (pool.held, pool.hungry.walk()));
            let Some((_, job)) = jobs.take() else { continue };
            let reason = Reason::LowestShare { held: *held, weight: pool.weight };
            if self.grant_one(job, plan, reason) {
                *held += 1;
                let row = view.row(job);
                let job_held: f64 = self.stations.iter().map(|&station| plan.got(job, station)).sum();
                let held = if self.in_order { 0 } else { job_held as u32 };
                jobs.put_back(rank(held, row.weight, row.seq), job);
            }
            // A pool whose job could start nothing keeps its rank for its next job.
            if !jobs.is_empty() {
                pools.put_back(rank(*held, pool.weight, pool.age), key);
            }
        }
    }

    fn grant_one(&self, job: Handle, plan: &mut Plan<'_>, reason: Reason) -> bool {
        self.stations.iter().any(|&station| {
            let got = plan.got(job, station);
            plan.grant(job, station, Share::Slots(got as u32 + 1), reason);
            got < plan.got(job, station)
        })
    }
}

#[cfg(test)]
mod tests;
