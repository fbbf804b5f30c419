//! The live workers: hosts, slots, what runs where, and who is idle.
//!
//! The driver decides when a worker is lost.
//!
//! Slots lie in pools: one for both kinds of task, or one for each. Tables by pool have two places; when slots are
//! unified the second is unused.
//!
//! Invariant: no pool of a live worker runs more than its slots, and that of maps is full if anything is queued
//! there; `idle` holds exactly the workers with a free slot, `behind` those without one for maps where quick attempts
//! run.

mod changes;

use crate::estimate::ServiceRates;
use crate::ids::{HostId, TaskKind, WorkerId};
use crate::ledger::worker::LEVEL_BITS;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use crate::ledger::worker::KINDS;
pub use crate::ledger::worker::Worker;

/// Workers by free slots, most first, then by id.
type IdleWorkers = BTreeSet<(Reverse<u32>, WorkerId)>;

/// Sums over the live workers, each by pool.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PoolSums {
    pub(crate) slots: [u32; 2],
    pub(crate) free: [u32; 2],
    /// Of [`Worker::usable`].
    pub(crate) usable: [u32; 2],
    /// Of [`Worker::awaited`].
    pub(crate) awaited: [u32; 2],
}

/// All live workers.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Workers {
    pub(crate) live: BTreeMap<WorkerId, Worker>,
    /// Those with a free slot, by pool.
    pub(crate) idle: [IdleWorkers; 2],
    /// Workers that attempts may be queued on: shortest queue for its quick slots first, then by id.
    pub(crate) behind: BTreeSet<(u64, WorkerId)>,
    /// Those at which ready reduces wait and find no slot.
    pub(crate) holding_up: BTreeSet<WorkerId>,
    /// Those that are slow, and how many times as long as others they take.
    pub(crate) slow: BTreeMap<WorkerId, f64>,
    /// Of every worker that ever joined, as the disk outlives the process: eight bytes each.
    pub(crate) hosts: BTreeMap<WorkerId, HostId>,
    /// The live ones by host.
    by_host: BTreeMap<HostId, BTreeSet<WorkerId>>,
    /// Workers whose number of free slots changed since the rows were counted.
    pub(crate) moved: BTreeSet<WorkerId>,
    /// Whether slots are in pools; every worker says the same.
    pub(crate) pooled: bool,
    /// What all have together.
    pub(crate) sums: PoolSums,
    /// Waiting maps of all jobs that are not bound to workers.
    pub(crate) unbound: u64,
    /// Sums of [`Worker::suspendable`] and [`Worker::leaving`].
    pub(crate) suspendable: u32,
    pub(crate) leaving: u32,
    /// How fast a slot of each ends maps.
    rates: ServiceRates,
}

impl Workers {
    /// The live worker with this id.
    #[must_use]
    pub fn get(&self, id: WorkerId) -> Option<&Worker> {
        self.live.get(&id)
    }

    /// Whether this worker is live.
    #[must_use]
    pub fn is_live(&self, id: WorkerId) -> bool {
        self.live.contains_key(&id)
    }

    /// Number of live workers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.live.len()
    }

    /// The live workers by id.
    pub fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.live.values()
    }

    /// Workers with a free slot for this kind: those with most free slots first, then by id.
    pub fn idle(&self, kind: TaskKind) -> impl Iterator<Item = &Worker> {
        self.idle[self.pool(kind)].iter().map(|(_, id)| &self.live[id])
    }

    /// How many times as long as elsewhere tasks take there, if that makes a difference; else 1.
    pub(crate) fn delay(&self, id: WorkerId) -> f64 {
        self.slow.get(&id).copied().unwrap_or(1.0)
    }

    /// Number of workers with a free slot for this kind.
    #[must_use]
    pub fn idle_count(&self, kind: TaskKind) -> usize {
        self.idle[self.pool(kind)].len()
    }

    /// Workers without a free slot that may get one more map to run afterwards, when at most `depth` are
    /// queued behind each slot: those with the shortest queue first, then by id.
    pub fn behind(&self, depth: u32) -> impl Iterator<Item = &Worker> {
        self.behind.range(..(Self::level_of(depth), WorkerId(0))).map(|(_, id)| &self.live[id])
    }

    /// The [`Worker::level`] at which so many are queued behind each slot.
    pub(crate) fn level_of(depth: u32) -> u64 {
        u64::from(depth) << LEVEL_BITS
    }

    /// The machine of a worker, also of one that is lost; `None` if it never joined.
    #[must_use]
    pub fn host(&self, id: WorkerId) -> Option<HostId> {
        self.hosts.get(&id).copied()
    }

    /// The live workers on this machine.
    pub(crate) fn at_host(&self, host: HostId) -> impl Iterator<Item = WorkerId> {
        self.by_host.get(&host).into_iter().flatten().copied()
    }

    /// Where the slots for this kind stand in tables by pool.
    pub(crate) fn pool(&self, kind: TaskKind) -> usize {
        usize::from(self.pooled && kind == TaskKind::Reduce)
    }

    /// Slots for this kind of all workers.
    pub(crate) fn slots_of(&self, kind: TaskKind) -> u32 {
        self.sums.slots[self.pool(kind)]
    }

    /// Slots for this kind that no attempt holds.
    pub(crate) fn free_of(&self, kind: TaskKind) -> u32 {
        self.sums.free[self.pool(kind)]
    }

    /// Whether any task of this kind could start somewhere as far as slots go: there is a free slot, and tasks that
    /// could take it wait, at its worker or anywhere.
    pub(crate) fn startable(&self, kind: TaskKind) -> u32 {
        let pool = self.pool(kind);
        let anywhere = 0 < self.unbound && pool == self.pool(TaskKind::Map);
        if anywhere { self.sums.free[pool] } else { self.sums.usable[pool] }
    }

    fn pools(&self) -> usize {
        if self.pooled { 2 } else { 1 }
    }
}
