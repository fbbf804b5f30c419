//! Traits of systems that execute a plan.

use super::grant::{Line, Reason, Share};
use super::{Member, held_by, order_of};
use crate::view::{Handle, Station};
use std::collections::BTreeSet;

/// System that executes a plan: slots of workers, machines of the slotted model, rates of the fluid one.
pub(crate) trait Floor {
    /// True if maps and reduces share the same capacity.
    fn unified(&self) -> bool;
    /// Returns the unused capacity of this station.
    fn left(&self, station: Station) -> f64;
    /// Returns the capacity that the job holds at this station.
    fn held(&self, job: Handle, station: Station) -> f64;
    /// Raises the capacity that the job holds at the station as far as possible, to at most `target`; from `line` if
    /// given.
    fn raise(&mut self, job: Handle, station: Station, target: f64, line: Option<Line>, reason: Reason);
    /// Fills a tier by max-min: lowest capacity per weight first.
    fn fill(&mut self, tier: &[Member]);
    /// Splits a station's capacity into lines.
    fn lines(&mut self, station: Station, fractions: &[f64]);
    /// True if this line has capacity left.
    fn line_open(&self, station: Station, line: Line) -> bool;
    /// Appends to the standing order of the shuffle, where there is one. Returns true if there is room for more; `None`
    /// if the shuffle is a station like the others.
    fn lane(&mut self, job: Handle, share: Share) -> Option<bool>;
    /// As [`Plan::only`].
    fn only(&mut self, _station: Station) {}
    /// Adds a member of a tier to faster tables of the system, which then closes its tiers itself. Returns true if so.
    fn join(&mut self, _job: Handle, _station: Station, _weight: f64) -> bool {
        false
    }
    /// As [`Plan::feeds`].
    fn feeds(&self) -> bool {
        false
    }
    /// Panics if the job does not exist, before anything is done for it.
    fn check(&self, _job: Handle) {}
}

/// System of whole slots, started one by one, from which the meaning of the shares follows.
pub trait SlotFloor {
    /// True if maps and reduces share the same slots.
    fn unified(&self) -> bool;
    /// Returns the unused slots of this station.
    fn left(&self, station: Station) -> f64;
    /// Returns the slots that the job holds at this station.
    fn held(&self, job: Handle, station: Station) -> u32;
    /// Starts one task if one can start now. Returns true if so.
    fn start(&mut self, job: Handle, station: Station, line: Option<Line>, reason: Reason) -> bool;
    /// Splits a station's capacity into lines.
    fn lines(&mut self, station: Station, fractions: &[f64]);
    /// True if this line may hold one more slot.
    fn line_open(&self, station: Station, line: Line) -> bool;
    /// Appends to the shuffle, where it is a standing order; `None` where it is a station like the others.
    fn lane(&mut self, job: Handle, share: Share) -> Option<bool>;
    /// Restricts the plan to this station, as `Plan::only` does.
    fn only(&mut self, _station: Station) {}
    /// Panics if there is no such job.
    fn check(&self, _job: Handle) {}
}

impl<F: SlotFloor> Floor for F {
    fn unified(&self) -> bool {
        SlotFloor::unified(self)
    }

    fn left(&self, station: Station) -> f64 {
        SlotFloor::left(self, station)
    }

    fn held(&self, job: Handle, station: Station) -> f64 {
        f64::from(SlotFloor::held(self, job, station))
    }

    fn raise(&mut self, job: Handle, station: Station, target: f64, line: Option<Line>, reason: Reason) {
        // A fractional target is rounded down.
        while f64::from(SlotFloor::held(self, job, station)) + 1.0 <= target
            && line.is_none_or(|line| SlotFloor::line_open(self, station, line))
            && self.start(job, station, line, reason)
        {}
    }

    /// Gives one slot at a time to the member with the fewest slots per weight, ties to the earlier grant, until no
    /// member can use more.
    fn fill(&mut self, tier: &[Member]) {
        let level = |floor: &F, member: &Member| order_of(held_by(floor, member) / member.weight);
        let mut queue: BTreeSet<(u64, usize)> = (0..tier.len()).map(|i| (level(self, &tier[i]), i)).collect();
        while let Some((_, i)) = queue.pop_first() {
            let member = &tier[i];
            let mut wishes = member.wishes.iter();
            if wishes.any(|&(station, reason)| self.start(member.job, station, None, reason)) {
                queue.insert((level(self, member), i));
            }
        }
    }

    fn lines(&mut self, station: Station, fractions: &[f64]) {
        SlotFloor::lines(self, station, fractions);
    }

    fn line_open(&self, station: Station, line: Line) -> bool {
        SlotFloor::line_open(self, station, line)
    }

    fn lane(&mut self, job: Handle, share: Share) -> Option<bool> {
        SlotFloor::lane(self, job, share)
    }

    fn only(&mut self, station: Station) {
        SlotFloor::only(self, station);
    }

    fn check(&self, job: Handle) {
        SlotFloor::check(self, job);
    }
}
