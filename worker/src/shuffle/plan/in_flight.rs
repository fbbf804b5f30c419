//! Requests for map outputs that a worker has sent and that have not ended, and the check if one more may be sent. A
//! request counts against the limit of jobs that are at most as urgent; all requests together are limited to twice as
//! many. A small request counts a quarter against jobs that are as urgent: a source shares its bandwidth equally among
//! requests, so a worker with requests of small outputs would receive less than others.

use crate::shuffle::lanes::{Lanes, Tier};
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum ratio of all requests in flight, including less urgent ones, to those as urgent as the next one.
const LESS_URGENT_FACTOR: usize = 2;

/// Parts of a full request in which requests are counted. A small one counts one part.
const PARTS: usize = 4;

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

impl InFlight {
    /// Returns the parts that it counts against jobs that are as urgent: one if it is expected to bring a quarter of
    /// the largest request or less, all if that is not known.
    pub(super) fn parts(&self, request_bytes_max: u64) -> usize {
        let is_small = 0.0 < self.expected && self.expected * PARTS as f64 <= request_bytes_max as f64;
        if is_small { 1 } else { PARTS }
    }
}

/// A request in flight, as it counts.
struct Counted {
    from: WorkerId,
    job: JobId,
    tier: Tier,
    parts: usize,
}

/// All requests in flight, the most urgent first.
pub(super) struct RequestsInFlight(Vec<Counted>);

impl RequestsInFlight {
    pub(super) fn count(in_flight: &BTreeMap<u64, InFlight>, lanes: &Lanes, request_bytes_max: u64) -> Self {
        let counted = |flight: &InFlight| {
            let (tier, parts) = (lanes.tier(flight.job), flight.parts(request_bytes_max));
            Counted { from: flight.from, job: flight.job, tier, parts }
        };
        let mut all: Vec<Counted> = in_flight.values().map(counted).collect();
        all.sort_by_key(|request| request.tier);
        Self(all)
    }

    /// Returns the tier that jobs must precede to send one more request; `None` if no job may.
    pub(super) fn before(&self, most: usize) -> Option<Tier> {
        if LESS_URGENT_FACTOR * most <= self.0.len() {
            return None;
        }
        let mut ahead = 0;
        for alike in self.0.chunk_by(|one, other| one.tier == other.tier) {
            if PARTS * most <= PARTS * ahead + alike.iter().map(|request| request.parts).sum::<usize>() {
                return alike.first().map(|request| request.tier);
            }
            ahead += alike.len();
            if most <= ahead {
                return alike.first().map(|request| request.tier.behind());
            }
        }
        Some(Tier::LAST)
    }

    pub(super) fn of_job(&self, job: JobId) -> usize {
        self.0.iter().filter(|request| request.job == job).count()
    }

    pub(super) fn has_room_at(&self, source: WorkerId, tier: Tier, most: usize) -> bool {
        let there = || self.0.iter().filter(|request| request.from == source);
        let parts = |request: &Counted| if request.tier < tier { PARTS } else { request.parts };
        let as_urgent: usize = there().filter(|request| request.tier <= tier).map(parts).sum();
        as_urgent < PARTS * most && there().count() < LESS_URGENT_FACTOR * most
    }
}
