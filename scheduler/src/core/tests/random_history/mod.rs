//! Random legal histories: simulated workers drive the core through failures, losses, late and duplicate messages. The
//! ledger is audited after each call, and when the faults stop every job must end.
//!
//! Messages to and from each worker keep their order, as on one connection, but have random delays.

use super::brains::{Dealer, Nervous, RandomPolicy};
use crate::command::{Command, Outcome};
use crate::core::{BackupLimits, Core, CoreConfig, CoreJobState, SuspendLimits};
use crate::event::{Event, External, Failure, Fingerprint, Slots};
use crate::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::{JobSpec, MapSpec};
use crate::placement::{Placement, Pull};
use crate::policy::{Fair, Fifo, Policy};
use crate::units::{Bytes, Span, Time};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sim_worker::{Phase, SimWorker};
use std::collections::{BTreeMap, BTreeSet};

mod histories;
mod sim_worker;

const WORKERS_MAX: usize = 6;
const JOBS_MAX: u32 = 6;
const SUSPENDED_MAX: usize = 2;
/// Far more steps than any history needs to end without faults.
const STEPS_MAX: u32 = 200_000;

/// Fault rates of a history.
#[derive(Clone, Copy, Debug)]
struct Wildness {
    steps: u32,
    /// Probabilities in 1/1,000 per step or attempt.
    failure: u32,
    loss: u32,
    cancel: u32,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Fifo,
    Fair,
    Random,
    Nervous,
}

/// Policy, placement and kind of slots.
#[derive(Clone, Copy, Debug)]
struct Kind {
    policy: Rule,
    pools: bool,
    deals: bool,
}

struct RandomHistory {
    pools: bool,
    slow: bool,
    rng: ChaCha8Rng,
    core: Core,
    now: Time,
    wild: Wildness,
    faults: bool,
    sim_workers: BTreeMap<WorkerId, SimWorker>,
    specs: BTreeMap<JobId, JobSpec>,
    outcomes: BTreeMap<JobId, Outcome>,
    published: BTreeSet<(JobId, u32)>,
    /// Number of times that a worker became home of a partition.
    housed: BTreeMap<(JobId, u32, WorkerId), u32>,
    /// Messages to be delivered late or twice.
    stale: Vec<Event>,
    joined: u32,
    /// Handed-over attempts by the attempts that continue them.
    continues: BTreeMap<AttemptId, AttemptId>,
    /// Number of suspensions, resumptions, hand-overs, and continuations.
    moves: [u32; 4],
    /// Speculative attempts launched, and those that won.
    backups: [u32; 2],
    wake: Option<Time>,
    log: Vec<Command>,
}

impl RandomHistory {
    fn new(seed: u64, kind: Kind, wild: Wildness) -> Self {
        let (policy, placement) = RandomHistory::brain(seed, kind);
        let config = CoreConfig {
            suspending: SuspendLimits {
                suspend_after_min: Span::milliseconds(400),
                suspended_per_worker_max: SUSPENDED_MAX as u32,
                hand_over_after: Span::milliseconds(800),
            },
            // Far more speculative attempts than in production.
            backups: Some(BackupLimits {
                slots_per_backup: 2,
                run_min: Span::milliseconds(50),
                judge_min: Span::milliseconds(5),
                ..BackupLimits::default()
            }),
            ..CoreConfig::default()
        };
        RandomHistory {
            pools: kind.pools,
            slow: matches!(kind.policy, Rule::Random),
            rng: ChaCha8Rng::seed_from_u64(seed),
            core: Core::new(config, policy, placement),
            now: Time::ZERO,
            wild,
            faults: true,
            sim_workers: BTreeMap::new(),
            specs: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            published: BTreeSet::new(),
            housed: BTreeMap::new(),
            stale: Vec::new(),
            joined: 0,
            continues: BTreeMap::new(),
            moves: [0; 4],
            backups: [0; 2],
            wake: None,
            log: Vec::new(),
        }
    }

    fn brain(seed: u64, kind: Kind) -> (Box<dyn Policy>, Box<dyn Placement>) {
        let policy: Box<dyn Policy> = match kind.policy {
            Rule::Fifo => Box::new(Fifo::new()),
            Rule::Fair => Box::new(Fair::new()),
            Rule::Random => Box::new(RandomPolicy::new(!seed)),
            Rule::Nervous => Box::new(Nervous::new()),
        };
        let placement: Box<dyn Placement> =
            if kind.deals { Box::new(Dealer::new(!seed)) } else { Box::new(Pull::new()) };
        (policy, placement)
    }

    fn chance(&mut self, of_thousand: u32) -> bool {
        self.rng.random_range(0..1000) < of_thousand
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.rng.random_range(0..items.len())])
    }

    fn some_worker(&mut self) -> Option<WorkerId> {
        let workers: Vec<WorkerId> = self.sim_workers.keys().copied().collect();
        self.pick(&workers)
    }

    /// Sends events to the core, and puts its commands into the inboxes.
    fn handle(&mut self, mut events: Vec<Event>) {
        let jump = if self.chance(5) { 20_000 } else { 300 };
        self.now = self.now + Span::milliseconds(self.rng.random_range(0..jump));
        if self.wake.is_some_and(|wake| wake <= self.now) {
            self.wake = None;
            events.push(Event::Tick);
        }
        for event in &events {
            let (Event::MapFinished { attempt, .. }
            | Event::AttemptReturned { attempt }
            | Event::ReduceFinished { attempt, .. }
            | Event::AttemptSuspended { attempt }
            | Event::SuspensionRefused { attempt }
            | Event::AttemptHandedOver { attempt }
            | Event::AttemptFailed { attempt, .. }) = event
            else {
                continue;
            };
            for sim_worker in self.sim_workers.values_mut() {
                sim_worker.booked.remove(attempt);
            }
        }
        let mut commands = Vec::new();
        self.core.handle(self.now, &events, &mut commands);
        if let Err(violations) = self.core.audit() {
            panic!("after {events:?}:\n{}", violations.iter().map(|v| format!("{v}\n")).collect::<String>());
        }
        for command in &commands {
            self.take_order(command);
        }
        self.log.extend(commands);
    }

    fn take_order(&mut self, command: &Command) {
        let (job, worker) = match command {
            Command::Launch { attempt, worker, .. } => {
                if let Some(earlier) = self.core.continues(*attempt) {
                    assert!(earlier.task == attempt.task && earlier.epoch < attempt.epoch);
                    self.continues.insert(*attempt, earlier);
                }
                let sim_worker = self.sim_workers.get_mut(worker).expect("launched on a live worker");
                assert!(sim_worker.booked.insert(*attempt), "{attempt} launched twice");
                let slots = sim_worker.slots.map_or(0, Slots::total) as usize;
                let most = slots * (1 + CoreConfig::default().ahead.maps_max as usize);
                assert!(sim_worker.booked.len() <= most, "{worker} got more than its slots and their queue");
                if attempt.task.kind == TaskKind::Reduce {
                    let words = self.core.empty_maps(attempt.task.job);
                    let maps = 0..64 * words.len() as u32;
                    let empty = maps.filter(|map| words[*map as usize / 64] >> (map % 64) & 1 == 1).collect();
                    sim_worker.empty.insert(*attempt, empty);
                }
                (attempt.task.job, worker)
            }
            Command::Resume { attempt, worker, .. } => {
                let sim_worker = self.sim_workers.get_mut(worker).expect("resumed on a live worker");
                assert!(
                    sim_worker.booked.insert(*attempt),
                    "{attempt} resumed, although it was not suspended"
                );
                (attempt.task.job, worker)
            }
            Command::Kill { attempt, worker }
            | Command::Recall { attempt, worker }
            | Command::Suspend { attempt, worker }
            | Command::HandOver { attempt, worker }
            | Command::GrantCommit { attempt, worker, .. }
            | Command::RefuseCommit { attempt, worker } => (attempt.task.job, worker),
            Command::Home { job, worker, .. }
            | Command::Unhome { job, worker, .. }
            | Command::Forget { job, worker } => (*job, worker),
            Command::Announce { job, to, .. } | Command::Retract { job, to, .. } => (*job, to),
            Command::JobEnded { job, outcome } => {
                let before = self.outcomes.insert(*job, *outcome);
                assert_eq!(before, None, "{job} ended twice");
                return;
            }
            Command::WakeAt { time } => {
                assert!(self.now < *time, "asked to be woken in the past");
                self.wake = Some(*time);
                return;
            }
        };
        let closing = matches!(command, Command::Forget { .. } | Command::RefuseCommit { .. });
        assert!(closing || !self.outcomes.contains_key(&job), "{command:?} after the end of {job}");
        self.sim_workers.get_mut(worker).expect("orders go to live workers").inbox.push_back(command.clone());
    }

    fn join(&mut self) {
        self.joined += 1;
        let worker = WorkerId(self.joined);
        let slots = match self.pools {
            true => Slots::Pools { map: self.rng.random_range(1..4), reduce: self.rng.random_range(1..3) },
            false => Slots::Unified(self.rng.random_range(1..4)),
        };
        self.sim_workers.insert(worker, SimWorker { slots: Some(slots), ..SimWorker::default() });
        let host = HostId(self.rng.random_range(0..3));
        self.handle(vec![Event::WorkerJoined { worker, host, slots }]);
    }

    fn lose(&mut self, worker: WorkerId) {
        let sim_worker = self.sim_workers.remove(&worker).expect("lost workers were live");
        self.stale.extend(sim_worker.outbox);
        let running: Vec<AttemptId> = sim_worker.running.keys().copied().collect();
        let culprit = if self.chance(300) { self.pick(&running).into_iter().collect() } else { Vec::new() };
        self.handle(vec![Event::WorkerLost { worker, culprit }]);
    }

    fn submit(&mut self) {
        let job = JobId(self.specs.len() as u32 + 1);
        let maps = self.rng.random_range(0..12);
        let maps = (0..maps).map(|_| self.map_spec()).collect();
        let mut spec = JobSpec::new(maps, self.rng.random_range(0..5));
        spec.weight = f64::from(self.rng.random_range(1..5));
        spec.pool = self.chance(400).then_some(self.rng.random_range(0..2));
        spec.attempts_max = self.rng.random_range(1..5);
        self.specs.insert(job, spec.clone());
        self.handle(vec![Event::JobArrived { job, spec: spec.into() }]);
    }

    fn map_spec(&mut self) -> MapSpec {
        let mut preferred = Vec::new();
        while self.chance(400) {
            preferred.extend(self.some_worker());
        }
        let pinned = !preferred.is_empty() && self.chance(100);
        MapSpec { bytes: Bytes(self.rng.random_range(0..100)), preferred, pinned }
    }

    fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..30 => self.obey(),
            30..55 => self.work(),
            55..75 => self.fetch(),
            75..97 => self.deliver(),
            _ if self.faults => self.mischief(),
            _ => {}
        }
        if self.faults
            && self.chance(self.wild.loss)
            && let Some(worker) = self.some_worker()
        {
            self.lose(worker);
        }
    }

    fn mischief(&mut self) {
        if self.sim_workers.len() < WORKERS_MAX && self.chance(400) {
            self.join();
        }
        if (self.specs.len() as u32) < JOBS_MAX && self.chance(300) {
            self.submit();
        }
        let jobs: Vec<JobId> = self.specs.keys().copied().collect();
        let job = self.pick(&jobs);
        if let Some(job) = job.filter(|_| self.chance(self.wild.cancel)) {
            let cause = External::ClientLost;
            let gives_up = self.chance(500);
            self.handle(vec![if gives_up {
                Event::JobCancelled { job }
            } else {
                Event::JobFailed { job, cause }
            }]);
        }
        if self.chance(self.wild.cancel) {
            self.change_brain();
        }
        if !self.stale.is_empty() && self.chance(500) {
            let index = self.rng.random_range(0..self.stale.len());
            let event = self.stale.swap_remove(index);
            self.handle(vec![event]);
        }
    }

    /// Replaces policy and placement.
    fn change_brain(&mut self) {
        let policy = [Rule::Fifo, Rule::Fair, Rule::Random][self.rng.random_range(0..3)];
        let (seed, deals) = (self.rng.random(), self.chance(500));
        let (policy, placement) = RandomHistory::brain(seed, Kind { policy, pools: self.pools, deals });
        self.core.decide_by(policy, placement);
        assert_eq!(self.core.audit(), Ok(()), "after others were to decide");
    }

    /// Delivers messages from some workers to the core.
    fn deliver(&mut self) {
        let mut events = Vec::new();
        for worker in self.sim_workers.keys().copied().collect::<Vec<_>>() {
            let count = self.rng.random_range(0..4);
            for _ in 0..count {
                events.extend(
                    self.sim_workers.get_mut(&worker).and_then(|sim_worker| sim_worker.outbox.pop_front()),
                );
            }
        }
        for event in &events {
            let about_attempt = !matches!(
                event,
                Event::Fetched { .. }
                    | Event::FetchFailed { .. }
                    // The same attempt may be suspended again, so a duplicate would be accepted as new.
                    | Event::AttemptSuspended { .. }
            );
            if self.faults && about_attempt && self.chance(50) {
                self.stale.push(event.clone());
            }
        }
        self.handle(events);
    }

    /// Lets some worker process a command.
    fn obey(&mut self) {
        let Some(worker) = self.some_worker() else { return };
        let cannot_move = self.chance(300);
        let housed = &mut self.housed;
        let mut granted = None;
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        match sim_worker.inbox.pop_front() {
            Some(Command::Launch { attempt, .. }) => {
                let (job, partition) = (attempt.task.job, attempt.task.index);
                let maps = self.specs[&job].maps.len();
                let empty = sim_worker.empty.remove(&attempt).unwrap_or_default();
                if let Some(has) = sim_worker.homes.get_mut(&(job, partition)) {
                    has.extend(empty);
                }
                let has = sim_worker.homes.get(&(job, partition)).map(BTreeSet::len);
                if attempt.task.kind == TaskKind::Reduce && has != Some(maps) {
                    // Only a partition that returned to a former home can be mistaken for complete.
                    assert!(
                        1 < housed[&(job, partition, worker)],
                        "{attempt} has {has:?} of {maps} segments"
                    );
                    sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class: Failure::Fetch });
                } else {
                    sim_worker.queue.push_back(attempt);
                }
            }
            Some(Command::Kill { attempt, .. }) => {
                let place = sim_worker.queue.iter().position(|&other| other == attempt);
                if sim_worker.running.remove(&attempt).is_some()
                    || place.is_some()
                    || sim_worker.parked.remove(&attempt)
                {
                    place.map(|place| sim_worker.queue.remove(place));
                    sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class: Failure::Cancelled });
                }
                sim_worker.outputs.remove(&attempt);
            }
            Some(Command::Recall { attempt, .. }) => {
                if let Some(place) = sim_worker.queue.iter().position(|&other| other == attempt) {
                    sim_worker.queue.remove(place);
                    sim_worker.outbox.push_back(Event::AttemptReturned { attempt });
                }
            }
            Some(Command::Home { job, partition, .. }) => {
                sim_worker.homes.insert((job, partition), BTreeSet::new());
                *housed.entry((job, partition, worker)).or_default() += 1;
            }
            Some(Command::Unhome { job, partition, .. }) => {
                sim_worker.homes.remove(&(job, partition)).expect("unhomed where it was at home");
            }
            Some(Command::Announce { job, map, from, .. }) => {
                sim_worker.wanted.insert((job, map.task.index), (map, from));
            }
            Some(Command::Retract { job, map, .. }) => {
                sim_worker.wanted.retain(|&key, &mut (of, _)| key != (job, map.task.index) || of != map);
            }
            Some(Command::GrantCommit { attempt, .. }) => {
                if sim_worker.running.get(&attempt) == Some(&Phase::Asked) {
                    sim_worker.running.insert(attempt, Phase::Granted);
                    self.published.insert((attempt.task.job, attempt.task.index));
                    granted = Some(attempt.task);
                }
            }
            Some(Command::RefuseCommit { attempt, .. }) => {
                if sim_worker.running.remove(&attempt).is_some() {
                    sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class: Failure::Cancelled });
                }
            }
            Some(Command::Forget { job, .. }) => {
                sim_worker.homes.retain(|key, _| key.0 != job);
                sim_worker.wanted.retain(|key, _| key.0 != job);
                sim_worker.outputs.retain(|output| output.task.job != job);
                sim_worker.handed_over.retain(|attempt| attempt.task.job != job);
            }
            Some(Command::Suspend { attempt, .. }) => {
                let waits = sim_worker.queue.contains(&attempt);
                if waits || sim_worker.running.get(&attempt) == Some(&Phase::Working) {
                    sim_worker.asked.insert(attempt);
                }
            }
            Some(Command::Resume { attempt, .. }) => {
                // It may have failed in the meantime.
                if sim_worker.parked.remove(&attempt) {
                    self.moves[1] += 1;
                    sim_worker.queue.push_back(attempt);
                }
            }
            Some(Command::HandOver { attempt, .. }) if sim_worker.parked.contains(&attempt) => {
                if cannot_move {
                    sim_worker.outbox.push_back(Event::AttemptSuspended { attempt });
                } else {
                    self.moves[2] += 1;
                    sim_worker.parked.remove(&attempt);
                    sim_worker.handed_over.insert(attempt);
                    sim_worker.outbox.push_back(Event::AttemptHandedOver { attempt });
                }
            }
            Some(Command::HandOver { .. }) => {}
            Some(Command::JobEnded { .. } | Command::WakeAt { .. }) | None => {}
        }
        sim_worker.start_queued();
        self.one_publishes(granted);
    }

    /// Checks that at most one attempt of a task publishes.
    fn one_publishes(&self, task: Option<TaskId>) {
        let publishing = |sim_worker: &SimWorker| {
            let of_task = sim_worker.running.iter().filter(|(attempt, _)| Some(attempt.task) == task);
            of_task.filter(|(_, phase)| **phase == Phase::Granted).count()
        };
        let count: usize = self.sim_workers.values().map(publishing).sum();
        assert!(count <= 1, "{count} attempts of {task:?} publish at once");
    }

    /// Advances some attempt by a step.
    fn work(&mut self) {
        let Some(worker) = self.some_worker() else { return };
        if self.faults && self.chance(self.wild.failure / 4) {
            self.fail_parked(worker);
        }
        let running: Vec<AttemptId> = self.sim_workers[&worker].running.keys().copied().collect();
        let Some(attempt) = self.pick(&running) else { return };
        if self.cannot_go_on(worker, attempt) || self.suspend(worker, attempt) {
            return;
        }
        if attempt.task.kind == TaskKind::Map && self.chance(100) {
            let read = Bytes(self.rng.random_range(0..100));
            let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
            return sim_worker.outbox.push_back(Event::AttemptProgressed { attempt, read });
        }
        // Under a preemptive policy reduces are longer, or none would be suspended.
        if self.slow && attempt.task.kind == TaskKind::Reduce && self.chance(850) {
            return;
        }
        let fails = self.faults && self.chance(self.wild.failure);
        let class = self.failure();
        let took = Span(self.rng.random_range(0..CoreConfig::default().ahead.mean_max.0 * 3 / 2));
        let publishes = attempt.task.kind == TaskKind::Reduce || self.specs[&attempt.task.job].reduces == 0;
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        let phase = sim_worker.running[&attempt];
        if fails {
            sim_worker.running.remove(&attempt);
            sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class });
        } else if publishes && phase == Phase::Working {
            sim_worker.running.insert(attempt, Phase::Asked);
            sim_worker.outbox.push_back(Event::CommitRequested { attempt });
        } else if !publishes || phase == Phase::Granted {
            sim_worker.running.remove(&attempt);
            // Some maps of a job have no output in any attempt.
            let empty = attempt.task.index % 3 == attempt.task.job.0 % 3;
            let output_bytes = if empty { Bytes::ZERO } else { Bytes(7) };
            let fingerprint = (!publishes).then(Fingerprint::default);
            sim_worker.outbox.push_back(match attempt.task.kind {
                TaskKind::Map => Event::MapFinished { attempt, output_bytes, took, fingerprint },
                TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes, took: Span::default() },
            });
            if !publishes && !empty {
                sim_worker.outputs.insert(attempt);
            }
        }
        sim_worker.start_queued();
    }

    /// Makes a suspended attempt fail.
    fn fail_parked(&mut self, worker: WorkerId) {
        let parked: Vec<AttemptId> = self.sim_workers[&worker].parked.iter().copied().collect();
        let (attempt, class) = (self.pick(&parked), self.failure());
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        if let Some(attempt) = attempt {
            sim_worker.parked.remove(&attempt);
            sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class });
        }
    }

    /// Makes an attempt fail that is to continue another one whose files are lost.
    fn cannot_go_on(&mut self, worker: WorkerId, attempt: AttemptId) -> bool {
        let Some(earlier) = self.continues.remove(&attempt) else { return false };
        let there = self.sim_workers.values().any(|sim_worker| sim_worker.handed_over.contains(&earlier));
        self.moves[3] += u32::from(there);
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        if !there {
            sim_worker.running.remove(&attempt);
            sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class: Failure::Fetch });
            sim_worker.start_queued();
        }
        !there
    }

    /// Suspends an attempt that was ordered to suspend, unless it ends first.
    fn suspend(&mut self, worker: WorkerId, attempt: AttemptId) -> bool {
        let (border, room) = (self.chance(700), !self.faults || !self.chance(100));
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        let told = sim_worker.running[&attempt] == Phase::Working && sim_worker.asked.remove(&attempt);
        if told && border && !room {
            sim_worker.outbox.push_back(Event::SuspensionRefused { attempt });
        } else if told && border {
            self.moves[0] += 1;
            sim_worker.running.remove(&attempt);
            sim_worker.parked.insert(attempt);
            sim_worker.outbox.push_back(Event::AttemptSuspended { attempt });
            assert!(sim_worker.parked.len() <= SUSPENDED_MAX, "{worker} keeps too many suspended attempts");
            sim_worker.start_queued();
        }
        told && border && room
    }

    fn failure(&mut self) -> Failure {
        match self.rng.random_range(0..100) {
            0..50 => Failure::User,
            50..80 => Failure::Worker,
            80..90 => Failure::Corrupt,
            90..98 => Failure::Fetch,
            98 => Failure::Input,
            _ => Failure::Config,
        }
    }

    /// Lets some home fetch, or fail to.
    fn fetch(&mut self) {
        let Some(worker) = self.some_worker() else { return };
        let wanted: Vec<_> = self.sim_workers[&worker].wanted.values().copied().collect();
        let Some((map, from)) = self.pick(&wanted) else { return };
        let job = map.task.job;
        let there = self.sim_workers.get(&from).is_some_and(|sim_worker| sim_worker.outputs.contains(&map));
        let class = match self.rng.random_range(0..3) {
            _ if !there => Failure::Fetch,
            0 => Failure::Worker,
            1 => Failure::Corrupt,
            _ => Failure::Fetch,
        };
        let fails = !there || self.faults && self.chance(self.wild.failure);
        let all = self.chance(700);
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        let index = map.task.index;
        let lacking = sim_worker.homes.iter_mut().filter(|(key, has)| key.0 == job && !has.contains(&index));
        let mut lacking: Vec<_> = lacking.collect();
        if lacking.is_empty() {
            sim_worker.wanted.remove(&(job, index));
        } else if fails {
            sim_worker.wanted.remove(&(job, index));
            sim_worker.outbox.push_back(Event::FetchFailed { job, home: worker, map, class });
        } else {
            lacking.truncate(if all { usize::MAX } else { 1 });
            let got = |(key, has): (&(JobId, u32), &mut BTreeSet<u32>)| {
                has.insert(index);
                key.1
            };
            let partitions = lacking.into_iter().map(got).collect();
            sim_worker.outbox.push_back(Event::Fetched { job, home: worker, map, partitions });
        }
    }

    fn quiet(&self) -> bool {
        let sim_workers = self.sim_workers.values();
        self.outcomes.len() == self.specs.len()
            && sim_workers.into_iter().all(|sim_worker| {
                sim_worker.running.is_empty()
                    && sim_worker.parked.is_empty()
                    && sim_worker.queue.is_empty()
                    && sim_worker.outbox.is_empty()
                    && sim_worker.inbox.is_empty()
            })
    }

    fn run(mut self) -> Self {
        for _ in 0..3 {
            self.join();
        }
        self.submit();
        for _ in 0..self.wild.steps {
            self.step();
        }
        self.faults = false;
        if self.sim_workers.is_empty() {
            self.join();
        }
        let mut steps = 0;
        while !self.quiet() {
            self.step();
            steps += 1;
            let open: Vec<_> = self.core.live_jobs().collect();
            assert!(steps < STEPS_MAX, "stuck with {open:#?}");
        }
        self.check_the_end();
        for job in self.core.ended_jobs() {
            let backups = job.attempts.backups;
            self.backups = [self.backups[0] + backups.launched, self.backups[1] + backups.won];
        }
        self
    }

    fn check_the_end(&self) {
        for (job, outcome) in &self.outcomes {
            let snapshot = self.core.job(*job).expect("few enough to be remembered");
            assert_eq!(snapshot.state, CoreJobState::Ended(*outcome));
            let spec = &self.specs[job];
            let parts = if spec.reduces == 0 { spec.maps.len() as u32 } else { spec.reduces };
            let published: Vec<u32> =
                (0..parts).filter(|&part| self.published.contains(&(*job, part))).collect();
            if *outcome == Outcome::Succeeded {
                assert_eq!(published.len() as u32, parts, "{job} lacks parts");
            }
        }
        assert_eq!(self.core.attempts().count(), 0, "slots leaked");
        let (slots, free) = self.core.slots();
        assert_eq!(slots, free, "slots leaked");
        for (worker, sim_worker) in &self.sim_workers {
            let kept = sim_worker.outputs.len() + sim_worker.homes.len() + sim_worker.handed_over.len();
            assert!(kept == 0, "{worker} was not told to forget");
        }
    }
}
