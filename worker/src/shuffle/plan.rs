//! What to fetch next: a pure plan over announced map outputs.
//!
//! It bounds requests in flight (in all and for each source), puts several maps of a job into one request,
//! retries with growing pauses and gives up after a number of tries. Time is an argument, orders are return
//! values. Not here: sockets, segments, the choice between jobs by policy.
//!
//! Invariant: an announced output is in exactly one place: waiting at its source, or in one request in flight.

use crate::http::Endpoint;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

#[derive(Debug)]
struct Waiting {
    map: AttemptId,
    tries: u32,
    not_before: Time,
}

#[derive(Debug)]
struct Source {
    endpoint: Endpoint,
    waiting: VecDeque<Waiting>,
    requests: usize,
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
    next_id: u64,
    /// Where the round over sources goes on, so that no source waits behind another for ever.
    turn: Option<WorkerId>,
}

impl FetchPlan {
    /// An empty plan.
    #[must_use]
    pub fn new(limits: FetchLimits) -> Self {
        Self { limits, sources: BTreeMap::new(), in_flight: BTreeMap::new(), next_id: 0, turn: None }
    }

    /// An output can be had. Announcing it again while it waits changes nothing. While a request for it is in
    /// flight, it means that a partition may have come here which that request did not name: the output is asked
    /// for once more afterwards.
    pub fn announce(&mut self, map: AttemptId, from: WorkerId, endpoint: &Endpoint) {
        let flight = self.in_flight.values_mut().find(|f| f.from == from && f.maps.contains_key(&map));
        if let Some(flight) = flight {
            flight.again.insert(map);
            return;
        }
        let source = self.sources.entry(from).or_insert_with(|| Source {
            endpoint: endpoint.clone(),
            waiting: VecDeque::new(),
            requests: 0,
        });
        if !source.waiting.iter().any(|w| w.map == map) {
            source.waiting.push_back(Waiting { map, tries: 0, not_before: Time::ZERO });
        }
    }

    /// An output is not wanted any more. A request in flight goes on, its result for this map is dropped.
    pub fn retract(&mut self, map: AttemptId) {
        self.drop_where(|candidate| candidate == map);
    }

    /// Nothing of this job is wanted any more.
    pub fn forget(&mut self, job: JobId) {
        self.drop_where(|candidate| candidate.task.job == job);
    }

    fn drop_where(&mut self, gone: impl Fn(AttemptId) -> bool) {
        for source in self.sources.values_mut() {
            source.waiting.retain(|w| !gone(w.map));
        }
        for flight in self.in_flight.values_mut() {
            flight.maps.retain(|map, _| !gone(*map));
            flight.again.retain(|map| !gone(*map));
        }
        self.sources.retain(|_, source| 0 < source.requests || !source.waiting.is_empty());
    }

    /// The next request to send now, if limits allow one.
    pub fn next(&mut self, now: Time) -> Option<Fetch> {
        if self.limits.requests_max <= self.in_flight.len() {
            return None;
        }
        let after = self.turn.map_or(0, |worker| worker.0 + 1);
        let order: Vec<WorkerId> = self
            .sources
            .range(WorkerId(after)..)
            .chain(self.sources.range(..WorkerId(after)))
            .map(|(worker, _)| *worker)
            .collect();
        order.into_iter().find_map(|from| self.next_from(from, now))
    }

    fn next_from(&mut self, from: WorkerId, now: Time) -> Option<Fetch> {
        let limits = &self.limits;
        let source = self.sources.get_mut(&from)?;
        if limits.requests_per_source_max <= source.requests {
            return None;
        }
        let job = source.waiting.iter().find(|w| w.not_before <= now)?.map.task.job;
        let mut maps = BTreeMap::new();
        let mut rest = VecDeque::with_capacity(source.waiting.len());
        for wanted in source.waiting.drain(..) {
            let due = wanted.not_before <= now && wanted.map.task.job == job;
            if due && maps.len() < limits.maps_per_request_max {
                maps.insert(wanted.map, wanted.tries);
            } else {
                rest.push_back(wanted);
            }
        }
        source.waiting = rest;
        source.requests += 1;
        let id = self.next_id;
        self.next_id += 1;
        self.turn = Some(from);
        let fetch =
            Fetch { id, from, endpoint: source.endpoint.clone(), job, maps: maps.keys().copied().collect() };
        self.in_flight.insert(id, InFlight { from, maps, again: BTreeSet::new() });
        Some(fetch)
    }

    /// Whether this map of the request is still wanted.
    #[must_use]
    pub fn wants(&self, id: u64, map: AttemptId) -> bool {
        self.in_flight.get(&id).is_some_and(|flight| flight.maps.contains_key(&map))
    }

    /// One map of a request has arrived.
    pub fn arrived(&mut self, id: u64, map: AttemptId) {
        let Some(flight) = self.in_flight.get_mut(&id) else { return };
        flight.maps.remove(&map);
        if flight.again.remove(&map)
            && let Some(source) = self.sources.get_mut(&flight.from)
        {
            source.waiting.push_back(Waiting { map, tries: 0, not_before: Time::ZERO });
        }
    }

    /// One map of a request has not arrived.
    pub fn failed(&mut self, id: u64, map: AttemptId, now: Time) -> Retry {
        let limits = self.limits.clone();
        let Some(flight) = self.in_flight.get_mut(&id) else { return Retry::NotWanted };
        let Some(tries) = flight.maps.remove(&map).map(|before| before + 1) else { return Retry::NotWanted };
        if limits.tries_max <= tries {
            return Retry::GiveUp;
        }
        let from = flight.from;
        let pause = Span(limits.pause.0 << (tries - 1).min(20)).min(limits.pause_max);
        if let Some(source) = self.sources.get_mut(&from) {
            source.waiting.push_back(Waiting { map, tries, not_before: now + pause });
        }
        Retry::Later
    }

    /// A request has ended; every map of it must have arrived or failed before.
    pub fn ended(&mut self, id: u64) {
        let Some(flight) = self.in_flight.remove(&id) else { return };
        assert!(flight.maps.is_empty(), "request {id} ended with {} maps unaccounted for", flight.maps.len());
        if let Some(source) = self.sources.get_mut(&flight.from) {
            source.requests -= 1;
            if source.requests == 0 && source.waiting.is_empty() {
                self.sources.remove(&flight.from);
            }
        }
    }

    /// When a pause ends next; `None` if nothing waits for time.
    #[must_use]
    pub fn wake_at(&self, now: Time) -> Option<Time> {
        let waiting = self.sources.values().flat_map(|source| &source.waiting);
        waiting.map(|w| w.not_before).filter(|at| now < *at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::TaskId;

    fn map(job: u32, index: u32) -> AttemptId {
        TaskId::map(JobId(job), index).attempt(0)
    }

    fn endpoint() -> Endpoint {
        "127.0.0.1:9".parse().unwrap()
    }

    fn plan(limits: FetchLimits) -> FetchPlan {
        FetchPlan::new(limits)
    }

    #[test]
    fn plan_puts_waiting_maps_of_a_job_into_one_request() {
        let mut plan = plan(FetchLimits { maps_per_request_max: 2, ..FetchLimits::default() });
        for index in 0..3 {
            plan.announce(map(1, index), WorkerId(1), &endpoint());
        }
        let first = plan.next(Time::ZERO).unwrap();
        assert_eq!(first.maps, [map(1, 0), map(1, 1)]);
        assert_eq!(plan.next(Time::ZERO).unwrap().maps, [map(1, 2)]);
        assert_eq!(plan.next(Time::ZERO), None);
    }

    #[test]
    fn plan_never_exceeds_requests_for_one_source_or_in_all() {
        let limits = FetchLimits { requests_max: 3, maps_per_request_max: 1, ..FetchLimits::default() };
        let mut plan = plan(limits);
        for index in 0..10 {
            plan.announce(map(1, index), WorkerId(1 + index % 2), &endpoint());
        }
        let sent: Vec<_> = std::iter::from_fn(|| plan.next(Time::ZERO)).collect();
        let to = |worker| sent.iter().filter(|fetch| fetch.from == WorkerId(worker)).count();
        assert_eq!((sent.len(), to(1), to(2)), (3, 2, 1));
    }

    #[test]
    fn plan_gives_up_after_the_last_try_and_pauses_twice_as_long_each_time() {
        let limits = FetchLimits { tries_max: 3, ..FetchLimits::default() };
        let pause = limits.pause;
        let mut plan = plan(limits);
        plan.announce(map(1, 0), WorkerId(1), &endpoint());
        let mut now = Time::ZERO;
        for tries in 1..=2 {
            let fetch = plan.next(now).unwrap();
            assert_eq!(plan.failed(fetch.id, map(1, 0), now), Retry::Later);
            plan.ended(fetch.id);
            assert_eq!(plan.next(now), None, "no pause after try {tries}");
            let wake = plan.wake_at(now).unwrap();
            assert_eq!(wake.since(now), Span(pause.0 * tries));
            now = wake;
        }
        let fetch = plan.next(now).unwrap();
        assert_eq!(plan.failed(fetch.id, map(1, 0), now), Retry::GiveUp);
        plan.ended(fetch.id);
        assert_eq!(plan.wake_at(now), None);
    }

    #[test]
    fn plan_drops_the_result_of_a_map_retracted_in_flight() {
        let mut plan = plan(FetchLimits::default());
        plan.announce(map(1, 0), WorkerId(1), &endpoint());
        let fetch = plan.next(Time::ZERO).unwrap();
        plan.retract(map(1, 0));
        assert!(!plan.wants(fetch.id, map(1, 0)));
        assert_eq!(plan.failed(fetch.id, map(1, 0), Time::ZERO), Retry::NotWanted);
        plan.ended(fetch.id);
        assert_eq!(plan.next(Time::ZERO), None);
    }

    #[test]
    fn plan_asks_once_more_for_a_map_announced_again_in_flight() {
        let mut plan = plan(FetchLimits::default());
        plan.announce(map(1, 0), WorkerId(1), &endpoint());
        let first = plan.next(Time::ZERO).unwrap();
        plan.announce(map(1, 0), WorkerId(1), &endpoint());
        assert_eq!(plan.next(Time::ZERO), None, "the first request is still in flight");
        plan.arrived(first.id, map(1, 0));
        plan.ended(first.id);
        let second = plan.next(Time::ZERO).unwrap();
        assert_eq!(second.maps, [map(1, 0)]);
        plan.arrived(second.id, map(1, 0));
        plan.ended(second.id);
        assert_eq!(plan.next(Time::ZERO), None);
    }

    #[test]
    fn plan_takes_sources_in_turn() {
        let limits = FetchLimits { requests_max: 1, maps_per_request_max: 1, ..FetchLimits::default() };
        let mut plan = plan(limits);
        for index in 0..4 {
            plan.announce(map(1, index), WorkerId(1 + index % 2), &endpoint());
        }
        let mut order = Vec::new();
        while let Some(fetch) = plan.next(Time::ZERO) {
            order.push(fetch.from.0);
            plan.arrived(fetch.id, fetch.maps[0]);
            plan.ended(fetch.id);
        }
        assert_eq!(order, [1, 2, 1, 2]);
    }
}
