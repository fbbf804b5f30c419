//! What placements may look at of a job: the first waiting tasks of each kind, and where they may run.

use crate::ids::{HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::{Locality, MapSpec};
use crate::ledger::jobs::Job;
use crate::ledger::queue::places;
use crate::ledger::workers::Workers;
use crate::units::Bytes;

impl Job {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Whether this worker may get something of this job: it is fit for it, or no live worker is.
    #[must_use]
    pub fn may_use(&self, worker: WorkerId, workers: &Workers) -> bool {
        !self.workers.excluded.contains(&worker) || self.workers.excluded.len() == workers.count()
    }

    /// The first waiting map that must run on one of some workers, this among them.
    #[must_use]
    pub fn first_pinned(&self, worker: WorkerId) -> Option<u32> {
        self.queue.pinned.first(worker)
    }

    /// The first waiting map that was assigned to this worker.
    #[must_use]
    pub fn first_assigned(&self, worker: WorkerId) -> Option<u32> {
        self.queue.assigned.first(worker)
    }

    /// Workers that waiting maps were assigned to, by id.
    pub fn assigned_to(&self) -> impl ExactSizeIterator<Item = WorkerId> {
        self.queue.assigned.at.keys().copied()
    }

    /// The first waiting map whose input is on this worker, and which may run anywhere.
    #[must_use]
    pub fn first_near(&self, worker: WorkerId) -> Option<u32> {
        self.queue.near.get(&worker).and_then(|line| line.first().copied())
    }

    /// The first waiting map whose input is on this machine, and which may run anywhere.
    #[must_use]
    pub fn first_near_host(&self, host: HostId) -> Option<u32> {
        self.queue.near_host.get(&host).and_then(|line| line.first().copied())
    }

    /// The first waiting map that may run anywhere equally well.
    #[must_use]
    pub fn first_open(&self) -> Option<u32> {
        self.queue.open.first().copied()
    }

    /// The first waiting map that may run anywhere but has its input somewhere.
    #[must_use]
    pub fn first_preferring(&self) -> Option<u32> {
        self.queue.preferring.first().copied()
    }

    /// Whether any waiting map is indexed by a live worker that has its input.
    #[must_use]
    pub fn has_near(&self) -> bool {
        !self.queue.near.is_empty() || !self.queue.pinned.at.is_empty()
    }

    /// Waiting maps that failed somewhere: they are found here only, pinned or not.
    pub fn retrying(&self) -> impl Iterator<Item = u32> {
        self.queue.retrying.iter().copied()
    }

    /// What this map is.
    ///
    /// # Panics
    /// If there is no such map.
    #[must_use]
    pub fn map_spec(&self, index: u32) -> &MapSpec {
        &self.spec.maps[index as usize]
    }

    /// Homes at which a reduce is ready to run, by id.
    pub fn ready_homes(&self) -> impl Iterator<Item = WorkerId> {
        self.reduce_queue.ready.at.keys().copied()
    }

    /// The first reduce that is ready to run at this home.
    #[must_use]
    pub fn first_ready(&self, home: WorkerId) -> Option<u32> {
        self.reduce_queue.ready.first(home)
    }

    /// Number of unfinished partitions that have their home at this worker.
    #[must_use]
    pub fn homes_at(&self, worker: WorkerId) -> u32 {
        self.homes.at.get(&worker).map_or(0, |partitions| partitions.len() as u32)
    }

    /// Whether this task should stay away from this worker, where it failed; pays no regard to whether
    /// there is another.
    #[must_use]
    pub fn avoids(&self, kind: TaskKind, index: u32, worker: WorkerId) -> bool {
        self.tries(TaskId { job: self.id, kind, index }).avoids.contains(&worker)
    }

    /// How near a map is to its input on this worker.
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

    /// What a task has to read, as far as anybody knows; 0 otherwise.
    pub(crate) fn input_of(&self, task: TaskId) -> Bytes {
        match task.kind {
            TaskKind::Map => self.map_spec(task.index).bytes,
            TaskKind::Reduce => Bytes::ZERO,
        }
    }

    /// Whether this map may start on this worker now, as far as it is not a matter of taste.
    #[must_use]
    pub fn fits(&self, index: u32, worker: WorkerId, workers: &Workers) -> bool {
        let task = &self.maps[index as usize];
        let spec = self.map_spec(index);
        if !spec.pinned {
            return self.may_use(worker, workers)
                && (!task.tries.avoids.contains(&worker) || !self.has_elsewhere(&task.tries, None, workers));
        }
        // A pinned map has no choice but among its own workers.
        let better = |&other: &WorkerId| {
            !self.workers.excluded.contains(&other) && !task.tries.avoids.contains(&other)
        };
        let places = places(spec, workers);
        places.contains(&worker) && (better(&worker) || !places.iter().any(better))
    }
}
