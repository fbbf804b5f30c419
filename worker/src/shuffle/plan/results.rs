//! Results of requested outputs: arrived, retried after a pause, or given up.

use super::{FetchPlan, Retry, Route};
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use gristmill_scheduler::units::{Span, Time};

impl FetchPlan {
    /// Removes a map from its request. Returns its source, the tries before, and true if it was announced again.
    fn land(&mut self, id: u64, map: AttemptId) -> Option<(WorkerId, u32, bool)> {
        let flight = self.in_flight.get_mut(&id)?;
        let tries = flight.maps.remove(&map)?;
        let again = flight.again.remove(&map);
        self.request_of.remove(&(map, flight.from));
        Some((flight.from, tries, again))
    }

    /// Records that one map of a request has arrived, with this many bytes.
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

    /// Records that one map of a request has failed.
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

    /// Records that one map of a request has failed because its source could not be reached or closed the connection.
    pub(crate) fn unreachable(&mut self, id: u64, map: AttemptId, now: Time) -> Retry {
        let cut = self.count_failure(id);
        match self.failed(id, map, now) {
            Retry::Later if cut.is_some_and(|since| self.limits.route_patience <= now.since(since)) => {
                self.give_up(id, map)
            }
            retry => retry,
        }
    }

    /// Counts a failed request once. Returns the time since when the route may be cut, if so.
    fn count_failure(&mut self, id: u64) -> Option<Time> {
        let flight = self.in_flight.get_mut(&id)?;
        let first = !std::mem::replace(&mut flight.broke, true);
        let route = &mut self.sources.get_mut(&flight.from)?.route;
        if first && route.news_from <= id {
            if route.failures == 0 {
                route.since = flight.sent;
            }
            route.failures += 1;
            route.news_from = self.next_id;
        }
        (self.limits.route_failures_max <= route.failures).then_some(route.since)
    }

    /// Removes the pause of a map that has just failed.
    fn give_up(&mut self, id: u64, map: AttemptId) -> Retry {
        if let Some(flight) = self.in_flight.get(&id)
            && let Some(source) = self.sources.get_mut(&flight.from)
        {
            source.paused.remove(&map);
        }
        Retry::GiveUp
    }

    /// Records that one map of a request was preempted by more urgent jobs: it is requested again after the shortest
    /// pause, and no try is counted.
    pub(crate) fn preempted(&mut self, id: u64, map: AttemptId, now: Time) {
        if let Some((from, tries, _)) = self.land(id, map) {
            self.pause(from, map, now + self.limits.pause, tries);
        }
    }

    /// Records that one map of a request was not requested, because this worker lacked a local resource such as a
    /// descriptor. Resources are released all the time, so it is requested again, and a try counts only if the shortage
    /// lasts.
    pub(crate) fn lacked_means(&mut self, id: u64, map: AttemptId, now: Time) -> Retry {
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

    /// Ends a request; every map of it must have arrived or failed before.
    pub fn ended(&mut self, id: u64) {
        let Some(flight) = self.in_flight.remove(&id) else { return };
        assert!(flight.maps.is_empty(), "request {id} ended with {} maps unaccounted for", flight.maps.len());
        self.lanes.charge(flight.job, flight.bytes as f64 - flight.expected);
        if let Some(source) = self.sources.get_mut(&flight.from) {
            source.requests -= 1;
            if !flight.broke {
                source.route = Route::default();
            }
            self.drop_if_empty(flight.from);
        }
    }
}
