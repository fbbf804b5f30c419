//! World of one run: the master's real state, simulated processes and routes, and virtual time.

use super::exchange::Request;
use super::oracle::Oracle;
use super::process::{Effect, Process, ProcessId};
use super::recovery::Recovery;
use super::scenario::{JobPlan, LiveDeciders, Mode, PlacePlan, Scenario};
use super::slots::Group;
use super::transport::{Cuts, Link, Node, Parcel, SimEvent};
use crate::api::WorkerEnded;
use crate::deciders::DeciderNames;
use crate::master::register::Register;
use crate::master::state::tests::submission;
use crate::master::state::{LiveDeciders as MasterDeciders, MasterState, StateConfig};
use crate::registry::Registry;
use gristmill_scheduler::core::{Core, CoreConfig};
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::http::Secret;
use gristmill_worker::input::{Compression, FilePath, FileStamp, Piece, Place, Split};
use gristmill_worker::protocol::Slots;
use gristmill_worker::record::RecordFormat;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use tokio::sync::mpsc::error::TryRecvError;

/// Interval at which workers send signs of life and the master checks for silent workers.
pub(super) const HEARTBEAT: Span = Span::milliseconds(500);

/// Number of instants after which the ledger is checked from scratch.
const AUDIT_EVERY: u64 = 16;

/// Statistics of a run without a violation.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Shown {
    /// Number of times that each kind of fault took effect, and counts of the consequences.
    pub fired: BTreeMap<&'static str, u32>,
    pub jobs: usize,
    pub succeeded: usize,
    pub late_events: u64,
    /// Time of the end of the last job, counted from the end of the faults.
    pub ended_after: Span,
}

/// Bytes of the input of each map, before divisions.
pub(super) const SPLIT_BYTES: u64 = 1000;

/// Returns the file that a map reads.
fn whole_file() -> Piece {
    let (path, stamp) =
        (FilePath::from(Path::new("/input")), FileStamp { size: SPLIT_BYTES, modified_ns: 1, inode: 1 });
    let (place, compression) = (Place::Submitter, Compression::None);
    Piece { name: path.clone(), path, place, offset: 0, length: SPLIT_BYTES, stamp, compression, table: None }
}

/// Creates an empty state of a master.
pub(super) fn master(names: &DeciderNames, limits: CoreConfig, places: &[PlacePlan]) -> MasterState {
    let registry = Registry::standard();
    let made = names.clone().make(&registry).expect("it was drawn among those that can be made");
    let core = Core::new(limits, made.policy, made.placement).with_estimator(made.estimator);
    let config = StateConfig {
        list_secret: Secret::from_bytes([7; 32]),
        build: "build".to_owned(),
        heartbeat_ms: 500,
        deciders: MasterDeciders::new(registry, names.clone()),
        pools: BTreeMap::new(),
        divided_slots: matches!(places[0].slots, Slots::Pools { .. }),
        journal: None,
        register: Register::in_memory(),
    };
    MasterState::new(core, config)
}

pub(super) struct World {
    pub scenario: Scenario,
    pub live: LiveDeciders,
    pub now: Time,
    pub rng: ChaCha8Rng,
    queue: BTreeMap<(Time, u64), SimEvent>,
    count: u64,
    instants: u64,
    pub state: MasterState,
    pub processes: BTreeMap<ProcessId, Process>,
    /// Place of each process, running or dead.
    pub seats: BTreeMap<ProcessId, usize>,
    /// Process at each place.
    pub places: Vec<Option<ProcessId>>,
    pub links: BTreeMap<ProcessId, Link>,
    pub workers: BTreeMap<ProcessId, WorkerId>,
    pub ends: BTreeMap<ProcessId, WorkerEnded>,
    pub cuts: Cuts,
    /// Routes cut by each fault.
    pub ways_cut: BTreeMap<usize, Vec<(Node, Node)>>,
    pub requests: BTreeMap<u64, Request>,
    wakes: BTreeMap<ProcessId, Time>,
    /// Times at which cut routes are checked again, by the waiting event.
    pub looks: BTreeMap<SimEvent, Time>,
    pub transfers_to_damage: u32,
    pub transfers_to_break: u32,
    pub repeats: BTreeMap<ProcessId, u32>,
    /// Parts built at the output, by the attempt that built each.
    pub files: BTreeMap<AttemptId, Vec<Group>>,
    pub submitted: BTreeMap<JobId, JobPlan>,
    pub over: BTreeSet<JobId>,
    pub oracle: Oracle,
    /// Attempts of maps of which another attempt has succeeded, and when they must have been stopped.
    pub losers: Vec<(Time, ProcessId, AttemptId)>,
    pub shown: Shown,
    pub calm_at: Time,
    /// True to check the master's internal state too, not only its behavior.
    pub looks_inside: bool,
    pub wrong: Option<String>,
    /// True to fingerprint each arrival on stderr.
    pub says: bool,
    /// Processes whose connection the master has seen to end, and that are not lost yet.
    pub going: BTreeSet<ProcessId>,
    pub recovery: Option<Recovery>,
}

impl World {
    pub fn new(scenario: Scenario, looks_inside: bool) -> Self {
        let live = LiveDeciders::new(&Registry::standard());
        let mut state = master(&scenario.deciders, scenario.limits.clone(), &scenario.places);
        let recovery = scenario.recovery.map(|bytes| Recovery::start(&scenario, bytes, &mut state));
        let calm_at = scenario.healed();
        Self {
            live,
            now: Time(1),
            rng: ChaCha8Rng::seed_from_u64(!scenario.seed),
            queue: BTreeMap::new(),
            count: 0,
            instants: 0,
            state,
            processes: BTreeMap::new(),
            seats: BTreeMap::new(),
            places: vec![None; scenario.places.len()],
            links: BTreeMap::new(),
            workers: BTreeMap::new(),
            ends: BTreeMap::new(),
            cuts: Cuts::default(),
            ways_cut: BTreeMap::new(),
            requests: BTreeMap::new(),
            wakes: BTreeMap::new(),
            looks: BTreeMap::new(),
            transfers_to_damage: 0,
            transfers_to_break: 0,
            repeats: BTreeMap::new(),
            files: BTreeMap::new(),
            submitted: BTreeMap::new(),
            over: BTreeSet::new(),
            oracle: Oracle::default(),
            losers: Vec::new(),
            shown: Shown::default(),
            calm_at,
            looks_inside,
            wrong: None,
            says: std::env::var_os("FAULT_TRACE").is_some(),
            going: BTreeSet::new(),
            recovery,
            scenario,
        }
    }

    /// Runs the scenario from the first worker to the end.
    ///
    /// # Errors
    /// The invariant that was violated.
    pub fn run(mut self) -> Result<Shown, String> {
        self.plan_ahead();
        loop {
            let Some((&(time, _), _)) = self.queue.first_key_value() else {
                return Err("nothing happens any more".to_owned());
            };
            let wake = self.state.wake.into_iter().chain(self.state.due()).min();
            self.now = self.now.max(wake.map_or(time, |wake| wake.min(time)));
            if let Some(recovery) = &mut self.recovery {
                recovery.begin_instant();
            }
            while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = entry.remove();
                self.handle(event);
            }
            if self.state.wake.is_some_and(|wake| wake <= self.now) {
                self.state.tick();
            }
            self.settle();
            if let Some(wrong) = self.wrong.take() {
                return Err(format!("at {:.3} s: {wrong}", self.now.seconds()));
            }
            if let ControlFlow::Break(end) = self.is_over() {
                return end.map(|()| self.shown);
            }
        }
    }

    fn plan_ahead(&mut self) {
        for place in 0..self.scenario.places.len() {
            let at = Time(self.rng.random_range(1..2_000_000_000));
            self.schedule(at, SimEvent::Start(place));
        }
        for (number, job) in self.scenario.jobs.clone().iter().enumerate() {
            self.schedule(Time(job.at_ns), SimEvent::Submit(number));
        }
        for (number, fault) in self.scenario.faults.clone().iter().enumerate() {
            self.schedule(fault.at, SimEvent::Fault(number));
        }
        if self.scenario.mode == Mode::Liveness {
            self.schedule(self.scenario.healed(), SimEvent::Heal);
        }
        self.schedule(Time::ZERO + HEARTBEAT, SimEvent::Check);
    }

    pub fn schedule(&mut self, at: Time, event: SimEvent) {
        self.count += 1;
        self.queue.insert((at, self.count), event);
    }

    /// Prints an event, if tracing is enabled.
    pub fn trace(&self, what: impl FnOnce() -> String) {
        if self.says {
            eprintln!("{:10.4} {}", self.now.seconds(), what());
        }
    }

    pub fn fires(&mut self, what: &'static str) {
        *self.shown.fired.entry(what).or_default() += 1;
    }

    /// Notes the first violation.
    pub fn must(&mut self, held: Result<(), String>) {
        if let Err(wrong) = held {
            self.wrong.get_or_insert(wrong);
        }
    }

    /// Latency of a frame to or from a process.
    pub fn latency(&mut self, id: ProcessId) -> Span {
        let slowness = self.processes.get(&id).map_or(1, |process| process.slowness);
        Span(self.rng.random_range(50_000..5_000_000) * slowness)
    }

    /// Enters the facts, sends the resulting frames and checks the invariants.
    pub fn settle(&mut self) {
        self.instants += 1;
        self.state.settle(self.now);
        self.state.catch_up(self.now);
        if self.recovery.as_ref().is_some_and(Recovery::is_due) {
            self.replace_master();
        } else if !self.recovery.as_ref().is_some_and(Recovery::is_doomed) {
            self.state.compact_if_grown(self.now);
        }
        self.send_what_was_said();
        self.watch();
        self.oracle.workers(self.now, self.state.fleet.workers.len());
        #[cfg(debug_assertions)]
        self.audit();
        if 0 < self.state.policy_panics().count {
            let panic = self.state.policy_panics().last.clone();
            self.must(Err(format!("the policy panicked: {panic}")));
        }
    }

    #[cfg(debug_assertions)]
    fn audit(&mut self) {
        if self.looks_inside
            && self.instants.is_multiple_of(AUDIT_EVERY)
            && let Err(violations) = self.state.core.audit()
        {
            self.must(Err(violations.join("\n")));
        }
    }

    pub fn send_what_was_said(&mut self) {
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            while let Some(link) = self.links.get_mut(&id).filter(|link| !link.down.closed) {
                let parcel = match link.said.try_recv() {
                    Ok(bytes) => Parcel::Frames(bytes),
                    Err(TryRecvError::Disconnected) => Parcel::Closed,
                    Err(TryRecvError::Empty) => break,
                };
                self.send_down(id, parcel);
            }
        }
    }

    pub fn send_down(&mut self, id: ProcessId, parcel: Parcel) {
        let at = self.now + self.latency(id);
        if let Some(link) = self.links.get_mut(&id) {
            let at = link.down.send(at, parcel);
            self.schedule(at, SimEvent::Down(id));
        }
    }

    pub fn send_up(&mut self, id: ProcessId, parcel: Parcel, later: Span) {
        let at = self.now + self.latency(id) + later;
        if let Some(link) = self.links.get_mut(&id) {
            let at = link.up.send(at, parcel);
            self.schedule(at, SimEvent::Up(id));
        }
    }

    fn handle(&mut self, event: SimEvent) {
        if let Some(id) = event.of_process() {
            let Some(process) = self.processes.get(&id) else { return };
            if let Some(until) = process.stopped_until {
                return self.schedule(until, event);
            }
        }
        let now = self.now;
        match event {
            SimEvent::Submit(number) => self.submit(number),
            SimEvent::Fault(number) => self.inject(number),
            SimEvent::Over(number) => self.relent(number),
            SimEvent::Heal => self.heal(),
            SimEvent::Start(place) => self.start(place),
            SimEvent::Join(id) => self.join(id),
            SimEvent::Up(id) => self.arrive_up(id),
            SimEvent::Down(id) => self.arrive_down(id),
            SimEvent::Gone(id) => self.gone(id),
            SimEvent::Step(id, attempt, turn) => self.turn(id, |process| process.step(attempt, turn)),
            SimEvent::Asked(number) => self.asked(number),
            SimEvent::Answered(number) => self.answered(number),
            SimEvent::Wake(id) => self.turn(id, |_| {}),
            SimEvent::Heartbeat(id) => {
                self.turn(id, Process::heartbeat);
                self.schedule(now + HEARTBEAT, SimEvent::Heartbeat(id));
            }
            SimEvent::Continue(id) => self.go_on(id),
            SimEvent::Check => {
                for worker in self.state.fleet.silent_since(now - Span::whole_seconds(5)) {
                    self.fires("silent worker");
                    self.oracle.losses += 1;
                    self.state.fell_silent(now, worker);
                }
                self.losers_are_stopped();
                self.schedule(now + HEARTBEAT, SimEvent::Check);
            }
        }
    }

    fn submit(&mut self, number: usize) {
        let plan = self.scenario.jobs[number].clone();
        let split = Split { input: 0, format: RecordFormat::Lines, pieces: vec![whole_file()] };
        let mut submission = submission();
        submission.splits = vec![split; plan.maps as usize];
        submission.reduces = plan.reduces;
        submission.parameters = serde_json::to_string(&plan).expect("a plan is plain data");
        (submission.priority, submission.weight) = (plan.priority, plan.weight);
        let (job, _) = self.state.submit(self.now, submission).expect("it is a job like others");
        self.submitted.insert(job, plan);
    }

    /// Runs one iteration of a process's loop.
    pub fn turn(&mut self, id: ProcessId, work: impl FnOnce(&mut Process)) {
        let now = self.now;
        let Some(process) = self.processes.get_mut(&id) else { return };
        work(process);
        process.end_turn(now);
        let wake = process.plan.wake_at(now);
        let (effects, outbox) = (std::mem::take(&mut process.effects), std::mem::take(&mut process.outbox));
        if let Some(attempt) = process.incomplete.pop() {
            self.must(Err(format!("{attempt} was launched on {id}, where its input is not complete")));
        }
        if let Some(at) = wake.filter(|at| self.wakes.get(&id) != Some(at)) {
            self.wakes.insert(id, at);
            self.schedule(at, SimEvent::Wake(id));
        }
        self.send_frames(id, &outbox);
        for effect in effects {
            self.take_effect(id, effect);
        }
    }

    fn take_effect(&mut self, id: ProcessId, effect: Effect) {
        match effect {
            Effect::Step { attempt, turn, after } => {
                self.schedule(self.now + after, SimEvent::Step(id, attempt, turn));
            }
            Effect::Ask { fetch, wanted } => {
                self.count += 1;
                let (number, after) = (self.count, self.latency(id));
                let request = Request { home: id, fetch, wanted, sent: self.now, answers: None };
                self.requests.insert(number, request);
                self.schedule(self.now + after, SimEvent::Asked(number));
            }
            Effect::Write { attempt, groups } => drop(self.files.insert(attempt, groups)),
            Effect::Remove { attempt } => drop(self.files.remove(&attempt)),
            Effect::Crash { attempt } => self.crash(id, attempt),
            Effect::Stuck => {
                self.fires("hang");
                self.die(id, None, Span::milliseconds(500));
            }
            Effect::StopsInCommit => self.stop_in_commit(id),
            Effect::Forgotten => {
                self.must(Err(format!("the next master has forgotten what {id} was confirmed")));
            }
            Effect::Fires(what) => self.fires(what),
        }
    }

    pub fn place_of(&self, id: ProcessId) -> Option<Node> {
        self.processes.get(&id).map(|process| Node::Place(process.place))
    }
}
