//! What can be asked of a core between two calls; nothing here changes it.

use crate::core::{AttemptSnapshot, Core, JobSnapshot, PolicyPanics, ShuffleOrder, WorkerSnapshot};
use crate::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::ledger::tasks::ReduceState;
use crate::units::{Bytes, Time};

/// Times that memory may run out where attempts of a job ran side by side, before all of its tasks run alone.
const MEMORY_DEATHS_TOLERATED: u32 = 2;

impl Core {
    /// The standing order of the shuffle after the last call.
    #[must_use]
    pub fn shuffle_order(&self) -> &ShuffleOrder {
        &self.shuffle
    }

    /// Rises whenever [`Core::shuffle_order`] becomes another.
    #[must_use]
    pub fn shuffle_revision(&self) -> u64 {
        self.shuffle_revision
    }

    /// The handed-over attempt that this one goes on from. `None` if it begins from its inputs, as all others do; then
    /// nothing that an earlier attempt left behind is of use to it.
    #[must_use]
    pub fn continues(&self, attempt: AttemptId) -> Option<AttemptId> {
        self.ledger.continued(attempt)
    }

    /// Facts that came too late to matter and were ignored.
    #[must_use]
    pub fn late_events(&self) -> u64 {
        self.ledger.late
    }

    /// What the estimator has learned so far; null if there is none, or it learns nothing.
    #[must_use]
    pub fn memory(&self) -> serde_json::Value {
        self.estimator.as_ref().map_or(serde_json::Value::Null, |estimator| estimator.memory())
    }

    /// Whether slow tasks get a second attempt.
    #[must_use]
    pub fn makes_backups(&self) -> bool {
        self.ledger.config.backups.is_some()
    }

    /// Whether this attempt counts no more: it was told to stop, and has not said that it did.
    #[must_use]
    pub fn is_dying(&self, id: AttemptId) -> bool {
        self.ledger.attempts.get(&id).is_some_and(|record| record.dying)
    }

    /// Whether the policy takes slots back from reduces.
    #[must_use]
    pub fn preempts(&self) -> bool {
        self.ledger.preempts
    }

    /// Whether the policy looks at the pools of jobs.
    #[must_use]
    pub fn knows_pools(&self) -> bool {
        self.policy.policy().knows_pools()
    }

    /// The name of the policy.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.policy.policy().name()
    }

    /// How often the policy panicked since it decides, and `fifo` decided in its place.
    #[must_use]
    pub fn policy_panics(&self) -> &PolicyPanics {
        self.policy.panics()
    }

    /// The time of the last call.
    #[must_use]
    pub fn now(&self) -> Time {
        self.ledger.now
    }

    /// Slots of all live workers, of both pools together, and how many of them are free.
    #[must_use]
    pub fn slots(&self) -> (u32, u32) {
        (self.ledger.workers.sums.slots.iter().sum(), self.ledger.workers.sums.free.iter().sum())
    }

    /// This job, live or among the last that ended.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<JobSnapshot> {
        match self.ledger.jobs.get(&id) {
            Some(job) => Some(JobSnapshot::of(job, None)),
            None => self.ledger.ended.by_id.get(&id).cloned(),
        }
    }

    /// The live jobs, in the order of arrival.
    pub fn live_jobs(&self) -> impl Iterator<Item = JobSnapshot> {
        self.ledger.jobs.values().map(|job| JobSnapshot::of(job, None))
    }

    /// The last jobs that ended, in the order of arrival.
    pub fn ended_jobs(&self) -> impl Iterator<Item = &JobSnapshot> {
        self.ledger.ended.by_id.values()
    }

    /// The machine of a worker, also of one that is lost; `None` if it never joined.
    #[must_use]
    pub fn host(&self, worker: WorkerId) -> Option<HostId> {
        self.ledger.workers.host(worker)
    }

    /// This worker, if it is live.
    #[must_use]
    pub fn worker(&self, id: WorkerId) -> Option<WorkerSnapshot> {
        self.ledger.workers.get(id).map(|worker| WorkerSnapshot::of(worker, &self.ledger))
    }

    /// The live workers by id.
    pub fn workers(&self) -> impl Iterator<Item = WorkerSnapshot> {
        self.ledger.workers.iter().map(|worker| WorkerSnapshot::of(worker, &self.ledger))
    }

    /// Whether a worker that is to leave in good order may go now.
    #[must_use]
    pub fn may_leave(&self, worker: WorkerId, now: Time) -> bool {
        self.ledger.may_leave(worker, now)
    }

    /// Live workers that get nothing new, because others and they do not reach each other, by id.
    pub fn set_aside(&self) -> impl Iterator<Item = WorkerId> {
        let otherwise = |id: WorkerId| {
            let worker = self.ledger.workers.get(id);
            // One that has gone is no longer set aside.
            worker.is_none_or(|worker| worker.draining.is_some() || worker.disk_full)
        };
        self.ledger.routes.aside().iter().copied().filter(move |&id| !otherwise(id))
    }

    /// Whether attempts of this task of a live job have their worker process to themselves, because memory ran out where
    /// one ran, or twice where attempts of its job did.
    #[must_use]
    pub fn has_process_to_itself(&self, task: TaskId) -> bool {
        self.ledger.jobs.get(&task.job).is_some_and(|job| {
            MEMORY_DEATHS_TOLERATED <= job.workers.memory_deaths || job.tries(task).short_of_memory
        })
    }

    /// Whether the spill disks of this worker are full, so that it gets nothing new while others have room.
    #[must_use]
    pub fn disk_full(&self, worker: WorkerId) -> bool {
        self.ledger.workers.get(worker).is_some_and(|worker| worker.disk_full)
    }

    /// Whether it makes a difference that the spill disks of this worker have so much room.
    #[must_use]
    pub fn room_matters(&self, worker: WorkerId, free: Bytes, reserve: Bytes) -> bool {
        let known = self.ledger.workers.get(worker);
        known.is_some_and(|known| known.is_full_with(free, reserve) != known.disk_full)
    }

    /// The attempts that hold a slot, are queued behind one, or are suspended, by id.
    pub fn attempts(&self) -> impl Iterator<Item = (AttemptId, AttemptSnapshot)> {
        self.ledger.attempts.iter().map(|(&id, attempt)| (id, AttemptSnapshot::of(attempt)))
    }

    /// The maps of this live job whose output is empty, one bit each, 64 to a word, the lowest first; maps
    /// beyond the last word are not among them. Homes fetch nothing of them and must be informed before a reduce.
    #[must_use]
    pub fn empty_maps(&self, job: JobId) -> &[u64] {
        self.ledger.jobs.get(&job).map_or(&[], |job| job.outputs.empty.words())
    }

    /// Whether a segment of this map attempt's output, which has been made, is lacking at this worker as the home of
    /// the partition. Nobody else can have fetched it.
    #[must_use]
    pub fn awaits(&self, home: WorkerId, map: AttemptId, partition: u32) -> bool {
        let job = self.ledger.jobs.get(&map.task.job).filter(|_| map.task.kind == TaskKind::Map);
        job.is_some_and(|job| job.lacks(home, map, partition))
    }

    /// Whether a partition of this live job is at home at this worker; where its reduce's backup gathers it is no home.
    #[must_use]
    pub fn is_home(&self, home: WorkerId, job: JobId, partition: u32) -> bool {
        let reduce = self.ledger.jobs.get(&job).and_then(|job| job.reduces.get(partition as usize));
        reduce.is_some_and(|reduce| reduce.home == Some(home))
    }

    /// Whether the shuffle of this live job is over: no reduce lacks a segment.
    #[must_use]
    pub fn shuffle_is_done(&self, job: JobId) -> bool {
        let job = self.ledger.jobs.get(&job);
        job.is_some_and(|job| job.reduces.iter().all(|reduce| reduce.state != ReduceState::Gathering))
    }

    /// Whether this home could have failed to fetch this output from that worker, which holds it.
    #[must_use]
    pub fn could_fetch(&self, home: WorkerId, map: AttemptId, from: WorkerId) -> bool {
        let job = self.ledger.jobs.get(&map.task.job).filter(|_| map.task.kind == TaskKind::Map);
        job.is_some_and(|job| job.held_at(map) == Some(from) && job.home_lacks(home, map.task.index))
    }

    /// This attempt, if it holds a slot, is queued behind one, or is suspended.
    #[must_use]
    pub fn attempt(&self, id: AttemptId) -> Option<AttemptSnapshot> {
        self.ledger.attempts.get(&id).map(AttemptSnapshot::of)
    }

    /// Number of outputs of this live job that the worker keeps.
    #[must_use]
    pub fn outputs_at(&self, job: JobId, worker: WorkerId) -> usize {
        let outputs = self.ledger.jobs.get(&job).and_then(|job| job.outputs.kept.get(&worker));
        outputs.map_or(0, std::collections::BTreeSet::len)
    }

    /// The worker that gathers this partition; `None` when there is none, or the part is done.
    #[must_use]
    pub fn home(&self, job: JobId, partition: u32) -> Option<WorkerId> {
        self.ledger.jobs.get(&job)?.reduces.get(partition as usize)?.home
    }
}
