//! Plan of fetches: a pure plan over announced map outputs.
//!
//! It serves jobs strictly by the master's standing order (`lanes`), limits requests in flight (in total and per
//! source), and puts several maps of a job into one request. It retries with growing pauses, and gives up an output
//! after a number of tries, or the whole source when requests to it fail one after the other. Time is an argument,
//! requests are return values.
//!
//! The cost of a step does not depend on the number of waiting outputs, except for [`FetchPlan::retract`] and
//! [`FetchPlan::forget`]; it grows with the number of jobs.
//!
//! Invariants:
//! * An announced output is in exactly one place: waiting at its source, or in one request in flight.
//! * A request is sent whenever a served job has an output at a source with a free request.
//! * Requests count against a job's limits only if they are at least as urgent as it: requests of less urgent jobs
//!   cannot delay it. A small request counts a quarter against jobs that are as urgent. A stalled source holds the
//!   requests sent to it, and no others.
//! * With an order in force, or on a paced network, a request is for at most `request_bytes_max` as far as
//!   sizes can be predicted, or for one output. So requests in flight when a more urgent job comes end soon.

mod in_flight;
mod limits;
mod results;

use super::lanes::{Lanes, Tier};
use crate::http::Endpoint;
use crate::protocol::LaneOrder;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use in_flight::{InFlight, RequestsInFlight};
use std::collections::{BTreeMap, BTreeSet};

pub use limits::FetchLimits;

/// One request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Fetch {
    /// Number of the request, used when it ends.
    pub id: u64,
    /// Worker that has the outputs.
    pub from: WorkerId,
    pub endpoint: Endpoint,
    /// Job of the outputs.
    pub job: JobId,
    /// Outputs in ascending order of map.
    pub maps: Vec<AttemptId>,
}

/// Handling of one map of a failed request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// It will be tried again.
    Later,
    /// It has been tried often enough and is to be reported.
    GiveUp,
    /// It is no longer wanted.
    NotWanted,
}

/// Outputs that wait at one source.
#[derive(Debug)]
struct FetchSource {
    endpoint: Endpoint,
    /// Outputs to request, by job, with the number of tries so far.
    ready: BTreeMap<JobId, BTreeMap<AttemptId, u32>>,
    /// Pausing outputs, with the number of tries so far.
    paused: BTreeMap<AttemptId, (Time, u32)>,
    requests: usize,
    route: Route,
}

/// State of the route to a source: failures of requests since the last complete response.
#[derive(Debug, Default)]
struct Route {
    failures: u32,
    /// Time when the first failed request was sent.
    since: Time,
    /// Requests with smaller numbers were sent before the last failure was known, and give no new information.
    news_from: u64,
}

impl FetchSource {
    fn holds(&self, map: AttemptId) -> bool {
        self.paused.contains_key(&map)
            || self.ready.get(&map.task.job).is_some_and(|maps| maps.contains_key(&map))
    }
}

/// State of a job.
#[derive(Debug, Default)]
struct JobLine {
    /// Sources with ready outputs of the job.
    sources: BTreeSet<WorkerId>,
    /// Number of outputs that have arrived, and their bytes.
    outputs: u64,
    bytes: u64,
}

impl JobLine {
    /// Returns the mean bytes of an output; `None` before the first has arrived.
    fn mean_bytes(&self) -> Option<f64> {
        (0 < self.outputs).then(|| self.bytes as f64 / self.outputs as f64)
    }
}

/// Plan of one worker.
#[derive(Debug)]
pub struct FetchPlan {
    limits: FetchLimits,
    lanes: Lanes,
    sources: BTreeMap<WorkerId, FetchSource>,
    jobs: BTreeMap<JobId, JobLine>,
    in_flight: BTreeMap<u64, InFlight>,
    /// Request in flight of each map, by source.
    request_of: BTreeMap<(AttemptId, WorkerId), u64>,
    /// Ends of pauses; the entry of an output that is no longer wanted stays until its time has come.
    pauses: BTreeSet<(Time, WorkerId, AttemptId)>,
    next_id: u64,
    /// Time since which this worker lacks local resources for requests.
    short_since: Option<Time>,
    /// Next source of the round robin, so that no source waits forever.
    turn: WorkerId,
}

impl FetchPlan {
    /// Creates an empty plan.
    #[must_use]
    pub fn new(limits: FetchLimits) -> Self {
        Self {
            lanes: Lanes::new(limits.request_bytes_max),
            limits,
            sources: BTreeMap::new(),
            jobs: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            request_of: BTreeMap::new(),
            pauses: BTreeSet::new(),
            next_id: 0,
            short_since: None,
            turn: WorkerId(0),
        }
    }

    /// Sets the order of jobs. Requests in flight continue.
    pub fn order(&mut self, order: &LaneOrder) {
        self.lanes.order(order);
    }

    /// Adds an available output. Announcing it again while it waits changes nothing. While a request for it is in
    /// flight, a partition may have moved here that the request does not name: the output is requested again
    /// afterwards.
    pub fn announce(&mut self, map: AttemptId, from: WorkerId, endpoint: &Endpoint) {
        let flight = self.request_of.get(&(map, from)).and_then(|id| self.in_flight.get_mut(id));
        if let Some(flight) = flight {
            flight.again.insert(map);
            return;
        }
        let source = self.sources.entry(from).or_insert_with(|| FetchSource {
            endpoint: endpoint.clone(),
            ready: BTreeMap::new(),
            paused: BTreeMap::new(),
            requests: 0,
            route: Route::default(),
        });
        if !source.holds(map) {
            self.make_ready(from, map, 0);
        }
    }

    fn make_ready(&mut self, from: WorkerId, map: AttemptId, tries: u32) {
        let Some(source) = self.sources.get_mut(&from) else { return };
        let job = map.task.job;
        source.ready.entry(job).or_default().insert(map, tries);
        self.jobs.entry(job).or_default().sources.insert(from);
        self.lanes.enter(job);
    }

    /// Records that no output of the job is ready at this source.
    fn source_is_empty(&mut self, from: WorkerId, job: JobId) {
        let Some(line) = self.jobs.get_mut(&job) else { return };
        line.sources.remove(&from);
        if line.sources.is_empty() {
            self.lanes.leave(job);
        }
    }

    /// Drops a source without outputs.
    fn drop_if_empty(&mut self, from: WorkerId) {
        let Some(source) = self.sources.get(&from) else { return };
        if source.requests == 0 && source.ready.is_empty() && source.paused.is_empty() {
            self.sources.remove(&from);
        }
    }

    /// Removes an output that is no longer wanted. A request in flight continues, but its result for this map is
    /// dropped.
    pub fn retract(&mut self, map: AttemptId) {
        let thin = |line: &mut BTreeMap<AttemptId, u32>| {
            line.remove(&map);
        };
        self.drop_where(map.task.job, thin, |candidate| candidate == map);
    }

    /// Removes all outputs of this job.
    pub fn forget(&mut self, job: JobId) {
        self.drop_where(job, BTreeMap::clear, |candidate| candidate.task.job == job);
        self.jobs.remove(&job);
    }

    fn drop_where(
        &mut self,
        job: JobId,
        thin: impl Fn(&mut BTreeMap<AttemptId, u32>),
        gone: impl Fn(AttemptId) -> bool,
    ) {
        for from in self.sources.keys().copied().collect::<Vec<_>>() {
            let Some(source) = self.sources.get_mut(&from) else { continue };
            source.paused.retain(|map, _| !gone(*map));
            if let Some(line) = source.ready.get_mut(&job) {
                thin(line);
                if line.is_empty() {
                    source.ready.remove(&job);
                    self.source_is_empty(from, job);
                }
            }
            self.drop_if_empty(from);
        }
        for flight in self.in_flight.values_mut() {
            flight.maps.retain(|map, _| !gone(*map));
            flight.again.retain(|map| !gone(*map));
        }
        self.request_of.retain(|(map, _), _| !gone(*map));
    }

    /// Returns the next request to send now, if the limits allow one.
    pub fn next(&mut self, now: Time) -> Option<Fetch> {
        self.end_pauses(now);
        let in_flight_now =
            RequestsInFlight::count(&self.in_flight, &self.lanes, self.limits.request_bytes_max);
        let before = in_flight_now.before(self.limits.requests_max)?;
        let (jobs, limits, turn) = (&self.jobs, &self.limits, self.turn);
        let source = |job: JobId, tier: Tier, most: Option<u32>| {
            let line = jobs.get(&job)?;
            if most.is_some_and(|most| most as usize <= in_flight_now.of_job(job)) {
                return None;
            }
            // Only sources with requests in flight are skipped.
            let mut round = line.sources.range(turn..).chain(line.sources.range(..turn));
            round
                .find(|from| in_flight_now.has_room_at(**from, tier, limits.requests_per_source_max))
                .copied()
        };
        let job = self.lanes.next(before, |job, tier, most| source(job, tier, most).is_some())?;
        let from = source(job, self.lanes.tier(job), None)?;
        Some(self.request(job, from, now))
    }

    /// Creates a request for outputs of this job at this source, which has some.
    fn request(&mut self, job: JobId, from: WorkerId, now: Time) -> Fetch {
        let most = self.maps_wanted(job);
        let source = self.sources.get_mut(&from).expect("jobs name only sources that are there");
        let line =
            source.ready.get_mut(&job).expect("jobs name only sources that have something ready of them");
        let mut maps = BTreeMap::new();
        while maps.len() < most
            && let Some((map, tries)) = line.pop_first()
        {
            maps.insert(map, tries);
        }
        let endpoint = source.endpoint.clone();
        source.requests += 1;
        if line.is_empty() {
            source.ready.remove(&job);
            self.source_is_empty(from, job);
        }
        let line = self.jobs.entry(job).or_default();
        let expected = line.mean_bytes().unwrap_or(0.0) * maps.len() as f64;
        self.lanes.charge(job, expected);
        self.turn = WorkerId(from.0.wrapping_add(1));
        let id = self.next_id;
        self.next_id += 1;
        self.request_of.extend(maps.keys().map(|map| ((*map, from), id)));
        let fetch = Fetch { id, from, endpoint, job, maps: maps.keys().copied().collect() };
        let again = BTreeSet::new();
        let flight = InFlight { from, job, maps, again, expected, bytes: 0, sent: now, broke: false };
        self.in_flight.insert(id, flight);
        fetch
    }

    /// Returns the maximum maps of the job in one request, at least 1.
    fn maps_wanted(&self, job: JobId) -> usize {
        if !self.lanes.in_order() && !self.limits.always_short {
            return self.limits.maps_per_request_max;
        }
        // Before the first output has arrived, its size is unknown, and two might be too many.
        let Some(mean) = self.jobs.get(&job).and_then(JobLine::mean_bytes) else { return 1 };
        // A mean of 0 allows any number; the cast saturates.
        let fit = (self.limits.request_bytes_max as f64 / mean) as usize;
        fit.clamp(1, self.limits.maps_per_request_max)
    }

    fn end_pauses(&mut self, now: Time) {
        while let Some(&(until, from, map)) = self.pauses.first().filter(|(until, ..)| *until <= now) {
            self.pauses.remove(&(until, from, map));
            let Some(source) = self.sources.get_mut(&from) else { continue };
            // It may have been retracted, and even announced and paused again, since.
            if let Some(&(_, tries)) = source.paused.get(&map).filter(|(end, _)| *end <= now) {
                source.paused.remove(&map);
                self.make_ready(from, map, tries);
            }
        }
    }

    /// True if this map of the request is still wanted.
    #[must_use]
    pub fn wants(&self, id: u64, map: AttemptId) -> bool {
        self.in_flight.get(&id).is_some_and(|flight| flight.maps.contains_key(&map))
    }

    /// Returns the end of the next pause; `None` if nothing pauses.
    #[must_use]
    pub fn wake_at(&self, now: Time) -> Option<Time> {
        self.pauses.first().map(|&(until, ..)| until).filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests;
