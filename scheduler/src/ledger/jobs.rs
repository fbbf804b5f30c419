//! One live job in the ledger: its tasks, where they wait, and where its partitions are gathered.
//!
//! Invariants: the counts equal the states of the tasks; every unfinished reduce has a home or is in `unassigned`;
//! `excluded` names live workers only.

use crate::command::{Cause, Command};
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::JobSpec;
use crate::ledger::ahead::AheadConfig;
use crate::ledger::job_parts::{
    Homes, JobAttempts, JobTally, JobWorkers, MapOutputs, ReduceQueue, RemainingWork, TaskStateCounts,
};
use crate::ledger::queue::{Queue, places};
use crate::ledger::tasks::{MapState, MapTask, ReduceState, ReduceTask, Tries};
use crate::ledger::workers::{Worker, Workers};
use crate::units::Time;
use crate::view::Handle;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One live job.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Job {
    pub(crate) id: JobId,
    pub(crate) spec: Arc<JobSpec>,
    pub(crate) arrival: Time,
    /// Row of the job in the policies' view, once they know it.
    #[serde(skip)]
    pub(crate) handle: Option<Handle>,
    pub(crate) maps: Vec<MapTask>,
    pub(crate) reduces: Vec<ReduceTask>,
    pub(crate) counts: TaskStateCounts,
    pub(crate) work: RemainingWork,
    pub(crate) attempts: JobAttempts,
    /// Number of maps that divisions added.
    #[serde(default)]
    pub(crate) added: u32,
    /// Waiting maps.
    pub(crate) queue: Queue,
    pub(crate) reduce_queue: ReduceQueue,
    pub(crate) homes: Homes,
    pub(crate) outputs: MapOutputs,
    pub(crate) workers: JobWorkers,
    pub(crate) tally: JobTally,
}

impl Job {
    /// Creates a job on arrival; no task waits yet.
    pub(crate) fn new(id: JobId, spec: Arc<JobSpec>, now: Time) -> Self {
        let reduces = spec.reduces;
        Self {
            id,
            arrival: now,
            handle: None,
            maps: spec.maps.iter().map(|_| MapTask::new(reduces)).collect(),
            reduces: (0..reduces).map(|_| ReduceTask::default()).collect(),
            counts: TaskStateCounts::new(spec.maps.len() as u32, reduces),
            work: RemainingWork::new(&spec),
            attempts: JobAttempts::default(),
            added: 0,
            queue: Queue::new(),
            reduce_queue: ReduceQueue::new(),
            homes: Homes::new(reduces),
            outputs: MapOutputs::default(),
            workers: JobWorkers::default(),
            tally: JobTally::default(),
            spec,
        }
    }

    /// True if maps publish parts themselves.
    pub(crate) fn map_only(&self) -> bool {
        self.reduces.is_empty()
    }

    /// True if no work is left.
    pub(crate) fn complete(&self) -> bool {
        if self.map_only() { self.counts.maps_done as usize == self.maps.len() } else { self.reduces_done() }
    }

    pub(crate) fn tries(&self, task: TaskId) -> &Tries {
        match task.kind {
            TaskKind::Map => &self.maps[task.index as usize].tries,
            TaskKind::Reduce => &self.reduces[task.index as usize].tries,
        }
    }

    pub(crate) fn tries_mut(&mut self, task: TaskId) -> &mut Tries {
        match task.kind {
            TaskKind::Map => &mut self.maps[task.index as usize].tries,
            TaskKind::Reduce => &mut self.reduces[task.index as usize].tries,
        }
    }

    /// True if this task is expected to end soon. A task that has failed or was lost runs alone: if it crashes its
    /// worker, the attempt at fault must be known.
    pub(crate) fn is_quick(&self, task: TaskId, config: &AheadConfig) -> bool {
        task.kind == TaskKind::Map && self.tries(task).unblemished() && 0 < self.attempts.pace.depth(config)
    }

    /// Returns the attempt of this map that runs or that made its output.
    pub(crate) fn current_map(&self, index: u32) -> AttemptId {
        let tries = &self.maps[index as usize].tries;
        assert!(0 < tries.launched, "{}: map {index} was never launched", self.id);
        TaskId::map(self.id, index).attempt(tries.current)
    }

    pub(crate) fn set_map(&mut self, index: u32, state: MapState) {
        let map = &mut self.maps[index as usize];
        let before = std::mem::replace(&mut map.state, state);
        let bytes = self.spec.maps[index as usize].bytes;
        *self.counts.of_maps(before) -= 1;
        *self.counts.of_maps(state) += 1;
        let done = |state: MapState| matches!(state, MapState::Done { .. });
        if done(before) == done(state) {
            return;
        }
        let work = self.spec.exact.as_ref().map_or(0.0, |exact| exact.maps[index as usize]);
        let last = self.counts.maps_done as usize == self.maps.len();
        let ran = self.maps[index as usize].ran;
        match done(state) {
            true => self.work.map_done(bytes, ran, work, last),
            false => self.work.map_undone(bytes, ran, work),
        }
    }

    pub(crate) fn set_reduce(&mut self, partition: u32, state: ReduceState) {
        let before = std::mem::replace(&mut self.reduces[partition as usize].state, state);
        self.counts.reduces[before as usize] -= 1;
        self.counts.reduces[state as usize] += 1;
        if state == ReduceState::Done && before != state {
            let work = self.spec.exact.as_ref().map_or(0.0, |exact| exact.reduces[partition as usize]);
            self.work.reduce_done(work, self.reduces_done());
        }
    }

    /// Number of running reduces whose slot cannot be preempted.
    pub(crate) fn reduces_firm(&self) -> u32 {
        self.counts.reduces[ReduceState::Running as usize] - self.counts.yielding
    }

    /// Number of running maps that are not ordered to make way and could be.
    pub(crate) fn maps_firm(&self) -> u32 {
        self.counts.maps_running - self.counts.maps_yielding
    }

    /// Number of finished maps and reduces.
    pub(crate) fn tasks_done(&self) -> u32 {
        self.counts.maps_done + self.counts.reduces[ReduceState::Done as usize]
    }

    fn reduces_done(&self) -> bool {
        self.counts.reduces[ReduceState::Done as usize] as usize == self.reduces.len()
    }

    /// Removes a waiting map from its line.
    pub(crate) fn leave_line(&mut self, index: u32, workers: &mut Workers) {
        let map = &mut self.maps[index as usize];
        let assigned = map.assigned.take();
        self.queue.remove(index, &self.spec.maps[index as usize], assigned, workers);
    }

    /// Binds a waiting map that may run anywhere to a worker.
    pub(crate) fn assign(&mut self, index: u32, to: WorkerId, workers: &mut Workers) {
        let map = &mut self.maps[index as usize];
        map.assigned = Some(to);
        self.workers.assigned_ever.insert(to);
        self.queue.assign(self.id, index, &self.spec.maps[index as usize], to, workers);
    }

    /// Unassigns all maps assigned to this worker. They may be assigned again.
    pub(crate) fn take_back(&mut self, worker: WorkerId, workers: &mut Workers) {
        for index in self.queue.assigned.at.get(&worker).cloned().unwrap_or_default() {
            self.leave_line(index, workers);
            self.queue.insert(self.id, index, &self.spec.maps[index as usize], false, workers);
        }
    }

    /// Unassigns all assigned maps.
    pub(crate) fn unassign_all(&mut self, workers: &mut Workers) {
        for worker in self.queue.assigned.at.keys().copied().collect::<Vec<_>>() {
            self.take_back(worker, workers);
        }
    }

    /// Returns all workers that may have marks of the job.
    pub(crate) fn marks(&self) -> BTreeSet<WorkerId> {
        let named = self.spec.maps.iter().flat_map(|map| &map.preferred);
        self.workers
            .informed
            .iter()
            .chain(named)
            .chain(&self.workers.assigned_ever)
            .chain(&self.queue.heirs)
            .copied()
            .collect()
    }

    /// Puts a map in line, on arrival or again.
    ///
    /// # Errors
    /// If the job cannot continue: the map is pinned to workers that never existed.
    pub(crate) fn map_waits(&mut self, index: u32, workers: &mut Workers) -> Result<(), Cause> {
        self.set_map(index, MapState::Waiting);
        let task = &self.maps[index as usize];
        let spec = &self.spec.maps[index as usize];
        let known = |&worker: &WorkerId| workers.host(worker).is_some();
        if spec.pinned && !spec.preferred.iter().any(known) {
            return Err(self.orphan(index));
        }
        let retrying = !task.tries.avoids.is_empty();
        self.queue.insert(self.id, index, spec, retrying, workers);
        Ok(())
    }

    /// Makes a map wait outside of the lines.
    pub(crate) fn map_backs_off(&mut self, index: u32) {
        self.set_map(index, MapState::Waiting);
        self.queue.backing_off.insert(index);
    }

    /// Ends the pause of a task. Does nothing if the pause was cut short.
    ///
    /// # Errors
    /// If the job cannot continue: the map is pinned to workers that never existed.
    pub(crate) fn end_backoff(&mut self, task: TaskId, workers: &mut Workers) -> Result<(), Cause> {
        match task.kind {
            TaskKind::Map if self.queue.backing_off.remove(&task.index) => {
                self.map_waits(task.index, workers)
            }
            TaskKind::Reduce if self.reduce_queue.backing_off.remove(&task.index) => {
                let home = self.reduces[task.index as usize].home.expect("a reduce backs off at its home");
                self.reduce_queue.ready.insert(self.id, home, task.index, workers);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn orphan(&self, index: u32) -> Cause {
        Cause::Input { task: TaskId::map(self.id, index) }
    }

    /// True if a usable live worker exists that this task does not avoid and that is not `home`.
    pub(crate) fn has_elsewhere(&self, tries: &Tries, home: Option<WorkerId>, workers: &Workers) -> bool {
        let all_excluded = self.workers.excluded.len() == workers.count();
        let usable =
            if all_excluded { workers.count() } else { workers.count() - self.workers.excluded.len() };
        let counts = |worker: &WorkerId| {
            workers.is_live(*worker) && (all_excluded || !self.workers.excluded.contains(worker))
        };
        let avoided = tries.avoids.iter().filter(|&worker| counts(worker)).count();
        let at_home = home.filter(|home| !tries.avoids.contains(home) && counts(home)).iter().count();
        avoided + at_home < usable
    }

    /// Removes a lost worker, given its last record. Its attempts were stopped before.
    ///
    /// # Errors
    /// If the job cannot continue without it.
    pub(crate) fn lose_worker(
        &mut self,
        lost: &Worker,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        let worker = lost.id;
        self.workers.failures.remove(&worker);
        self.workers.excluded.remove(&worker);
        self.workers.informed.remove(&worker);
        self.lose_seconds(worker);
        self.reduce_queue.ready.lose(lost);
        self.reduce_queue.parked.lose(lost);
        for partition in self.homes.at.get(&worker).cloned().unwrap_or_default() {
            self.unhome(partition, workers, out);
        }
        self.homes.gathered.remove(&worker);
        let pinned = self.queue.lose(lost);
        for index in self.queue.assigned.lose(lost) {
            self.maps[index as usize].assigned = None;
            self.queue.insert(self.id, index, &self.spec.maps[index as usize], false, workers);
        }
        let retrying =
            self.queue.retrying.iter().copied().filter(|&index| self.spec.maps[index as usize].pinned);
        let retrying: Vec<u32> =
            retrying.filter(|&index| places(&self.spec.maps[index as usize], workers).is_empty()).collect();
        for index in retrying {
            self.leave_line(index, workers);
            self.queue.orphans.insert(index);
        }
        for index in pinned {
            let spec = &self.spec.maps[index as usize];
            let place = places(spec, workers).first().copied();
            // A map pinned to several workers is already in line at the others.
            if !place.is_some_and(|place| self.queue.is_pinned_at(place, index)) {
                self.queue.insert(self.id, index, spec, false, workers);
            }
        }
        for map in self.outputs.kept.get(&worker).cloned().unwrap_or_default() {
            self.lose_output(map, workers, out)?;
        }
        Ok(())
    }
}
