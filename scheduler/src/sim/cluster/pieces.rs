//! Reduces that leave their slot before they end, with the work left of each.

use crate::ids::{AttemptId, WorkerId};
use crate::units::{Span, Time};
use std::collections::BTreeMap;

/// Attempt that runs, since its start or its last resumption.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningPiece {
    pub(super) attempt: AttemptId,
    pub(super) worker: WorkerId,
    pub(super) slot: u32,
    pub(super) began: Time,
    pub(super) end: Time,
    /// Start of its progress: a resumed attempt first restores its state.
    pub(super) works: Time,
    /// Work left at its start.
    pub(super) rest: Rest,
}

/// Work left of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Fraction of the whole task.
    pub(super) part: f64,
    /// Total time for which it has held a slot.
    pub(super) ran: Span,
}

impl Rest {
    /// The whole task.
    pub(super) const WHOLE: Rest = Rest { part: 1.0, ran: Span(0) };
}

impl RunningPiece {
    /// Returns the work left if the attempt stops now and keeps its slot until `until`.
    pub(super) fn rest(&self, now: Time, until: Time) -> Rest {
        let work = self.end.since(self.works).seconds();
        let left = self.end.since(now.max(self.works)).seconds();
        let part = if 0.0 < work { self.rest.part * left / work } else { 0.0 };
        Rest { part, ran: self.rest.ran + until.since(self.began) }
    }
}

/// Attempts that may leave their slot, and reduces that have.
#[derive(Debug, Default)]
pub(super) struct RunningAttempts {
    /// Running attempts, by their index among the timers; kept only for reduces under preemptive policies, and if tasks
    /// may be divided or have speculative attempts.
    pub(super) running: BTreeMap<AttemptId, u32>,
    /// Reduces that are leaving their slot, by the time when it is free, then by order.
    pub(super) leaving: BTreeMap<(Time, u64), RunningPiece>,
    pub(super) left: u64,
    /// Work left of suspended attempts.
    pub(super) rests: BTreeMap<AttemptId, Rest>,
}
