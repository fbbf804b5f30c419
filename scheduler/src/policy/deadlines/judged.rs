//! How a waiting job is judged: its state, the slots it needs, and its turn.

use crate::estimate::completion::{Remaining, RunningLeft, mean_task_length};
use crate::plan::Reason;
use crate::units::Time;
use crate::view::{Handle, Row, Station, View};

/// What is thought of a job; the order is that of priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DeadlineState {
    /// It missed its deadline.
    Undead,
    /// None of its maps has finished.
    NoData,
    /// Its need is known.
    Adjust,
}

/// A job that waits, as the policy judges it.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Standing {
    pub job: Handle,
    /// What is thought of it.
    pub state: DeadlineState,
    /// Mean length of its finished maps, in seconds.
    pub mean: Option<f64>,
    /// Slots to add (equation 3), in [`DeadlineState::Adjust`].
    pub required: Option<f64>,
}

/// What is remembered of a job that can use a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingJob {
    pub(super) job: Handle,
    pub(super) seq: u64,
    pub(super) arrival: f64,
    pub(super) deadline: Option<f64>,
    pub(super) mean: Option<f64>,
    /// Maps that hold a slot.
    pub(super) running: u32,
    pub(super) running_left: RunningLeft,
    /// In tasks of a map's cost.
    pub(super) pending: f64,
    /// Maps that could start.
    pub(super) maps: f64,
    pub(super) reduces: bool,
}

/// A job's turn at a slot; the greatest comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SlotPriority {
    /// From the highest bits on: state, urgency, age; one number, since turns are compared more than anything else.
    pub(super) rank: u128,
    pub(super) place: u32,
}

const SIGN: u64 = 1 << 63;
const AGE_BITS: u32 = 48;

impl SlotPriority {
    /// `urgency` is, UNDEAD: how far the expected end lies beyond the deadline; NODATA: how long ago it arrived, as
    /// minus the time of its arrival; ADJUST: slots to add. Equal ones in the order of `seq`.
    pub(super) fn new(state: DeadlineState, urgency: f64, waiting: &WaitingJob, place: usize) -> Self {
        let bits = urgency.to_bits();
        // Orders all numbers as they are, negative ones too.
        let urgency = if bits & SIGN == 0 { bits | SIGN } else { !bits };
        let state = 2 - state as u128;
        let age = !waiting.seq & ((1 << AGE_BITS) - 1);
        let rank = state << (64 + AGE_BITS) | u128::from(urgency) << AGE_BITS | u128::from(age);
        SlotPriority { rank, place: place as u32 }
    }

    pub(super) fn state(self) -> DeadlineState {
        match self.rank >> (64 + AGE_BITS) {
            2 => DeadlineState::Undead,
            1 => DeadlineState::NoData,
            _ => DeadlineState::Adjust,
        }
    }

    pub(super) fn urgency(self) -> f64 {
        let bits = (self.rank >> AGE_BITS) as u64;
        f64::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN })
    }

    pub(super) fn reason(self) -> Reason {
        let value = self.urgency();
        match self.state() {
            DeadlineState::Undead => {
                let unit = "times the one it aims at, which it will miss";
                Reason::Largest { what: "expected response time", value, unit }
            }
            DeadlineState::NoData => {
                Reason::Own("nothing is known of the job until its first map has finished")
            }
            DeadlineState::Adjust => {
                Reason::Largest { what: "slots lacking", value, unit: "to reach its deadline" }
            }
        }
    }
}

impl WaitingJob {
    /// What is left of it, with its running tasks as they are now.
    pub(super) fn remaining(&self, view: View<'_>, mean: f64) -> Remaining {
        let now = view.now.seconds();
        // A task may have become overdue since the job was looked at.
        let again = || count(view, self.job, mean, self.running).at(now).unwrap_or(0.0);
        let running_left = self.running_left.at(now).unwrap_or_else(again);
        Remaining { mean, running: self.running, running_left, pending: self.pending }
    }

    /// Expected response time on so many slots, relative to the one aimed at; infinite while nothing is known.
    pub(super) fn lateness(&self, view: View<'_>, slots: u32) -> f64 {
        let (Some(mean), Some(deadline)) = (self.mean, self.deadline) else { return f64::INFINITY };
        let end = view.now.seconds() + self.remaining(view, mean).seconds_on(f64::from(slots));
        // A deadline that lay before the arrival is missed by any measure.
        let aim = deadline - self.arrival;
        if 0.0 < aim { (end - self.arrival) / aim } else { f64::INFINITY }
    }
}

pub(super) fn seen(view: View<'_>, job: Handle, row: &Row, reduce_cost: f64) -> WaitingJob {
    let mean = mean_task_length(row.done, row.done_time);
    let running = row.held[Station::Map] as u32;
    WaitingJob {
        job,
        seq: row.seq,
        arrival: row.arrival.seconds(),
        deadline: row.deadline.map(Time::seconds),
        mean,
        running,
        running_left: mean.map_or(RunningLeft::NONE, |mean| count(view, job, mean, running)),
        pending: f64::from(row.pend[Station::Map]) + reduce_cost * f64::from(row.pend[Station::Reduce]),
        maps: 0.0,
        reduces: false,
    }
}

/// Tasks that hold a slot but of which nobody says when they began, begin now.
pub(super) fn count(view: View<'_>, job: Handle, mean: f64, running: u32) -> RunningLeft {
    let began = view.running_since(job);
    RunningLeft::count(mean, view.now, began, running.saturating_sub(began.len() as u32))
}
