//! The live workers: hosts, slots, what runs where, and who is idle.
//!
//! Not here: which job may use a worker (`jobs`), and liveness; the driver decides when a worker is lost.
//!
//! Invariant: `running.len() <= slots` for every live worker; `idle` holds exactly those with a free slot.

use crate::ids::{AttemptId, HostId, JobId, WorkerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// One live worker.
#[derive(Debug)]
pub struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) host: HostId,
    pub(crate) slots: u32,
    /// Attempts that hold a slot, those told to die included.
    pub(crate) running: BTreeSet<AttemptId>,
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
}

/// All live workers.
#[derive(Debug, Default)]
pub struct Workers {
    pub(crate) live: BTreeMap<WorkerId, Worker>,
    /// Most free slots first, then by id.
    pub(crate) idle: BTreeSet<(Reverse<u32>, WorkerId)>,
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
        self.moved.remove(&id);
        self.slots -= worker.slots;
        self.free -= worker.free();
        Some(worker)
    }

    pub(crate) fn take_slot(&mut self, id: WorkerId, attempt: AttemptId) {
        let worker = self.live.get_mut(&id).expect("a launch goes to a live worker");
        let free = worker.free();
        assert!(0 < free, "{attempt} launched on {id} without a free slot");
        assert!(worker.running.insert(attempt), "{attempt} launched twice");
        self.free -= 1;
        self.reindex(id, free, free - 1);
    }

    pub(crate) fn release_slot(&mut self, id: WorkerId, attempt: AttemptId) {
        let worker = self.live.get_mut(&id).expect("attempts of lost workers left the table");
        let free = worker.free();
        assert!(worker.running.remove(&attempt), "{attempt} held no slot of {id}");
        self.free += 1;
        self.reindex(id, free, free + 1);
    }

    fn reindex(&mut self, id: WorkerId, before: u32, after: u32) {
        self.idle.remove(&(Reverse(before), id));
        if 0 < after {
            self.idle.insert((Reverse(after), id));
        }
        self.moved.insert(id);
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
