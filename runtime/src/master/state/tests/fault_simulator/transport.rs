//! Routes between master and workers: ordered within a connection, delayed, cut, or broken with what is in flight.

use super::process::ProcessId;
use gristmill_scheduler::units::Time;
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::mpsc::UnboundedReceiver;

/// An end of a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Node {
    Master,
    /// The process at this place.
    Place(usize),
}

/// Content of a control connection.
pub(super) enum Parcel {
    /// Whole frames, encoded.
    Frames(Vec<u8>),
    /// The other end has closed, or the connection broke.
    Closed,
}

/// One direction of a connection: parcels in flight, and their earliest arrivals.
#[derive(Default)]
pub(super) struct Lane {
    pub under_way: VecDeque<(Time, Parcel)>,
    last: Time,
    pub closed: bool,
}

impl Lane {
    /// Sends a parcel. Parcels stay in order. Returns its arrival time.
    pub fn send(&mut self, at: Time, parcel: Parcel) -> Time {
        self.last = self.last.max(at);
        if !self.closed {
            self.closed = matches!(parcel, Parcel::Closed);
            self.under_way.push_back((self.last, parcel));
        }
        self.last
    }

    /// Breaks the connection: only the first `arrives` parcels in flight arrive.
    pub fn break_after(&mut self, arrives: usize) {
        self.under_way.truncate(arrives);
        self.closed = false;
    }

    /// Next parcel whose arrival time has come.
    pub fn due(&mut self, now: Time) -> Option<Parcel> {
        let (at, _) = self.under_way.front()?;
        if now < *at {
            return None;
        }
        self.under_way.pop_front().map(|(_, parcel)| parcel)
    }
}

/// A control connection.
pub(super) struct Link {
    /// Frames queued by the master's state and not sent yet.
    pub said: UnboundedReceiver<Vec<u8>>,
    pub up: Lane,
    pub down: Lane,
}

impl Link {
    pub fn new(said: UnboundedReceiver<Vec<u8>>) -> Self {
        Self { said, up: Lane::default(), down: Lane::default() }
    }
}

/// Cut routes, each with the number of faults that cut it.
#[derive(Default)]
pub(super) struct Cuts(BTreeMap<(Node, Node), u32>);

impl Cuts {
    pub fn cut(&mut self, from: Node, to: Node) {
        *self.0.entry((from, to)).or_default() += 1;
    }

    pub fn mend(&mut self, from: Node, to: Node) {
        if let Some(count) = self.0.get_mut(&(from, to)) {
            *count = count.saturating_sub(1);
        }
    }

    pub fn mend_all(&mut self) {
        self.0.clear();
    }

    pub fn is_cut(&self, from: Node, to: Node) -> bool {
        self.0.get(&(from, to)).is_some_and(|&count| 0 < count)
    }
}

/// A scheduled event.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum SimEvent {
    Submit(usize),
    Fault(usize),
    /// A fault that lasts is over.
    Over(usize),
    /// Faults stop.
    Heal,
    /// A process takes this place, unless one has.
    Start(usize),
    /// It registers with the master.
    Join(ProcessId),
    /// A parcel arrives from the worker at the master.
    Up(ProcessId),
    /// A parcel arrives from the master at the worker.
    Down(ProcessId),
    /// The master's timeout for a report of how the process ended.
    Gone(ProcessId),
    /// An attempt's step is over.
    Step(ProcessId, gristmill_scheduler::ids::AttemptId, u32),
    /// A request arrives at its addressee.
    Asked(u64),
    /// The response to a request arrives.
    Answered(u64),
    /// A pause of the fetch plan is over.
    Wake(ProcessId),
    Heartbeat(ProcessId),
    /// A stopped process continues.
    Continue(ProcessId),
    /// The master checks for silent workers.
    Check,
}

impl SimEvent {
    /// Process that must be running for this event.
    pub fn of_process(&self) -> Option<ProcessId> {
        match self {
            SimEvent::Down(id)
            | SimEvent::Step(id, ..)
            | SimEvent::Wake(id)
            | SimEvent::Heartbeat(id)
            | SimEvent::Join(id) => Some(*id),
            _ => None,
        }
    }
}
