//! Slots that each line of a station holds, compared with its share, over time. A line is a class of jobs to which a
//! policy gives a fraction of the slots.
//!
//! Invariant: `held` counts exactly the running attempts that were granted in the line.

use crate::plan::Line;
use crate::units::Span;

/// Maximum credit of a line without demand, in slot-seconds. It keeps a returning line from blocking the others for
/// long.
const CREDIT_MAX: f64 = 60.0;

/// Fractions of a slot below this are rounding errors.
const ROUNDING: f64 = 1e-9;

/// Lines of one station.
#[derive(Debug, Default)]
pub(crate) struct LineCredits {
    wanted: Vec<f64>,
    pub(crate) held: Vec<u32>,
    /// Slot-seconds of the line's share that it did not hold.
    credit: Vec<f64>,
}

impl LineCredits {
    /// Sets the fractions in force; lines not named get nothing.
    pub(crate) fn split(&mut self, fractions: &[f64]) {
        let lines = self.held.len().max(fractions.len());
        self.held.resize(lines, 0);
        self.credit.resize(lines, 0.0);
        self.wanted.clear();
        self.wanted.extend_from_slice(fractions);
        self.wanted.resize(lines, 0.0);
    }

    /// Advances time with the current held slots.
    pub(crate) fn pass(&mut self, span: Span, capacity: f64) {
        for line in 0..self.wanted.len() {
            if self.wanted[line] <= 0.0 {
                self.credit[line] = 0.0;
                continue;
            }
            let due = self.wanted[line] * capacity - f64::from(self.held[line]);
            self.credit[line] = (self.credit[line] + due * span.seconds()).clamp(-CREDIT_MAX, CREDIT_MAX);
        }
    }

    /// True if the line may hold one more slot. That is a whole slot of its own, or the slot that it shares
    /// with others if none of those is further below its share.
    pub(crate) fn open(&self, line: Line, capacity: f64) -> bool {
        let room = |line: usize| self.wanted[line] * capacity - f64::from(self.held[line]);
        let broken = |line: usize| ROUNDING < room(line) && room(line) < 1.0 - ROUNDING;
        let line = line.0 as usize;
        if self.wanted.len() <= line || room(line) <= ROUNDING {
            return false;
        }
        let ahead = |other: usize| self.credit[line] < self.credit[other];
        !broken(line) || !(0..self.wanted.len()).any(|other| broken(other) && ahead(other))
    }

    pub(crate) fn use_credit(&mut self, line: Line) {
        self.held[line.0 as usize] += 1;
    }

    pub(crate) fn give_back(&mut self, line: Line) {
        self.held[line.0 as usize] -= 1;
    }
}
