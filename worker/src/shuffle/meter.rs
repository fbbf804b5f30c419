//! Rate of bytes from each other worker while requests are in flight, over the last seconds.
//!
//! Pure: time is an argument. The master compares the routes of all workers by it (`scheduler`, `ledger/rates`).

use crate::protocol::FetchRate;
use gristmill_scheduler::ids::WorkerId;
use gristmill_scheduler::units::{Bytes, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of samples over which a rate is computed; with heartbeats 0.5 s apart that is 3 s.
const LOOKS: usize = 6;

/// Maximum routes in one report; those with the longest busy time come first.
pub(crate) const RATES_MAX: usize = 64;

/// All routes with recent requests.
#[derive(Debug, Default)]
pub(crate) struct Meters(BTreeMap<WorkerId, Meter>);

#[derive(Debug, Default)]
struct Meter {
    /// Bytes received, including those of requests in flight.
    received: Arc<AtomicU64>,
    requests: u32,
    /// Start of the current requests, if there are any.
    since: Time,
    /// Time with requests before that.
    busy: Span,
    /// Bytes and busy time at the last samples; the first entry is the value before them.
    looks: VecDeque<(u64, Span)>,
}

impl Meters {
    /// Records a started request. Its received bytes are added to the returned counter.
    pub fn began(&mut self, from: WorkerId, now: Time) -> Arc<AtomicU64> {
        let nothing = || Meter { looks: VecDeque::from([(0, Span(0))]), ..Meter::default() };
        let meter = self.0.entry(from).or_insert_with(nothing);
        if meter.requests == 0 {
            meter.since = now;
        }
        meter.requests += 1;
        meter.received.clone()
    }

    /// Records an ended request.
    pub fn ended(&mut self, from: WorkerId, now: Time) {
        let Some(meter) = self.0.get_mut(&from) else { return };
        meter.requests -= 1;
        if meter.requests == 0 {
            meter.busy += now.since(meter.since);
        }
    }

    /// Returns the bytes on each route since the sample [`LOOKS`] ago, and the busy time. Routes without requests since
    /// then are dropped.
    pub fn sample(&mut self, now: Time) -> Vec<FetchRate> {
        let mut rates = Vec::new();
        self.0.retain(|&from, meter| {
            let open = if 0 < meter.requests { now.since(meter.since) } else { Span(0) };
            let seen = (meter.received.load(Ordering::Relaxed), meter.busy + open);
            let (bytes, busy) = meter.looks.front().copied().unwrap_or_default();
            meter.looks.push_back(seen);
            if LOOKS < meter.looks.len() {
                meter.looks.pop_front();
            }
            let busy = Span(seen.1.0 - busy.0);
            if busy == Span(0) {
                return 0 < meter.requests;
            }
            rates.push(FetchRate { from, bytes: Bytes(seen.0 - bytes), busy });
            true
        });
        rates.sort_by_key(|rate| std::cmp::Reverse(rate.busy));
        rates.truncate(RATES_MAX);
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WorkerId = WorkerId(1);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::milliseconds(ms)
    }

    #[test]
    fn only_time_with_requests_counts_once_however_many_there_are() {
        let mut meters = Meters::default();
        meters.began(A, at(0)).fetch_add(100, Ordering::Relaxed);
        meters.began(A, at(100));
        meters.ended(A, at(200));
        meters.ended(A, at(300));
        let rates = meters.sample(at(500));
        assert_eq!((rates[0].bytes, rates[0].busy), (Bytes(100), Span::milliseconds(300)));
    }

    #[test]
    fn bytes_of_a_request_in_flight_count_and_those_of_long_ago_do_not() {
        let mut meters = Meters::default();
        let received = meters.began(A, at(0));
        for look in 1..=20 {
            received.fetch_add(if look < 10 { 1000 } else { 10 }, Ordering::Relaxed);
            let rates = meters.sample(at(500 * look));
            assert_eq!(rates.len(), 1);
            if look == 20 {
                let (bytes, busy) = (rates[0].bytes.0, rates[0].busy.0);
                assert_eq!((bytes, busy), (60, Span::milliseconds(3000).0));
            }
        }
    }

    #[test]
    fn a_way_on_which_nothing_is_asked_for_is_forgotten() {
        let mut meters = Meters::default();
        meters.began(A, at(0));
        meters.ended(A, at(1));
        let told = (0..2 * LOOKS).map(|look| meters.sample(at(10 + look as u64)).len()).collect::<Vec<_>>();
        assert_eq!(told.iter().sum::<usize>(), LOOKS, "{told:?}");
        assert!(meters.0.is_empty());
    }
}
