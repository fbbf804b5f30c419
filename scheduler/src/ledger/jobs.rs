//! One live job in the books: its tasks, where they wait, where its partitions are gathered.
//!
//! Not here: map outputs and segments (`outputs`), what failures cost (`attempts`).
//!
//! Invariants: the counts equal the states of the tasks; every unfinished reduce has a home or stands in
//! `homeless`; `barred` names live workers only.

use crate::command::{Cause, Command};
use crate::event::Failure;
use crate::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::{Exact, JobSpec, MapSpec};
use crate::ledger::ahead::Pace;
use crate::ledger::queue::{Bound, Queue, places};
use crate::ledger::routes::Routes;
use crate::ledger::tasks::{Arrivals, Bits, MapState, MapTask, ReduceState, ReduceTask, Tries};
use crate::ledger::workers::{Worker, Workers};
use crate::units::{Bytes, Span, Time};
use crate::view::Handle;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of a job that only grow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) launched: u32,
    pub(crate) failed: [u32; Failure::ALL.len()],
    pub(crate) localities: [u32; 4],
    pub(crate) map_bytes: Bytes,
    pub(crate) reduce_bytes: Bytes,
    pub(crate) map_time: Span,
    pub(crate) reduce_time: Span,
    pub(crate) first_launch: Option<Time>,
    pub(crate) maps_done_at: Option<Time>,
    /// Times that an attempt was suspended, and handed over.
    pub(crate) suspended: u32,
    pub(crate) handed_over: u32,
}

/// How the list of the start times of a job's running maps changed: whoever keeps a copy does the same.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunChange {
    /// Appended.
    Began(Time),
    /// The last one took this place.
    Ended(u32),
}

/// One live job.
#[derive(Debug)]
pub struct Job {
    pub(crate) id: JobId,
    pub(crate) arrival: Time,
    pub(crate) weight: f64,
    pub(crate) pool: Option<u32>,
    pub(crate) pool_weight: Option<f64>,
    pub(crate) priority: i32,
    pub(crate) attempts_max: u32,
    pub(crate) goal: Option<Time>,
    pub(crate) name: Option<String>,
    pub(crate) exact: Option<Exact>,
    /// Work of all maps and of all reduces by `exact`, in slot-seconds.
    pub(crate) exact_whole: [f64; 2],
    /// That of those not done.
    pub(crate) exact_left: [f64; 2],
    /// What all maps read, and what those that are done read.
    pub(crate) input: Bytes,
    pub(crate) input_done: Bytes,
    /// Map attempts that hold a slot, in the order in which the policies' view has their start times.
    pub(crate) runs: Vec<AttemptId>,
    /// Changes of that list since the view was made.
    pub(crate) run_changes: Vec<RunChange>,
    /// The row it has in the policies' view, once they know it.
    pub(crate) handle: Option<Handle>,
    pub(crate) maps: Vec<MapTask>,
    pub(crate) reduces: Vec<ReduceTask>,
    pub(crate) maps_waiting: u32,
    /// With those that are queued.
    pub(crate) maps_running: u32,
    pub(crate) maps_queued: u32,
    pub(crate) maps_done: u32,
    /// By [`ReduceState`].
    pub(crate) reduce_counts: [u32; 5],
    /// Segments at their homes or used by finished reduces.
    pub(crate) segments_fetched: u64,
    pub(crate) queue: Queue,
    /// Ready reduces at their homes, but for those that rest.
    pub(crate) ready: Bound,
    /// Reduces whose attempt is suspended and may be resumed, at their homes.
    pub(crate) parked: Bound,
    /// Reduce attempts whose slot can be taken back, those that were told to leave it included.
    pub(crate) yielding: u32,
    /// Ready reduces that pause after a failure by a worker's fault.
    pub(crate) resting: BTreeSet<u32>,
    /// Partitions of unfinished reduces by home.
    pub(crate) homes: BTreeMap<WorkerId, BTreeSet<u32>>,
    pub(crate) homeless: BTreeSet<u32>,
    /// How much of each map has come to each home.
    pub(crate) arrivals: BTreeMap<WorkerId, Arrivals>,
    /// Maps whose output a live worker keeps.
    pub(crate) outputs: BTreeMap<WorkerId, BTreeSet<u32>>,
    /// Maps whose output is empty: all homes have it, also those to come.
    pub(crate) empty: Bits,
    /// Who could read from whom.
    pub(crate) routes: Routes,
    /// How long its maps take.
    pub(crate) pace: Pace,
    /// Workers that were lost while attempts of it ran there, unless an attempt of another job brought them down.
    pub(crate) deaths: u32,
    /// Since when it has had maps that are pinned to where nobody is.
    pub(crate) orphaned_since: Option<Time>,
    /// Failures by a worker's fault.
    pub(crate) troubles: BTreeMap<WorkerId, u32>,
    /// Live workers that get nothing more of this job while there are others.
    pub(crate) barred: BTreeSet<WorkerId>,
    /// Attempts that hold a slot, are queued behind one, or are suspended.
    pub(crate) running: BTreeSet<AttemptId>,
    /// Workers that maps were dealt to.
    pub(crate) dealt_ever: BTreeSet<WorkerId>,
    /// Workers that were told of the job, lost ones removed.
    pub(crate) told: BTreeSet<WorkerId>,
    pub(crate) tally: Tally,
}

/// What placements may look at.
impl Job {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Whether this worker may get something of this job: it is fit for it, or no live worker is.
    #[must_use]
    pub fn may_use(&self, worker: WorkerId, workers: &Workers) -> bool {
        !self.barred.contains(&worker) || self.barred.len() == workers.count()
    }

    /// The first waiting map that must run on one of some workers, this among them.
    #[must_use]
    pub fn first_pinned(&self, worker: WorkerId) -> Option<u32> {
        self.queue.pinned.first(worker)
    }

    /// The first waiting map that was dealt to this worker.
    #[must_use]
    pub fn first_dealt(&self, worker: WorkerId) -> Option<u32> {
        self.queue.dealt.first(worker)
    }

    /// Workers that waiting maps were dealt to, by id.
    pub fn dealt_to(&self) -> impl ExactSizeIterator<Item = WorkerId> {
        self.queue.dealt.at.keys().copied()
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
    pub fn wary(&self) -> impl Iterator<Item = u32> {
        self.queue.wary.iter().copied()
    }

    /// What this map is.
    ///
    /// # Panics
    /// If there is no such map.
    #[must_use]
    pub fn map_spec(&self, index: u32) -> &MapSpec {
        &self.maps[index as usize].spec
    }

    /// Homes at which a reduce is ready to run, by id.
    pub fn ready_homes(&self) -> impl Iterator<Item = WorkerId> {
        self.ready.at.keys().copied()
    }

    /// The first reduce that is ready to run at this home.
    #[must_use]
    pub fn first_ready(&self, home: WorkerId) -> Option<u32> {
        self.ready.first(home)
    }

    /// Number of unfinished partitions that have their home at this worker.
    #[must_use]
    pub fn homes_at(&self, worker: WorkerId) -> u32 {
        self.homes.get(&worker).map_or(0, |partitions| partitions.len() as u32)
    }

    /// Whether this task should stay away from this worker, where it failed; pays no regard to whether
    /// there is another.
    #[must_use]
    pub fn avoids(&self, kind: TaskKind, index: u32, worker: WorkerId) -> bool {
        self.tries(TaskId { job: self.id, kind, index }).avoids.contains(&worker)
    }

    /// Whether this map may start on this worker now, as far as it is not a matter of taste.
    #[must_use]
    pub fn fits(&self, index: u32, worker: WorkerId, workers: &Workers) -> bool {
        let task = &self.maps[index as usize];
        if !task.spec.pinned {
            return self.may_use(worker, workers)
                && (!task.tries.avoids.contains(&worker) || !self.has_elsewhere(&task.tries, None, workers));
        }
        // A pinned map has no choice but among its own workers.
        let better = |&other: &WorkerId| !self.barred.contains(&other) && !task.tries.avoids.contains(&other);
        let places = places(&task.spec, workers);
        places.contains(&worker) && (better(&worker) || !places.iter().any(better))
    }
}

impl Job {
    /// The job on arrival; no task waits yet.
    pub(crate) fn new(id: JobId, spec: JobSpec, now: Time) -> Self {
        let reduces = spec.reduces;
        let map = |spec| MapTask {
            spec,
            state: MapState::Waiting,
            tries: Tries::default(),
            dealt: None,
            lacking: reduces,
            unreadable: 0,
            print: None,
            alike_since: 0,
        };
        let reduce = |_| ReduceTask {
            state: ReduceState::Gathering,
            tries: Tries::default(),
            home: None,
            moved: false,
            gathered: Bits::default(),
            continues: None,
        };
        let maps: Vec<MapTask> = spec.maps.into_iter().map(map).collect();
        let sum = |work: &[f64]| work.iter().sum::<f64>();
        let whole = spec.exact.as_ref().map_or([0.0; 2], |exact| [sum(&exact.maps), sum(&exact.reduces)]);
        Self {
            id,
            arrival: now,
            weight: spec.weight,
            pool: spec.pool,
            pool_weight: spec.pool_weight,
            priority: spec.priority,
            attempts_max: spec.attempts_max,
            goal: spec.goal,
            name: spec.name,
            exact: spec.exact,
            exact_whole: whole,
            exact_left: whole,
            input: maps.iter().map(|map| map.spec.bytes).sum(),
            input_done: Bytes::ZERO,
            runs: Vec::new(),
            run_changes: Vec::new(),
            handle: None,
            maps_waiting: maps.len() as u32,
            maps_running: 0,
            maps_queued: 0,
            maps_done: 0,
            maps,
            reduces: (0..reduces).map(reduce).collect(),
            reduce_counts: [reduces, 0, 0, 0, 0],
            segments_fetched: 0,
            queue: Queue::new(),
            ready: Bound::of_ready(),
            parked: Bound::new(TaskKind::Reduce),
            yielding: 0,
            resting: BTreeSet::new(),
            homes: BTreeMap::new(),
            homeless: (0..reduces).collect(),
            arrivals: BTreeMap::new(),
            outputs: BTreeMap::new(),
            empty: Bits::default(),
            routes: Routes::default(),
            pace: Pace::default(),
            deaths: 0,
            orphaned_since: None,
            troubles: BTreeMap::new(),
            barred: BTreeSet::new(),
            running: BTreeSet::new(),
            dealt_ever: BTreeSet::new(),
            told: BTreeSet::new(),
            tally: Tally::default(),
        }
    }

    /// Whether maps publish parts themselves.
    pub(crate) fn map_only(&self) -> bool {
        self.reduces.is_empty()
    }

    /// Whether nothing is left to do.
    pub(crate) fn complete(&self) -> bool {
        if self.map_only() { self.maps_done as usize == self.maps.len() } else { self.reduces_done() }
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

    /// The attempt of this map that was launched last.
    pub(crate) fn current_map(&self, index: u32) -> AttemptId {
        let launched = self.maps[index as usize].tries.launched;
        assert!(0 < launched, "{}: map {index} was never launched", self.id);
        TaskId::map(self.id, index).attempt(launched - 1)
    }

    pub(crate) fn set_map(&mut self, index: u32, state: MapState) {
        let map = &mut self.maps[index as usize];
        let before = std::mem::replace(&mut map.state, state);
        let bytes = map.spec.bytes;
        *self.map_count(before) -= 1;
        *self.map_count(state) += 1;
        let done = |state: MapState| matches!(state, MapState::Done { .. });
        if done(before) == done(state) {
            return;
        }
        let work = self.exact.as_ref().map_or(0.0, |exact| exact.maps[index as usize]);
        if done(state) {
            self.input_done += bytes;
            self.exact_left[0] = lessen(self.exact_left[0], work, self.maps_done as usize == self.maps.len());
        } else {
            self.input_done = Bytes(self.input_done.0 - bytes.0);
            self.exact_left[0] += work;
        }
    }

    /// A map attempt got its slot.
    pub(crate) fn begin_run(&mut self, attempt: AttemptId, now: Time) -> u32 {
        self.runs.push(attempt);
        self.run_changes.push(RunChange::Began(now));
        (self.runs.len() - 1) as u32
    }

    /// The map attempt at this place gave its slot back; says who took the place.
    pub(crate) fn end_run(&mut self, place: u32) -> Option<AttemptId> {
        self.runs.swap_remove(place as usize);
        self.run_changes.push(RunChange::Ended(place));
        self.runs.get(place as usize).copied()
    }

    fn map_count(&mut self, state: MapState) -> &mut u32 {
        match state {
            MapState::Waiting => &mut self.maps_waiting,
            MapState::Running => &mut self.maps_running,
            MapState::Done { .. } => &mut self.maps_done,
        }
    }

    pub(crate) fn set_reduce(&mut self, partition: u32, state: ReduceState) {
        let before = std::mem::replace(&mut self.reduces[partition as usize].state, state);
        self.reduce_counts[before as usize] -= 1;
        self.reduce_counts[state as usize] += 1;
        if state == ReduceState::Done && before != state {
            let work = self.exact.as_ref().map_or(0.0, |exact| exact.reduces[partition as usize]);
            self.exact_left[1] = lessen(self.exact_left[1], work, self.reduces_done());
        }
    }

    /// Running reduces whose slot cannot be taken back.
    pub(crate) fn reduces_firm(&self) -> u32 {
        self.reduce_counts[ReduceState::Running as usize] - self.yielding
    }

    /// Maps and reduces that are done.
    pub(crate) fn tasks_done(&self) -> u32 {
        self.maps_done + self.reduce_counts[ReduceState::Done as usize]
    }

    fn reduces_done(&self) -> bool {
        self.reduce_counts[ReduceState::Done as usize] as usize == self.reduces.len()
    }

    /// Takes a waiting map out of its line.
    pub(crate) fn leave_line(&mut self, index: u32, workers: &mut Workers) {
        let map = &mut self.maps[index as usize];
        let dealt = map.dealt.take();
        self.queue.remove(index, &map.spec, dealt, workers);
    }

    /// Binds a waiting map that may run anywhere to a worker.
    pub(crate) fn deal(&mut self, index: u32, to: WorkerId, workers: &mut Workers) {
        let map = &mut self.maps[index as usize];
        map.dealt = Some(to);
        self.dealt_ever.insert(to);
        self.queue.deal(self.id, index, &map.spec, to, workers);
    }

    /// Takes back what was dealt to this worker; it may be dealt again.
    pub(crate) fn undeal(&mut self, worker: WorkerId, workers: &mut Workers) {
        for index in self.queue.dealt.at.get(&worker).cloned().unwrap_or_default() {
            self.leave_line(index, workers);
            let map = &self.maps[index as usize];
            self.queue.insert(self.id, index, &map.spec, false, workers);
        }
    }

    /// Takes back all that was dealt.
    pub(crate) fn undeal_all(&mut self, workers: &mut Workers) {
        for worker in self.queue.dealt.at.keys().copied().collect::<Vec<_>>() {
            self.undeal(worker, workers);
        }
    }

    /// All workers that may have marks of the job.
    pub(crate) fn marks(&self) -> BTreeSet<WorkerId> {
        let named = self.maps.iter().flat_map(|map| &map.spec.preferred);
        self.told.iter().chain(named).chain(&self.dealt_ever).chain(&self.queue.heirs).copied().collect()
    }

    /// Puts a map in line, on arrival or again.
    ///
    /// # Errors
    /// The job cannot go on: the map is pinned to workers that never were.
    pub(crate) fn map_waits(&mut self, index: u32, workers: &mut Workers) -> Result<(), Cause> {
        self.set_map(index, MapState::Waiting);
        let task = &self.maps[index as usize];
        let known = |&worker: &WorkerId| workers.host(worker).is_some();
        if task.spec.pinned && !task.spec.preferred.iter().any(known) {
            return Err(self.orphan(index));
        }
        let wary = !task.tries.avoids.is_empty();
        self.queue.insert(self.id, index, &task.spec, wary, workers);
        Ok(())
    }

    /// A map waits, but does not stand in line yet.
    pub(crate) fn map_rests(&mut self, index: u32) {
        self.set_map(index, MapState::Waiting);
        self.queue.resting.insert(index);
    }

    /// The pause of a task is over; it may have been cut short, then this does nothing.
    ///
    /// # Errors
    /// The job cannot go on: the map is pinned to workers that never were.
    pub(crate) fn rouse(&mut self, task: TaskId, workers: &mut Workers) -> Result<(), Cause> {
        match task.kind {
            TaskKind::Map if self.queue.resting.remove(&task.index) => self.map_waits(task.index, workers),
            TaskKind::Reduce if self.resting.remove(&task.index) => {
                let home = self.reduces[task.index as usize].home.expect("a reduce rests at its home");
                self.ready.insert(self.id, home, task.index, workers);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn orphan(&self, index: u32) -> Cause {
        Cause::Input { task: TaskId::map(self.id, index) }
    }

    /// Whether a live worker may be used that this task does not avoid and that is not `home`.
    pub(crate) fn has_elsewhere(&self, tries: &Tries, home: Option<WorkerId>, workers: &Workers) -> bool {
        let all_barred = self.barred.len() == workers.count();
        let usable = if all_barred { workers.count() } else { workers.count() - self.barred.len() };
        let counts =
            |worker: &WorkerId| workers.is_live(*worker) && (all_barred || !self.barred.contains(worker));
        let avoided = tries.avoids.iter().filter(|&worker| counts(worker)).count();
        let at_home = home.filter(|home| !tries.avoids.contains(home) && counts(home)).iter().count();
        avoided + at_home < usable
    }

    /// Moves partitions to a worker that has just joined, while that costs nothing: no map has finished.
    pub(crate) fn share_homes(&mut self, with: WorkerId, workers: &mut Workers, out: &mut Vec<Command>) {
        let begun = 0 < self.maps_done || 0 < self.segments_fetched;
        if begun || self.maps.is_empty() || !self.homeless.is_empty() {
            return;
        }
        let slots = |worker: WorkerId, workers: &Workers| {
            workers.get(worker).map_or(0, |worker| worker.slots().of(TaskKind::Reduce))
        };
        let load = |homes: u32, worker: WorkerId, workers: &Workers| {
            (u64::from(homes) << 32) / u64::from(slots(worker, workers).max(1))
        };
        let mut given = 0;
        let at = |job: &Self, home: WorkerId, workers: &Workers| load(job.homes_at(home), home, workers);
        while let Some((_, from)) = self.homes.keys().map(|&w| (at(self, w, workers), w)).max() {
            // A move must leave the giver at least as loaded as the taker, or it would go back and forth.
            if load(self.homes_at(from) - 1, from, workers) < load(given + 1, with, workers) {
                return;
            }
            let last = self.homes[&from].last().copied().expect("a home without partitions is removed");
            self.unhome(last, workers, out);
            given += 1;
        }
    }

    /// A worker is gone, as its record was last; its attempts were stopped before.
    ///
    /// # Errors
    /// The job cannot go on without it.
    pub(crate) fn lose_worker(
        &mut self,
        lost: &Worker,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        let worker = lost.id;
        self.troubles.remove(&worker);
        self.routes.lose(worker);
        self.barred.remove(&worker);
        self.told.remove(&worker);
        self.ready.lose(lost);
        self.parked.lose(lost);
        for partition in self.homes.get(&worker).cloned().unwrap_or_default() {
            self.unhome(partition, workers, out);
        }
        self.arrivals.remove(&worker);
        let pinned = self.queue.lose(lost);
        for index in self.queue.dealt.lose(lost) {
            let map = &mut self.maps[index as usize];
            map.dealt = None;
            self.queue.insert(self.id, index, &map.spec, false, workers);
        }
        let wary = self.queue.wary.iter().copied().filter(|&index| self.maps[index as usize].spec.pinned);
        let wary: Vec<u32> =
            wary.filter(|&index| places(&self.maps[index as usize].spec, workers).is_empty()).collect();
        for index in wary {
            self.leave_line(index, workers);
            self.queue.orphans.insert(index);
        }
        for index in pinned {
            let map = &self.maps[index as usize];
            let place = places(&map.spec, workers).first().copied();
            // Who is pinned to several stands in line at the others already.
            if !place.is_some_and(|place| self.queue.is_pinned_at(place, index)) {
                self.queue.insert(self.id, index, &map.spec, false, workers);
            }
        }
        for map in self.outputs.get(&worker).cloned().unwrap_or_default() {
            self.lose_output(map, workers, out)?;
        }
        Ok(())
    }
}

/// A sum without one of its terms; without the last one it is exactly 0, whatever rounding left of it.
fn lessen(sum: f64, term: f64, last: bool) -> f64 {
    if last { 0.0 } else { (sum - term).max(0.0) }
}
