//! Lines of waiting tasks, indexed so that a fitting task for an idle worker is found in constant time.
//!
//! Invariant: every waiting map is in exactly one of `open`, `preferring`, `retrying`, `backing_off`,
//! `orphans`, `assigned` and `pinned`. It is in `assigned` under one live worker, and in `pinned` under each
//! worker that it may run on. `near` and `near_host` index `preferring`.

use crate::ids::{HostId, JobId, TaskKind, WorkerId};
use crate::job::MapSpec;
use crate::ledger::tasks::MapTask;
use crate::ledger::workers::{Worker, Workers};
use std::collections::{BTreeMap, BTreeSet};

/// Waiting tasks by the worker that they are bound to, with the number of those at idle workers.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Bound {
    /// Kind of the tasks.
    pub(crate) kind: TaskKind,
    /// True if they are reduces that may move to another home.
    movable: bool,
    pub(crate) at: BTreeMap<WorkerId, BTreeSet<u32>>,
    /// Sum of the lines at workers that the rows count as idle.
    pub(crate) startable: u32,
}

impl Bound {
    pub(crate) fn new(kind: TaskKind) -> Self {
        Self { kind, movable: false, at: BTreeMap::new(), startable: 0 }
    }

    /// Creates a line of reduces that are ready at their homes.
    pub(crate) fn of_ready() -> Self {
        Self { movable: true, ..Self::new(TaskKind::Reduce) }
    }

    fn await_slot(&self, worker: WorkerId, tasks: i32, workers: &mut Workers) {
        workers.await_slot(worker, self.kind, tasks, self.movable);
    }

    pub(crate) fn insert(&mut self, job: JobId, worker: WorkerId, index: u32, workers: &mut Workers) {
        let record = workers.live.get_mut(&worker).expect("tasks are bound to live workers");
        record.marks.bound.insert(job);
        let new = self.at.entry(worker).or_default().insert(index);
        assert!(new, "{job}: task {index} bound twice to {worker}");
        self.startable += u32::from(record.shown_idle[record.pool(self.kind)]);
        self.await_slot(worker, 1, workers);
    }

    pub(crate) fn remove(&mut self, worker: WorkerId, index: u32, workers: &mut Workers) -> bool {
        let Some(line) = self.at.get_mut(&worker) else { return false };
        let found = line.remove(&index);
        if line.is_empty() {
            self.at.remove(&worker);
        }
        if found {
            self.startable -= u32::from(workers.shown_idle(worker, self.kind));
            self.await_slot(worker, -1, workers);
        }
        found
    }

    /// Removes all waiting tasks of a job that is over.
    pub(crate) fn disperse(&self, workers: &mut Workers) {
        for (&worker, line) in &self.at {
            self.await_slot(worker, -(line.len() as i32), workers);
        }
    }

    /// Handles a worker that became idle or busy according to the rows.
    pub(crate) fn flip(&mut self, worker: WorkerId, idle: bool) {
        let line = self.at.get(&worker).map_or(0, |line| line.len() as u32);
        if idle {
            self.startable += line;
        } else {
            self.startable -= line;
        }
    }

    /// Removes a lost worker, given its last record.
    pub(crate) fn lose(&mut self, worker: &Worker) -> BTreeSet<u32> {
        let line = self.at.remove(&worker.id).unwrap_or_default();
        if worker.shown_idle[worker.pool(self.kind)] {
            self.startable -= line.len() as u32;
        }
        line
    }

    pub(crate) fn first(&self, worker: WorkerId) -> Option<u32> {
        self.at.get(&worker).and_then(|line| line.first().copied())
    }
}

/// Waiting maps of one job.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Queue {
    /// Maps that may run anywhere and have no preferred worker.
    pub(crate) open: BTreeSet<u32>,
    /// Maps that may run anywhere but prefer to run near their input.
    pub(crate) preferring: BTreeSet<u32>,
    pub(crate) near: BTreeMap<WorkerId, BTreeSet<u32>>,
    pub(crate) near_host: BTreeMap<HostId, BTreeSet<u32>>,
    /// Maps that must run where their input is.
    pub(crate) pinned: Bound,
    /// Pinned maps without a live worker.
    pub(crate) orphans: BTreeSet<u32>,
    /// Workers that replace those that maps are pinned to, and have marks of the job.
    pub(crate) heirs: BTreeSet<WorkerId>,
    /// Maps that the placement assigned to a worker.
    pub(crate) assigned: Bound,
    /// Maps that failed on some workers and avoid these. They are few, so they are scanned linearly.
    pub(crate) retrying: BTreeSet<u32>,
    /// Maps that failed recently by a worker's fault and may not start yet.
    pub(crate) backing_off: BTreeSet<u32>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            open: BTreeSet::new(),
            preferring: BTreeSet::new(),
            near: BTreeMap::new(),
            near_host: BTreeMap::new(),
            pinned: Bound::new(TaskKind::Map),
            orphans: BTreeSet::new(),
            heirs: BTreeSet::new(),
            assigned: Bound::new(TaskKind::Map),
            retrying: BTreeSet::new(),
            backing_off: BTreeSet::new(),
        }
    }

    /// Upper bound of the number of maps that could start now. Zero is exact unless retries wait.
    pub(crate) fn startable(&self) -> u32 {
        self.unbound() + self.pinned.startable + self.assigned.startable
    }

    /// Number of maps that wait for no particular worker.
    pub(crate) fn unbound(&self) -> u32 {
        (self.open.len() + self.preferring.len() + self.retrying.len()) as u32
    }

    /// Returns the maps that a placement may assign: those that may run anywhere and have not failed.
    pub(crate) fn assignable(&self) -> impl Iterator<Item = u32> {
        self.open.iter().chain(&self.preferring).copied()
    }

    /// Removes all waiting maps of a job that is over.
    pub(crate) fn disperse(&self, workers: &mut Workers) {
        self.pinned.disperse(workers);
        self.assigned.disperse(workers);
        workers.unbound -= u64::from(self.unbound());
    }

    pub(crate) fn insert(
        &mut self,
        job: JobId,
        index: u32,
        spec: &MapSpec,
        retrying: bool,
        workers: &mut Workers,
    ) {
        let places = if spec.pinned { places(spec, workers) } else { BTreeSet::new() };
        if spec.pinned && places.is_empty() {
            self.orphans.insert(index);
            return;
        }
        self.heirs.extend(places.iter().filter(|worker| !spec.preferred.contains(worker)));
        workers.unbound += u64::from(retrying || !spec.pinned);
        if retrying {
            self.retrying.insert(index);
        } else if spec.pinned {
            for &worker in &places {
                self.pinned.insert(job, worker, index, workers);
            }
        } else if spec.preferred.iter().any(|&worker| workers.host(worker).is_some()) {
            self.preferring.insert(index);
            for &worker in &spec.preferred {
                if let Some(record) = workers.live.get_mut(&worker) {
                    record.marks.named.insert(job);
                    self.near.entry(worker).or_default().insert(index);
                }
                if let Some(host) = workers.host(worker) {
                    self.near_host.entry(host).or_default().insert(index);
                }
            }
        } else {
            self.open.insert(index);
        }
        if retrying {
            // When a worker is lost, the jobs that name it check for pinned maps without any place to run.
            for worker in places {
                if let Some(record) = workers.live.get_mut(&worker) {
                    record.marks.named.insert(job);
                }
            }
        }
    }

    /// Binds the map to this worker.
    pub(crate) fn assign(
        &mut self,
        job: JobId,
        index: u32,
        spec: &MapSpec,
        to: WorkerId,
        workers: &mut Workers,
    ) {
        self.remove(index, spec, None, workers);
        self.assigned.insert(job, to, index, workers);
    }

    /// Removes a waiting map. `assigned` is the worker that it was assigned to.
    pub(crate) fn remove(
        &mut self,
        index: u32,
        spec: &MapSpec,
        assigned: Option<WorkerId>,
        workers: &mut Workers,
    ) {
        let unbound = self.unbound();
        let mut found = assigned.is_some_and(|worker| self.assigned.remove(worker, index, workers));
        found |= self.open.remove(&index) || self.retrying.remove(&index) || self.backing_off.remove(&index);
        found |= self.orphans.remove(&index);
        if spec.pinned {
            for worker in places(spec, workers) {
                found |= self.pinned.remove(worker, index, workers);
            }
        } else if self.preferring.remove(&index) {
            found = true;
            for &worker in &spec.preferred {
                drop_from(&mut self.near, &worker, index);
                if let Some(host) = workers.host(worker) {
                    drop_from(&mut self.near_host, &host, index);
                }
            }
        }
        assert!(found, "map {index} left a queue in which it did not wait");
        workers.unbound -= u64::from(unbound - self.unbound());
    }

    /// Handles a worker that joined: maps pinned to lost workers of its machine may run on it. Scans all pinned waiting
    /// maps, since workers join rarely.
    pub(crate) fn welcome(
        &mut self,
        job: JobId,
        joined: WorkerId,
        (specs, maps): (&[MapSpec], &[MapTask]),
        workers: &mut Workers,
    ) {
        let here: BTreeSet<u32> = self.pinned.at.values().flatten().copied().collect();
        let fits = |index: &u32| places(&specs[*index as usize], workers).contains(&joined);
        let more: Vec<u32> = here.into_iter().filter(fits).collect();
        let found: Vec<u32> = self.orphans.iter().copied().filter(fits).collect();
        for index in more {
            self.heirs.insert(joined);
            self.pinned.insert(job, joined, index, workers);
        }
        for index in found {
            self.orphans.remove(&index);
            let task = &maps[index as usize];
            self.insert(job, index, &specs[index as usize], !task.tries.avoids.is_empty(), workers);
        }
        let pinned = |index: &u32| specs[*index as usize].pinned;
        if self.retrying.iter().chain(&self.backing_off).any(pinned)
            && let Some(record) = workers.live.get_mut(&joined)
        {
            self.heirs.insert(joined);
            record.marks.named.insert(job);
        }
    }

    /// True if this map is in line at this worker.
    pub(crate) fn is_pinned_at(&self, worker: WorkerId, index: u32) -> bool {
        self.pinned.at.get(&worker).is_some_and(|line| line.contains(&index))
    }

    /// Removes a lost worker. Returns the pinned maps that lost one place to run.
    pub(crate) fn lose(&mut self, worker: &Worker) -> BTreeSet<u32> {
        self.near.remove(&worker.id);
        self.pinned.lose(worker)
    }
}

/// Returns the workers on which a pinned map may run: the live ones that it names or, if none is live, those on their
/// machines.
pub(crate) fn places(spec: &MapSpec, workers: &Workers) -> BTreeSet<WorkerId> {
    let named: BTreeSet<WorkerId> =
        spec.preferred.iter().copied().filter(|&worker| workers.is_live(worker)).collect();
    if !named.is_empty() {
        return named;
    }
    let hosts = spec.preferred.iter().filter_map(|&worker| workers.host(worker));
    hosts.flat_map(|host| workers.at_host(host)).collect()
}

fn drop_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<u32>>, key: &K, item: u32) {
    if let Some(line) = index.get_mut(key) {
        line.remove(&item);
        if line.is_empty() {
            index.remove(key);
        }
    }
}
