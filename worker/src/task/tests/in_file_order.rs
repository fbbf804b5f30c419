//! Tests of sending the order of pairs in a file to a worker that can read the same file.

use super::super::*;
use super::in_file::{Setup, setup};
use super::runner::JOB;
use crate::budget::Budget;
use crate::http::{
    Access, Bind, Endpoint, Plaintext, Pool, RouteAuth, Secret, ServerConfig, Timeouts, Transport, serve,
};
use crate::machine::files_seen;
use crate::response;
use crate::segment::{InFileSegment, MapOutput, ReceivedOrder, SegmentError, SegmentId, SpillDirs};
use crate::shuffle::fetch::{FetchOutcome, Fetcher};
use crate::shuffle::plan::Fetch;
use crate::shuffle::serve::segments;
use crate::shuffle::store::SegmentStore;
use gristmill_scheduler::ids::{AttemptId, TaskId, WorkerId};
use hyper::body::Incoming;
use hyper::{Method, Request};

const PARTITIONS: u32 = 3;

fn attempt(map: usize) -> AttemptId {
    TaskId::map(JOB, map as u32).attempt(0)
}

fn key() -> Secret {
    Secret::from_bytes([7; 32])
}

struct Open;

impl RouteAuth for Open {
    fn access(&self, _: &Method, _: &str, _: &str) -> Access {
        Access::Secret(key())
    }
}

/// Returns what a worker with this memory receives of all outputs, and the number of bytes.
fn fetched(
    outputs: Vec<MapOutput>,
    memory_bytes: usize,
    sees: Option<String>,
) -> (Vec<Vec<SegmentData>>, u64) {
    let (source, home) = (SegmentStore::default(), SegmentStore::default());
    let maps = outputs.len();
    for store in [&source, &home] {
        store.open_job(JOB, key(), maps as u32);
    }
    for (map, output) in outputs.into_iter().enumerate() {
        source.put_output(attempt(map), Arc::new(output));
    }
    for partition in 0..PARTITIONS {
        home.home(JOB, partition, partition);
    }
    let directory = tempfile::tempdir().unwrap();
    let spill = SpillDirs::new(vec![directory.path().to_owned()]);
    let fetcher = Fetcher {
        pool: Pool::new(Timeouts::default(), Plaintext::OnLoopback),
        store: home.clone(),
        budget: Budget::new(memory_bytes),
        spill,
        sees,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcomes: Vec<FetchOutcome> = runtime.block_on(async {
        let listener = Bind::loopback().listen().await.unwrap();
        let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), None);
        let handler = move |request: Request<Incoming>| {
            let store = source.clone();
            async move {
                match request.uri().path().strip_prefix("/shuffle/").and_then(|job| job.parse().ok()) {
                    Some(job) => segments(&store, job, request).await,
                    None => response::status(hyper::StatusCode::NOT_FOUND),
                }
            }
        };
        let config = Arc::new(ServerConfig::new(Transport::Plain));
        tokio::spawn(serve(listener, config, Arc::new(Open), handler, std::future::pending()));
        let fetch =
            Fetch { id: 1, from: WorkerId(1), endpoint, job: JOB, maps: (0..maps).map(attempt).collect() };
        fetcher.fetch(&fetch, &key()).await
    });
    assert_eq!(outcomes.len(), maps);
    for outcome in &outcomes {
        assert!(outcome.error.is_none(), "{outcome:?}");
        assert_eq!(outcome.filled, [0, 1, 2], "{outcome:?}");
    }
    let gathered = (0..PARTITIONS).map(|partition| {
        let held = home.complete(JOB, partition, &[]).unwrap();
        held.into_iter().map(|held| held.data).collect()
    });
    (gathered.collect(), outcomes.iter().map(|outcome| outcome.bytes).sum())
}

fn is_in_file(data: &SegmentData) -> bool {
    matches!(data, SegmentData::InFile(_))
}

fn reduced(setup: &Setup, gathered: Vec<Vec<SegmentData>>) -> Vec<String> {
    let part = |(partition, segments)| setup.bench.reduce(&setup.plan, partition as u32, segments).unwrap().0;
    gathered.into_iter().enumerate().map(part).collect()
}

#[test]
fn a_worker_that_sees_the_same_file_gets_the_order_alone() {
    let setup = setup(1 << 30, PARTITIONS);
    let expected = setup.parts(&setup.maps()).unwrap();
    let (order, order_bytes) = fetched(setup.maps(), 1 << 30, files_seen());
    assert!(order.iter().flatten().all(|data| data.is_empty() || is_in_file(data)));
    let (whole, whole_bytes) = fetched(setup.maps(), 1 << 30, None);
    assert!(!whole.iter().flatten().any(is_in_file));
    let (other, other_bytes) = fetched(setup.maps(), 1 << 30, Some("another machine".to_owned()));
    assert!(!other.iter().flatten().any(is_in_file));
    assert_eq!(other_bytes, whole_bytes);
    assert!(order_bytes * 2 < whole_bytes, "{order_bytes} of {whole_bytes} bytes were sent");
    for gathered in [order, whole, other] {
        assert!(reduced(&setup, gathered) == expected);
    }
}

#[test]
fn an_order_of_no_use_is_followed_by_all_bytes() {
    let setup = setup(1 << 30, PARTITIONS);
    let expected = setup.parts(&setup.maps()).unwrap();
    // Without memory even for the order, all bytes go to disk.
    let (gathered, _) = fetched(setup.maps(), 0, files_seen());
    let on_disk = |data: &SegmentData| data.is_empty() || matches!(data, SegmentData::File { .. });
    assert!(gathered.iter().flatten().all(on_disk));
    assert!(reduced(&setup, gathered) == expected);
}

/// Returns an order as it is sent, with its segment.
fn sent(setup: &Setup) -> (InFileSegment, Vec<u8>, SegmentId) {
    let Some(SegmentData::InFile(segment)) = setup.maps()[0].segment(1) else {
        panic!("it lies in its file")
    };
    let (mut bytes, mut next, mut checksum) = (Vec::new(), 0, 0);
    while next < segment.header().records as usize {
        next = segment.put_order(next, &mut checksum, 1000, &mut bytes);
    }
    assert_eq!(bytes.len() as u64, segment.order_bytes());
    let id = segment.header().id;
    (segment, bytes, id)
}

fn received(
    segment: &InFileSegment,
    bytes: &[u8],
    id: SegmentId,
    pieces: usize,
) -> Result<InFileSegment, SegmentError> {
    let (place, start) = segment.place();
    let file = crate::input::open_mapped(place).unwrap().unwrap();
    let mut receiving = ReceivedOrder::receive(ReceivedOrder::pairs(bytes.len() as u64).unwrap());
    bytes.chunks(pieces).for_each(|piece| receiving.push(piece));
    InFileSegment::received(receiving.finish(), id, file, start, Budget::new(1).try_reserve(0).unwrap())
}

#[test]
fn an_order_may_come_in_any_pieces_and_no_damage_goes_unnoticed() {
    let setup = setup(1 << 30, PARTITIONS);
    let (segment, bytes, id) = sent(&setup);
    for pieces in [1, 7, 16, 47, 4096, bytes.len()] {
        assert_eq!(received(&segment, &bytes, id, pieces).unwrap().header(), segment.header());
    }
    for at in (0..bytes.len()).step_by(61) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let error = received(&segment, &damaged, id, 4096).unwrap_err();
        assert!(matches!(error, SegmentError::Header { .. } | SegmentError::Block { .. }), "{at}: {error}");
    }
    let other = SegmentId { map: id.map + 1, ..id };
    let error = received(&segment, &bytes, other, 4096).unwrap_err();
    assert!(matches!(error, SegmentError::Identity { .. }), "{error}");
}

#[test]
fn a_file_that_has_changed_is_not_mapped_for_an_order() {
    let setup = setup(1 << 30, PARTITIONS);
    let (segment, ..) = sent(&setup);
    std::fs::write(&setup.path, "other lines\n".repeat(60_000)).unwrap();
    assert!(crate::input::open_mapped(segment.place().0).is_err());
}
