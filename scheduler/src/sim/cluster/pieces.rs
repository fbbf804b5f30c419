//! Reduces that leave their slot before they end, and go on: how much of each is left.

use crate::ids::{AttemptId, WorkerId};
use crate::units::{Span, Time};
use std::collections::BTreeMap;

/// An attempt that runs, since it began or was resumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) attempt: AttemptId,
    pub(super) worker: WorkerId,
    pub(super) slot: u32,
    pub(super) began: Time,
    pub(super) end: Time,
    /// Before this it gets no further: it was resumed and finds its place again.
    pub(super) works: Time,
    /// The rest with which it began.
    pub(super) rest: Rest,
}

/// What an attempt has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Part of the whole task.
    pub(super) part: f64,
    /// How long it had a slot so far, here and elsewhere.
    pub(super) ran: Span,
}

impl Rest {
    /// Everything.
    pub(super) const WHOLE: Rest = Rest { part: 1.0, ran: Span(0) };
}

impl Running {
    /// What is left of it if it stops now and has its slot until then.
    pub(super) fn rest(&self, now: Time, until: Time) -> Rest {
        let work = self.end.since(self.works).seconds();
        let left = self.end.since(now.max(self.works)).seconds();
        let part = if 0.0 < work { self.rest.part * left / work } else { 0.0 };
        Rest { part, ran: self.rest.ran + until.since(self.began) }
    }
}

/// Reduces that were suspended or are to go on elsewhere.
#[derive(Debug, Default)]
pub(super) struct RunningAttempts {
    /// Running reduces, by their place among the timers; kept only if the policy preempts.
    pub(super) running: BTreeMap<AttemptId, u32>,
    /// Those on their way out of their slot, by when they are out, then by order.
    pub(super) leaving: BTreeMap<(Time, u64), Running>,
    pub(super) left: u64,
    /// What is left of attempts that were suspended, handed over, or are launched to go on.
    pub(super) rests: BTreeMap<AttemptId, Rest>,
}
