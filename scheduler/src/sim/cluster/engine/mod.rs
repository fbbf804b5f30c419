//! Virtual time: timers, simulated workers that execute the core's commands, and the events they report.

mod ends;
mod execute;

use crate::command::Command;
use crate::core::Core;
use crate::event::Event;
use crate::ids::{HostId, JobId, TaskKind, WorkerId};
use crate::metrics::JobRecord;
use crate::placement::Pull;
use crate::sim::SimError;
use crate::sim::cluster::jobs::{LiveJob, prepare};
use crate::sim::cluster::network::Network;
use crate::sim::cluster::pieces::RunningAttempts;
use crate::sim::cluster::processors::Processors;
use crate::sim::cluster::timers::{SimMachine, Timers};
use crate::sim::cluster::{ClusterSummary, Config, Observer, SimWorker, Takeover};
use crate::station::PerStation;
use crate::units::{Bytes, Span, Time};
use crate::workload::Job;
use std::collections::BTreeMap;

/// Number of consecutive calls with only a tick, while nothing runs and no job is to arrive, after which the policy
/// counts as stuck.
const IDLE_TICKS_MAX: u32 = 1_000_000;

/// State of a simulation.
pub(super) struct Engine<'a> {
    config: &'a Config,
    core: Core,
    output: SimOutput<'a>,
    now: Time,
    timers: Timers,
    ticks: Ticks,
    machines: Vec<SimMachine>,
    network: Network,
    processors: Option<Processors>,
    pieces: RunningAttempts,
    jobs: BTreeMap<JobId, LiveJob>,
    arrivals: ArrivalCount,
    /// Events to be sent to the core.
    events: Vec<Event>,
    reports: Reports,
    commands: Vec<Command>,
    done: WorkDone,
    takeover: Option<Takeover>,
}

/// Receivers of the simulation's output.
struct SimOutput<'a> {
    observer: &'a mut dyn Observer,
    sink: &'a mut dyn FnMut(&JobRecord),
}

/// Time of the next wake, and number of consecutive wakes without effect.
#[derive(Default)]
struct Ticks {
    wake: Option<Time>,
    idle: u32,
    /// Time from which the progress of running maps is reported again.
    progress: Time,
}

/// Number of arrived jobs, and times of the first and last arrival, in seconds.
#[derive(Default)]
struct ArrivalCount {
    count: u64,
    first: Option<f64>,
    last: f64,
    /// True if each job arrives when the previous one has ended, regardless of its arrival time.
    one_by_one: bool,
}

/// Events on their way to the core.
#[derive(Default)]
struct Reports {
    by_arrival: BTreeMap<(Time, u64), Event>,
    /// Number of events sent. Events with equal arrival times are delivered in the order in which they were sent.
    count: u64,
}

/// Totals of the simulation.
#[derive(Default)]
struct WorkDone {
    /// Slot-seconds used, by kind.
    worked: [f64; 2],
    summary: ClusterSummary,
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
            output: SimOutput { observer, sink },
            now: Time::ZERO,
            timers: Timers::default(),
            ticks: Ticks::default(),
            machines: config.workers.iter().map(|worker| SimMachine::new(worker.slots)).collect(),
            network: Network::new(config.network, config.workers.len(), config.request_bytes),
            processors: Processors::from_config(config),
            pieces: RunningAttempts::default(),
            jobs: BTreeMap::new(),
            arrivals: ArrivalCount::default(),
            events: config.workers.iter().enumerate().map(joined).collect(),
            reports: Reports::default(),
            commands: Vec::new(),
            done: WorkDone::default(),
            takeover: None,
        }
    }

    /// Lets another policy decide from an instant on.
    pub(super) fn taken_over(self, takeover: Option<Takeover>) -> Self {
        Self { takeover, ..self }
    }

    /// Lets each job arrive when the previous one has ended. The first counts as the `seq`-th of its workload, from 0,
    /// and gets the service times of that one.
    pub(super) fn one_by_one(mut self, seq: u64) -> Self {
        self.arrivals = ArrivalCount { count: seq, one_by_one: true, ..ArrivalCount::default() };
        self
    }

    /// Returns the arrival time of the next job; `None` if it is not known yet.
    fn arrival_of(&self, next: &LiveJob) -> Option<Time> {
        match self.arrivals.one_by_one {
            true => self.jobs.is_empty().then_some(self.now),
            false => Some(next.arrival),
        }
    }

    /// Runs to the end of the last job; `after` inspects the core after each of its calls.
    pub(super) fn run(
        mut self,
        jobs: &mut dyn Iterator<Item = Job>,
        after: &mut dyn FnMut(&Core),
    ) -> Result<ClusterSummary, SimError> {
        let mut next = self.prepare(jobs.next())?;
        loop {
            if self.events.is_empty() {
                if next.is_none() && self.jobs.is_empty() {
                    return self.sum_up();
                }
                let arrival = next.as_ref().and_then(|(job, _)| self.arrival_of(job));
                let report = self.reports.by_arrival.first_key_value().map(|(&(time, _), _)| time);
                let leaves = self.pieces.leaving.first_key_value().map(|(&(time, _), _)| time);
                let times = [self.timers.next(), report, leaves, arrival, self.ticks.wake];
                let Some(time) = times.into_iter().flatten().min() else { return Err(self.stuck()) };
                self.now = self.now.max(time);
            }
            self.ring();
            while let Some(arrival) = next.as_ref().and_then(|(job, _)| self.arrival_of(job))
                && arrival <= self.now
            {
                if let Some((job, spec)) = next.take() {
                    self.arrivals.count += 1;
                    self.arrivals.first.get_or_insert(arrival.seconds());
                    let id = JobId(self.arrivals.count as u32);
                    self.jobs.insert(id, LiveJob { arrival, ..job });
                    self.events.push(Event::JobArrived { job: id, spec: spec.into() });
                }
                if self.config.jobs_max < self.jobs.len() {
                    return Err(SimError::Overflow { at: self.now.seconds(), jobs: self.config.jobs_max });
                }
                next = self.prepare(jobs.next())?;
            }
            self.tick(next.is_none())?;
            self.report_progress();
            if let Some(takeover) = self.takeover.take_if(|takeover| takeover.at <= self.now.seconds()) {
                self.core.decide_by(takeover.policy, Box::new(Pull::new()));
            }
            self.core.handle(self.now, &self.events, &mut self.commands);
            self.output.observer.instant(self.now, &self.events, &self.commands, self.core.shuffle_order());
            self.events.clear();
            after(&self.core);
            self.execute();
        }
    }

    fn prepare(&mut self, job: Option<Job>) -> Result<Option<(LiveJob, crate::job::JobSpec)>, SimError> {
        let Some(job) = job else { return Ok(None) };
        let before = self.arrivals.last;
        self.arrivals.last = job.arrival;
        prepare(self.config, self.arrivals.count, job, before).map(Some)
    }

    fn stuck(&self) -> SimError {
        SimError::Stuck { at: self.now.seconds(), jobs: self.jobs.len() }
    }

    /// Adds the tick if it is due. Fails if the policy ticks forever without effect.
    fn tick(&mut self, last: bool) -> Result<(), SimError> {
        let due = self.ticks.wake.take_if(|wake| *wake <= self.now).is_some();
        let coming = !self.reports.by_arrival.is_empty() || !self.pieces.leaving.is_empty();
        let nothing = self.events.is_empty() && !coming && self.timers.next().is_none();
        let idle = due && last && nothing;
        self.ticks.idle = if idle { self.ticks.idle + 1 } else { 0 };
        if due {
            self.events.push(Event::Tick);
        }
        if self.ticks.idle == IDLE_TICKS_MAX { Err(self.stuck()) } else { Ok(()) }
    }

    /// Handles all timers that are due.
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
        while let Some(report) =
            self.reports.by_arrival.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            self.events.push(report.remove());
        }
    }

    /// Reports how much of their input the running maps have read, as often as the core searches for slow attempts.
    fn report_progress(&mut self) {
        let Some(limits) = &self.config.core.backups else { return };
        if self.now < self.ticks.progress {
            return;
        }
        self.ticks.progress = self.now + limits.look_after;
        for (&attempt, &place) in &self.pieces.running {
            let running = self.timers.running(place);
            if attempt.task.kind == TaskKind::Map && running.works < self.now {
                let share =
                    self.now.since(running.works).seconds() / running.end.since(running.works).seconds();
                let of = self.core.input_of(attempt.task);
                let read = Bytes((of.0 as f64 * share) as u64);
                self.events.push(Event::AttemptProgressed { attempt, read, of });
            }
        }
    }

    /// Schedules this event for the core.
    fn report_at(&mut self, time: Time, event: Event) {
        if time <= self.now {
            return self.events.push(event);
        }
        self.reports.count += 1;
        self.reports.by_arrival.insert((time, self.reports.count), event);
    }

    /// Returns the delay between the end of a task of this kind there and its report to the core.
    fn delay(&self, kind: TaskKind, worker: WorkerId) -> Span {
        let waits = self.processors.as_ref().map(|one| one.report(place_of(worker), self.now));
        span_of(self.config.report[usize::from(kind == TaskKind::Reduce)]) + waits.unwrap_or(Span(0))
    }

    fn sum_up(mut self) -> Result<ClusterSummary, SimError> {
        let panics = self.core.policy_panics();
        if 0 < panics.count {
            return Err(SimError::Policy { words: panics.last.clone() });
        }
        let slots = |kind: TaskKind| {
            self.config.workers.iter().map(|worker| f64::from(worker.slots.count(kind))).sum::<f64>()
        };
        let rate = self.config.network.in_rate.min(self.config.network.out_rate);
        let used = PerStation::new(
            self.done.worked[0] / slots(TaskKind::Map),
            self.network.moved_bytes / rate / self.config.workers.len() as f64,
            self.done.worked[1] / slots(TaskKind::Reduce),
        );
        let span = self.done.summary.end - self.arrivals.first.unwrap_or(0.0);
        self.done.summary.utilisation = used.map(|used| if 0.0 < span { used / span } else { 0.0 });
        Ok(self.done.summary)
    }
}
