//! View of a job for placements: the first waiting tasks of each kind, and where they may run.

use crate::ids::{HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::{Locality, MapSpec};
use crate::ledger::jobs::Job;
use crate::ledger::queue::places;
use crate::ledger::workers::Workers;
use crate::units::Bytes;

impl Job {
    /// Returns the id of the job.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// True if this worker may run tasks of this job: it is fit for the job, or no live worker is.
    #[must_use]
    pub fn may_use(&self, worker: WorkerId, workers: &Workers) -> bool {
        !self.workers.excluded.contains(&worker) || self.workers.excluded.len() == workers.count()
    }

    /// Returns the first waiting map that is pinned to a set of workers that includes this one.
    #[must_use]
    pub fn first_pinned(&self, worker: WorkerId) -> Option<u32> {
        self.queue.pinned.first(worker)
    }

    /// Returns the first waiting map that is assigned to this worker.
    #[must_use]
    pub fn first_assigned(&self, worker: WorkerId) -> Option<u32> {
        self.queue.assigned.first(worker)
    }

    /// Returns the workers with assigned waiting maps, by id.
    pub fn assigned_to(&self) -> impl ExactSizeIterator<Item = WorkerId> {
        self.queue.assigned.at.keys().copied()
    }

    /// Returns the first waiting map whose input is on this worker and which may run anywhere.
    #[must_use]
    pub fn first_near(&self, worker: WorkerId) -> Option<u32> {
        self.queue.near.get(&worker).and_then(|line| line.first().copied())
    }

    /// Returns the first waiting map whose input is on this machine and which may run anywhere.
    #[must_use]
    pub fn first_near_host(&self, host: HostId) -> Option<u32> {
        self.queue.near_host.get(&host).and_then(|line| line.first().copied())
    }

    /// Returns the first waiting map that has no preferred worker.
    #[must_use]
    pub fn first_open(&self) -> Option<u32> {
        self.queue.open.first().copied()
    }

    /// Returns the first waiting map that may run anywhere but has a preferred worker.
    #[must_use]
    pub fn first_preferring(&self) -> Option<u32> {
        self.queue.preferring.first().copied()
    }

    /// True if any waiting map is indexed by a live worker that has its input.
    #[must_use]
    pub fn has_near(&self) -> bool {
        !self.queue.near.is_empty() || !self.queue.pinned.at.is_empty()
    }

    /// Returns the waiting maps that have failed. Only this method returns them, pinned or not.
    pub fn retrying(&self) -> impl Iterator<Item = u32> {
        self.queue.retrying.iter().copied()
    }

    /// Returns the specification of this map.
    ///
    /// # Panics
    /// If the map does not exist.
    #[must_use]
    pub fn map_spec(&self, index: u32) -> &MapSpec {
        &self.spec.maps[index as usize]
    }

    /// Returns the homes with a reduce that is ready to run, by id.
    pub fn ready_homes(&self) -> impl Iterator<Item = WorkerId> {
        self.reduce_queue.ready.at.keys().copied()
    }

    /// Returns the first reduce that is ready to run at this home.
    #[must_use]
    pub fn first_ready(&self, home: WorkerId) -> Option<u32> {
        self.reduce_queue.ready.first(home)
    }

    /// Number of unfinished partitions that have their home at this worker.
    #[must_use]
    pub fn homes_at(&self, worker: WorkerId) -> u32 {
        self.homes.at.get(&worker).map_or(0, |partitions| partitions.len() as u32)
    }

    /// True if this task should avoid this worker because it failed there. Ignores if another worker is available.
    #[must_use]
    pub fn avoids(&self, kind: TaskKind, index: u32, worker: WorkerId) -> bool {
        self.tries(TaskId { job: self.id, kind, index }).avoids.contains(&worker)
    }

    /// Returns the locality of a map on this worker.
    #[must_use]
    pub fn locality(&self, index: u32, worker: WorkerId, workers: &Workers) -> Locality {
        let preferred = &self.map_spec(index).preferred;
        if preferred.contains(&worker) {
            return Locality::Local;
        }
        let hosts: Vec<HostId> = preferred.iter().filter_map(|&other| workers.host(other)).collect();
        match workers.host(worker) {
            _ if hosts.is_empty() => Locality::NoPreference,
            Some(host) if hosts.contains(&host) => Locality::SameHost,
            _ => Locality::Remote,
        }
    }

    /// Returns the input size of a task; 0 if unknown.
    pub(crate) fn input_of(&self, task: TaskId) -> Bytes {
        match task.kind {
            TaskKind::Map => self.map_spec(task.index).bytes,
            TaskKind::Reduce => Bytes::ZERO,
        }
    }

    /// True if this map may start on this worker now. Ignores preferences.
    #[must_use]
    pub fn fits(&self, index: u32, worker: WorkerId, workers: &Workers) -> bool {
        let task = &self.maps[index as usize];
        let spec = self.map_spec(index);
        if !spec.pinned {
            return self.may_use(worker, workers)
                && (!task.tries.avoids.contains(&worker) || !self.has_elsewhere(&task.tries, None, workers));
        }
        // A pinned map can only run on its own workers.
        let better = |&other: &WorkerId| {
            !self.workers.excluded.contains(&other) && !task.tries.avoids.contains(&other)
        };
        let places = places(spec, workers);
        places.contains(&worker) && (better(&worker) || !places.iter().any(better))
    }
}
