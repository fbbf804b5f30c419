//! Where waiting tasks stand in line, indexed so that a fitting task for an idle worker is found at once.
//!
//! Not here: the choice among them (`placement`).
//!
//! Invariant: every waiting map stands in exactly one of `open`, `preferring`, `wary`, `resting`, or in `pinned`
//! under each live worker that it is pinned to; `near` and `near_host` index `preferring`.

use crate::ids::{HostId, JobId, WorkerId};
use crate::job::MapSpec;
use crate::ledger::workers::Workers;
use std::collections::{BTreeMap, BTreeSet};

/// Waiting tasks by the worker that they are bound to, and how many of them stand at idle workers.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    pub(crate) at: BTreeMap<WorkerId, BTreeSet<u32>>,
    /// Sum of the lines at workers that the rows count as idle.
    pub(crate) startable: u32,
}

impl Bound {
    pub(crate) fn insert(&mut self, job: JobId, worker: WorkerId, index: u32, workers: &mut Workers) {
        let record = workers.live.get_mut(&worker).expect("tasks are bound to live workers");
        record.bound.insert(job);
        let new = self.at.entry(worker).or_default().insert(index);
        assert!(new, "{job}: task {index} bound twice to {worker}");
        self.startable += u32::from(record.shown_idle);
        workers.await_slot(worker, 1);
    }

    pub(crate) fn remove(&mut self, worker: WorkerId, index: u32, workers: &mut Workers) -> bool {
        let Some(line) = self.at.get_mut(&worker) else { return false };
        let found = line.remove(&index);
        if line.is_empty() {
            self.at.remove(&worker);
        }
        if found {
            self.startable -= u32::from(workers.shown_idle(worker));
            workers.await_slot(worker, -1);
        }
        found
    }

    /// The job is over: nobody waits any more.
    pub(crate) fn disperse(&self, workers: &mut Workers) {
        for (&worker, line) in &self.at {
            workers.await_slot(worker, -(line.len() as i32));
        }
    }

    /// The worker became idle or busy in the eyes of the rows.
    pub(crate) fn flip(&mut self, worker: WorkerId, idle: bool) {
        let line = self.at.get(&worker).map_or(0, |line| line.len() as u32);
        if idle {
            self.startable += line;
        } else {
            self.startable -= line;
        }
    }

    /// The worker is gone; `was_idle` in the eyes of the rows.
    pub(crate) fn lose(&mut self, worker: WorkerId, was_idle: bool) -> BTreeSet<u32> {
        let line = self.at.remove(&worker).unwrap_or_default();
        if was_idle {
            self.startable -= line.len() as u32;
        }
        line
    }

    pub(crate) fn first(&self, worker: WorkerId) -> Option<u32> {
        self.at.get(&worker).and_then(|line| line.first().copied())
    }
}

/// The waiting maps of one job.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// May run anywhere equally well.
    pub(crate) open: BTreeSet<u32>,
    /// May run anywhere but would rather run near their input.
    pub(crate) preferring: BTreeSet<u32>,
    pub(crate) near: BTreeMap<WorkerId, BTreeSet<u32>>,
    pub(crate) near_host: BTreeMap<HostId, BTreeSet<u32>>,
    /// Must run where their input is.
    pub(crate) pinned: Bound,
    /// Failed somewhere and avoid it; few, so they are looked at one by one.
    pub(crate) wary: BTreeSet<u32>,
    /// Failed by a worker's fault a moment ago; nobody may start them yet.
    pub(crate) resting: BTreeSet<u32>,
}

impl Queue {
    /// Upper bound of the maps that could start now; zero is exact unless retries wait.
    pub(crate) fn startable(&self) -> u32 {
        (self.open.len() + self.preferring.len() + self.wary.len()) as u32 + self.pinned.startable
    }

    pub(crate) fn insert(
        &mut self,
        job: JobId,
        index: u32,
        spec: &MapSpec,
        wary: bool,
        workers: &mut Workers,
    ) {
        if wary {
            self.wary.insert(index);
        } else if spec.pinned {
            for &worker in live(spec, workers).iter() {
                self.pinned.insert(job, worker, index, workers);
            }
        } else if spec.preferred.iter().any(|&worker| workers.host(worker).is_some()) {
            self.preferring.insert(index);
            for &worker in &spec.preferred {
                if let Some(record) = workers.live.get_mut(&worker) {
                    record.named.insert(job);
                    self.near.entry(worker).or_default().insert(index);
                }
                if let Some(host) = workers.host(worker) {
                    self.near_host.entry(host).or_default().insert(index);
                }
            }
        } else {
            self.open.insert(index);
        }
        if wary {
            // A lost worker asks the jobs that name it whether a pinned map has nowhere left to run.
            for worker in live(spec, workers) {
                if let Some(record) = workers.live.get_mut(&worker) {
                    record.named.insert(job);
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, index: u32, spec: &MapSpec, workers: &mut Workers) {
        let mut found = self.open.remove(&index) || self.wary.remove(&index) || self.resting.remove(&index);
        if spec.pinned {
            for worker in live(spec, workers) {
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
    }

    /// The worker is gone; gives the pinned maps that lost one place to run.
    pub(crate) fn lose(&mut self, worker: WorkerId, was_idle: bool) -> BTreeSet<u32> {
        self.near.remove(&worker);
        self.pinned.lose(worker, was_idle)
    }
}

/// The live workers among those a map names, each once.
pub(crate) fn live(spec: &MapSpec, workers: &Workers) -> BTreeSet<WorkerId> {
    spec.preferred.iter().copied().filter(|&worker| workers.is_live(worker)).collect()
}

fn drop_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<u32>>, key: &K, item: u32) {
    if let Some(line) = index.get_mut(key) {
        line.remove(&item);
        if line.is_empty() {
            index.remove(key);
        }
    }
}
