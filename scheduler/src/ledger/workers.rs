//! The live workers: hosts, slots, what runs where, and who is idle.
//!
//! Not here: which job may use a worker (`jobs`), and liveness; the driver decides when a worker is lost.
//!
//! Invariant: `running.len() <= slots` for every live worker, with equality if anything is queued there; `idle`
//! holds exactly the workers with a free slot, `behind` those without one where quick attempts run.

use crate::ids::{AttemptId, HostId, JobId, WorkerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One live worker.
#[derive(Debug)]
pub struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) host: HostId,
    pub(crate) slots: u32,
    /// Attempts that hold a slot, those told to die included.
    pub(crate) running: BTreeSet<AttemptId>,
    /// How many of them are soon done, so that something may be queued behind them.
    pub(crate) quick: u32,
    /// Attempts that wait for a slot here, in the order in which they will get it.
    pub(crate) queued: VecDeque<AttemptId>,
    /// Tasks that can start nowhere else and wait for a slot here.
    pub(crate) awaited: u32,
    /// Live jobs that the worker was told of: it runs, keeps or gathers something of them.
    pub(crate) jobs: BTreeSet<JobId>,
    /// Live jobs that may have tasks bound to this worker (pinned maps, ready reduces). A superset.
    pub(crate) bound: BTreeSet<JobId>,
    /// Live jobs that may have waiting maps that name this worker. A superset.
    pub(crate) named: BTreeSet<JobId>,
    /// Whether the rows that policies see were counted with this worker idle.
    pub(crate) shown_idle: bool,
}

impl Worker {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// The machine it runs on.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Attempts that it can run at once.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Slots that no attempt holds.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.slots - self.running.len() as u32
    }

    /// Attempts queued behind those that run.
    #[must_use]
    pub fn queued(&self) -> u32 {
        self.queued.len() as u32
    }

    /// How long the queue is for the slots that work it off; `None` if nothing may be queued here: there is a
    /// free slot, or nothing that will free one soon, or somebody who can go nowhere else waits for the next.
    pub(crate) fn level(&self) -> Option<u64> {
        let queues = self.free() == 0 && 0 < self.quick && self.awaited == 0;
        queues.then(|| ((self.queued.len() as u64) << LEVEL_BITS) / u64::from(self.quick))
    }
}

/// Bits of a [`Worker::level`] behind the point.
const LEVEL_BITS: u32 = 16;

/// All live workers.
#[derive(Debug, Default)]
pub struct Workers {
    pub(crate) live: BTreeMap<WorkerId, Worker>,
    /// Most free slots first, then by id.
    pub(crate) idle: BTreeSet<(Reverse<u32>, WorkerId)>,
    /// Workers that attempts may be queued on: shortest queue for its quick slots first, then by id.
    pub(crate) behind: BTreeSet<(u64, WorkerId)>,
    /// Of every worker that ever joined, as the disk outlives the process: eight bytes each.
    pub(crate) hosts: BTreeMap<WorkerId, HostId>,
    /// Workers whose number of free slots changed since the rows were counted.
    pub(crate) moved: BTreeSet<WorkerId>,
    pub(crate) slots: u32,
    pub(crate) free: u32,
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

    /// Workers with a free slot: those with most free slots first, then by id.
    pub fn idle(&self) -> impl Iterator<Item = &Worker> {
        self.idle.iter().map(|(_, id)| &self.live[id])
    }

    /// Workers without a free slot that may get one more attempt to run afterwards, when at most `depth` are
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

    pub(crate) fn join(&mut self, id: WorkerId, host: HostId, slots: u32) {
        assert!(0 < slots, "{id} joined without slots");
        let known = self.hosts.insert(id, host);
        assert!(known.is_none(), "{id} joined twice");
        let worker = Worker {
            id,
            host,
            slots,
            running: BTreeSet::new(),
            quick: 0,
            queued: VecDeque::new(),
            awaited: 0,
            jobs: BTreeSet::new(),
            bound: BTreeSet::new(),
            named: BTreeSet::new(),
            shown_idle: false,
        };
        self.live.insert(id, worker);
        self.idle.insert((Reverse(slots), id));
        self.moved.insert(id);
        self.slots += slots;
        self.free += slots;
    }

    pub(crate) fn lose(&mut self, id: WorkerId) -> Option<Worker> {
        let worker = self.live.remove(&id)?;
        self.idle.remove(&(Reverse(worker.free()), id));
        if let Some(level) = worker.level() {
            self.behind.remove(&(level, id));
        }
        self.moved.remove(&id);
        self.slots -= worker.slots;
        self.free -= worker.free();
        Some(worker)
    }

    pub(crate) fn take_slot(&mut self, id: WorkerId, attempt: AttemptId, quick: bool) {
        self.change(id, |worker| {
            assert!(0 < worker.free(), "{attempt} launched on {id} without a free slot");
            assert!(worker.running.insert(attempt), "{attempt} launched twice");
            worker.quick += u32::from(quick);
        });
    }

    /// Queues an attempt behind those that run.
    pub(crate) fn queue(&mut self, id: WorkerId, attempt: AttemptId) {
        self.change(id, |worker| {
            assert!(worker.free() == 0, "{attempt} queued on {id}, which has a free slot");
            worker.queued.push_back(attempt);
        });
    }

    /// The attempt leaves the worker, with its slot or its place in the queue; `quick` as when it took the
    /// slot. Gives the one that has the slot next, which the caller judges with [`Workers::judge`].
    pub(crate) fn leave(&mut self, id: WorkerId, attempt: AttemptId, quick: bool) -> Option<AttemptId> {
        self.change(id, |worker| {
            if !worker.running.remove(&attempt) {
                let place = worker.queued.iter().position(|&other| other == attempt);
                worker.queued.remove(place.expect("an attempt of the table runs or is queued"));
                return None;
            }
            worker.quick -= u32::from(quick);
            let next = worker.queued.pop_front()?;
            worker.running.insert(next);
            Some(next)
        })
    }

    /// So many more (or fewer) tasks wait for this worker and no other.
    pub(crate) fn await_slot(&mut self, id: WorkerId, tasks: i32) {
        if self.is_live(id) {
            self.change(id, |worker| worker.awaited = worker.awaited.saturating_add_signed(tasks));
        }
    }

    /// Says of an attempt that has just got a slot by waiting whether it is quick.
    pub(crate) fn judge(&mut self, id: WorkerId, quick: bool) {
        self.change(id, |worker| worker.quick += u32::from(quick));
    }

    /// Changes what runs on a worker, and the indexes with it.
    fn change<T>(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker) -> T) -> T {
        let worker = self.live.get_mut(&id).expect("attempts run on live workers");
        let (free, level) = (worker.free(), worker.level());
        let result = change(worker);
        let (free_now, level_now) = (worker.free(), worker.level());
        if free != free_now {
            self.free = self.free + free_now - free;
            self.idle.remove(&(Reverse(free), id));
            if 0 < free_now {
                self.idle.insert((Reverse(free_now), id));
            }
            self.moved.insert(id);
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

    /// Whether the rows count this worker as idle.
    pub(crate) fn shown_idle(&self, id: WorkerId) -> bool {
        self.live.get(&id).is_some_and(|worker| worker.shown_idle)
    }

    /// Notes that the worker is told of this job.
    pub(crate) fn tell(&mut self, id: WorkerId, job: JobId) {
        self.live.get_mut(&id).expect("only live workers are told of jobs").jobs.insert(job);
    }

    /// Drops every trace of a job that ended.
    pub(crate) fn forget(&mut self, job: JobId) {
        for worker in self.live.values_mut() {
            worker.jobs.remove(&job);
            worker.bound.remove(&job);
            worker.named.remove(&job);
        }
    }
}
