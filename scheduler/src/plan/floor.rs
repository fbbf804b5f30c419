//! What a plan is executed on: anything that has room for grants.

use super::grant::{Line, Reason, Share};
use super::{Member, held_by, order_of};
use crate::view::{Handle, Station};
use std::collections::BTreeSet;

/// What a plan is executed on: slots of workers, machines of the slotted model, rates of the fluid one.
pub(crate) trait Floor {
    /// Whether maps and reduces draw on the same capacity.
    fn unified(&self) -> bool;
    /// Capacity not used at this station.
    fn left(&self, station: Station) -> f64;
    /// What the job holds at this station.
    fn held(&self, job: Handle, station: Station) -> f64;
    /// Raises what the job holds at the station as far as it can, to `target` at most; from `line` if there is one.
    fn raise(&mut self, job: Handle, station: Station, target: f64, line: Option<Line>, reason: Reason);
    /// Fills a tier max-min: lowest held for its weight first.
    fn fill(&mut self, tier: &[Member]);
    /// Splits a station's capacity into lines.
    fn lines(&mut self, station: Station, fractions: &[f64]);
    /// Whether this line has capacity left.
    fn line_open(&self, station: Station, line: Line) -> bool;
    /// Where the shuffle is a standing order: appends to it and answers whether there is room for more. `None` where
    /// it is a station like the others.
    fn lane(&mut self, job: Handle, share: Share) -> Option<bool>;
    /// As [`Plan::only`].
    fn only(&mut self, _station: Station) {}
    /// Takes a member of a tier into its own tables, which are quicker, and says so; it then closes its tiers itself.
    fn join(&mut self, _job: Handle, _station: Station, _weight: f64) -> bool {
        false
    }
    /// As [`Plan::feeds`].
    fn feeds(&self) -> bool {
        false
    }
    /// Panics if there is no such job, before anything is done for it.
    fn check(&self, _job: Handle) {}
}

/// A floor of whole slots, which are started one by one; what the shares mean there follows from that.
pub(crate) trait SlotFloor {
    /// Whether maps and reduces draw on the same slots.
    fn unified(&self) -> bool;
    /// Slots not used at this station.
    fn left(&self, station: Station) -> f64;
    /// Slots that the job holds at this station.
    fn held(&self, job: Handle, station: Station) -> u32;
    /// Starts one task if there is one that can start now; answers whether it did.
    fn start(&mut self, job: Handle, station: Station, line: Option<Line>, reason: Reason) -> bool;
    /// Splits a station's capacity into lines.
    fn lines(&mut self, station: Station, fractions: &[f64]);
    /// Whether this line may hold one more slot.
    fn line_open(&self, station: Station, line: Line) -> bool;
    /// As [`Floor::lane`].
    fn lane(&mut self, job: Handle, share: Share) -> Option<bool>;
    /// As [`Plan::only`].
    fn only(&mut self, _station: Station) {}
    /// As [`Floor::check`].
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
        // A target between two whole numbers is met by the lower one.
        while f64::from(SlotFloor::held(self, job, station)) + 1.0 <= target
            && line.is_none_or(|line| SlotFloor::line_open(self, station, line))
            && self.start(job, station, line, reason)
        {}
    }

    /// One slot at a time to the member that holds least for its weight, the earlier granted first among equals,
    /// until none can take more.
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
