//! The live workers: hosts, slots, what runs where, and who is idle.
//!
//! Not here: which job may use a worker (`jobs`), and liveness; the driver decides when a worker is lost.
//!
//! Slots lie in pools: one for both kinds of task, or one for each. Tables by pool have two places; when slots are
//! unified the second is unused.
//!
//! Invariant: no pool of a live worker runs more than its slots, and that of maps is full if anything is queued
//! there; `idle` holds exactly the workers with a free slot, `behind` those without one for maps where quick attempts
//! run.

use crate::estimate::ServiceRates;
use crate::event::Slots;
use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::ledger::suspensions::Hold;
use crate::ledger::worker::JobMarks;
pub(crate) use crate::ledger::worker::KINDS;
use crate::ledger::worker::LEVEL_BITS;
pub use crate::ledger::worker::Worker;

use crate::units::Span;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Workers by free slots, most first, then by id.
type Idle = BTreeSet<(Reverse<u32>, WorkerId)>;

/// All live workers.
#[derive(Debug, Default)]
pub struct Workers {
    pub(crate) live: BTreeMap<WorkerId, Worker>,
    /// Those with a free slot, by pool.
    pub(crate) idle: [Idle; 2],
    /// Workers that attempts may be queued on: shortest queue for its quick slots first, then by id.
    pub(crate) behind: BTreeSet<(u64, WorkerId)>,
    /// Those at which ready reduces wait and find no slot.
    pub(crate) holding_up: BTreeSet<WorkerId>,
    /// Of every worker that ever joined, as the disk outlives the process: eight bytes each.
    pub(crate) hosts: BTreeMap<WorkerId, HostId>,
    /// The live ones by host.
    by_host: BTreeMap<HostId, BTreeSet<WorkerId>>,
    /// Workers whose number of free slots changed since the rows were counted.
    pub(crate) moved: BTreeSet<WorkerId>,
    /// Whether slots are in pools; every worker says the same.
    pub(crate) pooled: bool,
    /// By pool.
    pub(crate) slots: [u32; 2],
    /// By pool.
    pub(crate) free: [u32; 2],
    /// Sum of [`Worker::usable`], by pool.
    pub(crate) usable: [u32; 2],
    /// Waiting maps of all jobs that are not bound to workers.
    pub(crate) unbound: u64,
    /// Sum of [`Worker::awaited`], by pool.
    pub(crate) awaited: [u32; 2],
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
        self.slots[self.pool(kind)]
    }

    /// Slots for this kind that no attempt holds.
    pub(crate) fn free_of(&self, kind: TaskKind) -> u32 {
        self.free[self.pool(kind)]
    }

    /// Whether any task of this kind could start somewhere as far as slots go: there is a free slot, and tasks that
    /// could take it wait, at its worker or anywhere.
    pub(crate) fn startable(&self, kind: TaskKind) -> u32 {
        let pool = self.pool(kind);
        let anywhere = 0 < self.unbound && pool == self.pool(TaskKind::Map);
        if anywhere { self.free[pool] } else { self.usable[pool] }
    }

    pub(crate) fn join(&mut self, id: WorkerId, host: HostId, slots: Slots) {
        assert!(KINDS.iter().all(|&kind| 0 < slots.of(kind)), "{id} joined without slots");
        let known = self.hosts.insert(id, host);
        assert!(known.is_none(), "{id} joined twice");
        assert!(self.live.is_empty() || self.pooled != slots.unified(), "{id} has slots of another kind");
        self.pooled = !slots.unified();
        let worker = Worker {
            id,
            host,
            slots,
            running: BTreeSet::new(),
            used: [0; 2],
            quick: 0,
            suspended: BTreeSet::new(),
            suspendable: 0,
            leaving: 0,
            queued: VecDeque::new(),
            awaited: [0; 2],
            ready: 0,
            marks: JobMarks::default(),
            shown_idle: [false; 2],
            slot_rate: None,
        };
        self.live.insert(id, worker);
        self.by_host.entry(host).or_default().insert(id);
        for (pool, &kind) in KINDS.iter().enumerate().take(self.pools()) {
            let slots = slots.of(kind);
            self.idle[pool].insert((Reverse(slots), id));
            self.slots[pool] += slots;
            self.free[pool] += slots;
        }
        self.moved.insert(id);
    }

    fn pools(&self) -> usize {
        if self.pooled { 2 } else { 1 }
    }

    pub(crate) fn lose(&mut self, id: WorkerId) -> Option<Worker> {
        let worker = self.live.remove(&id)?;
        for (pool, &kind) in KINDS.iter().enumerate().take(self.pools()) {
            self.idle[pool].remove(&(Reverse(worker.free(kind)), id));
            self.slots[pool] -= worker.slots.of(kind);
            self.free[pool] -= worker.free(kind);
            self.usable[pool] -= worker.usable(kind);
            self.awaited[pool] -= worker.awaited[pool];
        }
        self.suspendable -= worker.suspendable;
        self.leaving -= worker.leaving;
        if let Some(level) = worker.level() {
            self.behind.remove(&(level, id));
        }
        if let Some(others) = self.by_host.get_mut(&worker.host) {
            others.remove(&id);
            if others.is_empty() {
                self.by_host.remove(&worker.host);
            }
        }
        self.holding_up.remove(&id);
        self.moved.remove(&id);
        self.rates.forget(id);
        Some(worker)
    }

    pub(crate) fn take_slot(&mut self, id: WorkerId, attempt: AttemptId, quick: bool) {
        let kind = attempt.task.kind;
        self.change(id, |worker| {
            assert!(0 < worker.free(kind), "{attempt} launched on {id} without a free slot");
            assert!(worker.running.insert(attempt), "{attempt} launched twice");
            worker.used[worker.pool(kind)] += 1;
            worker.quick += u32::from(quick);
        });
    }

    /// Queues a map behind those that run.
    pub(crate) fn queue(&mut self, id: WorkerId, attempt: AttemptId) {
        self.change(id, |worker| {
            let full = worker.free(TaskKind::Map) == 0;
            assert!(full, "{attempt} queued on {id}, which has a free slot");
            worker.queued.push_back(attempt);
        });
    }

    /// The attempt leaves the worker, with its slot or its place in the queue; `quick` as when it took the
    /// slot. Gives the one that has the slot next, which the caller judges with [`Workers::judge`].
    pub(crate) fn leave(&mut self, id: WorkerId, attempt: AttemptId, quick: bool) -> Option<AttemptId> {
        let kind = attempt.task.kind;
        self.change(id, |worker| {
            if !worker.running.remove(&attempt) {
                let place = worker.queued.iter().position(|&other| other == attempt);
                worker.queued.remove(place.expect("an attempt of the table runs or is queued"));
                return None;
            }
            worker.quick -= u32::from(quick);
            let pool = worker.pool(kind);
            worker.used[pool] -= 1;
            // The queue holds maps, which take what is theirs.
            let next = (pool == worker.pool(TaskKind::Map)).then(|| worker.queued.pop_front()).flatten()?;
            worker.running.insert(next);
            worker.used[pool] += 1;
            Some(next)
        })
    }

    /// A map ended well there after this time in its slot.
    pub(crate) fn measure(&mut self, id: WorkerId, took: Span) {
        if let Some(worker) = self.live.get_mut(&id) {
            self.rates.finished(id, took.seconds());
            worker.slot_rate = self.rates.rate(id);
        }
    }

    /// So many more (or fewer) tasks of this kind wait for this worker and no other; `ready` reduces may move.
    pub(crate) fn await_slot(&mut self, id: WorkerId, kind: TaskKind, tasks: i32, ready: bool) {
        if self.is_live(id) {
            let pool = self.pool(kind);
            self.awaited[pool] = self.awaited[pool].saturating_add_signed(tasks);
            self.change(id, |worker| {
                let awaited = &mut worker.awaited[pool];
                *awaited = awaited.saturating_add_signed(tasks);
                if ready {
                    worker.ready = worker.ready.saturating_add_signed(tasks);
                }
            });
        }
    }

    /// A running attempt leaves its slot and stays. Gives the one that has the slot next, as [`Workers::leave`].
    pub(crate) fn park(&mut self, id: WorkerId, attempt: AttemptId) -> Option<AttemptId> {
        let next = self.leave(id, attempt, false);
        self.live.get_mut(&id).expect("attempts are suspended on live workers").suspended.insert(attempt);
        next
    }

    /// A suspended attempt gets a slot again.
    pub(crate) fn unpark(&mut self, id: WorkerId, attempt: AttemptId) {
        self.forget_parked(id, attempt);
        self.take_slot(id, attempt, false);
    }

    /// A suspended attempt is over.
    pub(crate) fn forget_parked(&mut self, id: WorkerId, attempt: AttemptId) {
        let worker = self.live.get_mut(&id).expect("attempts are suspended on live workers");
        assert!(worker.suspended.remove(&attempt), "{attempt} is not suspended on {id}");
    }

    /// An attempt there has its slot in another way.
    pub(crate) fn count_hold(&mut self, id: WorkerId, before: Hold, now: Hold) {
        let Some(worker) = self.live.get_mut(&id) else { return };
        for (counts, hold) in [
            ([&mut worker.suspendable, &mut self.suspendable], Hold::Suspendable),
            ([&mut worker.leaving, &mut self.leaving], Hold::Leaving),
        ] {
            for count in counts {
                *count = *count + u32::from(now == hold) - u32::from(before == hold);
            }
        }
        self.moved.insert(id);
    }

    /// Says of an attempt that has just got a slot by waiting whether it is quick.
    pub(crate) fn judge(&mut self, id: WorkerId, quick: bool) {
        self.change(id, |worker| worker.quick += u32::from(quick));
    }

    /// Changes what runs on a worker, and the indexes with it.
    fn change<T>(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker) -> T) -> T {
        let pools = self.pools();
        let worker = self.live.get_mut(&id).expect("attempts run on live workers");
        let count = |worker: &Worker| {
            let of = |kind: TaskKind| (worker.free(kind), worker.usable(kind));
            // A second pool that nobody uses never changes.
            [of(TaskKind::Map), if pools == 2 { of(TaskKind::Reduce) } else { (0, 0) }]
        };
        let (before, level) = (count(worker), worker.level());
        let result = change(worker);
        let (after, level_now) = (count(worker), worker.level());
        if worker.holds_up() {
            self.holding_up.insert(id);
        } else {
            self.holding_up.remove(&id);
        }
        for (pool, ((free, usable), (free_now, usable_now))) in before.into_iter().zip(after).enumerate() {
            self.usable[pool] = self.usable[pool] + usable_now - usable;
            if free != free_now {
                self.free[pool] = self.free[pool] + free_now - free;
                self.idle[pool].remove(&(Reverse(free), id));
                if 0 < free_now {
                    self.idle[pool].insert((Reverse(free_now), id));
                }
                self.moved.insert(id);
            }
        }
        if level != level_now {
            if let Some(level) = level {
                self.behind.remove(&(level, id));
            }
            if let Some(level) = level_now {
                self.behind.insert((level, id));
            }
        }
        result
    }

    /// Whether the rows count this worker as idle for this kind.
    pub(crate) fn shown_idle(&self, id: WorkerId, kind: TaskKind) -> bool {
        self.live.get(&id).is_some_and(|worker| worker.shown_idle[worker.pool(kind)])
    }

    /// Notes that the worker is told of this job.
    pub(crate) fn tell(&mut self, id: WorkerId, job: JobId) {
        self.live.get_mut(&id).expect("only live workers are told of jobs").marks.jobs.insert(job);
    }

    /// Drops every trace of a job that ended from these workers.
    pub(crate) fn forget(&mut self, job: JobId, from: impl Iterator<Item = WorkerId>) {
        for worker in from {
            if let Some(worker) = self.live.get_mut(&worker) {
                worker.marks.jobs.remove(&job);
                worker.marks.bound.remove(&job);
                worker.marks.named.remove(&job);
            }
        }
    }
}
