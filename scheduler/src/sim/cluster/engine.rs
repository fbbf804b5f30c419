//! Virtual time: timers, simulated workers that carry out the core's orders, and the facts that come back.
//!
//! Not here: which bytes flow when (`network`), and any decision.

use crate::command::{Command, Outcome};
use crate::core::{Core, CoreConfig};
use crate::estimate::Estimator;
use crate::event::{Event, Slots};
use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::metrics::JobRecord;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::sim::SimError;
use crate::sim::cluster::jobs::{LiveJob, prepare};
use crate::sim::cluster::network::{Foreseen, Network};
use crate::sim::cluster::random::of_task;
use crate::sim::cluster::{Config, Observer, SimWorker, Summary, TaskRun, TransferRun};
use crate::units::{Bytes, Span, Time};
use crate::workload::Job;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Calls in a row in which nothing happens but a tick, while nothing runs and nobody is to come; then the policy is
/// taken to be stuck.
const IDLE_TICKS_MAX: u32 = 1_000_000;

/// A core for this cluster, with its workers yet to come.
pub(super) fn core_of(
    config: &Config,
    policy: Box<dyn Policy>,
    placement: Box<dyn Placement>,
    estimator: Option<Box<dyn Estimator>>,
) -> Result<Core, SimError> {
    check(config)?;
    if policy.preempts() {
        let value = policy.name().to_owned();
        return Err(SimError::Setting {
            name: "policy",
            value,
            wanted: "one that leaves running attempts alone",
        });
    }
    let rate = config.network.in_rate.min(config.network.out_rate);
    let network = rate.is_finite().then(|| Bytes((rate.round() as u64).max(1)));
    let core = Core::new(CoreConfig { network, ..config.core.clone() }, policy, placement);
    Ok(match estimator {
        Some(estimator) => core.with_estimator(estimator),
        None => core,
    })
}

fn check(config: &Config) -> Result<(), SimError> {
    let refuse = |name, value: String, wanted| Err(SimError::Setting { name, value, wanted });
    let Some(first) = config.workers.first() else {
        return refuse("workers", "0".to_owned(), "at least 1");
    };
    for worker in &config.workers {
        if [TaskKind::Map, TaskKind::Reduce].iter().any(|&kind| worker.slots.of(kind) == 0) {
            return refuse("slots", "0".to_owned(), "at least 1 on each worker, of each kind");
        }
        if worker.slots.unified() != first.slots.unified() {
            return refuse("slots", format!("{:?}", worker.slots), "of the kind of the first worker's slots");
        }
        if !(worker.speed.is_finite() && 0.0 < worker.speed) {
            return refuse("speed", worker.speed.to_string(), "a finite number above 0");
        }
        if let Some(dtd) = worker.service.filter(|dtd| dtd.offset < 0.0) {
            return refuse("service", dtd.offset.to_string(), "a distribution of numbers of at least 0");
        }
    }
    let network = &config.network;
    for (name, rate) in [("in_rate", network.in_rate), ("out_rate", network.out_rate)] {
        if rate.is_nan() || rate < 1.0 {
            return refuse(name, rate.to_string(), "at least 1 byte per second");
        }
    }
    if !(0.0..=1e9).contains(&network.latency) {
        return refuse("latency", network.latency.to_string(), "a number of seconds from 0 to 1e9");
    }
    if network.lanes == 0 {
        return refuse("lanes", "0".to_owned(), "at least 1");
    }
    if config.task_seconds.is_nan() || config.task_seconds <= 0.0 {
        return refuse("task_seconds", config.task_seconds.to_string(), "above 0");
    }
    Ok(())
}

/// A simulated worker.
struct Machine {
    /// Attempts launched here that wait for a slot.
    queue: VecDeque<AttemptId>,
    /// Slots nobody holds, by pool.
    free: [Vec<u32>; 2],
}

impl Machine {
    fn new(slots: Slots) -> Self {
        // The last one is given first.
        let numbers = |from: u32, count: u32| (from..from + count).rev().collect();
        let free = match slots {
            Slots::Unified(slots) => [numbers(0, slots), Vec::new()],
            Slots::Pools { map, reduce } => [numbers(0, map), numbers(map, reduce)],
        };
        Self { queue: VecDeque::new(), free }
    }
}

/// An attempt that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    attempt: AttemptId,
    worker: WorkerId,
    slot: u32,
    began: Time,
}

/// What happens by itself when its time comes. The heaps hold little more than times, since most of the cost is to
/// move their entries.
#[derive(Default)]
struct Timers {
    /// By time, then by order of setting, with the place in `running`.
    tasks: BinaryHeap<Reverse<(Time, u32, u32)>>,
    running: Vec<Running>,
    /// Places in `running` that are free.
    spare: Vec<u32>,
    set: u32,
    transfers: BinaryHeap<Reverse<(Time, Foreseen)>>,
}

impl Timers {
    fn run(&mut self, end: Time, running: Running) {
        let place = match self.spare.pop() {
            Some(place) => {
                self.running[place as usize] = running;
                place
            }
            None => {
                self.running.push(running);
                (self.running.len() - 1) as u32
            }
        };
        self.set = self.set.wrapping_add(1);
        self.tasks.push(Reverse((end, self.set, place)));
    }

    fn foresee(&mut self, end: Time, transfer: Foreseen) {
        self.transfers.push(Reverse((end, transfer)));
    }

    fn next(&self) -> Option<Time> {
        let task = self.tasks.peek().map(|Reverse((time, ..))| *time);
        let transfer = self.transfers.peek().map(|Reverse((time, _))| *time);
        [task, transfer].into_iter().flatten().min()
    }

    /// The first task that has ended by now.
    fn ended(&mut self, now: Time) -> Option<Running> {
        self.tasks.peek().filter(|Reverse((time, ..))| *time <= now)?;
        let Reverse((_, _, place)) = self.tasks.pop()?;
        self.spare.push(place);
        Some(self.running[place as usize])
    }

    /// The first transfer that was foreseen to end by now.
    fn transferred(&mut self, now: Time) -> Option<Foreseen> {
        self.transfers.peek().filter(|Reverse((time, _))| *time <= now)?;
        let Reverse((_, transfer)) = self.transfers.pop()?;
        Some(transfer)
    }
}

/// A simulation at its present moment.
pub(super) struct Engine<'a> {
    config: &'a Config,
    core: Core,
    observer: &'a mut dyn Observer,
    sink: &'a mut dyn FnMut(&JobRecord),
    now: Time,
    timers: Timers,
    wake: Option<Time>,
    machines: Vec<Machine>,
    network: Network,
    jobs: BTreeMap<JobId, LiveJob>,
    /// Number of jobs that arrived.
    arrived: u64,
    last_arrival: f64,
    /// Facts that the core has not been told.
    events: Vec<Event>,
    commands: Vec<Command>,
    /// Slot-seconds worked, by kind.
    worked: [f64; 2],
    summary: Summary,
    idle_ticks: u32,
}

fn place_of(worker: WorkerId) -> usize {
    worker.0 as usize - 1
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        config: &'a Config,
        core: Core,
        observer: &'a mut dyn Observer,
        sink: &'a mut dyn FnMut(&JobRecord),
    ) -> Self {
        let joined = |(place, worker): (usize, &SimWorker)| Event::WorkerJoined {
            worker: WorkerId(place as u32 + 1),
            host: HostId(worker.host),
            slots: worker.slots,
        };
        Self {
            config,
            core,
            observer,
            sink,
            now: Time::ZERO,
            timers: Timers::default(),
            wake: None,
            machines: config.workers.iter().map(|worker| Machine::new(worker.slots)).collect(),
            network: Network::new(config.network, config.workers.len()),
            jobs: BTreeMap::new(),
            arrived: 0,
            last_arrival: 0.0,
            events: config.workers.iter().enumerate().map(joined).collect(),
            commands: Vec::new(),
            worked: [0.0; 2],
            summary: Summary::default(),
            idle_ticks: 0,
        }
    }

    /// To the end of the last job; `after` looks at the core after each of its calls.
    pub(super) fn run(
        mut self,
        jobs: &mut dyn Iterator<Item = Job>,
        after: &mut dyn FnMut(&Core),
    ) -> Result<Summary, SimError> {
        let mut next = self.prepare(jobs.next())?;
        loop {
            if self.events.is_empty() {
                if next.is_none() && self.jobs.is_empty() {
                    return Ok(self.sum_up());
                }
                let arrival = next.as_ref().map(|(job, _)| job.arrival);
                let times = [self.timers.next(), arrival, self.wake];
                let Some(time) = times.into_iter().flatten().min() else { return Err(self.stuck()) };
                self.now = self.now.max(time);
            }
            self.ring();
            while next.as_ref().is_some_and(|(job, _)| job.arrival <= self.now) {
                if let Some((job, spec)) = next.take() {
                    self.arrived += 1;
                    let id = JobId(self.arrived as u32);
                    self.jobs.insert(id, job);
                    self.events.push(Event::JobArrived { job: id, spec });
                }
                if self.config.jobs_max < self.jobs.len() {
                    return Err(SimError::Overflow { at: self.now.seconds(), jobs: self.config.jobs_max });
                }
                next = self.prepare(jobs.next())?;
            }
            self.tick(next.is_none())?;
            self.core.handle(self.now, &self.events, &mut self.commands);
            self.events.clear();
            self.summary.instants += 1;
            after(&self.core);
            self.obey();
        }
    }

    fn prepare(&mut self, job: Option<Job>) -> Result<Option<(LiveJob, crate::job::JobSpec)>, SimError> {
        let Some(job) = job else { return Ok(None) };
        let before = self.last_arrival;
        self.last_arrival = job.arrival;
        prepare(self.config, self.arrived, job, before).map(Some)
    }

    fn stuck(&self) -> SimError {
        SimError::Stuck { at: self.now.seconds(), jobs: self.jobs.len() }
    }

    /// Adds the tick if it is due; gives up on a policy that ticks for ever and does nothing.
    fn tick(&mut self, last: bool) -> Result<(), SimError> {
        let due = self.wake.take_if(|wake| *wake <= self.now).is_some();
        let idle = due && last && self.events.is_empty() && self.timers.next().is_none();
        self.idle_ticks = if idle { self.idle_ticks + 1 } else { 0 };
        if due {
            self.events.push(Event::Tick);
        }
        if self.idle_ticks == IDLE_TICKS_MAX { Err(self.stuck()) } else { Ok(()) }
    }

    /// All timers that are due.
    fn ring(&mut self) {
        while let Some(running) = self.timers.ended(self.now) {
            self.task_ends(&running);
        }
        while let Some(foreseen) = self.timers.transferred(self.now) {
            self.transfer_ends(foreseen);
        }
    }

    fn task_ends(&mut self, running: &Running) {
        let &Running { attempt, worker, slot, began } = running;
        let machine = &mut self.machines[place_of(worker)];
        let pool = self.config.workers[place_of(worker)].slots.pool(attempt.task.kind);
        machine.free[pool].push(slot);
        let kind = attempt.task.kind;
        let took = self.now.since(began);
        self.worked[usize::from(kind == TaskKind::Reduce)] += took.seconds();
        self.summary.tasks += 1;
        let job = self.jobs.get_mut(&attempt.task.job).expect("jobs live until their attempts end");
        job.held[usize::from(kind == TaskKind::Reduce)] -= 1;
        let (seq, held) = (job.seq, job.held);
        let publishes = kind == TaskKind::Reduce || job.reduces.is_empty();
        if publishes {
            // Publishing takes no time, so the permit is asked for in the same breath.
            self.events.push(Event::CommitRequested { attempt });
        }
        self.events.push(match kind {
            TaskKind::Map => {
                job.maps_left -= 1;
                if job.maps_left == 0 {
                    job.maps_done = Some(self.now);
                }
                Event::MapFinished { attempt, output_bytes: job.output(), took }
            }
            TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes: Bytes::ZERO, took },
        });
        let (start, end) = (began.seconds(), self.now.seconds());
        let worker_place = place_of(worker) as u32;
        self.observer.task(&TaskRun { seq, task: attempt.task, worker: worker_place, slot, start, end });
        self.observer.held(end, seq, held);
        self.begin_queued(worker);
    }

    fn transfer_ends(&mut self, foreseen: Foreseen) {
        let Some(transfer) = self.network.end(foreseen) else { return };
        let Some(job) = self.jobs.get(&transfer.job) else { return };
        self.observer.transfer(&TransferRun {
            seq: job.seq,
            from: transfer.from,
            to: transfer.to,
            maps: transfer.maps.len() as u32,
            bytes: transfer.bytes,
            start: transfer.began.seconds(),
            end: self.now.seconds(),
        });
        let home = WorkerId(transfer.to + 1);
        for map in transfer.maps {
            self.fetched(map, home);
        }
    }

    fn fetched(&mut self, map: AttemptId, home: WorkerId) {
        let id = map.task.job;
        let partitions = self.jobs.get(&id).and_then(|job| job.homes.get(&home)).cloned().unwrap_or_default();
        self.events.push(Event::Fetched { job: id, home, map, partitions });
    }

    /// Carries out what the core ordered, and lets bytes flow.
    fn obey(&mut self) {
        let mut commands = std::mem::take(&mut self.commands);
        for command in commands.drain(..) {
            match command {
                Command::Launch { attempt, worker, .. } => {
                    self.machines[place_of(worker)].queue.push_back(attempt);
                    self.begin_queued(worker);
                }
                Command::Recall { attempt, worker } => {
                    let queue = &mut self.machines[place_of(worker)].queue;
                    if let Some(place) = queue.iter().position(|&other| other == attempt) {
                        queue.remove(place);
                        self.events.push(Event::AttemptReturned { attempt });
                    }
                }
                Command::Home { job, partition, worker } => {
                    if let Some(job) = self.jobs.get_mut(&job) {
                        job.homes.entry(worker).or_default().push(partition);
                    }
                }
                Command::Unhome { job, partition, worker } => {
                    let homes = self.jobs.get_mut(&job).and_then(|job| job.homes.get_mut(&worker));
                    if let Some(partitions) = homes {
                        partitions.retain(|&other| other != partition);
                    }
                }
                Command::Announce { map, from, to, .. } => self.offer(map, from, to),
                Command::JobEnded { job, outcome } => self.job_ends(job, outcome),
                Command::WakeAt { time } => self.wake = Some(time),
                // Attempts run to their end and ask for their permit when they do; nothing is kept of a job.
                Command::Suspend { .. }
                | Command::Resume { .. }
                | Command::HandOver { .. }
                | Command::Kill { .. }
                | Command::Retract { .. }
                | Command::GrantCommit { .. }
                | Command::RefuseCommit { .. }
                | Command::Forget { .. } => {}
            }
        }
        self.commands = commands;
        let timers = &mut self.timers;
        let foresee = |end, transfer| timers.foresee(end, transfer);
        self.network.settle(self.now, self.core.shuffle_order(), foresee);
    }

    fn offer(&mut self, map: AttemptId, from: WorkerId, to: WorkerId) {
        let Some(job) = self.jobs.get(&map.task.job) else { return };
        if from == to || self.network.is_instant() {
            return self.fetched(map, to);
        }
        let partitions = job.homes.get(&to).map_or(0, Vec::len);
        self.summary.segments += partitions as u64;
        let bytes = job.segment * partitions as f64;
        self.network.offer(map, place_of(from) as u32, place_of(to) as u32, bytes);
    }

    /// Slots take the oldest of the queue that fits.
    fn begin_queued(&mut self, worker: WorkerId) {
        let place = place_of(worker);
        let slots = self.config.workers[place].slots;
        let machine = &mut self.machines[place];
        let fits =
            |machine: &Machine, attempt: &AttemptId| !machine.free[slots.pool(attempt.task.kind)].is_empty();
        while let Some(first) = machine.queue.iter().position(|attempt| fits(machine, attempt)) {
            let Some(attempt) = machine.queue.remove(first) else { return };
            let Some(slot) = machine.free[slots.pool(attempt.task.kind)].pop() else { return };
            let job = self.jobs.get_mut(&attempt.task.job).expect("attempts are launched for live jobs");
            let kind = usize::from(attempt.task.kind == TaskKind::Reduce);
            job.held[kind] += 1;
            job.start.get_or_insert(self.now);
            let (seq, held) = (job.seq, job.held);
            let lengths = if kind == 0 { &job.maps } else { &job.reduces };
            let length = lengths[attempt.task.index as usize];
            let worker_config = &self.config.workers[place];
            let factor = worker_config.service.map_or(1.0, |service| {
                service.quantile(of_task(self.config.seed, seq, attempt.task.kind, attempt.task.index))
            });
            let seconds = length * factor / worker_config.speed;
            let running = Running { attempt, worker, slot, began: self.now };
            let end = self.now + Span((seconds * 1e9).round() as u64);
            self.timers.run(end, running);
            self.observer.held(self.now.seconds(), seq, held);
        }
    }

    fn job_ends(&mut self, id: JobId, outcome: Outcome) {
        let job = self.jobs.remove(&id).expect("jobs end once");
        assert!(outcome == Outcome::Succeeded, "{id} {outcome}, although nothing fails here");
        let start = job.start.unwrap_or(self.now);
        (self.sink)(&JobRecord {
            seq: job.seq,
            arrival: job.arrival.seconds(),
            start: start.seconds(),
            maps_done: job.maps_done.unwrap_or(start).seconds(),
            completion: self.now.seconds(),
            work: job.work,
            goal: job.goal,
            weight: job.weight,
        });
        self.summary.jobs += 1;
        self.summary.end = self.now.seconds();
    }

    fn sum_up(mut self) -> Summary {
        let slots = |kind: TaskKind| {
            self.config.workers.iter().map(|worker| f64::from(worker.slots.of(kind))).sum::<f64>()
        };
        let rate = self.config.network.in_rate.min(self.config.network.out_rate);
        let used = [
            self.worked[0] / slots(TaskKind::Map),
            self.network.moved_bytes / rate / self.config.workers.len() as f64,
            self.worked[1] / slots(TaskKind::Reduce),
        ];
        let end = self.summary.end;
        self.summary.utilisation = used.map(|used| if 0.0 < end { used / end } else { 0.0 });
        self.summary
    }
}
