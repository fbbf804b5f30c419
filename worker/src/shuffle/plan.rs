//! What to fetch next: a pure plan over announced map outputs.
//!
//! It bounds requests in flight (in all and for each source), puts several maps of a job into one request,
//! retries with growing pauses and gives up after a number of tries. Time is an argument, orders are return
//! values. Not here: sockets, segments, the choice between jobs by policy.
//!
//! No step costs more for the outputs that wait, but [`FetchPlan::retract`] and [`FetchPlan::forget`].
//!
//! Invariant: an announced output is in exactly one place: waiting at its source, or in one request in flight.

use crate::http::Endpoint;
use crate::protocol::LaneOrder;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Limits of fetching.
#[derive(Clone, Debug)]
pub struct FetchLimits {
    /// Requests in flight over all sources.
    pub requests_max: usize,
    /// Requests in flight to one source.
    pub requests_per_source_max: usize,
    /// Maps in one request.
    pub maps_per_request_max: usize,
    /// Tries of one output before it is reported as not to be had.
    pub tries_max: u32,
    /// Pause before the second try; doubles with each further one.
    pub pause: Span,
    /// Longest pause.
    pub pause_max: Span,
}

impl Default for FetchLimits {
    /// 8 requests in all, 2 for each source, 16 maps in each; 4 tries with pauses of 0.1, 0.2 and 0.4 s.
    fn default() -> Self {
        Self {
            requests_max: 8,
            requests_per_source_max: 2,
            maps_per_request_max: 16,
            tries_max: 4,
            pause: Span::milliseconds(100),
            pause_max: Span::whole_seconds(5),
        }
    }
}

/// One request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Names the request when it ends.
    pub id: u64,
    /// Who has the outputs.
    pub from: WorkerId,
    /// Where.
    pub endpoint: Endpoint,
    /// Of which job.
    pub job: JobId,
    /// Whose outputs, in ascending order of map.
    pub maps: Vec<AttemptId>,
}

/// What became of one map of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// It will be tried again.
    Later,
    /// It has been tried often enough: report it.
    GiveUp,
    /// Nobody wants it any more.
    NotWanted,
}

/// What waits at one source.
#[derive(Debug)]
struct Source {
    endpoint: Endpoint,
    /// Outputs to ask for, by job, with the number of tries so far.
    ready: BTreeMap<JobId, BTreeMap<AttemptId, u32>>,
    /// Outputs that pause, with the number of tries so far.
    paused: BTreeMap<AttemptId, (Time, u32)>,
    requests: usize,
    /// The job asked for last: jobs take turns.
    turn: Option<JobId>,
}

impl Source {
    fn holds(&self, map: AttemptId) -> bool {
        self.paused.contains_key(&map)
            || self.ready.get(&map.task.job).is_some_and(|maps| maps.contains_key(&map))
    }

    fn make_ready(&mut self, map: AttemptId, tries: u32) {
        self.ready.entry(map.task.job).or_default().insert(map, tries);
    }

    /// The next maps to ask for, all of one job.
    fn take(&mut self, most: usize) -> Option<(JobId, BTreeMap<AttemptId, u32>)> {
        let after = self.turn.map_or(0, |job| job.0 + 1);
        let later = self.ready.range(JobId(after)..).next();
        let (&job, _) = later.or_else(|| self.ready.first_key_value())?;
        let line = self.ready.get_mut(&job)?;
        let mut maps = BTreeMap::new();
        while maps.len() < most
            && let Some((map, tries)) = line.pop_first()
        {
            maps.insert(map, tries);
        }
        if line.is_empty() {
            self.ready.remove(&job);
        }
        self.turn = Some(job);
        Some((job, maps))
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.paused.is_empty()
    }
}

#[derive(Debug)]
struct InFlight {
    from: WorkerId,
    maps: BTreeMap<AttemptId, u32>,
    /// Announced once more meanwhile: asked for again once they have arrived.
    again: BTreeSet<AttemptId>,
}

/// The plan of one worker.
#[derive(Debug)]
pub struct FetchPlan {
    limits: FetchLimits,
    sources: BTreeMap<WorkerId, Source>,
    in_flight: BTreeMap<u64, InFlight>,
    /// The request in flight that each map is part of, by source.
    flies: BTreeMap<(AttemptId, WorkerId), u64>,
    /// Ends of pauses; one whose output is not wanted any more stays until its time has come.
    pauses: BTreeSet<(Time, WorkerId, AttemptId)>,
    /// Sources that a request could be sent to now.
    open: BTreeSet<WorkerId>,
    next_id: u64,
    /// Where the round over sources goes on, so that no source waits behind another for ever.
    turn: Option<WorkerId>,
}

impl FetchPlan {
    /// An empty plan.
    #[must_use]
    pub fn new(limits: FetchLimits) -> Self {
        Self {
            limits,
            sources: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            flies: BTreeMap::new(),
            pauses: BTreeSet::new(),
            open: BTreeSet::new(),
            next_id: 0,
            turn: None,
        }
    }

    /// Which jobs go first from now on.
    pub fn order(&mut self, _order: &LaneOrder) {}

    /// An output can be had. Announcing it again while it waits changes nothing. While a request for it is in
    /// flight, it means that a partition may have come here which that request did not name: the output is asked
    /// for once more afterwards.
    pub fn announce(&mut self, map: AttemptId, from: WorkerId, endpoint: &Endpoint) {
        let flight = self.flies.get(&(map, from)).and_then(|id| self.in_flight.get_mut(id));
        if let Some(flight) = flight {
            flight.again.insert(map);
            return;
        }
        let source = self.sources.entry(from).or_insert_with(|| Source {
            endpoint: endpoint.clone(),
            ready: BTreeMap::new(),
            paused: BTreeMap::new(),
            requests: 0,
            turn: None,
        });
        if !source.holds(map) {
            source.make_ready(map, 0);
            self.look_at(from);
        }
    }

    /// Notes whether a request could be sent to this source, and drops a source of which nothing is left.
    fn look_at(&mut self, from: WorkerId) {
        let Some(source) = self.sources.get(&from) else { return };
        if !source.ready.is_empty() && source.requests < self.limits.requests_per_source_max {
            self.open.insert(from);
            return;
        }
        self.open.remove(&from);
        if source.requests == 0 && source.is_empty() {
            self.sources.remove(&from);
        }
    }

    /// An output is not wanted any more. A request in flight goes on, its result for this map is dropped.
    pub fn retract(&mut self, map: AttemptId) {
        let job = map.task.job;
        let thin = |line: &mut BTreeMap<AttemptId, u32>| {
            line.remove(&map);
        };
        self.drop_where(job, thin, |candidate| candidate == map);
    }

    /// Nothing of this job is wanted any more.
    pub fn forget(&mut self, job: JobId) {
        self.drop_where(job, BTreeMap::clear, |candidate| candidate.task.job == job);
    }

    fn drop_where(
        &mut self,
        job: JobId,
        thin: impl Fn(&mut BTreeMap<AttemptId, u32>),
        gone: impl Fn(AttemptId) -> bool,
    ) {
        for source in self.sources.values_mut() {
            if let Some(line) = source.ready.get_mut(&job) {
                thin(line);
                if line.is_empty() {
                    source.ready.remove(&job);
                }
            }
            source.paused.retain(|map, _| !gone(*map));
        }
        for flight in self.in_flight.values_mut() {
            flight.maps.retain(|map, _| !gone(*map));
            flight.again.retain(|map| !gone(*map));
        }
        self.flies.retain(|(map, _), _| !gone(*map));
        for from in self.sources.keys().copied().collect::<Vec<_>>() {
            self.look_at(from);
        }
    }

    /// The next request to send now, if limits allow one.
    pub fn next(&mut self, now: Time) -> Option<Fetch> {
        self.end_pauses(now);
        if self.limits.requests_max <= self.in_flight.len() {
            return None;
        }
        let after = self.turn.map_or(0, |worker| worker.0 + 1);
        let later = self.open.range(WorkerId(after)..).next();
        let from = *later.or_else(|| self.open.first())?;
        let source = self.sources.get_mut(&from)?;
        let (job, maps) = source.take(self.limits.maps_per_request_max)?;
        source.requests += 1;
        let id = self.next_id;
        self.next_id += 1;
        self.turn = Some(from);
        let fetch =
            Fetch { id, from, endpoint: source.endpoint.clone(), job, maps: maps.keys().copied().collect() };
        self.flies.extend(maps.keys().map(|map| ((*map, from), id)));
        self.in_flight.insert(id, InFlight { from, maps, again: BTreeSet::new() });
        self.look_at(from);
        Some(fetch)
    }

    fn end_pauses(&mut self, now: Time) {
        while let Some(&(until, from, map)) = self.pauses.first().filter(|(until, ..)| *until <= now) {
            self.pauses.remove(&(until, from, map));
            let Some(source) = self.sources.get_mut(&from) else { continue };
            // It may have been retracted, and even announced and paused again, since.
            if let Some(&(_, tries)) = source.paused.get(&map).filter(|(end, _)| *end <= now) {
                source.paused.remove(&map);
                source.make_ready(map, tries);
                self.look_at(from);
            }
        }
    }

    /// Whether this map of the request is still wanted.
    #[must_use]
    pub fn wants(&self, id: u64, map: AttemptId) -> bool {
        self.in_flight.get(&id).is_some_and(|flight| flight.maps.contains_key(&map))
    }

    /// Takes a map out of its request: where it was asked for, the tries before, whether it was announced again.
    fn land(&mut self, id: u64, map: AttemptId) -> Option<(WorkerId, u32, bool)> {
        let flight = self.in_flight.get_mut(&id)?;
        let tries = flight.maps.remove(&map)?;
        let again = flight.again.remove(&map);
        self.flies.remove(&(map, flight.from));
        Some((flight.from, tries, again))
    }

    /// One map of a request has arrived.
    pub fn arrived(&mut self, id: u64, map: AttemptId) {
        let Some((from, _, true)) = self.land(id, map) else { return };
        if let Some(source) = self.sources.get_mut(&from) {
            source.make_ready(map, 0);
            self.look_at(from);
        }
    }

    /// One map of a request has not arrived.
    pub fn failed(&mut self, id: u64, map: AttemptId, now: Time) -> Retry {
        let Some((from, before, _)) = self.land(id, map) else { return Retry::NotWanted };
        let tries = before + 1;
        if self.limits.tries_max <= tries {
            return Retry::GiveUp;
        }
        let pause = Span(self.limits.pause.0 << before.min(20)).min(self.limits.pause_max);
        if let Some(source) = self.sources.get_mut(&from) {
            source.paused.insert(map, (now + pause, tries));
            self.pauses.insert((now + pause, from, map));
        }
        Retry::Later
    }

    /// A request has ended; every map of it must have arrived or failed before.
    pub fn ended(&mut self, id: u64) {
        let Some(flight) = self.in_flight.remove(&id) else { return };
        assert!(flight.maps.is_empty(), "request {id} ended with {} maps unaccounted for", flight.maps.len());
        if let Some(source) = self.sources.get_mut(&flight.from) {
            source.requests -= 1;
            self.look_at(flight.from);
        }
    }

    /// When a pause ends next; `None` if nothing waits for time.
    #[must_use]
    pub fn wake_at(&self, now: Time) -> Option<Time> {
        self.pauses.first().map(|&(until, ..)| until).filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests;
