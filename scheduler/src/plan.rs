//! A policy's wish: an ordered list of grants, executed as it is written.
//!
//! This file gives the four shares their meaning on slots. It deliberately knows no books: it asks a `Floor`
//! what is free and to start one task, so the same words can stand on other floors (simulators).
//!
//! Invariant: after `finish` no tier is open.

use crate::units::Time;
use crate::view::{Handle, Station};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A class of jobs with a fraction of a station's capacity, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Line(pub u32);

/// How much a grant is worth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Share {
    /// As much as the job can use before the next grant gets any.
    All,
    /// Until the job holds this many slots at the station, those it held before included.
    Slots(u32),
    /// A part in a tier: consecutive grants of this kind are filled together, lowest held per weight first,
    /// until nothing is left or nobody can use more. Above 0 and finite.
    Weight(f64),
    /// As much as the job can use of a line's capacity.
    In(Line),
}

/// Why a policy granted, as data; prints as words.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// No older job could use the slot.
    Oldest,
    /// Nobody who could use the slot held less for its weight.
    LowestShare {
        /// Slots held before by the job's pool.
        held: u32,
        /// Weight of the pool.
        weight: f64,
    },
    /// Words of a policy of one's own.
    Own(&'static str),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Oldest => f.write_str("oldest job that could use the slot"),
            Reason::LowestShare { held, weight } => {
                write!(f, "lowest share: {held} slots held at weight {weight}")
            }
            Reason::Own(words) => f.write_str(words),
        }
    }
}

/// What a plan is executed on.
pub(crate) trait Floor {
    /// Whether maps and reduces draw on the same slots.
    fn unified(&self) -> bool;
    /// Capacity not used at this station.
    fn left(&self, station: Station) -> f64;
    /// Slots that the job holds at this station.
    fn held(&self, job: Handle, station: Station) -> u32;
    /// Starts one task if there is one that can start now; says whether it did.
    fn start(&mut self, job: Handle, station: Station, line: Option<Line>, reason: Reason) -> bool;
    /// Splits a station's capacity into lines.
    fn lines(&mut self, station: Station, fractions: &[f64]);
    /// Whether this line may hold one more slot.
    fn line_open(&self, station: Station, line: Line) -> bool;
    /// Appends to the standing order of the shuffle; says whether there is room for more.
    fn lane(&mut self, job: Handle, share: Share) -> bool;
}

/// A job in an open tier, with the stations it was granted at, first wish first.
struct Member {
    job: Handle,
    weight: f64,
    wishes: Vec<(Station, Reason)>,
}

/// The plan being written and executed. Grants come most urgent first.
pub struct Plan<'a> {
    floor: &'a mut dyn Floor,
    tier: Vec<Member>,
    /// Where a job stands in `tier`; by station unless slots are unified, then by job alone.
    places: BTreeMap<(Handle, usize), usize>,
    wake: Option<Time>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(floor: &'a mut dyn Floor) -> Self {
        Plan { floor, tier: Vec::new(), places: BTreeMap::new(), wake: None }
    }

    /// Grants this share of a station to a job and starts what it allows; [`Share::Weight`] starts when its
    /// tier closes, which any other grant and [`Plan::finish`] do.
    ///
    /// Answers whether the station (or the line) has capacity left: walk on, or stop at `false`.
    ///
    /// # Panics
    /// If a weight is not a finite number above 0.
    pub fn grant(&mut self, job: Handle, station: Station, share: Share, reason: Reason) -> bool {
        if station == Station::Shuffle {
            return self.floor.lane(job, share);
        }
        match share {
            Share::Weight(weight) => {
                self.join_tier(job, station, weight, reason);
                return 0.0 < self.left(station);
            }
            Share::All => {
                self.close_tier();
                while self.floor.start(job, station, None, reason) {}
            }
            Share::Slots(target) => {
                self.close_tier();
                while self.floor.held(job, station) < target && self.floor.start(job, station, None, reason) {
                }
            }
            Share::In(line) => {
                self.close_tier();
                while self.floor.line_open(station, line)
                    && self.floor.start(job, station, Some(line), reason)
                {}
                return self.floor.line_open(station, line) && 0.0 < self.left(station);
            }
        }
        0.0 < self.left(station)
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

    /// Slots that the job holds at this station now, those started by this plan included.
    #[must_use]
    pub fn got(&self, job: Handle, station: Station) -> u32 {
        self.floor.held(job, station)
    }

    /// Asks for a tick at this time; the earliest wish of a plan counts.
    pub fn wake(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |other| other.min(at)));
    }

    /// Closes an open tier. Called for the policy when its plan ends.
    pub fn finish(&mut self) {
        self.close_tier();
    }

    /// When the policy wants to be woken.
    pub(crate) fn wished_wake(&self) -> Option<Time> {
        self.wake
    }

    fn join_tier(&mut self, job: Handle, station: Station, weight: f64, reason: Reason) {
        assert!(weight.is_finite() && 0.0 < weight, "weight {weight} granted");
        let group = if self.floor.unified() { 0 } else { station.index() };
        let place = *self.places.entry((job, group)).or_insert_with(|| {
            self.tier.push(Member { job, weight, wishes: Vec::new() });
            self.tier.len() - 1
        });
        self.tier[place].wishes.push((station, reason));
    }

    /// Max-min filling: one slot at a time to the member that holds least for its weight, the earlier
    /// granted first among equals, until none can take more.
    fn close_tier(&mut self) {
        let tier = std::mem::take(&mut self.tier);
        self.places.clear();
        let mut queue: BTreeSet<(u64, usize)> = (0..tier.len()).map(|i| (self.level(&tier[i]), i)).collect();
        while let Some((_, i)) = queue.pop_first() {
            let member = &tier[i];
            let started = member
                .wishes
                .iter()
                .any(|&(station, reason)| self.floor.start(member.job, station, None, reason));
            if started {
                queue.insert((self.level(member), i));
            }
        }
    }

    fn level(&self, member: &Member) -> u64 {
        let held = if self.floor.unified() {
            self.floor.held(member.job, Station::Map) + self.floor.held(member.job, Station::Reduce)
        } else {
            member.wishes.first().map_or(0, |&(station, _)| self.floor.held(member.job, station))
        };
        order_of(f64::from(held) / member.weight)
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
