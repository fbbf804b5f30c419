//! Virtual time: timers, simulated workers that carry out the core's orders, and the facts that come back.

use crate::command::{Command, Outcome};
use crate::core::Core;
use crate::event::Event;
use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::metrics::JobRecord;
use crate::sim::SimError;
use crate::sim::cluster::jobs::{LiveJob, prepare};
use crate::sim::cluster::network::{Foreseen, Network};
use crate::sim::cluster::pieces::{Pieces, Rest, Running};
use crate::sim::cluster::random::of_task;
use crate::sim::cluster::timers::{Machine, Timers};
use crate::sim::cluster::{Config, Observer, SimWorker, Summary, TaskRun, TransferRun};
use crate::station::PerStation;
use crate::units::{Bytes, Span, Time};
use crate::workload::Job;
use std::collections::BTreeMap;

/// Calls in a row in which nothing happens but a tick, while nothing runs and nobody is to come; then the policy is
/// taken to be stuck.
const IDLE_TICKS_MAX: u32 = 1_000_000;

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
    pieces: Pieces,
    jobs: BTreeMap<JobId, LiveJob>,
    /// Number of jobs that arrived.
    arrived: u64,
    last_arrival: f64,
    /// Facts that the core has not been told.
    events: Vec<Event>,
    /// Facts on their way to the core, by when they arrive.
    reports: BTreeMap<(Time, u64), Event>,
    reported: u64,
    commands: Vec<Command>,
    /// Slot-seconds worked, by kind.
    worked: [f64; 2],
    summary: Summary,
    idle_ticks: u32,
}

fn span_of(seconds: f64) -> Span {
    Span((seconds * 1e9).round() as u64)
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
            network: Network::new(config.network, config.workers.len()).in_requests_of(config.request_bytes),
            pieces: Pieces::default(),
            jobs: BTreeMap::new(),
            arrived: 0,
            last_arrival: 0.0,
            events: config.workers.iter().enumerate().map(joined).collect(),
            reports: BTreeMap::new(),
            reported: 0,
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
                let report = self.reports.first_key_value().map(|(&(time, _), _)| time);
                let leaves = self.pieces.leaving.first_key_value().map(|(&(time, _), _)| time);
                let times = [self.timers.next(), report, leaves, arrival, self.wake];
                let Some(time) = times.into_iter().flatten().min() else { return Err(self.stuck()) };
                self.now = self.now.max(time);
            }
            self.ring();
            while next.as_ref().is_some_and(|(job, _)| job.arrival <= self.now) {
                if let Some((job, spec)) = next.take() {
                    self.arrived += 1;
                    let id = JobId(self.arrived as u32);
                    self.jobs.insert(id, job);
                    self.events.push(Event::JobArrived { job: id, spec: spec.into() });
                }
                if self.config.jobs_max < self.jobs.len() {
                    return Err(SimError::Overflow { at: self.now.seconds(), jobs: self.config.jobs_max });
                }
                next = self.prepare(jobs.next())?;
            }
            self.tick(next.is_none())?;
            self.core.handle(self.now, &self.events, &mut self.commands);
            self.observer.instant(self.now, &self.events, &self.commands, self.core.shuffle_order());
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
        let coming = !self.reports.is_empty() || !self.pieces.leaving.is_empty();
        let nothing = self.events.is_empty() && !coming && self.timers.next().is_none();
        let idle = due && last && nothing;
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
        while let Some(leaves) = self.pieces.leaving.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let running = leaves.remove();
            self.leaves_slot(&running);
        }
        while let Some(report) = self.reports.first_entry().filter(|entry| entry.key().0 <= self.now) {
            self.events.push(report.remove());
        }
    }

    /// Tells the core of this, as late as it hears of the end of tasks of this kind.
    fn report(&mut self, kind: TaskKind, event: Event) {
        let delay = self.delay(kind);
        if delay == Span(0) {
            return self.events.push(event);
        }
        self.reported += 1;
        self.reports.insert((self.now + delay, self.reported), event);
    }

    fn delay(&self, kind: TaskKind) -> Span {
        let seconds = self.config.report[usize::from(kind == TaskKind::Reduce)];
        Span((seconds * 1e9).round() as u64)
    }

    fn task_ends(&mut self, running: &Running) {
        let attempt = running.attempt;
        let kind = attempt.task.kind;
        self.pieces.running.remove(&attempt);
        let run = self.give_back(running);
        self.summary.tasks += 1;
        let took = running.rest(self.now, self.now).ran;
        let job = self.jobs.get_mut(&attempt.task.job).expect("jobs live until their attempts end");
        let (seq, held) = (job.seq, job.held);
        let publishes = kind == TaskKind::Reduce || job.reduces.is_empty();
        if publishes {
            // Publishing takes no time, so the permit is asked for in the same breath.
            self.report(kind, Event::CommitRequested { attempt });
        }
        let delay = self.delay(kind);
        let job = self.jobs.get_mut(&attempt.task.job).expect("jobs live until their attempts end");
        let ended = match kind {
            TaskKind::Map => {
                job.maps_left -= 1;
                if job.maps_left == 0 {
                    job.maps_done = Some(self.now + delay);
                }
                Event::MapFinished { attempt, output_bytes: job.output(), took, print: None }
            }
            TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes: Bytes::ZERO, took },
        };
        self.report(kind, ended);
        self.observer.task(&run);
        self.observer.held(run.end, seq, held);
        self.begin_queued(running.worker);
    }

    /// The slot of an attempt is free, and its time in it counted.
    fn give_back(&mut self, running: &Running) -> TaskRun {
        let &Running { attempt, worker, slot, began, .. } = running;
        let kind = attempt.task.kind;
        let place = place_of(worker);
        self.machines[place].free[self.config.workers[place].slots.pool(kind)].push(slot);
        self.worked[usize::from(kind == TaskKind::Reduce)] += self.now.since(began).seconds();
        let job = self.jobs.get_mut(&attempt.task.job).expect("jobs live until their attempts end");
        job.held[usize::from(kind == TaskKind::Reduce)] -= 1;
        let (start, end) = (began.seconds(), self.now.seconds());
        TaskRun { seq: job.seq, task: attempt.task, worker: place as u32, slot, start, end }
    }

    /// A running reduce gets no further from now on and is out of its slot a little later; one that has ended is not
    /// stopped.
    fn suspend(&mut self, attempt: AttemptId) {
        let Some(place) = self.pieces.running.remove(&attempt) else { return };
        let running = self.timers.stop(place);
        let out = self.now + span_of(self.config.suspend_cost);
        self.pieces.rests.insert(attempt, running.rest(self.now, out));
        self.pieces.left += 1;
        self.pieces.leaving.insert((out, self.pieces.left), running);
    }

    fn leaves_slot(&mut self, running: &Running) {
        let run = self.give_back(running);
        self.observer.suspended(&run);
        let held = self.jobs[&running.attempt.task.job].held;
        self.observer.held(run.end, run.seq, held);
        self.events.push(Event::AttemptSuspended { attempt: running.attempt });
        self.begin_queued(running.worker);
    }

    /// What a launched attempt goes on with, if another was handed over to it.
    fn inherit(&mut self, attempt: AttemptId) {
        if let Some(earlier) = self.core.continues(attempt)
            && let Some(rest) = self.pieces.rests.remove(&earlier)
        {
            self.pieces.rests.insert(attempt, Rest { ran: Span(0), ..rest });
        }
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
                    self.inherit(attempt);
                    self.machines[place_of(worker)].queue.push_back(attempt);
                    self.begin_queued(worker);
                }
                Command::Suspend { attempt, .. } => self.suspend(attempt),
                Command::Resume { attempt, worker, .. } => {
                    self.machines[place_of(worker)].queue.push_back(attempt);
                    self.begin_queued(worker);
                }
                Command::HandOver { attempt, .. } => self.events.push(Event::AttemptHandedOver { attempt }),
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
                Command::Kill { .. }
                | Command::Retract { .. }
                | Command::GrantCommit { .. }
                | Command::RefuseCommit { .. }
                | Command::Forget { .. } => {}
            }
        }
        self.commands = commands;
        let timers = &mut self.timers;
        let foresee = |end, transfer| timers.foresee(end, transfer);
        let order = (self.core.shuffle_order(), self.core.shuffle_revision());
        self.network.settle(self.now, order, foresee);
    }

    fn offer(&mut self, map: AttemptId, from: WorkerId, to: WorkerId) {
        let id = map.task.job;
        let Some(job) = self.jobs.get(&id) else { return };
        if from == to || self.network.is_instant() {
            return self.fetched(map, to);
        }
        // A partition that has moved finds some of its segments where others are at home.
        let lacks =
            |partition: &&u32| !self.core.preempts() || self.core.lacks(id, **partition, map.task.index);
        let partitions = job.homes.get(&to).map_or(0, |homes| homes.iter().filter(lacks).count());
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
            let rest = self.pieces.rests.remove(&attempt);
            let worker_config = &self.config.workers[place];
            let factor = worker_config.service.map_or(1.0, |service| {
                service.quantile(of_task(self.config.seed, seq, attempt.task.kind, attempt.task.index))
            });
            let seconds = length * factor / worker_config.speed;
            let finds_place = rest.map_or(Span(0), |_| span_of(self.config.resume_cost));
            let rest = rest.unwrap_or(Rest::WHOLE);
            let works = self.now + finds_place;
            let end = works + span_of(seconds * rest.part);
            let began = self.now;
            let at = self.timers.run(Running { attempt, worker, slot, began, end, works, rest });
            if kind == 1 && self.core.preempts() {
                self.pieces.running.insert(attempt, at);
            }
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
            deadline: job.deadline,
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
        let used = PerStation::new(
            self.worked[0] / slots(TaskKind::Map),
            self.network.moved_bytes / rate / self.config.workers.len() as f64,
            self.worked[1] / slots(TaskKind::Reduce),
        );
        let end = self.summary.end;
        self.summary.utilisation = used.map(|used| if 0.0 < end { used / end } else { 0.0 });
        self.summary
    }
}
