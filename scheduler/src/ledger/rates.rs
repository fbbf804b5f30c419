//! Transfer rates of routes between workers, to find routes that are so slow that the outputs behind them should be
//! made again.
//!
//! A route is compared with current routes between other workers: it is slow if its rate is a small part of theirs. A
//! network that is slow or busy everywhere therefore cuts off no worker. The slow end is found by its routes to third
//! workers.
//!
//! `detours` decides what is behind a route and what making it again would cost.

use crate::event::FetchRate;
use crate::ids::WorkerId;
use crate::ledger::config::RouteLimits;
use crate::units::{Bytes, Span, Time};
use std::collections::BTreeMap;

/// Age up to which the rate of a route is compared with those of other workers.
const PEERS_MEMORY: Span = Span::whole_seconds(60);

/// Smallest number of recent bytes from which the rate of the network is learned: with fewer, a rate is that of single
/// requests.
const LEARNT_BYTES_MIN: Bytes = Bytes::mib(1);

/// Factor by which that rate has to change before jobs are counted again.
const CHANGE_MIN: f64 = 1.25;

/// Age up to which a good rate of another route of the same worker clears that worker.
const OWN_MEMORY: Span = Span::whole_seconds(5);

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Rate {
    bytes_per_second: f64,
    at: Time,
}

/// Last known rates of routes between workers on different hosts, by home and source.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct RouteRates {
    // Snapshots have this name.
    #[serde(rename = "ways")]
    routes: BTreeMap<(WorkerId, WorkerId), Rate>,
    /// Upper bound of all rates.
    most: f64,
    /// Largest rate at which one home has received bytes from all other hosts; 0 if unknown.
    #[serde(default)]
    inbound: f64,
    pruned: Time,
}

impl RouteRates {
    /// Records the recent rate at which a home receives bytes from a worker on another host.
    pub(crate) fn enter(&mut self, home: WorkerId, rate: &FetchRate, now: Time) {
        if PEERS_MEMORY <= now.since(self.pruned) {
            self.pruned = now;
            self.routes.retain(|_, rate| now.since(rate.at) < PEERS_MEMORY);
            self.most = self.routes.values().map(|rate| rate.bytes_per_second).fold(0.0, f64::max);
        }
        if rate.busy != Span(0) {
            let bytes_per_second = rate.bytes.0 as f64 / rate.busy.seconds();
            self.most = self.most.max(bytes_per_second);
            self.routes.insert((home, rate.from), Rate { bytes_per_second, at: now });
        }
    }

    /// Learns how much a worker can receive from what one has just received from all other hosts. Returns true if that is
    /// clearly more than before.
    pub(crate) fn learn_inbound(&mut self, rates: &[FetchRate]) -> bool {
        let bytes: u64 = rates.iter().fold(0, |sum, rate| sum.saturating_add(rate.bytes.0));
        let busy = rates.iter().map(|rate| rate.busy).max().unwrap_or_default().seconds();
        let learns = LEARNT_BYTES_MIN.0 <= bytes && self.inbound * CHANGE_MIN * busy < bytes as f64;
        if learns && 0.0 < busy {
            self.inbound = bytes as f64 / busy;
        }
        learns
    }

    /// Returns the bytes per second that a worker can receive, as far as transfers have shown it.
    pub(crate) fn inbound(&self) -> Option<f64> {
        (0.0 < self.inbound).then_some(self.inbound)
    }

    /// Forgets how much a worker can receive.
    pub(crate) fn forget_inbound(&mut self) {
        self.inbound = 0.0;
    }

    /// Removes a lost worker.
    pub(crate) fn lose(&mut self, worker: WorkerId) {
        self.routes.retain(|&(home, from), _| home != worker && from != worker);
    }

    /// Returns the recent rate of the route in bytes per second, if it is far below the rates of others.
    pub(crate) fn far_below_peers(
        &self,
        home: WorkerId,
        rate: &FetchRate,
        now: Time,
        limits: &RouteLimits,
    ) -> Option<f64> {
        let own = self.routes.get(&(home, rate.from))?.bytes_per_second;
        let below = |others: f64| own * f64::from(limits.slow_factor) < others;
        // Routes with no bytes at all lead to failed requests, which are handled elsewhere. Most routes end the check
        // here.
        if rate.bytes == Bytes::ZERO || rate.busy < limits.slow_after || !below(self.most) {
            return None;
        }
        self.peers((home, rate.from), now).filter(|&peers| below(peers)).map(|_| own)
    }

    /// Returns the end of a slow route that is slow on all its routes, if the other end is not.
    pub(crate) fn slow_end(
        &self,
        (home, from): (WorkerId, WorkerId),
        now: Time,
        limits: &RouteLimits,
    ) -> Option<WorkerId> {
        let peers = self.peers((home, from), now)?;
        let clear = |end: WorkerId, other: WorkerId| {
            let own = self.routes.iter().filter(|(route, rate)| {
                let touches = |worker| route.0 == worker || route.1 == worker;
                touches(end) && !touches(other) && now.since(rate.at) < OWN_MEMORY
            });
            own.into_iter().any(|(_, rate)| peers <= rate.bytes_per_second * f64::from(limits.slow_factor))
        };
        match (clear(home, from), clear(from, home)) {
            (true, false) => Some(from),
            (false, true) => Some(home),
            _ => None,
        }
    }

    /// Returns the median of the best rates of workers at neither end of this route, in bytes per second, received or
    /// sent. For an even count it is the lower middle value. `None` if no rate is known.
    fn peers(&self, ends: (WorkerId, WorkerId), now: Time) -> Option<f64> {
        let mut best: BTreeMap<WorkerId, f64> = BTreeMap::new();
        for (&(home, from), rate) in &self.routes {
            if PEERS_MEMORY <= now.since(rate.at) {
                continue;
            }
            for worker in [home, from].into_iter().filter(|&worker| worker != ends.0 && worker != ends.1) {
                let best = best.entry(worker).or_default();
                *best = best.max(rate.bytes_per_second);
            }
        }
        let mut best: Vec<f64> = best.into_values().collect();
        best.sort_by(f64::total_cmp);
        best.get(best.len().checked_sub(1)? / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: [WorkerId; 4] = [WorkerId(0), WorkerId(1), WorkerId(2), WorkerId(3)];

    fn rate(from: usize, bytes_per_second: u64) -> FetchRate {
        FetchRate { from: W[from], bytes: Bytes(3 * bytes_per_second), busy: Span::whole_seconds(3) }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::whole_seconds(seconds)
    }

    /// Builds rates by home, source and bytes per second, all at the same time.
    fn rates(routes: &[(usize, usize, u64)]) -> RouteRates {
        let mut rates = RouteRates::default();
        for &(home, from, bytes) in routes {
            rates.enter(W[home], &rate(from, bytes), at(10));
        }
        rates
    }

    fn is_slow(rates: &RouteRates, home: usize, from: usize, bytes: u64, now: Time) -> bool {
        let limits = RouteLimits::default();
        rates.far_below_peers(W[home], &rate(from, bytes), now, &limits).is_some()
    }

    fn slow_end(rates: &RouteRates, home: usize, from: usize) -> Option<WorkerId> {
        rates.slow_end((W[home], W[from]), at(10), &RouteLimits::default())
    }

    const FAST: u64 = 100_000_000;
    const SLOW: u64 = 60_000;

    #[test]
    fn a_worker_behind_a_slow_link_is_seen_by_what_the_others_get() {
        let rates =
            rates(&[(0, 1, SLOW), (0, 2, SLOW), (1, 0, SLOW), (2, 0, SLOW), (1, 2, FAST), (2, 1, FAST)]);
        for (home, from) in [(0, 1), (1, 0), (2, 0)] {
            assert!(is_slow(&rates, home, from, SLOW, at(10)), "{home} from {from}");
            assert_eq!(slow_end(&rates, home, from), Some(W[0]), "{home} from {from}");
        }
        assert!(!is_slow(&rates, 1, 2, FAST, at(10)));
    }

    #[test]
    fn a_network_that_is_slow_for_all_cuts_nobody_off() {
        let all: Vec<_> = (0..4).flat_map(|home| (0..4).map(move |from| (home, from, SLOW))).collect();
        let rates = rates(&all);
        assert!((1..4).all(|from| !is_slow(&rates, 0, from, SLOW, at(10))));
    }

    #[test]
    fn a_way_at_a_tenth_of_what_others_get_is_not_slow() {
        let rates = rates(&[(0, 1, FAST / 10), (1, 2, FAST), (2, 1, FAST)]);
        assert!(!is_slow(&rates, 0, 1, FAST / 10, at(10)));
    }

    #[test]
    fn of_two_workers_nobody_can_tell() {
        let rates = rates(&[(0, 1, SLOW), (1, 0, FAST)]);
        assert!(!is_slow(&rates, 0, 1, SLOW, at(10)));
    }

    #[test]
    fn one_slow_way_between_two_that_are_fast_elsewhere_blames_neither() {
        let rates = rates(&[(0, 1, SLOW), (0, 2, FAST), (1, 2, FAST), (2, 1, FAST)]);
        assert!(is_slow(&rates, 0, 1, SLOW, at(10)));
        assert_eq!(slow_end(&rates, 0, 1), None);
    }

    #[test]
    fn what_others_got_long_ago_does_not_count() {
        let rates = rates(&[(0, 1, SLOW), (1, 2, FAST), (2, 1, FAST)]);
        assert!(is_slow(&rates, 0, 1, SLOW, at(10)));
        assert!(!is_slow(&rates, 0, 1, SLOW, at(10) + PEERS_MEMORY));
    }

    #[test]
    fn a_rate_of_less_time_than_it_takes_to_judge_says_nothing() {
        let rates = rates(&[(0, 1, SLOW), (1, 2, FAST), (2, 1, FAST)]);
        let short = FetchRate { busy: Span::milliseconds(1500), ..rate(1, SLOW) };
        assert!(rates.far_below_peers(W[0], &short, at(10), &RouteLimits::default()).is_none());
    }

    #[test]
    fn a_way_over_which_nothing_comes_is_left_to_requests_that_fail() {
        let rates = rates(&[(0, 1, 0), (1, 2, FAST), (2, 1, FAST)]);
        assert!(!is_slow(&rates, 0, 1, 0, at(10)));
    }

    #[test]
    fn rates_of_a_lost_worker_are_forgotten() {
        let mut rates = rates(&[(0, 1, SLOW), (1, 2, FAST), (2, 1, FAST)]);
        rates.lose(W[2]);
        assert!(!is_slow(&rates, 0, 1, SLOW, at(10)));
    }

    #[test]
    fn worker_can_receive_what_has_come_from_all_others_at_once() {
        let mut rates = RouteRates::default();
        assert!(!rates.learn_inbound(&[]), "nothing has come");
        assert!(rates.learn_inbound(&[rate(1, 1_000_000), rate(2, 2_000_000)]));
        assert_eq!(rates.inbound(), Some(3e6));
        assert!(!rates.learn_inbound(&[rate(1, 3_100_000)]), "hardly more");
        assert!(!rates.learn_inbound(&[rate(1, 1_000_000)]), "less, as it asked for less");
    }
}
