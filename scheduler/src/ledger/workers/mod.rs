//! Live workers: hosts, slots, attempts, and which workers are idle.
//!
//! The driver decides when a worker is lost.
//!
//! Slots are in pools: one pool for both kinds of task, or one for each. Tables by pool have two places; with unified
//! slots the second is unused.
//!
//! Invariant: no pool of a live worker runs more attempts than it has slots, and the pool of maps is full if any map is
//! queued there. `idle` holds exactly the workers with a free slot. `behind` holds exactly those without a free map
//! slot where quick attempts run.

mod changes;

use crate::estimate::ServiceRates;
use crate::ids::{HostId, TaskKind, WorkerId};
use crate::ledger::worker::LEVEL_BITS;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use crate::ledger::worker::KINDS;
pub use crate::ledger::worker::Worker;

/// Workers by free slots, largest number first, then by id.
type IdleWorkers = BTreeSet<(Reverse<u32>, WorkerId)>;

/// Sums over the live workers, by pool.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PoolSums {
    pub(crate) slots: [u32; 2],
    pub(crate) free: [u32; 2],
    /// Sum of [`Worker::usable`].
    pub(crate) usable: [u32; 2],
    /// Sum of [`Worker::awaited`].
    pub(crate) awaited: [u32; 2],
}

/// All live workers.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Workers {
    pub(crate) live: BTreeMap<WorkerId, Worker>,
    /// Workers with a free slot, by pool.
    pub(crate) idle: [IdleWorkers; 2],
    /// Workers that maps may be queued on: shortest queue per quick slot first, then by id.
    pub(crate) behind: BTreeSet<(u64, WorkerId)>,
    /// Workers at which ready reduces wait and find no slot.
    pub(crate) holding_up: BTreeSet<WorkerId>,
    /// Slow workers, with their task times relative to others.
    pub(crate) slow: BTreeMap<WorkerId, f64>,
    /// Hosts of all workers that ever joined, since the disk outlives the process: eight bytes each.
    pub(crate) hosts: BTreeMap<WorkerId, HostId>,
    /// Live workers by host.
    by_host: BTreeMap<HostId, BTreeSet<WorkerId>>,
    /// Workers whose number of free slots changed since the rows were counted.
    pub(crate) moved: BTreeSet<WorkerId>,
    /// True if slots are in pools. All workers must agree.
    pub(crate) pooled: bool,
    /// Sums over all live workers.
    pub(crate) sums: PoolSums,
    /// Waiting maps of all jobs that are not bound to workers.
    pub(crate) unbound: u64,
    /// Sums of [`Worker::suspendable`] and [`Worker::leaving`].
    pub(crate) suspendable: u32,
    pub(crate) leaving: u32,
    /// Maps per second of one slot of each worker.
    rates: ServiceRates,
}

impl Workers {
    /// Returns the live worker with this id.
    #[must_use]
    pub fn get(&self, id: WorkerId) -> Option<&Worker> {
        self.live.get(&id)
    }

    /// True if this worker is live.
    #[must_use]
    pub fn is_live(&self, id: WorkerId) -> bool {
        self.live.contains_key(&id)
    }

    /// Number of live workers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.live.len()
    }

    /// Returns the live workers by id.
    pub fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.live.values()
    }

    /// Returns the workers with a free slot for this kind: largest number of free slots first, then by id.
    pub fn idle(&self, kind: TaskKind) -> impl Iterator<Item = &Worker> {
        self.idle[self.pool(kind)].iter().map(|(_, id)| &self.live[id])
    }

    /// Returns the time of tasks there relative to other workers if the worker is slow, else 1.
    pub(crate) fn delay(&self, id: WorkerId) -> f64 {
        self.slow.get(&id).copied().unwrap_or(1.0)
    }

    /// Number of workers with a free slot for this kind.
    #[must_use]
    pub fn idle_count(&self, kind: TaskKind) -> usize {
        self.idle[self.pool(kind)].len()
    }

    /// Returns the workers without a free slot that may get one more queued map, with at most `depth` maps per slot:
    /// shortest queue first, then by id.
    pub fn behind(&self, depth: u32) -> impl Iterator<Item = &Worker> {
        self.behind.range(..(Self::level_of(depth), WorkerId(0))).map(|(_, id)| &self.live[id])
    }

    /// Returns the [`Worker::level`] at which this many maps are queued behind each slot.
    pub(crate) fn level_of(depth: u32) -> u64 {
        u64::from(depth) << LEVEL_BITS
    }

    /// Returns the machine of a live or lost worker; `None` if it never joined.
    #[must_use]
    pub fn host(&self, id: WorkerId) -> Option<HostId> {
        self.hosts.get(&id).copied()
    }

    /// Returns the live workers on this machine.
    pub(crate) fn at_host(&self, host: HostId) -> impl Iterator<Item = WorkerId> {
        self.by_host.get(&host).into_iter().flatten().copied()
    }

    /// Returns the index of the pool for this kind in tables by pool.
    pub(crate) fn pool(&self, kind: TaskKind) -> usize {
        usize::from(self.pooled && kind == TaskKind::Reduce)
    }

    /// Number of slots for this kind on all workers.
    pub(crate) fn slots_of(&self, kind: TaskKind) -> u32 {
        self.sums.slots[self.pool(kind)]
    }

    /// Number of free slots for this kind on all workers.
    pub(crate) fn free_of(&self, kind: TaskKind) -> u32 {
        self.sums.free[self.pool(kind)]
    }

    /// Upper bound of the tasks of this kind that could start: limited by free slots, and by the tasks that wait for
    /// their worker or for any.
    pub(crate) fn startable(&self, kind: TaskKind) -> u32 {
        let pool = self.pool(kind);
        let anywhere = 0 < self.unbound && pool == self.pool(TaskKind::Map);
        if anywhere { self.sums.free[pool] } else { self.sums.usable[pool] }
    }

    fn pools(&self) -> usize {
        if self.pooled { 2 } else { 1 }
    }
}
