//! Plan of a policy: an ordered list of grants, executed as it is written.
//!
//! This file defines the meaning of the four shares. It deliberately does not use the ledger, but asks a
//! `Floor` for free capacity. So the same grants apply to the slots of a cluster, the machines of the slotted
//! model and the rates of the fluid one.
//!
//! Invariant: after `finish` no tier is open.

mod floor;
mod grant;

use crate::units::Time;
use crate::view::{Handle, Station};
use std::collections::{BTreeMap, BTreeSet};

pub use floor::Floor;
pub use grant::{Line, Reason, Share};

/// Returns the part of a tier's capacity that a member holds.
fn held_by(floor: &dyn Floor, member: &Member) -> f64 {
    if floor.unified() {
        floor.held(member.job, Station::Map) + floor.held(member.job, Station::Reduce)
    } else {
        member.wishes.first().map_or(0.0, |&(station, _)| floor.held(member.job, station))
    }
}

/// Fills a tier by max-min: gives one slot at a time to the member with the fewest slots per weight, ties to the earlier
/// grant, until no member can use more.
fn fill(floor: &mut dyn Floor, tier: &[Member]) {
    let level = |floor: &dyn Floor, member: &Member| order_of(held_by(floor, member) / member.weight);
    let mut queue: BTreeSet<(u64, usize)> = (0..tier.len()).map(|i| (level(floor, &tier[i]), i)).collect();
    while let Some((_, i)) = queue.pop_first() {
        let member = &tier[i];
        let mut wishes = member.wishes.iter();
        if wishes.any(|&(station, reason)| floor.start(member.job, station, None, reason)) {
            queue.insert((level(floor, member), i));
        }
    }
}

/// Job in an open tier, with its stations in the order of grants. They share one capacity: maps and reduces on unified
/// slots, else one station.
struct Member {
    job: Handle,
    /// Above 0 and finite.
    weight: f64,
    wishes: Vec<(Station, Reason)>,
}

/// Plan that is written and executed at once. Grants are in the order of urgency, most urgent first.
pub struct Plan<'a> {
    floor: &'a mut dyn Floor,
    tier: Vec<Member>,
    /// Index of each job in `tier`; by station unless slots are unified, then by job alone.
    places: BTreeMap<(Handle, Station), usize>,
    wake: Option<Time>,
    /// True while a grant is executed: a panic then may leave state half changed.
    executing: bool,
}

impl<'a> Plan<'a> {
    /// Begins a plan.
    pub fn new(floor: &'a mut dyn Floor) -> Self {
        Plan { floor, tier: Vec::new(), places: BTreeMap::new(), wake: None, executing: false }
    }

    /// Grants this share of a station to a job and starts the tasks that it allows. [`Share::Weight`] starts when its
    /// tier closes, which any other grant and [`Plan::finish`] do.
    ///
    /// Returns true if the station (or the line) has capacity left; at `false` the policy can stop.
    ///
    /// # Panics
    /// If a weight is not a finite number above 0.
    pub fn grant(&mut self, job: Handle, station: Station, share: Share, reason: Reason) -> bool {
        self.floor.check(job);
        if station == Station::Shuffle
            && let Some(open) = self.floor.lane(job, share)
        {
            return open;
        }
        match share {
            Share::Weight(weight) => {
                if !self.floor.join(job, station, weight) {
                    self.join_tier(job, station, weight, reason);
                }
                return 0.0 < self.remaining(station);
            }
            Share::All => self.raise(job, station, f64::INFINITY, None, reason),
            Share::Slots(target) => self.raise(job, station, f64::from(target), None, reason),
            Share::In(line) => {
                self.raise(job, station, f64::INFINITY, Some(line), reason);
                return self.floor.line_open(station, line) && 0.0 < self.remaining(station);
            }
        }
        0.0 < self.remaining(station)
    }

    fn raise(&mut self, job: Handle, station: Station, target: f64, line: Option<Line>, reason: Reason) {
        self.close_tier();
        self.executing = true;
        self.floor.raise(job, station, target, line, reason);
        self.executing = false;
    }

    /// Splits a station's capacity into lines with these fractions (each at least 0, their sum at most 1), for this
    /// plan. Whole slots are exact; a slot shared by two lines goes to the line that is further below its share over
    /// time.
    ///
    /// # Panics
    /// If a fraction is out of range.
    pub fn lines(&mut self, station: Station, fractions: &[f64]) {
        assert!(fractions.iter().all(|f| (0.0..=1.0).contains(f)), "fractions {fractions:?} of lines");
        assert!(fractions.iter().sum::<f64>() < 1.0 + 1e-9, "fractions {fractions:?} exceed the whole");
        self.close_tier();
        self.floor.lines(station, fractions);
    }

    /// Returns the capacity left at this station, before an open tier takes its part.
    #[must_use]
    pub fn remaining(&self, station: Station) -> f64 {
        self.floor.remaining(station)
    }

    /// Returns what the job holds at this station now, in slots (a rate in the fluid model), including grants of this
    /// plan.
    #[must_use]
    pub fn got(&self, job: Handle, station: Station) -> f64 {
        self.floor.held(job, station)
    }

    /// True if grants at the map can be shuffled at once, as in the fluid model. Then a job without segments to fetch
    /// can use the shuffle as fast as this plan's maps feed it, and maps must be granted first.
    #[must_use]
    pub fn feeds(&self) -> bool {
        self.floor.feeds()
    }

    /// Gives jobs without a grant nothing of this station, even if it is idle. Stations with individual grants always
    /// work so. The lanes of a live cluster would otherwise serve jobs without a grant after those with one.
    pub fn only(&mut self, station: Station) {
        self.floor.only(station);
    }

    /// Requests a tick at this time; the earliest request of a plan counts.
    pub fn wake(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |other| other.min(at)));
    }

    /// Closes an open tier. Called for the policy when its plan ends.
    pub fn finish(&mut self) {
        self.close_tier();
    }

    /// True if a grant was being executed when a panic occurred.
    pub(crate) fn is_executing(&self) -> bool {
        self.executing
    }

    /// Drops an open tier whose policy has panicked.
    pub(crate) fn drop_tier(&mut self) {
        self.tier.clear();
        self.places.clear();
    }

    /// Returns the requested time of the next wake.
    pub(crate) fn wished_wake(&self) -> Option<Time> {
        self.wake
    }

    fn join_tier(&mut self, job: Handle, station: Station, weight: f64, reason: Reason) {
        assert!(weight.is_finite() && 0.0 < weight, "weight {weight} granted");
        // On unified slots a job is one member at both stations; the shuffle is always separate.
        let shared = self.floor.unified() && station != Station::Shuffle;
        let group = if shared { Station::Map } else { station };
        let place = *self.places.entry((job, group)).or_insert_with(|| {
            self.tier.push(Member { job, weight, wishes: Vec::new() });
            self.tier.len() - 1
        });
        self.tier[place].wishes.push((station, reason));
    }

    fn close_tier(&mut self) {
        if !self.tier.is_empty() {
            let tier = std::mem::take(&mut self.tier);
            self.places.clear();
            self.executing = true;
            fill(self.floor, &tier);
            self.executing = false;
        }
    }
}

/// Maps a number of at least 0 to an integer of the same order, for ordered sets.
pub(crate) fn order_of(value: f64) -> u64 {
    assert!(0.0 <= value, "{value} is not at least 0");
    // Bit patterns of non-negative floats increase with the value; adding 0 makes a negative zero positive.
    (value + 0.0).to_bits()
}

#[cfg(test)]
pub(crate) mod tests;
