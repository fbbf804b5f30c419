//! Tests of damaged segments: by the route, which recovers, or by the disk of their holder, which reports it.
//!
//! The holder has its own socket and its outputs in files; between it and the home a proxy flips bits.

use super::{Open, attempt, key};
use crate::budget::Budget;
use crate::http::{Bind, Endpoint, Plaintext, Pool, ServerConfig, Timeouts, Transport, serve};
use crate::response;
use crate::segment::{MapOutput, SegmentOrder, SegmentsWriter, SpillCompression, SpillDirs, WriteSetting};
use crate::shuffle::fetch::{FetchError, FetchOutcome, Fetcher};
use crate::shuffle::plan::{FetchLimits, FetchPlan};
use crate::shuffle::serve::segments;
use crate::shuffle::store::SegmentStore;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::Time;
use hyper::Request;
use hyper::body::Incoming;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Value of every pair, by which the proxy recognises them.
const VALUE: &[u8] = b"the value of a pair";

/// Builds an output with one pair, in its own file.
fn output(map: u32, spill: &SpillDirs) -> MapOutput {
    let setting = WriteSetting {
        job: JobId(1),
        map,
        epoch: 0,
        partitions: 1,
        order: SegmentOrder::Key,
        spill: spill.clone(),
        compression: SpillCompression::None,
    };
    let mut writer = SegmentsWriter::on_disk(setting).unwrap();
    writer.pair(0, b"key", VALUE).unwrap();
    writer.finish().unwrap()
}

/// Holder of two outputs, and a home that lacks both, behind a proxy that flips a bit this many times.
struct Pair {
    holder: SegmentStore,
    home: Fetcher,
    plan: FetchPlan,
    /// Number of flips that the proxy still has to make.
    flips: Arc<AtomicU32>,
    _spill: tempfile::TempDir,
}

impl Pair {
    async fn start(flips: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let spill = SpillDirs::new(vec![directory.path().to_owned()]);
        let (holder, store) = (SegmentStore::default(), SegmentStore::default());
        for each in [&holder, &store] {
            each.open_job(JobId(1), key(), 2);
        }
        store.home(JobId(1), 0, 0);
        for map in 0..2 {
            holder.put_output(attempt(1, map), Arc::new(output(map, &spill)));
        }
        let listener = Bind::loopback().listen().await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = holder.clone();
        let handler = move |request: Request<Incoming>| {
            let store = served.clone();
            async move {
                match request.uri().path().strip_prefix("/shuffle/").and_then(|job| job.parse().ok()) {
                    Some(job) => segments(&store, job, request).await,
                    None => response::status(hyper::StatusCode::NOT_FOUND),
                }
            }
        };
        // Also under the port of the proxy.
        let host_names = vec!["127.0.0.1".to_owned()];
        let config = Arc::new(ServerConfig { host_names, ..ServerConfig::new(Transport::Plain) });
        tokio::spawn(serve(listener, config, Arc::new(Open), handler, std::future::pending()));
        let flips = Arc::new(AtomicU32::new(flips));
        let endpoint = Endpoint::of_address(proxy(address, flips.clone()), None);
        let pool = Pool::new(Timeouts::default(), Plaintext::Everywhere);
        let home = Fetcher { pool, store, budget: Budget::new(usize::MAX), spill, sees: None };
        let mut plan = FetchPlan::new(FetchLimits::default());
        for map in 0..2 {
            plan.announce(attempt(1, map), WorkerId(7), &endpoint);
        }
        Self { holder, home, plan, flips, _spill: directory }
    }

    async fn fetch(&mut self) -> Vec<FetchOutcome> {
        let fetch = self.plan.next(Time(0)).unwrap();
        let mut outcomes = self.home.fetch(&fetch, &key()).await;
        outcomes.sort_by_key(|outcome| outcome.map);
        outcomes
    }

    fn held(&self, map: u32) -> bool {
        self.holder.output(JobId(1), map, 0).is_some()
    }
}

/// Copies bytes in both directions, and flips a bit in the value of a pair, this many times.
fn proxy(to: SocketAddr, flips: Arc<AtomicU32>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((home, _)) = listener.accept() {
            let holder = TcpStream::connect(to).unwrap();
            let (asked, answered) = (home.try_clone().unwrap(), holder.try_clone().unwrap());
            let flips = flips.clone();
            std::thread::spawn(move || hand_on(asked, holder, |_| {}));
            std::thread::spawn(move || {
                hand_on(answered, home, |bytes| {
                    let take = |left: u32| left.checked_sub(1);
                    let places: Vec<usize> = memchr::memmem::find_iter(bytes, VALUE).collect();
                    for at in places {
                        if flips.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                            bytes[at] ^= 1;
                        }
                    }
                });
            });
        }
    });
    address
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, mut treat: impl FnMut(&mut [u8])) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(got @ 1..) = from.read(&mut bytes) {
        treat(&mut bytes[..got]);
        if to.write_all(&bytes[..got]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[tokio::test]
async fn segment_that_the_way_damages_once_is_fetched_again_and_counted() {
    let mut pair = Pair::start(1).await;
    let outcomes = pair.fetch().await;
    assert_eq!(pair.flips.load(Ordering::Relaxed), 0, "the proxy has flipped nothing");
    assert!(outcomes.iter().all(|outcome| outcome.error.is_none() && outcome.filled == [0]), "{outcomes:?}");
    assert_eq!(outcomes.iter().map(|outcome| outcome.resent).sum::<u32>(), 1);
    assert!(pair.held(0) && pair.held(1));
}

#[tokio::test]
async fn segments_that_the_way_damages_each_time_are_given_up_and_the_holder_is_not_blamed() {
    let mut pair = Pair::start(u32::MAX).await;
    for outcome in pair.fetch().await {
        let Some(error @ FetchError::Garbled { times, .. }) = &outcome.error else { panic!("{outcome:?}") };
        assert_eq!((*times, outcome.resent), (4, 3), "{error}");
    }
    assert!(pair.held(0) && pair.held(1), "a holder whose copy is whole keeps it");
}

#[tokio::test]
async fn segment_that_the_disk_of_its_holder_has_damaged_is_given_up_there_and_named() {
    let mut pair = Pair::start(0).await;
    let damaged = pair.holder.output(JobId(1), 1, 0).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(damaged.path().unwrap()).unwrap();
    let bytes = std::fs::read(damaged.path().unwrap()).unwrap();
    let at = bytes.windows(VALUE.len()).position(|window| window == VALUE).unwrap();
    file.write_all_at(&[bytes[at] ^ 1], at as u64).unwrap();
    let outcomes = pair.fetch().await;
    assert!(outcomes[0].error.is_none() && outcomes[0].filled == [0], "{outcomes:?}");
    let Some(FetchError::Damaged { map, .. }) = &outcomes[1].error else { panic!("{outcomes:?}") };
    assert_eq!((*map, outcomes[1].resent), (attempt(1, 1), 0));
    assert!(pair.held(0) && !pair.held(1), "the damaged output alone is given up");
}

#[tokio::test]
async fn segment_that_the_disk_of_its_holder_does_not_give_back_is_missing_when_it_is_asked_for_again() {
    let mut pair = Pair::start(0).await;
    let cut = pair.holder.output(JobId(1), 1, 0).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(cut.path().unwrap()).unwrap();
    file.set_len(0).unwrap();
    let fetch = pair.plan.next(Time(0)).unwrap();
    let outcomes = pair.home.fetch(&fetch, &key()).await;
    let broken = outcomes.iter().find(|outcome| outcome.map == attempt(1, 1)).unwrap();
    assert!(matches!(broken.error, Some(FetchError::Request { .. })), "{broken:?}");
    let holder = pair.holder.clone();
    let given_up = async {
        while holder.output(JobId(1), 1, 0).is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), given_up).await.unwrap();
    let outcomes = pair.home.fetch(&fetch, &key()).await;
    let missing = outcomes.iter().find(|outcome| outcome.map == attempt(1, 1)).unwrap();
    assert!(matches!(missing.error, Some(FetchError::Missing { .. })), "{missing:?}");
    assert!(pair.held(0), "the other output stays");
}
