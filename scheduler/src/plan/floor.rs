//! Trait of systems on which the plan of a policy is executed, such as a cluster or a simulator. A plan asks the system
//! for free capacity and starts tasks, or sets rates, on it.

use super::grant::{Line, Reason, Share};
use crate::view::{Handle, Station};

/// System that executes a plan: slots of workers, machines of the slotted model, rates of the fluid one.
pub trait Floor {
    /// True if maps and reduces share the same capacity.
    fn unified(&self) -> bool;
    /// Returns the unused capacity of this station.
    fn remaining(&self, station: Station) -> f64;
    /// Returns the capacity that the job holds at this station.
    fn held(&self, job: Handle, station: Station) -> f64;
    /// Starts one task if one can start now, from `line` if given. Returns true if so.
    fn start(&mut self, job: Handle, station: Station, line: Option<Line>, reason: Reason) -> bool;
    /// Raises the capacity that the job holds at the station as far as possible, to at most `target`; from `line` if
    /// given. A fractional number of slots is rounded down.
    fn raise(&mut self, job: Handle, station: Station, target: f64, line: Option<Line>, reason: Reason) {
        while self.held(job, station) + 1.0 <= target
            && line.is_none_or(|line| self.line_open(station, line))
            && self.start(job, station, line, reason)
        {}
    }
    /// Splits a station's capacity into lines.
    fn lines(&mut self, _station: Station, _fractions: &[f64]) {}
    /// True if this line has capacity left.
    fn line_open(&self, station: Station, line: Line) -> bool;
    /// Appends to the standing order of the shuffle, where there is one. Returns true if there is room for more; `None`
    /// if the shuffle is a station like the others.
    fn lane(&mut self, job: Handle, share: Share) -> Option<bool>;
    /// As [`Plan::only`](super::Plan::only).
    fn only(&mut self, _station: Station) {}
    /// Adds a member of a tier to faster tables of the system, which then closes its tiers itself. Returns true if so.
    fn join(&mut self, _job: Handle, _station: Station, _weight: f64) -> bool {
        false
    }
    /// As [`Plan::feeds`](super::Plan::feeds).
    fn feeds(&self) -> bool {
        false
    }
    /// Panics if the job does not exist, before anything is done for it.
    fn check(&self, _job: Handle) {}
}
