//! What to fetch next: a pure plan over announced map outputs.
//!
//! It serves jobs strictly by the master's standing order (`lanes`), bounds requests in flight (in all and for each
//! source), puts several maps of a job into one request, retries with growing pauses and gives up after a number of
//! tries. Time is an argument, requests are return values. Not here: sockets, segments, the pace of bytes (`pace`).
//!
//! No step costs more for the outputs that wait, but [`FetchPlan::retract`] and [`FetchPlan::forget`]; it grows with
//! the number of jobs.
//!
//! Invariants:
//! * An announced output is in exactly one place: waiting at its source, or in one request in flight.
//! * A request goes out whenever a served job has an output at a source that has a request free.
//! * Requests count against a job's limits only if they are at least as urgent as it: what others have in flight
//!   cannot hold it up. A source that stands still holds the requests sent to it, and no others.
//! * With an order in force, or on a paced network, a request asks for no more than `request_bytes_max`, as far as sizes can be foreseen, or
//!   for one output: what is in flight when a more urgent job comes is soon over.

use super::lanes::{Lanes, Tier};
use crate::http::Endpoint;
use crate::protocol::LaneOrder;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Requests in flight, those less urgent than the next one included, are so many times those as urgent as it.
const LESS_URGENT_FACTOR: usize = 2;

/// On a paced network a request is meant to take a second divided by this.
const PACED_REQUESTS_PER_SECOND: u64 = 20;

/// A request may always bring so many bytes, however slow the network is made to be.
const PACED_REQUEST_BYTES_MIN: u64 = 64 << 10;

/// Limits of fetching.
#[derive(Clone, Debug)]
pub struct FetchLimits {
    /// Requests in flight over all sources that are at least as urgent as any of them; twice as many in all.
    pub requests_max: usize,
    /// The same to one source.
    pub requests_per_source_max: usize,
    /// Maps in one request.
    pub maps_per_request_max: usize,
    /// Bytes expected of one request of several maps while an order is in force.
    pub request_bytes_max: u64,
    /// Whether that holds without an order too, because one may come before a request is over.
    pub always_short: bool,
    /// Tries of one output before it is reported as not to be had.
    pub tries_max: u32,
    /// Pause before the second try; doubles with each further one.
    pub pause: Span,
    /// Longest pause.
    pub pause_max: Span,
    /// For so long this worker may lack the means to ask before its tries count.
    pub shortage_max: Span,
}

impl Default for FetchLimits {
    /// 8 requests in all, 2 for each source, 16 maps or 4 MiB in each; 4 tries with pauses of 0.1, 0.2 and 0.4 s,
    /// which do not count for the first 10 s of a shortage.
    fn default() -> Self {
        Self {
            requests_max: 8,
            requests_per_source_max: 2,
            maps_per_request_max: 16,
            request_bytes_max: 4 << 20,
            always_short: false,
            tries_max: 4,
            pause: Span::milliseconds(100),
            pause_max: Span::whole_seconds(5),
            shortage_max: Span::whole_seconds(10),
        }
    }
}

impl FetchLimits {
    /// With requests that are short enough for a network that is held to this many bytes in a second: 50 ms of it,
    /// and 64 KiB at least.
    #[must_use]
    pub fn paced(self, bytes_per_second: u64) -> Self {
        let short = (bytes_per_second / PACED_REQUESTS_PER_SECOND).max(PACED_REQUEST_BYTES_MIN);
        Self { request_bytes_max: short.min(self.request_bytes_max), always_short: true, ..self }
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
}

impl Source {
    fn holds(&self, map: AttemptId) -> bool {
        self.paused.contains_key(&map)
            || self.ready.get(&map.task.job).is_some_and(|maps| maps.contains_key(&map))
    }
}

/// What is known of a job.
#[derive(Debug, Default)]
struct JobLine {
    /// Where outputs of it are ready to be asked for.
    sources: BTreeSet<WorkerId>,
    /// Outputs that have arrived, and their bytes.
    outputs: u64,
    bytes: u64,
}

impl JobLine {
    /// Bytes that an output has in the mean; `None` before the first has come.
    fn mean_bytes(&self) -> Option<f64> {
        (0 < self.outputs).then(|| self.bytes as f64 / self.outputs as f64)
    }
}

#[derive(Debug)]
struct InFlight {
    from: WorkerId,
    job: JobId,
    maps: BTreeMap<AttemptId, u32>,
    /// Announced once more meanwhile: asked for again once they have arrived.
    again: BTreeSet<AttemptId>,
    /// Bytes charged ahead.
    expected: f64,
    /// Bytes that have come.
    bytes: u64,
}

/// Where requests in flight go, for which job, and how urgent they are by the order of now.
struct Flying(Vec<(WorkerId, JobId, Tier)>);

impl Flying {
    fn of(in_flight: &BTreeMap<u64, InFlight>, lanes: &Lanes) -> Self {
        let urgent = |flight: &InFlight| (flight.from, flight.job, lanes.tier(flight.job));
        Self(in_flight.values().map(urgent).collect())
    }

    /// Only jobs before this tier may send one more request; `None` if nobody may.
    fn before(&self, most: usize) -> Option<Tier> {
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

    fn of_job(&self, job: JobId) -> usize {
        self.0.iter().filter(|&&(_, other, _)| other == job).count()
    }

    fn has_room_at(&self, source: WorkerId, tier: Tier, most: usize) -> bool {
        let there = || self.0.iter().filter(|&&(from, ..)| from == source);
        let as_urgent = there().filter(|&&(.., other)| other <= tier).count();
        as_urgent < most && there().count() < LESS_URGENT_FACTOR * most
    }
}

/// The plan of one worker.
#[derive(Debug)]
pub struct FetchPlan {
    limits: FetchLimits,
    lanes: Lanes,
    sources: BTreeMap<WorkerId, Source>,
    jobs: BTreeMap<JobId, JobLine>,
    in_flight: BTreeMap<u64, InFlight>,
    /// The request in flight that each map is part of, by source.
    flies: BTreeMap<(AttemptId, WorkerId), u64>,
    /// Ends of pauses; one whose output is not wanted any more stays until its time has come.
    pauses: BTreeSet<(Time, WorkerId, AttemptId)>,
    next_id: u64,
    /// Since when this worker has lacked the means to ask for anything.
    short_since: Option<Time>,
    /// Where the round over sources goes on, so that no source waits behind another for ever.
    turn: WorkerId,
}

impl FetchPlan {
    /// An empty plan.
    #[must_use]
    pub fn new(limits: FetchLimits) -> Self {
        Self {
            lanes: Lanes::new(limits.request_bytes_max),
            limits,
            sources: BTreeMap::new(),
            jobs: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            flies: BTreeMap::new(),
            pauses: BTreeSet::new(),
            next_id: 0,
            short_since: None,
            turn: WorkerId(0),
        }
    }

    /// Which jobs go first from now on. Requests in flight go on.
    pub fn order(&mut self, order: &LaneOrder) {
        self.lanes.order(order);
    }

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

    /// Nothing of the job is ready at this source any more.
    fn dried(&mut self, from: WorkerId, job: JobId) {
        let Some(line) = self.jobs.get_mut(&job) else { return };
        line.sources.remove(&from);
        if line.sources.is_empty() {
            self.lanes.leave(job);
        }
    }

    /// Drops a source of which nothing is left.
    fn tidy(&mut self, from: WorkerId) {
        let Some(source) = self.sources.get(&from) else { return };
        if source.requests == 0 && source.ready.is_empty() && source.paused.is_empty() {
            self.sources.remove(&from);
        }
    }

    /// An output is not wanted any more. A request in flight goes on, its result for this map is dropped.
    pub fn retract(&mut self, map: AttemptId) {
        let thin = |line: &mut BTreeMap<AttemptId, u32>| {
            line.remove(&map);
        };
        self.drop_where(map.task.job, thin, |candidate| candidate == map);
    }

    /// Nothing of this job is wanted any more.
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
                    self.dried(from, job);
                }
            }
            self.tidy(from);
        }
        for flight in self.in_flight.values_mut() {
            flight.maps.retain(|map, _| !gone(*map));
            flight.again.retain(|map| !gone(*map));
        }
        self.flies.retain(|(map, _), _| !gone(*map));
    }

    /// The next request to send now, if limits allow one.
    pub fn next(&mut self, now: Time) -> Option<Fetch> {
        self.end_pauses(now);
        let flying = Flying::of(&self.in_flight, &self.lanes);
        let before = flying.before(self.limits.requests_max)?;
        let (jobs, limits, turn) = (&self.jobs, &self.limits, self.turn);
        let source = |job: JobId, tier: Tier, most: Option<u32>| {
            let line = jobs.get(&job)?;
            if most.is_some_and(|most| most as usize <= flying.of_job(job)) {
                return None;
            }
            // At most those sources are passed over that have requests in flight.
            let mut round = line.sources.range(turn..).chain(line.sources.range(..turn));
            round.find(|from| flying.has_room_at(**from, tier, limits.requests_per_source_max)).copied()
        };
        let job = self.lanes.next(before, |job, tier, most| source(job, tier, most).is_some())?;
        let from = source(job, self.lanes.tier(job), None)?;
        Some(self.request(job, from))
    }

    /// Sends for outputs of this job at this source, which has some.
    fn request(&mut self, job: JobId, from: WorkerId) -> Fetch {
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
            self.dried(from, job);
        }
        let line = self.jobs.entry(job).or_default();
        let expected = line.mean_bytes().unwrap_or(0.0) * maps.len() as f64;
        self.lanes.charge(job, expected);
        self.turn = WorkerId(from.0.wrapping_add(1));
        let id = self.next_id;
        self.next_id += 1;
        self.flies.extend(maps.keys().map(|map| ((*map, from), id)));
        let fetch = Fetch { id, from, endpoint, job, maps: maps.keys().copied().collect() };
        self.in_flight.insert(id, InFlight { from, job, maps, again: BTreeSet::new(), expected, bytes: 0 });
        fetch
    }

    /// Maps of the job that one request may name, at least 1.
    fn maps_wanted(&self, job: JobId) -> usize {
        if !self.lanes.in_order() && !self.limits.always_short {
            return self.limits.maps_per_request_max;
        }
        // Before the first has come, nobody knows whether two would be too many.
        let Some(mean) = self.jobs.get(&job).and_then(JobLine::mean_bytes) else { return 1 };
        // Of a mean of 0 there can be any number; the cast saturates.
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

    /// One map of a request has arrived, with so many bytes.
    pub fn arrived(&mut self, id: u64, map: AttemptId, bytes: u64) {
        self.short_since = None;
        if let Some(flight) = self.in_flight.get_mut(&id) {
            flight.bytes += bytes;
            if let Some(line) = self.jobs.get_mut(&flight.job) {
                line.outputs += 1;
                line.bytes += bytes;
            }
        }
        if let Some((from, _, true)) = self.land(id, map) {
            self.make_ready(from, map, 0);
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
        self.pause(from, map, now + pause, tries);
        Retry::Later
    }

    /// One map of a request was given back, because more urgent jobs left nothing to it: it is asked for again after
    /// the shortest pause, and no try is counted.
    pub fn gave_way(&mut self, id: u64, map: AttemptId, now: Time) {
        if let Some((from, tries, _)) = self.land(id, map) {
            self.pause(from, map, now + self.limits.pause, tries);
        }
    }

    /// One map of a request was not asked for, because this worker lacked the means, such as a descriptor: others give
    /// some back all the time, so it is asked for again, and a try counts only when the shortage lasts.
    pub fn lacked_means(&mut self, id: u64, map: AttemptId, now: Time) -> Retry {
        let since = *self.short_since.get_or_insert(now);
        if self.limits.shortage_max <= now.since(since) {
            return self.failed(id, map, now);
        }
        let Some((from, tries, _)) = self.land(id, map) else { return Retry::NotWanted };
        self.pause(from, map, now + self.limits.pause, tries);
        Retry::Later
    }

    fn pause(&mut self, from: WorkerId, map: AttemptId, until: Time, tries: u32) {
        if let Some(source) = self.sources.get_mut(&from) {
            source.paused.insert(map, (until, tries));
            self.pauses.insert((until, from, map));
        }
    }

    /// A request has ended; every map of it must have arrived or failed before.
    pub fn ended(&mut self, id: u64) {
        let Some(flight) = self.in_flight.remove(&id) else { return };
        assert!(flight.maps.is_empty(), "request {id} ended with {} maps unaccounted for", flight.maps.len());
        self.lanes.charge(flight.job, flight.bytes as f64 - flight.expected);
        if let Some(source) = self.sources.get_mut(&flight.from) {
            source.requests -= 1;
            self.tidy(flight.from);
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
