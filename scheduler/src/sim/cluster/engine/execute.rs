//! Executes the core's commands: launches, suspensions, homes, transfers, ends of jobs.

use super::{Engine, place_of, span_of};
use crate::command::{Command, Outcome};
use crate::event::{Event, Failure};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::metrics::JobRecord;
use crate::sim::cluster::pieces::{Rest, RunningPiece};
use crate::sim::cluster::random::of_task;
use crate::sim::cluster::timers::SimMachine;
use crate::units::{Bytes, Span, Time};

impl<'a> Engine<'a> {
    /// Stops the progress of a running reduce, which leaves its slot a little later. An ended reduce is not suspended.
    fn suspend(&mut self, attempt: AttemptId) {
        let Some(place) = self.pieces.running.remove(&attempt) else { return };
        let running = self.timers.stop(place);
        let out = self.now + span_of(self.config.suspend_cost);
        self.pieces.rests.insert(attempt, running.rest(self.now, out));
        self.pieces.left += 1;
        self.pieces.leaving.insert((out, self.pieces.left), running);
    }

    /// Ends an attempt whose task has ended by another one. It leaves its slot at once. An attempt that has ended is
    /// not stopped: its report is on its way.
    fn kill(&mut self, attempt: AttemptId, worker: WorkerId) {
        let queue = &mut self.machines[place_of(worker)].queue;
        if let Some(place) = queue.iter().position(|&other| other == attempt) {
            queue.remove(place);
        } else if let Some(place) = self.pieces.running.remove(&attempt) {
            let running = self.timers.stop(place);
            let run = self.give_back(&running);
            self.output.observer.suspended(&run);
            let held = self.jobs[&attempt.task.job].held;
            self.output.observer.held(run.end, run.seq, held);
        } else {
            return;
        }
        self.events.push(Event::AttemptFailed { attempt, class: Failure::Cancelled });
        self.start_queued(worker);
    }

    /// Lets a running task give up half of the work that it has left; all that it can if it makes way. A task that has
    /// ended is not divided.
    fn divide(&mut self, attempt: AttemptId, at_once: bool) {
        let Some(place) = self.pieces.running.remove(&attempt) else { return };
        let running = self.timers.stop(place);
        let from = running.works.max(self.now);
        let soonest = from + span_of(self.config.suspend_cost);
        let half = from + Span(running.end.since(from).0 / 2);
        let given_up = running.end.since(if at_once { soonest } else { half });
        let took = running.end.since(running.works);
        let part = running.rest.part;
        let given = part * given_up.seconds() / took.seconds().max(f64::MIN_POSITIVE);
        let share = 1.0 - given;
        let rest = Rest { part: (part - given) / share.max(f64::MIN_POSITIVE), ..running.rest };
        let shorter = RunningPiece { end: Time(running.end.0 - given_up.0), rest, ..running };
        self.pieces.running.insert(attempt, self.timers.run(shorter));
        let (job, index) = (&self.jobs[&attempt.task.job], attempt.task.index);
        let event = match attempt.task.kind {
            TaskKind::Map => {
                let work = Some(job.maps[index as usize] * share);
                let kept = Bytes((self.core.input_of(attempt.task).0 as f64 * share) as u64);
                Event::MapDivided { attempt, kept, work }
            }
            TaskKind::Reduce => {
                let work = Some(job.reduces[index as usize] * share);
                let left = [Bytes((job.input_of_reduce(index).max(1.0) * given) as u64); 2];
                Event::ReduceDivided { attempt, key: Vec::new(), left, work }
            }
        };
        self.events.push(event);
    }

    /// Executes the core's commands and starts transfers.
    pub(super) fn execute(&mut self) {
        let mut commands = std::mem::take(&mut self.commands);
        for command in commands.drain(..) {
            match command {
                Command::Launch { attempt, worker, .. } => {
                    self.machines[place_of(worker)].queue.push_back(attempt);
                    self.start_queued(worker);
                }
                Command::Suspend { attempt, .. } => self.suspend(attempt),
                Command::Resume { attempt, worker, .. } => {
                    self.machines[place_of(worker)].queue.push_back(attempt);
                    self.start_queued(worker);
                }
                Command::Recall { attempt, worker } => {
                    let queue = &mut self.machines[place_of(worker)].queue;
                    if let Some(place) = queue.iter().position(|&other| other == attempt) {
                        queue.remove(place);
                        self.events.push(Event::AttemptReturned { attempt });
                    }
                }
                Command::Divide { attempt, at_once, .. } => self.divide(attempt, at_once),
                Command::MapAdded { attempt, rest, .. } => {
                    let exact = self.core.spec(attempt.task.job).and_then(|spec| spec.exact.as_ref());
                    if let Some((job, exact)) = self.jobs.get_mut(&attempt.task.job).zip(exact) {
                        job.divide(attempt.task.index, rest, &exact.maps);
                    }
                }
                Command::ReduceAdded { attempt, worker, rest, .. } => {
                    let exact = self.core.spec(attempt.task.job).and_then(|spec| spec.exact.as_ref());
                    if let Some((job, exact)) = self.jobs.get_mut(&attempt.task.job).zip(exact) {
                        job.divide_reduce(attempt.task.index, rest, &exact.reduces);
                        job.homes.entry(worker).or_default().push(rest);
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
                Command::WakeAt { time } => self.ticks.wake = Some(time),
                Command::Kill { attempt, worker } => self.kill(attempt, worker),
                // Attempts request their permit at their end. No state is kept for a job.
                Command::Retract { .. }
                | Command::GrantCommit { .. }
                | Command::RefuseCommit { .. }
                | Command::Forget { .. } => {}
            }
        }
        self.commands = commands;
        let timers = &mut self.timers;
        let foresee = |end, transfer| timers.foresee(end, transfer);
        let order = (self.core.shuffle_order(), self.core.shuffle_revision());
        self.network.settle(self.now, order, &mut self.processors, foresee);
    }

    fn offer(&mut self, map: AttemptId, from: WorkerId, to: WorkerId) {
        let id = map.task.job;
        let Some(job) = self.jobs.get(&id) else { return };
        if (from == to && !self.config.network.own)
            || (self.network.is_instant() && self.processors.is_none())
        {
            let homes = job.homes.get(&to).map_or(0, Vec::len);
            self.done.summary.shuffled[usize::from(from == to)] += job.segment(map.task.index) * homes as f64;
            return self.arrives(map, to, from != to);
        }
        // A moved partition may find some of its segments at the homes of other partitions.
        let looks = self.core.preempts() || self.core.wants_progress();
        let lacks = |partition: &&u32| !looks || self.core.awaits(to, map, **partition);
        let partitions = job.homes.get(&to).map_or(0, |homes| homes.iter().filter(lacks).count());
        self.done.summary.segments += partitions as u64;
        let bytes = job.segment(map.task.index) * partitions as f64;
        self.done.summary.shuffled[0] += bytes;
        self.network.offer(map, place_of(from) as u32, place_of(to) as u32, bytes);
    }

    /// Starts the oldest queued attempts that fit into free slots.
    pub(super) fn start_queued(&mut self, worker: WorkerId) {
        let place = place_of(worker);
        let slots = self.config.workers[place].slots;
        let machine = &mut self.machines[place];
        let fits = |machine: &SimMachine, attempt: &AttemptId| {
            !machine.free[slots.pool(attempt.task.kind)].is_empty()
        };
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
                let epoch = self.config.core.backups.as_ref().map_or(0, |_| attempt.epoch);
                service.quantile(of_task(self.config.seed, seq, attempt.task.kind, attempt.task.index, epoch))
            });
            let seconds = length * factor / worker_config.speed;
            let finds_place = rest.map_or(Span(0), |_| span_of(self.config.resume_cost));
            let rest = rest.unwrap_or(Rest::WHOLE);
            let index = attempt.task.index;
            let bytes = if kind == 0 { job.output(index).0 as f64 } else { job.input_of_reduce(index) };
            let mut works = self.now + finds_place;
            if let Some(processors) = &mut self.processors {
                works = processors.task(place, works, kind, bytes);
            }
            let end = works + span_of(seconds * rest.part);
            let began = self.now;
            let at = self.timers.run(RunningPiece { attempt, worker, slot, began, end, works, rest });
            if self.core.preempts() && kind == 1 || self.core.wants_progress() {
                self.pieces.running.insert(attempt, at);
            }
            if kind == 1 && self.core.divides() {
                // Its size is known when its input is there.
                let (read, of) = (Bytes::ZERO, Bytes(bytes.max(1.0) as u64));
                self.events.push(Event::AttemptProgressed { attempt, read, of });
            }
            self.output.observer.held(self.now.seconds(), seq, held);
        }
    }

    fn job_ends(&mut self, id: JobId, outcome: Outcome) {
        let job = self.jobs.remove(&id).expect("jobs end once");
        assert!(outcome == Outcome::Succeeded, "{id} {outcome}, although nothing fails here");
        let start = job.start.unwrap_or(self.now);
        (self.output.sink)(&JobRecord {
            seq: job.seq,
            arrival: job.arrival.seconds(),
            start: start.seconds(),
            maps_done: job.maps_done.unwrap_or(start).seconds(),
            completion: self.now.seconds(),
            work: job.work,
            deadline: job.deadline,
            weight: job.weight,
        });
        self.done.summary.jobs += 1;
        self.done.summary.end = self.now.seconds();
    }
}
