//! Evaluation of a waiting job: its state, the slots it needs, and its priority.

use crate::estimate::completion::{Remaining, RunningLeft, mean_task_length};
use crate::plan::Reason;
use crate::units::Time;
use crate::view::{Handle, Row, Station, View};

/// State of a job, in the order of priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DeadlineState {
    /// It missed its deadline.
    Undead,
    /// None of its maps has finished.
    NoData,
    /// Its need is known.
    Adjust,
}

/// Waiting job as evaluated by the policy.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct JobStanding {
    pub job: Handle,
    /// State of the job.
    pub state: DeadlineState,
    /// Mean length of its finished maps, in seconds.
    pub mean: Option<f64>,
    /// Slots to add (equation 3), in [`DeadlineState::Adjust`].
    pub required: Option<f64>,
}

/// Remembered data of a job that can use a slot.
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
    /// Pending work, in tasks of a map's cost.
    pub(super) pending: f64,
    /// Maps that could start.
    pub(super) maps: f64,
    pub(super) reduces: bool,
}

/// Priority of a job for a slot; the greatest is first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SlotPriority {
    /// State, urgency and age, from the highest bits on. One number, since comparisons dominate the cost.
    pub(super) rank: u128,
    pub(super) place: u32,
}

const SIGN: u64 = 1 << 63;
const AGE_BITS: u32 = 48;

impl SlotPriority {
    /// Computes the priority. `urgency` is, for UNDEAD: how far the expected end is beyond the deadline; for NODATA:
    /// minus the time of arrival; for ADJUST: slots to add. Ties are in the order of `seq`.
    pub(super) fn new(state: DeadlineState, urgency: f64, waiting: &WaitingJob, place: usize) -> Self {
        let bits = urgency.to_bits();
        // Maps floats to integers of the same order, including negative ones.
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
    /// Returns the work left, with its running tasks as they are now.
    pub(super) fn remaining(&self, view: View<'_>, mean: f64) -> Remaining {
        let now = view.now.seconds();
        // A task may have become overdue since the job was last evaluated.
        let again = || count(view, self.job, mean, self.running).at(now).unwrap_or(0.0);
        let running_left = self.running_left.at(now).unwrap_or_else(again);
        Remaining { mean, running: self.running, running_left, pending: self.pending }
    }

    /// Returns the expected response time with this many slots, relative to the target; infinite without data.
    pub(super) fn lateness(&self, view: View<'_>, slots: u32) -> f64 {
        let (Some(mean), Some(deadline)) = (self.mean, self.deadline) else { return f64::INFINITY };
        let end = view.now.seconds() + self.remaining(view, mean).seconds_on(f64::from(slots));
        // A deadline before the arrival is always missed.
        let aim = deadline - self.arrival;
        if 0.0 < aim { (end - self.arrival) / aim } else { f64::INFINITY }
    }
}

pub(super) fn waiting_job(view: View<'_>, job: Handle, row: &Row, reduce_cost: f64) -> WaitingJob {
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

/// Counts the running work. Running tasks with unknown start times count as started now.
pub(super) fn count(view: View<'_>, job: Handle, mean: f64, running: u32) -> RunningLeft {
    let began = view.running_since(job);
    RunningLeft::count(mean, view.now, began, running.saturating_sub(began.len() as u32))
}
