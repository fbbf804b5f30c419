//! Random legal histories: simulated workers drive the core through failures, losses, late and duplicate messages. The
//! ledger is audited after each call, and when the faults stop every job must end.
//!
//! Messages to and from each worker keep their order, as on one connection, but have random delays.

use super::brains::{Dealer, Nervous, RandomPolicy};
use crate::command::{Command, Outcome};
use crate::core::{BackupLimits, Core, CoreConfig, CoreJobState, DivideLimits, SuspendLimits};
use crate::event::{Event, External, Failure, Fingerprint, Slots};
use crate::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::{JobSpec, MapSpec};
use crate::placement::{Placement, Pull};
use crate::policy::{Fair, Fifo, Policy};
use crate::units::{Bytes, Span, Time};
use divisions::Coverage;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sim_worker::{Phase, SimWorker};
use std::collections::{BTreeMap, BTreeSet};

mod divisions;
mod histories;
mod sim_worker;
mod work;

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
    /// Number of suspensions and resumptions.
    moves: [u32; 2],
    /// Speculative attempts launched, and those that won.
    backups: [u32; 2],
    coverage: Coverage,
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
            },
            dividing: Some(DivideLimits { part_min: Span(0), look_after: Span(0), added_max: 20 }),
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
            moves: [0; 2],
            backups: [0; 2],
            coverage: Coverage::default(),
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
                let sim_worker = self.sim_workers.get_mut(worker).expect("launched on a live worker");
                assert!(sim_worker.booked.insert(*attempt), "{attempt} launched twice");
                self.coverage.launched(*attempt, &self.specs[&attempt.task.job]);
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
            | Command::Divide { attempt, worker, .. }
            | Command::Suspend { attempt, worker }
            | Command::GrantCommit { attempt, worker, .. }
            | Command::RefuseCommit { attempt, worker } => (attempt.task.job, worker),
            Command::Home { job, worker, .. }
            | Command::Unhome { job, worker, .. }
            | Command::Forget { job, worker } => (*job, worker),
            Command::Announce { job, to, .. } | Command::Retract { job, to, .. } => (*job, to),
            Command::MapAdded { attempt, kept, rest } => return self.map_added(*attempt, *kept, *rest),
            Command::ReduceAdded { attempt, worker, key, rest } => {
                self.coverage.reduce_added(attempt.task, key, *rest);
                (attempt.task.job, worker)
            }
            Command::JobEnded { job, outcome } => {
                if *outcome == Outcome::Succeeded {
                    self.coverage.check_keys(*job);
                }
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
        self.coverage.submitted(job, &spec);
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
                    | Event::MapDivided { .. }
                    | Event::ReduceDivided { .. }
            );
            if self.faults && about_attempt && self.chance(50) {
                self.stale.push(event.clone());
            }
        }
        self.handle(events);
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
            let kept = sim_worker.outputs.len() + sim_worker.homes.len();
            assert!(kept == 0, "{worker} was not told to forget");
        }
    }
}
