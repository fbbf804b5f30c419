//! A small world that drives a core as a real cluster does and writes its journal: orders and reports
//! take time, attempts fail, workers are lost.
//!
//! Its contents are known, so that measurements and predictions can be checked. It differs from the
//! cluster simulator, which has neither overheads nor faults.

use gristmill_runtime::journal::{Journal, JournalHeader, JournalRecord, SCHEMA};
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::{Core, CoreConfig};
use gristmill_scheduler::estimate;
use gristmill_scheduler::event::{Event, Failure, Slots};
use gristmill_scheduler::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::job::{JobSpec, MapSpec};
use gristmill_scheduler::units::{Bytes, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Job with its true times.
#[derive(Clone, Debug)]
pub struct TrueJob {
    pub arrival: f64,
    pub maps: Vec<f64>,
    pub reduces: Vec<f64>,
    /// Output bytes of each map.
    pub bytes: u64,
}

/// Initial state of a world.
#[derive(Clone, Debug)]
pub struct World {
    pub policy: String,
    pub placement: String,
    pub estimator: String,
    pub workers: Vec<(Slots, f64)>,
    pub jobs: Vec<TrueJob>,
    /// Delay from an order to its effect, in seconds.
    pub order: f64,
    /// Delay from the end of an attempt to its event.
    pub report: f64,
    /// Delay from the order to fetch to its event.
    pub fetch: f64,
    /// Tasks whose first attempt fails.
    pub fails: BTreeSet<TaskId>,
    /// Workers that are lost, and the times.
    pub loses: Vec<(f64, WorkerId)>,
    /// Time of a policy change, and the new policy.
    pub decides: Option<(f64, String)>,
}

impl World {
    /// Creates a world of these jobs on this many workers with this many slots each.
    pub fn new(policy: &str, workers: u32, slots: u32, jobs: Vec<TrueJob>) -> Self {
        Self {
            policy: policy.to_owned(),
            placement: "pull".to_owned(),
            estimator: "history".to_owned(),
            workers: (0..workers).map(|_| (Slots::Unified(slots), 1.0)).collect(),
            jobs,
            order: 0.002,
            report: 0.001,
            fetch: 0.004,
            fails: BTreeSet::new(),
            loses: Vec::new(),
            decides: None,
        }
    }

    /// Runs the world and writes the journal.
    pub fn write(&self, path: &Path) {
        let registry = Registry::standard();
        let config = CoreConfig::default();
        let estimator = estimate::by_name(&self.estimator).unwrap();
        let header = JournalHeader {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: "test".to_owned(),
            policy: self.policy.clone(),
            placement: self.placement.clone(),
            estimator: self.estimator.clone(),
            memory: estimator.memory(),
            core: config.clone(),
        };
        let policy = registry.make_policy(&self.policy).unwrap();
        let placement = registry.make_placement(&self.placement).unwrap();
        let core = Core::new(config, policy, placement).with_estimator(estimator);
        let journal = Journal::create(path, &header).unwrap();
        Run::new(self, core, journal).run();
    }
}

/// Timed event of the world.
#[derive(Clone, Debug)]
enum Happening {
    /// An order to start reaches its worker.
    Ordered(AttemptId, WorkerId),
    /// An attempt ends on its worker.
    Ended(AttemptId, WorkerId),
    /// The master receives an event.
    Fact(Event),
    /// A job arrives; its index.
    Arrival(usize),
    /// A worker is lost.
    Death(WorkerId),
    /// The policy changes.
    DecideBy(String),
    /// A timer of the core fires.
    Wake,
}

struct Worker {
    free: [u32; 2],
    queue: Vec<AttemptId>,
}

struct Run<'a> {
    world: &'a World,
    core: Core,
    journal: Journal,
    now: Time,
    happenings: BTreeMap<(Time, u64), Happening>,
    number: u64,
    workers: BTreeMap<WorkerId, Worker>,
    homes: BTreeMap<(JobId, WorkerId), BTreeSet<u32>>,
}

fn span(seconds: f64) -> Span {
    Span((seconds * 1e9).round() as u64)
}

impl<'a> Run<'a> {
    fn new(world: &'a World, core: Core, journal: Journal) -> Self {
        let mut run = Self {
            world,
            core,
            journal,
            now: Time::ZERO,
            happenings: BTreeMap::new(),
            number: 0,
            workers: BTreeMap::new(),
            homes: BTreeMap::new(),
        };
        for (number, &(slots, speed)) in (1..).zip(&world.workers) {
            let worker = WorkerId(number);
            let record = JournalRecord::Worker { worker, speed, nic_bytes_per_second: None };
            run.journal.record(&record).unwrap();
            let free = [slots.count(TaskKind::Map), slots.count(TaskKind::Reduce)];
            run.workers.insert(worker, Worker { free, queue: Vec::new() });
            run.later(0.0, Happening::Fact(Event::WorkerJoined { worker, host: HostId(number), slots }));
        }
        for (place, job) in world.jobs.iter().enumerate() {
            run.later(job.arrival, Happening::Arrival(place));
        }
        for &(at, worker) in &world.loses {
            run.later(at, Happening::Death(worker));
        }
        if let Some((at, policy)) = &world.decides {
            run.later(*at, Happening::DecideBy(policy.clone()));
        }
        run
    }

    fn later(&mut self, seconds: f64, happening: Happening) {
        self.number += 1;
        self.happenings.insert((self.now + span(seconds), self.number), happening);
    }

    fn run(mut self) {
        while let Some((&(now, _), _)) = self.happenings.first_key_value() {
            self.now = now;
            let mut facts = Vec::new();
            while let Some(entry) = self.happenings.first_entry().filter(|entry| entry.key().0 == now) {
                match entry.remove() {
                    Happening::Ordered(attempt, worker) => {
                        if let Some(there) = self.workers.get_mut(&worker) {
                            there.queue.push(attempt);
                            self.start_queued(worker);
                        }
                    }
                    Happening::Ended(attempt, worker) => self.end(attempt, worker),
                    Happening::Fact(fact) => facts.push(fact),
                    Happening::Arrival(place) => facts.push(self.arrival(place)),
                    Happening::Death(worker) => {
                        self.workers.remove(&worker);
                        facts.push(Event::WorkerLost { worker, culprit: Vec::new() });
                    }
                    Happening::DecideBy(policy) => self.decide_by(policy),
                    Happening::Wake => facts.push(Event::Tick),
                }
            }
            if !facts.is_empty() {
                let mut orders = Vec::new();
                let before = self.core.shuffle_revision();
                self.core.handle(now, &facts, &mut orders);
                let changed = before != self.core.shuffle_revision();
                let shuffle = changed.then(|| self.core.shuffle_order());
                self.journal.instant(now, &facts, &orders, shuffle).unwrap();
                orders.iter().for_each(|order| self.obey(order));
            }
        }
        self.journal.record(&JournalRecord::End).unwrap();
        self.journal.flush().unwrap();
    }

    fn decide_by(&mut self, policy: String) {
        let made = Registry::standard().make_policy(&policy).unwrap();
        let placement = self.world.placement.clone();
        self.core.decide_by(made, Registry::standard().make_placement(&placement).unwrap());
        self.journal.record(&JournalRecord::DecideBy { at: self.now, policy, placement }).unwrap();
    }

    fn arrival(&mut self, place: usize) -> Event {
        let job = JobId(place as u32 + 1);
        let truth = &self.world.jobs[place];
        let name = "true".to_owned();
        self.journal
            .record(&JournalRecord::Job { job, name: name.clone(), parameters: "{}".to_owned() })
            .unwrap();
        let maps = truth.maps.iter().map(|_| MapSpec::anywhere(Bytes(1000))).collect();
        let spec = JobSpec { name: Some(name), ..JobSpec::new(maps, truth.reduces.len() as u32) };
        Event::JobArrived { job, spec: spec.into() }
    }

    fn pool(&self, kind: TaskKind, worker: WorkerId) -> usize {
        let slots = self.world.workers[worker.0 as usize - 1].0;
        usize::from(!slots.unified() && kind == TaskKind::Reduce)
    }

    /// Starts the oldest queued attempts that fit into free slots.
    fn start_queued(&mut self, worker: WorkerId) {
        loop {
            let Some(there) = self.workers.get(&worker) else { return };
            let fits = |attempt: &AttemptId| 0 < there.free[self.pool(attempt.task.kind, worker)];
            let Some(place) = there.queue.iter().position(fits) else { return };
            let pool = self.pool(there.queue[place].task.kind, worker);
            let there = self.workers.get_mut(&worker).unwrap();
            there.free[pool] -= 1;
            let attempt = there.queue.remove(place);
            self.later(self.took(attempt, worker), Happening::Ended(attempt, worker));
        }
    }

    fn took(&self, attempt: AttemptId, worker: WorkerId) -> f64 {
        let job = &self.world.jobs[attempt.task.job.0 as usize - 1];
        let lengths = if attempt.task.kind == TaskKind::Map { &job.maps } else { &job.reduces };
        lengths[attempt.task.index as usize] / self.world.workers[worker.0 as usize - 1].1
    }

    fn end(&mut self, attempt: AttemptId, worker: WorkerId) {
        let pool = self.pool(attempt.task.kind, worker);
        let Some(there) = self.workers.get_mut(&worker) else { return };
        there.free[pool] += 1;
        let took = span(self.took(attempt, worker));
        let job = &self.world.jobs[attempt.task.job.0 as usize - 1];
        let report = self.world.report;
        let fails = attempt.epoch == 0 && self.world.fails.contains(&attempt.task);
        if fails {
            self.later(report, Happening::Fact(Event::AttemptFailed { attempt, class: Failure::User }));
        } else {
            let bytes = Bytes(job.bytes);
            if attempt.task.kind == TaskKind::Reduce || job.reduces.is_empty() {
                self.later(report, Happening::Fact(Event::CommitRequested { attempt }));
            }
            let fact = match attempt.task.kind {
                TaskKind::Map => Event::MapFinished { attempt, output_bytes: bytes, took, fingerprint: None },
                TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes: bytes, took },
            };
            self.later(report, Happening::Fact(fact));
        }
        self.start_queued(worker);
    }

    fn obey(&mut self, order: &Command) {
        match *order {
            Command::Launch { attempt, worker, .. } => {
                self.later(self.world.order, Happening::Ordered(attempt, worker));
            }
            Command::Home { job, partition, worker } => {
                self.homes.entry((job, worker)).or_default().insert(partition);
            }
            Command::Unhome { job, partition, worker } => {
                self.homes.entry((job, worker)).or_default().remove(&partition);
            }
            Command::Announce { job, map, from, to } => {
                if !self.workers.contains_key(&from) {
                    return;
                }
                let partitions = self.homes.get(&(job, to)).into_iter().flatten().copied().collect();
                let fact = Event::Fetched { job, home: to, map, partitions };
                let delay = if from == to { 0.0 } else { self.world.fetch };
                self.later(delay, Happening::Fact(fact));
            }
            Command::WakeAt { time } => {
                self.later(time.since(self.now).seconds(), Happening::Wake);
            }
            Command::Recall { attempt, worker } => {
                let Some(there) = self.workers.get_mut(&worker) else { return };
                let queued = there.queue.iter().position(|other| *other == attempt);
                if let Some(place) = queued {
                    there.queue.remove(place);
                    self.later(self.world.report, Happening::Fact(Event::AttemptReturned { attempt }));
                }
            }
            _ => {}
        }
    }
}
