//! Tests of two workers and the connections between them: the order of bytes on a paced network.
//!
//! The tests count the bytes of one job when another one is complete, so that a slow machine has no effect.

mod damage;
mod lies;

use super::fetch::{FetchError, FetchOutcome, Fetcher};
use super::pace::{InPace, OutPace};
use super::plan::{Fetch, FetchLimits, FetchPlan};
use super::serve::segments_at;
use super::store::SegmentStore;
use crate::budget::Budget;
use crate::http::{
    Access, Bind, Endpoint, Plaintext, Pool, RouteAuth, Secret, ServerConfig, Timeouts, Transport, serve,
};
use crate::protocol::{LaneOrder, LaneShare};
use crate::response;
use crate::segment::{MapOutput, SegmentOrder, SegmentsWriter, SpillCompression, SpillDirs, WriteSetting};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, WorkerId};
use gristmill_scheduler::units::Time;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

fn key() -> Secret {
    Secret::from_bytes([7; 32])
}

struct Open;

impl RouteAuth for Open {
    fn access(&self, _: &Method, _: &str, _: &str) -> Access {
        Access::Secret(key())
    }
}

fn attempt(job: u32, map: u32) -> AttemptId {
    TaskId::map(JobId(job), map).attempt(0)
}

/// Number of a job, its maps, and the approximate bytes of each for the only partition.
#[derive(Clone, Copy)]
struct Load {
    job: u32,
    maps: u32,
    bytes: usize,
}

fn output(load: Load, map: u32, spill: &SpillDirs) -> MapOutput {
    let setting = WriteSetting {
        job: JobId(load.job),
        map,
        epoch: 0,
        partitions: 1,
        order: SegmentOrder::Key,
        spill: spill.clone(),
        compression: SpillCompression::None,
    };
    let mut writer = SegmentsWriter::in_memory(setting, &Budget::new(usize::MAX), 0).unwrap();
    for pair in 0..load.bytes / 1024 {
        writer.pair(0, &(pair as u32).to_be_bytes(), &[map as u8; 1016]).unwrap();
    }
    writer.finish().unwrap()
}

/// Result of one map.
struct Came {
    job: u32,
    bytes: u64,
}

/// Worker that gathers, driven like a worker's control loop, and another one that has all outputs.
struct Pair {
    plan: FetchPlan,
    pace: InPace,
    fetcher: Fetcher,
    endpoint: Endpoint,
    began: Instant,
    in_flight: usize,
    sender: UnboundedSender<(Fetch, Vec<FetchOutcome>)>,
    results: UnboundedReceiver<(Fetch, Vec<FetchOutcome>)>,
    /// Results in the order of arrival.
    came: Vec<Came>,
    _spill: tempfile::TempDir,
}

impl Pair {
    async fn start(megabytes_per_second: u64, loads: &[Load]) -> Self {
        let rate = NonZeroU64::new(megabytes_per_second * 1_000_000).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let spill = SpillDirs::new(vec![directory.path().to_owned()]);
        let (source, home) = (SegmentStore::default(), SegmentStore::default());
        for &load in loads {
            for store in [&source, &home] {
                store.open_job(JobId(load.job), key(), load.maps);
            }
            home.home(JobId(load.job), 0, 0);
            for map in 0..load.maps {
                source.put_output(attempt(load.job, map), Arc::new(output(load, map, &spill)));
            }
        }
        let listener = Bind::loopback().listen().await.unwrap();
        let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), None);
        let out = OutPace::new(rate);
        out.keep_little_unsent(&listener).unwrap();
        let handler = move |request: Request<Incoming>| {
            let (store, out) = (source.clone(), out.clone());
            async move {
                match request.uri().path().strip_prefix("/shuffle/").and_then(|job| job.parse().ok()) {
                    Some(job) => segments_at(Some(&out), &store, job, request).await,
                    None => response::status(StatusCode::NOT_FOUND),
                }
            }
        };
        let config = Arc::new(ServerConfig::new(Transport::Plain));
        tokio::spawn(serve(listener, config, Arc::new(Open), handler, std::future::pending()));
        let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
        let fetcher = Fetcher { pool, store: home, budget: Budget::new(usize::MAX), spill, sees: None };
        let (sender, results) = unbounded_channel();
        Self {
            plan: FetchPlan::new(FetchLimits::default().paced(rate.get())),
            pace: InPace::start(rate),
            fetcher,
            endpoint,
            began: Instant::now(),
            in_flight: 0,
            sender,
            results,
            came: Vec::new(),
            _spill: directory,
        }
    }

    fn order(&mut self, grants: &[(u32, LaneShare)]) {
        let grants = grants.iter().map(|&(job, share)| (JobId(job), share)).collect();
        let order = LaneOrder { grants, ..LaneOrder::default() };
        self.plan.order(&order);
        self.pace.order(order);
    }

    fn announce(&mut self, load: Load) {
        for map in 0..load.maps {
            self.plan.announce(attempt(load.job, map), WorkerId(1), &self.endpoint);
        }
    }

    fn now(&self) -> Time {
        Time(self.began.elapsed().as_nanos() as u64)
    }

    /// Fetches until this many maps of this job have arrived.
    async fn until(&mut self, job: u32, maps: usize) {
        while self.came.iter().filter(|came| came.job == job).count() < maps {
            while let Some(fetch) = self.plan.next(self.now()) {
                let stream = self.pace.open(fetch.job, fetch.id);
                let (fetcher, sender) = (self.fetcher.clone(), self.sender.clone());
                self.in_flight += 1;
                tokio::spawn(async move {
                    let outcomes =
                        fetcher.fetch_through(&fetch, &key(), Some(&stream), &AtomicU64::new(0)).await;
                    drop(stream);
                    sender.send((fetch, outcomes))
                });
            }
            assert!(0 < self.in_flight, "nothing is under way");
            let (fetch, outcomes) = self.results.recv().await.unwrap();
            self.in_flight -= 1;
            for outcome in outcomes {
                assert!(outcome.error.is_none(), "{outcome:?}");
                self.came.push(Came { job: fetch.job.0, bytes: outcome.bytes });
                self.plan.arrived(fetch.id, outcome.map, outcome.bytes);
            }
            self.plan.ended(fetch.id);
        }
    }

    /// Returns the bytes by job that arrived after this many maps.
    fn bytes_after(&self, first: usize) -> BTreeMap<u32, u64> {
        let mut bytes = BTreeMap::new();
        for came in &self.came[first..] {
            *bytes.entry(came.job).or_default() += came.bytes;
        }
        bytes
    }
}

#[tokio::test]
async fn urgent_job_has_all_its_bytes_before_a_job_that_began_earlier_goes_on() {
    let (late, urgent) =
        (Load { job: 1, maps: 160, bytes: 64 << 10 }, Load { job: 2, maps: 64, bytes: 64 << 10 });
    let mut pair = Pair::start(20, &[late, urgent]).await;
    pair.order(&[(2, LaneShare::All), (1, LaneShare::All)]);
    pair.announce(late);
    pair.until(1, 20).await;
    pair.announce(urgent);
    let before = pair.came.len();
    pair.until(2, 64).await;
    let bytes = pair.bytes_after(before);
    // The two requests that were in flight, of a twentieth of a second each, part of which had arrived before.
    let beside = bytes.get(&1).copied().unwrap_or(0);
    assert!(beside <= 2 * 20_000_000 / 20, "{bytes:?}: more than was under way when the urgent job came");
    pair.until(1, 160).await;
}

#[tokio::test]
async fn large_segments_under_way_do_not_come_before_an_urgent_job() {
    let (late, urgent) =
        (Load { job: 1, maps: 2, bytes: 6 << 20 }, Load { job: 2, maps: 64, bytes: 64 << 10 });
    let first = Load { job: 3, maps: 1, bytes: 4 << 10 };
    let mut pair = Pair::start(20, &[late, urgent, first]).await;
    pair.order(&[(2, LaneShare::All), (3, LaneShare::All), (1, LaneShare::All)]);
    pair.announce(late);
    pair.announce(first);
    // The large ones are in flight now, and use all requests that they may.
    pair.until(3, 1).await;
    pair.announce(urgent);
    pair.until(2, 64).await;
    assert_eq!(
        pair.bytes_after(0).get(&1),
        None,
        "a large segment came before an urgent job that is smaller"
    );
    pair.until(1, 2).await;
}

#[tokio::test]
async fn bytes_flow_by_weight_while_both_jobs_have_something_to_fetch() {
    let (heavy, light) =
        (Load { job: 1, maps: 160, bytes: 40 << 10 }, Load { job: 2, maps: 60, bytes: 110 << 10 });
    let mut pair = Pair::start(20, &[heavy, light]).await;
    // Only complete maps are counted, so little may be in flight.
    pair.plan = FetchPlan::new(FetchLimits { request_bytes_max: 100_000, ..FetchLimits::default() });
    pair.order(&[(1, LaneShare::Weight(2.0)), (2, LaneShare::Weight(1.0))]);
    pair.announce(heavy);
    pair.announce(light);
    // Six MiB each: when the heavy one has five, the light one still has something to fetch.
    pair.until(1, 130).await;
    let bytes = pair.bytes_after(0);
    let share = bytes[&1] as f64 / bytes[&2] as f64;
    assert!((1.8..2.2).contains(&share), "{bytes:?}: two to one within a tenth");
}

#[tokio::test]
async fn request_that_gets_nothing_gives_all_its_maps_back_and_blames_nobody() {
    let (left_out, other) =
        (Load { job: 1, maps: 3, bytes: 8 << 10 }, Load { job: 2, maps: 3, bytes: 8 << 10 });
    let mut pair = Pair::start(20, &[left_out, other]).await;
    pair.pace = pair.pace.with_patience(Duration::from_millis(50));
    pair.pace.order(LaneOrder { grants: vec![(JobId(2), LaneShare::All)], ..LaneOrder::default() });
    let urgent = pair.pace.open(JobId(2), 0);
    let urgent = tokio::spawn(async move { urgent.pass(1 << 30).await });
    let maps: Vec<AttemptId> = (0..3).map(|map| attempt(1, map)).collect();
    let fetch = |id, job, maps| Fetch {
        id,
        from: WorkerId(1),
        endpoint: pair.endpoint.clone(),
        job: JobId(job),
        maps,
    };
    let stream = pair.pace.open(JobId(1), 1);
    let outcomes = pair
        .fetcher
        .fetch_through(&fetch(1, 1, maps.clone()), &key(), Some(&stream), &AtomicU64::new(0))
        .await;
    assert_eq!(outcomes.iter().map(|outcome| outcome.map).collect::<Vec<_>>(), maps);
    for outcome in &outcomes {
        assert!(outcome.filled.is_empty(), "{outcome:?}");
        assert!(outcome.error.as_ref().is_some_and(FetchError::is_preempted), "{outcome:?}");
    }
    urgent.abort();
    let stream = pair.pace.open(JobId(2), 2);
    let outcomes = pair
        .fetcher
        .fetch_through(&fetch(2, 2, vec![attempt(2, 0)]), &key(), Some(&stream), &AtomicU64::new(0))
        .await;
    assert_eq!(outcomes[0].filled, [0], "{outcomes:?}");
}
