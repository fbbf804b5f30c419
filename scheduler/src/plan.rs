//! A policy's wish: an ordered list of grants, executed as it is written.
//!
//! This file gives the four shares their meaning. It deliberately knows no ledger: it asks a `Floor` what is free
//! and to give, so the same words stand on the slots of a cluster, on the machines of the slotted model and on the
//! rates of the fluid one.
//!
//! Invariant: after `finish` no tier is open.

use crate::units::Time;
use crate::view::{Handle, Station};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A class of jobs with a fraction of a station's capacity, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
pub struct Line(pub u32);

/// How much a grant is worth.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
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
    /// Nobody who could use it had less of this.
    Smallest {
        /// What is compared, with its unit in words.
        what: &'static str,
        /// The job's.
        value: f64,
    },
    /// Nobody who could use it had more of this.
    Largest {
        /// What is compared, with its unit in words.
        what: &'static str,
        /// The job's.
        value: f64,
    },
    /// The policy wants the job to hold this many slots.
    Target {
        /// Where the number comes from.
        what: &'static str,
        /// Slots.
        slots: f64,
    },
    /// Its place in an order of jobs, from 1.
    Place {
        /// Which order.
        order: &'static str,
        /// The place.
        place: u32,
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
            Reason::Smallest { what, value } => write!(f, "smallest {what}: {value:.3}"),
            Reason::Largest { what, value } => write!(f, "largest {what}: {value:.3}"),
            Reason::Target { what, slots } => write!(f, "{what}: {slots:.1} slots"),
            Reason::Place { order, place } => write!(f, "place {place} in {order}"),
            Reason::Own(words) => f.write_str(words),
        }
    }
}

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
    /// Where the shuffle is a standing order: appends to it and says whether there is room for more. `None` where
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
    /// Starts one task if there is one that can start now; says whether it did.
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
