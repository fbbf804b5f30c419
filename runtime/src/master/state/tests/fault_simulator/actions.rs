//! Starts and ends of processes, and arrivals of frames.

use super::process::{Process, ProcessId, SentFrame};
use super::transport::{Link, Node, Parcel, SimEvent};
use super::world::{HEARTBEAT, World};
use crate::api::WorkerEnded;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::codec;
use gristmill_worker::http::Secret;
use gristmill_worker::protocol::{
    FRAME_BYTES_MAX, FailureClass, Hello, MasterFrame, PROTOCOL_VERSION, Rejoin, WorkerFrame, ended_proof,
};
use rand::RngExt as _;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::unbounded_channel;

/// Time for which the master waits for a report of how a process ended, and which such a report takes.
const END_TIMEOUT: Span = Span::milliseconds(300);
const END_IS_TOLD_AFTER: Span = Span::milliseconds(20);

/// A process whose master is gone ends, and its supervisor starts another after this time.
const RESTART: Span = Span::milliseconds(500);

/// Maximum time until a process has found the successor of its master. Some are lost before.
const LOOKS_FOR_MS: u64 = 6_000;

/// Pause before the next attempt of a node whose route is cut.
const AGAIN: Span = Span::milliseconds(100);

/// Attempts of a task that has ended are ordered to stop within this time, if any frame reaches them.
const LOSERS_STOP_WITHIN: Span = Span::whole_seconds(1);

const SIGSEGV: i32 = 11;

/// Decodes frames that were encoded one after another.
fn frames<T: DeserializeOwned>(mut bytes: &[u8]) -> Vec<T> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (frame, after) = rest.split_at(u32::from_le_bytes(*length) as usize);
        frames.push(codec::decode(frame, FRAME_BYTES_MAX).expect("it was encoded a moment ago"));
        bytes = after;
    }
    frames
}

impl World {
    pub fn start(&mut self, place: usize) {
        if self.places[place].is_some() {
            return;
        }
        let id = ProcessId(self.seats.len() as u32 + 1);
        self.seats.insert(id, place);
        let slots = self.scenario.places[place].slots;
        self.places[place] = Some(id);
        self.processes.insert(id, Process::new(id, (place, slots), self.scenario.seed));
        self.schedule(self.now + Span::milliseconds(5), SimEvent::Join(id));
    }

    pub fn join(&mut self, id: ProcessId) {
        let Some(place) = self.place_of(id) else { return };
        if self.cuts.is_cut(place, Node::Master) || self.cuts.is_cut(Node::Master, place) {
            return self.schedule(self.now + HEARTBEAT, SimEvent::Join(id));
        }
        let Some(process) = self.processes.get(&id) else { return };
        let generation = process.session.generation;
        let rejoin = process.worker.map(|worker| Rejoin { worker, generation });
        let hello = Hello {
            protocol: PROTOCOL_VERSION,
            build: "build".to_owned(),
            slots: process.slots,
            speed: 1.0,
            nic_bytes_per_second: None,
            shuffle: Process::endpoint(id),
            host: format!("host-{}", self.scenario.places[process.place].host),
            pid: id.0,
            ended_proof: ended_proof(&Secret::from_bytes([9; 32])),
            memory_bytes: 1 << 20,
            worker_ns: self.now.0,
            rejoin,
        };
        // As the master's loop does.
        if let Some(before) = rejoin.filter(|before| self.state.is_known(&hello, *before)) {
            self.state.expect_back(before.worker);
        }
        let (said, inbox) = unbounded_channel();
        match self.state.join(self.now, hello, said) {
            Ok(worker) => {
                self.going.remove(&id);
                self.workers.insert(id, worker);
                self.links.insert(id, Link::new(inbox));
                match rejoin {
                    Some(_) => self.fires("came back"),
                    None => self.schedule(self.now + HEARTBEAT, SimEvent::Heartbeat(id)),
                }
            }
            Err(_) => {
                assert!(rejoin.is_some(), "all workers of a scenario go together");
                self.fires("refused");
                self.die(id, None, RESTART);
            }
        }
    }

    pub fn send_frames(&mut self, id: ProcessId, outbox: &[SentFrame]) {
        if outbox.is_empty() {
            return;
        }
        let all = outbox.iter().flat_map(|frame| frame.bytes.iter().copied()).collect();
        self.send_up(id, Parcel::Frames(all), Span::default());
        let twice: Vec<&SentFrame> = outbox.iter().filter(|frame| frame.repeatable).collect();
        if let Some(left) = self.repeats.get_mut(&id).filter(|left| 0 < **left && !twice.is_empty()) {
            *left -= 1;
            let bytes = twice.iter().flat_map(|frame| frame.bytes.iter().copied()).collect();
            let later = Span::milliseconds(self.rng.random_range(1..2_000));
            self.fires("repeat");
            self.send_up(id, Parcel::Frames(bytes), later);
        }
    }

    pub fn arrive_up(&mut self, id: ProcessId) {
        if self.cuts.is_cut(Node::Place(self.seats[&id]), Node::Master) {
            self.fires("held back before the master");
            return self.look_again(SimEvent::Up(id));
        }
        while let Some(parcel) = self.links.get_mut(&id).and_then(|link| link.up.due(self.now)) {
            match parcel {
                Parcel::Frames(bytes) => {
                    frames(&bytes).into_iter().for_each(|frame| self.hear(id, frame));
                }
                Parcel::Closed => {
                    let told = self.ends.contains_key(&id);
                    let patience = if told { END_IS_TOLD_AFTER } else { END_TIMEOUT };
                    self.going.insert(id);
                    self.schedule(self.now + patience, SimEvent::Gone(id));
                }
            }
        }
    }

    /// Schedules another check of a cut route, once for all that waits there.
    fn look_again(&mut self, arrival: SimEvent) {
        let again = self.now + AGAIN;
        let planned = self.looks.entry(arrival.clone()).or_insert(Time::ZERO);
        if *planned <= self.now {
            *planned = again;
            self.schedule(again, arrival);
        }
    }

    fn hear(&mut self, id: ProcessId, frame: WorkerFrame) {
        let Some(&worker) = self.workers.get(&id) else { return };
        let in_service = self.state.fleet.workers.contains_key(&worker);
        match &frame {
            WorkerFrame::PartFinished { attempt, .. } if in_service => {
                self.oracle.reported.insert(*attempt);
            }
            WorkerFrame::PartFinished { .. } => self.fires("zombie's part"),
            WorkerFrame::MapFinished { attempt, report, .. } if in_service => {
                self.oracle.read.insert(*attempt, report.bytes_in);
                // One that has given up a part that no other map reads was ordered to stop.
                if self.state.fleet.workers[&worker].running.contains_key(attempt) {
                    self.note_losers(*attempt);
                }
            }
            WorkerFrame::AttemptFailed {
                attempt, class: FailureClass::User | FailureClass::Hang, ..
            } => {
                *self.oracle.user_failures.entry(attempt.task).or_default() += 1;
            }
            WorkerFrame::AttemptFailed { attempt, .. } => self.oracle.failed(attempt.task, worker),
            WorkerFrame::FetchFailed { map, .. } => {
                self.fires("failed fetch");
                self.oracle.failed(map.task, worker);
            }
            WorkerFrame::Suspended { .. } => self.fires("suspension"),
            _ => {}
        }
        self.trace(|| format!("{worker} says {frame:?}"));
        let before = self.state.events.len();
        let words = (!in_service).then(|| format!("{frame:?}"));
        self.state.frame(self.now, worker, frame);
        if !in_service {
            self.fires("zombie's word");
            let heeded = self.looks_inside && before != self.state.events.len();
            self.must(if heeded {
                Err(format!("{worker} was given up, and heeded: {}", words.unwrap_or_default()))
            } else {
                Ok(())
            });
        }
    }

    pub fn arrive_down(&mut self, id: ProcessId) {
        let Some(place) = self.place_of(id) else { return };
        if self.cuts.is_cut(Node::Master, place) {
            self.fires("held back before a worker");
            return self.look_again(SimEvent::Down(id));
        }
        let now = self.now;
        while let Some(parcel) = self.links.get_mut(&id).and_then(|link| link.down.due(now)) {
            let Parcel::Frames(bytes) = parcel else {
                // The master is gone, as far as this process can see.
                return self.lose_master(id);
            };
            for frame in frames::<MasterFrame>(&bytes) {
                if let MasterFrame::CommitGranted { attempt, .. } = &frame {
                    self.oracle.granted.insert(*attempt);
                    let held = self.publishes_alone(id, *attempt);
                    self.must(held);
                }
                if let MasterFrame::LaunchReduce { attempt, .. } = &frame
                    && self.runs_elsewhere(id, *attempt)
                {
                    self.fires("backup of a reduce");
                }
                self.trace(|| format!("{id} hears {frame:?}"));
                self.turn(id, |process| process.execute(now, frame));
            }
        }
    }

    /// True if an earlier attempt of the same task runs on a worker in service.
    fn runs_elsewhere(&self, here: ProcessId, attempt: AttemptId) -> bool {
        let earlier = |other: &AttemptId| other.task == attempt.task && other.epoch < attempt.epoch;
        let runs = |process: &Process| process.tries.iter().any(|(other, one)| earlier(other) && !one.killed);
        let in_service = |id: &ProcessId| {
            self.workers.get(id).is_some_and(|worker| self.state.fleet.workers.contains_key(worker))
        };
        self.processes.iter().any(|(id, process)| *id != here && in_service(id) && runs(process))
    }

    /// Notes that a map has succeeded. Other attempts of it may still run on workers in service.
    fn note_losers(&mut self, winner: AttemptId) {
        // The report of an attempt that had lost may arrive long after, when its map runs again.
        if !self.oracle.ended.insert(winner) || self.state.core.is_dying(winner) {
            return;
        }
        let by = self.now + LOSERS_STOP_WITHIN;
        let rivals = |process: &Process| {
            let of_task = process.tries.keys().filter(|other| other.task == winner.task).copied();
            of_task.collect::<Vec<_>>()
        };
        let found = self
            .processes
            .iter()
            .flat_map(|(id, process)| rivals(process).into_iter().map(|loser| (by, *id, loser)));
        self.losers.extend(found.collect::<Vec<_>>());
    }

    /// Checks that workers with a connection to the master have been ordered to stop their losing attempts.
    pub fn losers_are_stopped(&mut self) {
        let due = self.losers.extract_if(.., |(by, ..)| *by <= self.now).collect::<Vec<_>>();
        for (_, id, loser) in due {
            let worker = self.workers.get(&id).filter(|worker| self.state.fleet.workers.contains_key(worker));
            let (Some(_), Some(process)) = (worker, self.processes.get(&id)) else { continue };
            let all_heard = process.stopped_until.is_none()
                && self.links.get(&id).is_some_and(|link| link.down.under_way.is_empty());
            let goes_on = process.tries.get(&loser).is_some_and(|one| !one.killed);
            if all_heard && goes_on {
                self.must(Err(format!("{loser} goes on at {id}, though another attempt has ended long ago")));
            }
        }
    }

    /// Handles a process's loss of its master. The process looks for it, or for its successor, if one comes.
    fn lose_master(&mut self, id: ProcessId) {
        let pause = Span::milliseconds(self.rng.random_range(10..LOOKS_FOR_MS));
        match self.processes.get_mut(&id).filter(|process| process.session.returns) {
            None => self.die(id, None, RESTART),
            Some(process) => {
                process.away = true;
                self.links.remove(&id);
                // It receives the orders to stop later.
                self.losers.retain(|(_, other, _)| *other != id);
                self.schedule(self.now + pause, SimEvent::Join(id));
            }
        }
    }

    /// Checks that no other worker in service publishes the part of this task.
    fn publishes_alone(&self, told: ProcessId, attempt: AttemptId) -> Result<(), String> {
        let in_service = |id: &ProcessId| {
            self.workers.get(id).is_some_and(|worker| self.state.fleet.workers.contains_key(worker))
        };
        let runs = |process: &Process| process.tries.contains_key(&attempt);
        // A worker that is lost by now received its permit before.
        if !in_service(&told) || !self.processes.get(&told).is_some_and(runs) {
            return Ok(());
        }
        let processes = self.processes.iter().filter(|(id, _)| in_service(id));
        let mut publishing = processes.flat_map(|(_, process)| process.publishing());
        match publishing.find(|other| other.task == attempt.task && *other != attempt) {
            Some(other) => Err(format!("{attempt} is told to publish while {other} does")),
            None => Ok(()),
        }
    }

    /// Handles the master's loss of the connection to a process. It knows how the process ended only if that was
    /// reported.
    pub fn gone(&mut self, id: ProcessId) {
        if !self.going.remove(&id) {
            return;
        }
        let Some(&worker) = self.workers.get(&id) else { return };
        if self.state.fleet.workers.contains_key(&worker) {
            self.oracle.losses += 1;
            self.fires("lost connection");
        }
        let end = self.ends.remove(&id);
        self.state.lost(self.now, worker, end.as_ref());
    }

    /// Ends a process.
    pub fn die(&mut self, id: ProcessId, end: Option<WorkerEnded>, back: Span) {
        let Some(process) = self.processes.remove(&id) else { return };
        self.places[process.place] = None;
        if let Some(end) = end {
            self.ends.insert(id, end);
        }
        self.send_up(id, Parcel::Closed, Span::default());
        self.schedule(self.now + back, SimEvent::Start(process.place));
    }

    pub fn ended_by(&self, id: ProcessId, signal: i32, culprit: Option<AttemptId>) -> WorkerEnded {
        WorkerEnded {
            pid: id.0,
            host: String::new(),
            key: String::new(),
            signal: Some(signal),
            out_of_memory: false,
            code: None,
            last_words: String::new(),
            begun: self.processes.get(&id).map(Process::begun).unwrap_or_default(),
            culprit,
        }
    }

    pub fn crash(&mut self, id: ProcessId, attempt: AttemptId) {
        self.fires("crash");
        *self.oracle.user_failures.entry(attempt.task).or_default() += 1;
        let end = self.ended_by(id, SIGSEGV, Some(attempt));
        self.die(id, Some(end), RESTART);
    }
}
