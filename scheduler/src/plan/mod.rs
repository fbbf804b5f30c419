//! A policy's wish: an ordered list of grants, executed as it is written.
//!
//! This file gives the four shares their meaning. It deliberately knows no ledger: it asks a `Floor` what is free
//! and to give, so the same words stand on the slots of a cluster, on the machines of the slotted model and on the
//! rates of the fluid one.
//!
//! Invariant: after `finish` no tier is open.

mod floor;
mod grant;

use crate::units::Time;
use crate::view::{Handle, Station};
use std::collections::BTreeMap;

pub(crate) use floor::{Floor, SlotFloor};
pub use grant::{Line, Reason, Share};

/// What a member of a tier holds of the capacity that its tier shares out.
pub(crate) fn held_by(floor: &dyn Floor, member: &Member) -> f64 {
    if floor.unified() {
        floor.held(member.job, Station::Map) + floor.held(member.job, Station::Reduce)
    } else {
        member.wishes.first().map_or(0.0, |&(station, _)| floor.held(member.job, station))
    }
}

/// A job in an open tier, with the stations it was granted at, first wish first. They draw on one capacity: on
/// unified slots maps and reduces, else one station.
pub(crate) struct Member {
    pub(crate) job: Handle,
    /// Above 0 and finite.
    pub(crate) weight: f64,
    pub(crate) wishes: Vec<(Station, Reason)>,
}

/// The plan being written and executed. Grants come most urgent first.
pub struct Plan<'a> {
    floor: &'a mut dyn Floor,
    tier: Vec<Member>,
    /// Where a job stands in `tier`; by station unless slots are unified, then by job alone.
    places: BTreeMap<(Handle, Station), usize>,
    wake: Option<Time>,
    /// Grants are being carried out: whoever panics meanwhile may leave things half done.
    executing: bool,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(floor: &'a mut dyn Floor) -> Self {
        Plan { floor, tier: Vec::new(), places: BTreeMap::new(), wake: None, executing: false }
    }

    /// Grants this share of a station to a job and starts what it allows; [`Share::Weight`] starts when its
    /// tier closes, which any other grant and [`Plan::finish`] do.
    ///
    /// Answers whether the station (or the line) has capacity left: walk on, or stop at `false`.
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
                return 0.0 < self.left(station);
            }
            Share::All => self.raise(job, station, f64::INFINITY, None, reason),
            Share::Slots(target) => self.raise(job, station, f64::from(target), None, reason),
            Share::In(line) => {
                self.raise(job, station, f64::INFINITY, Some(line), reason);
                return self.floor.line_open(station, line) && 0.0 < self.left(station);
            }
        }
        0.0 < self.left(station)
    }

    fn raise(&mut self, job: Handle, station: Station, target: f64, line: Option<Line>, reason: Reason) {
        self.close_tier();
        self.executing = true;
        self.floor.raise(job, station, target, line, reason);
        self.executing = false;
    }

    /// Splits a station's capacity into lines with these fractions (each at least 0, their sum at most 1);
    /// in force for this plan. Whole slots are exact; the slot that two lines share goes to the line that had
    /// less than its due over time.
    ///
    /// # Panics
    /// If a fraction is out of range.
    pub fn lines(&mut self, station: Station, fractions: &[f64]) {
        assert!(fractions.iter().all(|f| (0.0..=1.0).contains(f)), "fractions {fractions:?} of lines");
        assert!(fractions.iter().sum::<f64>() < 1.0 + 1e-9, "fractions {fractions:?} exceed the whole");
        self.close_tier();
        self.floor.lines(station, fractions);
    }

    /// Capacity that this station has left, before an open tier takes its part.
    #[must_use]
    pub fn left(&self, station: Station) -> f64 {
        self.floor.left(station)
    }

    /// What the job holds at this station now, in slots (in the fluid model, a rate), with what this plan gave.
    #[must_use]
    pub fn got(&self, job: Handle, station: Station) -> f64 {
        self.floor.held(job, station)
    }

    /// Whether what a plan grants at the map can be shuffled at once, as in the fluid model: then a job without
    /// anything to fetch can use the shuffle as fast as this plan's maps feed it, and maps are to be granted first.
    #[must_use]
    pub fn feeds(&self) -> bool {
        self.floor.feeds()
    }

    /// Jobs without a grant get nothing of this station, even if it stands idle. That is so wherever capacity is
    /// given out grant by grant; the lanes of a live cluster would else serve jobs without a grant after those
    /// with one.
    pub fn only(&mut self, station: Station) {
        self.floor.only(station);
    }

    /// Asks for a tick at this time; the earliest wish of a plan counts.
    pub fn wake(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |other| other.min(at)));
    }

    /// Closes an open tier. Called for the policy when its plan ends.
    pub fn finish(&mut self) {
        self.close_tier();
    }

    /// Whether a grant was being carried out when somebody panicked.
    pub(crate) fn is_executing(&self) -> bool {
        self.executing
    }

    /// Forgets an open tier: whoever wrote it cannot go on.
    pub(crate) fn drop_tier(&mut self) {
        self.tier.clear();
        self.places.clear();
    }

    /// When the policy wants to be woken.
    pub(crate) fn wished_wake(&self) -> Option<Time> {
        self.wake
    }

    fn join_tier(&mut self, job: Handle, station: Station, weight: f64, reason: Reason) {
        assert!(weight.is_finite() && 0.0 < weight, "weight {weight} granted");
        // On unified slots a job is one member at both stations; the shuffle is always by itself.
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
            self.floor.fill(&tier);
            self.executing = false;
        }
    }
}

/// A number at least 0 as an integer of the same order, so that it can stand in ordered sets.
pub(crate) fn order_of(value: f64) -> u64 {
    assert!(0.0 <= value, "{value} is not at least 0");
    // Bit patterns of non-negative floats rise with the value; adding 0 turns a negative zero positive.
    (value + 0.0).to_bits()
}

#[cfg(test)]
pub(crate) mod tests;
