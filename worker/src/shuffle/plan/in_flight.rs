//! Requests for map outputs that a worker has sent and that have not ended, and the check if one more may be sent. A
//! request counts against the limit of jobs that are at most as urgent; all requests together are limited to twice as
//! many.

use crate::shuffle::lanes::{Lanes, Tier};
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum ratio of all requests in flight, including less urgent ones, to those as urgent as the next one.
const LESS_URGENT_FACTOR: usize = 2;

#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) from: WorkerId,
    pub(super) job: JobId,
    pub(super) maps: BTreeMap<AttemptId, u32>,
    /// Maps announced again in the meantime: requested again once they have arrived.
    pub(super) again: BTreeSet<AttemptId>,
    /// Bytes charged in advance.
    pub(super) expected: f64,
    /// Bytes received.
    pub(super) bytes: u64,
    pub(super) sent: Time,
    /// True if its source could not be reached, or closed the connection.
    pub(super) broke: bool,
}

/// Source, job and current tier of each request in flight.
pub(super) struct RequestsInFlight(Vec<(WorkerId, JobId, Tier)>);

impl RequestsInFlight {
    pub(super) fn count(in_flight: &BTreeMap<u64, InFlight>, lanes: &Lanes) -> Self {
        let urgent = |flight: &InFlight| (flight.from, flight.job, lanes.tier(flight.job));
        Self(in_flight.values().map(urgent).collect())
    }

    /// Returns the tier that jobs must precede to send one more request; `None` if no job may.
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
