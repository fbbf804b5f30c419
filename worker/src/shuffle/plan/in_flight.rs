//! Requests in flight, and whether one more may go.

use crate::shuffle::lanes::{Lanes, Tier};
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Requests in flight, those less urgent than the next one included, are so many times those as urgent as it.
const LESS_URGENT_FACTOR: usize = 2;

#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) from: WorkerId,
    pub(super) job: JobId,
    pub(super) maps: BTreeMap<AttemptId, u32>,
    /// Announced once more meanwhile: asked for again once they have arrived.
    pub(super) again: BTreeSet<AttemptId>,
    /// Bytes charged ahead.
    pub(super) expected: f64,
    /// Bytes that have come.
    pub(super) bytes: u64,
    pub(super) sent: Time,
    /// The source could not be reached with it, or broke off.
    pub(super) broke: bool,
}

/// Where requests in flight go, for which job, and how urgent they are by the order of now.
pub(super) struct RequestsInFlight(Vec<(WorkerId, JobId, Tier)>);

impl RequestsInFlight {
    pub(super) fn of(in_flight: &BTreeMap<u64, InFlight>, lanes: &Lanes) -> Self {
        let urgent = |flight: &InFlight| (flight.from, flight.job, lanes.tier(flight.job));
        Self(in_flight.values().map(urgent).collect())
    }

    /// Only jobs before this tier may send one more request; `None` if nobody may.
    pub(super) fn before(&self, most: usize) -> Option<Tier> {
        if self.0.len() < most {
            return Some(Tier::LAST);
        }
        if LESS_URGENT_FACTOR * most <= self.0.len() {
            return None;
        }
        let mut tiers: Vec<Tier> = self.0.iter().map(|&(.., tier)| tier).collect();
        tiers.sort_unstable();
        tiers.get(most.checked_sub(1)?).copied()
    }

    pub(super) fn of_job(&self, job: JobId) -> usize {
        self.0.iter().filter(|&&(_, other, _)| other == job).count()
    }

    pub(super) fn has_room_at(&self, source: WorkerId, tier: Tier, most: usize) -> bool {
        let there = || self.0.iter().filter(|&&(from, ..)| from == source);
        let as_urgent = there().filter(|&&(.., other)| other <= tier).count();
        as_urgent < most && there().count() < LESS_URGENT_FACTOR * most
    }
}
