//! Read-only queries of a core between two calls.

use crate::core::{AttemptSnapshot, Core, JobSnapshot, PolicyPanics, ShuffleOrder, WorkerSnapshot};
use crate::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::JobSpec;
use crate::ledger::attempts::{Attempt, DivisionState};
use crate::ledger::tasks::ReduceState;
use crate::ledger::{Job, Worker};
use crate::units::{Bytes, Span, Time};

/// Number of times that memory may run out where attempts of a job run concurrently, before all its tasks run alone.
const MEMORY_DEATHS_TOLERATED: u32 = 2;

impl Core {
    /// Returns the standing order of the shuffle after the last call.
    #[must_use]
    pub fn shuffle_order(&self) -> &ShuffleOrder {
        &self.shuffle
    }

    /// Revision that increases when [`Core::shuffle_order`] changes.
    #[must_use]
    pub fn shuffle_revision(&self) -> u64 {
        self.shuffle_revision
    }

    /// Number of events that came too late to matter and were ignored.
    #[must_use]
    pub fn late_events(&self) -> u64 {
        self.ledger.late
    }

    /// Returns what the estimator has learned so far; null if the core has no estimator, or one without memory.
    #[must_use]
    pub fn memory(&self) -> serde_json::Value {
        self.estimator.as_ref().map_or(serde_json::Value::Null, |estimator| estimator.memory())
    }

    /// True if reports of the progress of running attempts matter: for speculative attempts, or to divide maps.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.ledger.config.backups.is_some() || self.divides()
    }

    /// True if this attempt no longer counts: it was ordered to stop and has not reported its end.
    #[must_use]
    pub fn is_dying(&self, id: AttemptId) -> bool {
        self.ledger.attempts.get(&id).is_some_and(|record| record.dying)
    }

    /// True if this attempt was ordered to divide its input and has not responded, also if the order was withdrawn.
    #[must_use]
    pub fn is_dividing(&self, id: AttemptId) -> bool {
        let ordered = |record: &Attempt| {
            matches!(record.division, DivisionState::Ordered(_) | DivisionState::Withdrawn)
        };
        self.ledger.attempts.get(&id).is_some_and(ordered)
    }

    /// True if the policy preempts reduces.
    #[must_use]
    pub fn preempts(&self) -> bool {
        self.ledger.preempts
    }

    /// True if the policy uses the pools of jobs.
    #[must_use]
    pub fn knows_pools(&self) -> bool {
        self.policy.policy().knows_pools()
    }

    /// Returns the name of the policy.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.policy.policy().name()
    }

    /// Returns how often the policy panicked or failed since it took over, so that jobs went by age in its place.
    #[must_use]
    pub fn policy_panics(&self) -> &PolicyPanics {
        self.policy.panics()
    }

    /// Returns the time of the last call.
    #[must_use]
    pub fn now(&self) -> Time {
        self.ledger.now
    }

    /// Returns the slots of all live workers in both pools, and the number of free ones.
    #[must_use]
    pub fn slots(&self) -> (u32, u32) {
        (self.ledger.workers.sums.slots.iter().sum(), self.ledger.workers.sums.free.iter().sum())
    }

    /// Returns this job, live or recently ended.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<JobSnapshot> {
        match self.ledger.jobs.get(&id) {
            Some(job) => Some(JobSnapshot::from_job(job, None)),
            None => self.ledger.ended.by_id.get(&id).cloned(),
        }
    }

    /// Returns the live jobs in the order of arrival.
    pub fn live_jobs(&self) -> impl Iterator<Item = JobSnapshot> {
        self.ledger.jobs.values().map(|job| JobSnapshot::from_job(job, None))
    }

    /// Returns the recently ended jobs in the order of arrival.
    #[cfg(test)]
    pub(crate) fn ended_jobs(&self) -> impl Iterator<Item = &JobSnapshot> {
        self.ledger.ended.by_id.values()
    }

    /// Returns the machine of a live or lost worker; `None` if it never joined.
    #[must_use]
    pub fn host(&self, worker: WorkerId) -> Option<HostId> {
        self.ledger.workers.host(worker)
    }

    /// Returns this worker if it is live.
    #[must_use]
    pub fn worker(&self, id: WorkerId) -> Option<WorkerSnapshot> {
        self.ledger.workers.get(id).map(|worker| WorkerSnapshot::from_worker(worker, &self.ledger))
    }

    /// Returns the live workers by id.
    pub fn workers(&self) -> impl Iterator<Item = WorkerSnapshot> {
        self.ledger.workers.iter().map(|worker| WorkerSnapshot::from_worker(worker, &self.ledger))
    }

    /// True if a draining worker may leave: nothing runs there, and others lack none of its outputs or have had enough
    /// time to fetch them.
    #[must_use]
    pub fn may_leave(&self, id: WorkerId, now: Time) -> bool {
        let Some((worker, since)) =
            self.ledger.workers.get(id).and_then(|worker| Some((worker, worker.draining?)))
        else {
            return false;
        };
        let lacks = |job: &Job| {
            let homes: Vec<_> = job.homes.at.keys().copied().filter(|&home| home != id).collect();
            let kept = job.outputs.kept.get(&id).into_iter().flatten();
            let mut lacked = kept.filter(|&&map| 0 < job.maps[map as usize].lacking);
            lacked.any(|&map| homes.iter().any(|&home| job.home_lacks(home, map)))
        };
        let mut jobs = worker.marks.jobs.iter().filter_map(|job| self.ledger.jobs.get(job));
        worker.is_done() && (self.ledger.config.routes.drain_max <= now.since(since) || !jobs.any(lacks))
    }

    /// Returns the live workers that get no new tasks because of cut routes, by id.
    pub fn set_aside(&self) -> impl Iterator<Item = WorkerId> {
        let otherwise = |id: WorkerId| {
            let worker = self.ledger.workers.get(id);
            // A worker that has left is no longer set aside.
            worker.is_none_or(|worker| worker.draining.is_some() || worker.disk_full)
        };
        self.ledger.routes.aside().iter().copied().filter(move |&id| !otherwise(id))
    }

    /// True if attempts of this task of a live job need a worker process of their own. This is so if memory ran out
    /// where one of them ran, or twice where attempts of its job did.
    #[must_use]
    pub fn has_process_to_itself(&self, task: TaskId) -> bool {
        self.ledger.jobs.get(&task.job).is_some_and(|job| {
            MEMORY_DEATHS_TOLERATED <= job.workers.memory_deaths || job.tries(task).short_of_memory
        })
    }

    /// True if the spill disks of this worker are full, so that it gets no new tasks while others have room.
    #[must_use]
    pub fn disk_full(&self, worker: WorkerId) -> bool {
        self.ledger.workers.get(worker).is_some_and(|worker| worker.disk_full)
    }

    /// True if this report of free space on the worker's spill disks would change anything.
    #[must_use]
    pub fn room_matters(&self, worker: WorkerId, free: Bytes, reserve: Bytes) -> bool {
        let known = self.ledger.workers.get(worker);
        known.is_some_and(|known| known.is_full_with(free, reserve) != known.disk_full)
    }

    /// Returns the attempts that hold a slot, are queued behind one, or are suspended, by id.
    pub fn attempts(&self) -> impl Iterator<Item = (AttemptId, AttemptSnapshot)> {
        self.ledger.attempts.iter().map(|(&id, attempt)| (id, AttemptSnapshot::from_attempt(attempt)))
    }

    /// Returns the maps of this live job whose output is empty, one bit each, 64 to a word, lowest first. Maps beyond
    /// the last word are not empty. Homes fetch nothing of them and must be notified before a reduce.
    #[must_use]
    pub fn empty_maps(&self, job: JobId) -> &[u64] {
        self.ledger.jobs.get(&job).map_or(&[], |job| job.outputs.empty.words())
    }

    /// True if this worker, as the home of the partition, lacks a segment of this map attempt's existing output. Only
    /// this worker can have fetched it.
    #[must_use]
    pub fn awaits(&self, home: WorkerId, map: AttemptId, partition: u32) -> bool {
        let job = self.ledger.jobs.get(&map.task.job).filter(|_| map.task.kind == TaskKind::Map);
        job.is_some_and(|job| job.lacks(home, map, partition))
    }

    /// True if this worker is the home of this partition of a live job. A second home does not count.
    #[must_use]
    pub fn is_home(&self, home: WorkerId, job: JobId, partition: u32) -> bool {
        let reduce = self.ledger.jobs.get(&job).and_then(|job| job.reduces.get(partition as usize));
        reduce.is_some_and(|reduce| reduce.home == Some(home))
    }

    /// True if the shuffle of this live job is complete: no reduce lacks a segment.
    #[must_use]
    pub fn shuffle_is_done(&self, job: JobId) -> bool {
        let job = self.ledger.jobs.get(&job);
        job.is_some_and(|job| job.reduces.iter().all(|reduce| reduce.state != ReduceState::Gathering))
    }

    /// True if this home could have failed to fetch this output from that worker, which holds it.
    #[must_use]
    pub fn could_fetch(&self, home: WorkerId, map: AttemptId, from: WorkerId) -> bool {
        let job = self.ledger.jobs.get(&map.task.job).filter(|_| map.task.kind == TaskKind::Map);
        job.is_some_and(|job| job.held_at(map) == Some(from) && job.home_lacks(home, map.task.index))
    }

    /// Returns this attempt if it holds a slot, is queued behind one, or is suspended.
    #[must_use]
    pub fn attempt(&self, id: AttemptId) -> Option<AttemptSnapshot> {
        self.ledger.attempts.get(&id).map(AttemptSnapshot::from_attempt)
    }

    /// Returns the input of this task of a live job; 0 for reduces.
    #[must_use]
    pub(crate) fn input_of(&self, task: TaskId) -> Bytes {
        self.ledger.jobs.get(&task.job).map_or(Bytes::ZERO, |job| job.input_of(task))
    }

    /// Returns the specification of a live job, with the tasks that divisions added.
    #[must_use]
    pub(crate) fn spec(&self, job: JobId) -> Option<&JobSpec> {
        Some(&*self.ledger.jobs.get(&job)?.spec)
    }

    /// Returns for how long the running attempts of a live job of this kind have held a slot.
    pub(crate) fn running(&self, job: JobId, kind: TaskKind) -> impl Iterator<Item = Span> {
        let live = self.ledger.jobs.get(&job).into_iter().flat_map(|job| &job.attempts.live);
        let records = live.filter(move |attempt| attempt.task.kind == kind);
        let records = records.filter_map(|attempt| self.ledger.attempts.get(attempt));
        records.filter(|record| !record.queued).map(|record| match record.hold.is_parked() {
            true => record.ran,
            false => record.ran + self.ledger.now.since(record.since),
        })
    }

    /// Returns the live workers by id.
    pub(crate) fn live_workers(&self) -> impl Iterator<Item = &Worker> {
        self.ledger.workers.iter()
    }

    /// True if running tasks may be divided.
    #[must_use]
    pub(crate) fn divides(&self) -> bool {
        self.ledger.config.dividing.is_some()
    }

    /// Number of outputs of this live job that the worker keeps.
    #[must_use]
    pub fn outputs_at(&self, job: JobId, worker: WorkerId) -> usize {
        let outputs = self.ledger.jobs.get(&job).and_then(|job| job.outputs.kept.get(&worker));
        outputs.map_or(0, std::collections::BTreeSet::len)
    }

    /// Returns the worker that gathers this partition; `None` if it has no home or the part is done.
    #[must_use]
    pub fn home(&self, job: JobId, partition: u32) -> Option<WorkerId> {
        self.ledger.jobs.get(&job)?.reduces.get(partition as usize)?.home
    }
}
