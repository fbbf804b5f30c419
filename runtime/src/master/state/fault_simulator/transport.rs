//! The ways between master and workers: ordered within a connection, late, cut, broken with what is under way.

use super::process::ProcessId;
use gristmill_scheduler::units::Time;
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::mpsc::UnboundedReceiver;

/// An end of a way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Node {
    Master,
    /// Whoever stands at this place.
    Place(usize),
}

/// What travels on a control connection.
pub(super) enum Parcel {
    /// Whole frames, encoded.
    Frames(Vec<u8>),
    /// The other end has closed, or the connection broke.
    Closed,
}

/// One direction of a connection: what is under way, and when it arrives at the earliest.
#[derive(Default)]
pub(super) struct Lane {
    pub under_way: VecDeque<(Time, Parcel)>,
    last: Time,
    pub closed: bool,
}

impl Lane {
    /// Sends something. Nothing overtakes what was sent before. Answers when it arrives.
    pub fn send(&mut self, at: Time, parcel: Parcel) -> Time {
        self.last = self.last.max(at);
        if !self.closed {
            self.closed = matches!(parcel, Parcel::Closed);
            self.under_way.push_back((self.last, parcel));
        }
        self.last
    }

    /// The connection breaks: of what is under way, so much arrives.
    pub fn break_after(&mut self, arrives: usize) {
        self.under_way.truncate(arrives);
        self.closed = false;
    }

    /// The next parcel that is due.
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
    /// What the master's state has said and nobody has sent yet.
    pub said: UnboundedReceiver<Vec<u8>>,
    pub up: Lane,
    pub down: Lane,
}

impl Link {
    pub fn new(said: UnboundedReceiver<Vec<u8>>) -> Self {
        Self { said, up: Lane::default(), down: Lane::default() }
    }
}

/// Which ways are cut, and by how many faults.
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

/// What is to happen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Happening {
    Submit(usize),
    Fault(usize),
    /// A fault that lasts is over.
    Over(usize),
    /// Faults stop.
    Heal,
    /// A process takes this place, unless one has.
    Start(usize),
    /// It introduces itself to the master.
    Join(ProcessId),
    /// Something arrives from the worker at the master.
    Up(ProcessId),
    /// Something arrives from the master at the worker.
    Down(ProcessId),
    /// The master has waited long enough for news of how the process ended.
    Gone(ProcessId),
    /// An attempt's step is over.
    Step(ProcessId, gristmill_scheduler::ids::AttemptId, u32),
    /// A request is at whoever is asked.
    Asked(u64),
    /// It has come back.
    Answered(u64),
    /// What an attempt takes over is there, or not.
    TakenOver(ProcessId, gristmill_scheduler::ids::AttemptId, bool),
    /// A pause of the fetch plan is over.
    Wake(ProcessId),
    Heartbeat(ProcessId),
    /// A stopped process goes on.
    Continue(ProcessId),
    /// The master looks who is silent.
    Check,
}

impl Happening {
    /// The process that has to run for it.
    pub fn of_process(&self) -> Option<ProcessId> {
        match self {
            Happening::Down(id)
            | Happening::Step(id, ..)
            | Happening::TakenOver(id, ..)
            | Happening::Wake(id)
            | Happening::Heartbeat(id)
            | Happening::Join(id) => Some(*id),
            _ => None,
        }
    }
}
