//! Segments from one worker's shuffle server to another worker's store over loopback HTTP, one request after another,
//! in segments/s and bytes/s: requested, sent, received, verified and stored.
//!
//! `many small` measures the cost of a segment of any size: their number, maps times reduces, must not be the
//! bottleneck. `few large` measures the copies: HTTP/1.1 moves 1.9 GB/s with the server and the client on a core each,
//! and the fetching side should read directly into the final buffer. The order of fetches, concurrent requests, TLS and
//! a network are not included.

use crate::data::{SHRINK, draw};
use crate::slow_group;
use crate::task::JOB;
use criterion::{BatchSize, Criterion, Throughput};
use gristmill::scheduler::ids::{AttemptId, JobId, TaskId, WorkerId};
use gristmill::worker::budget::Budget;
use gristmill::worker::http::{
    Access, Bind, Endpoint, Plaintext, Pool, RouteAuth, Secret, ServerConfig, Timeouts, Transport, serve,
};
use gristmill::worker::response;
use gristmill::worker::segment::{
    MapOutput, SegmentOrder, SegmentsWriter, SpillCompression, SpillDirs, WriteSetting,
};
use gristmill::worker::shuffle::fetch::Fetcher;
use gristmill::worker::shuffle::plan::Fetch;
use gristmill::worker::shuffle::serve::segments;
use gristmill::worker::shuffle::store::Store;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use std::cell::LazyCell;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Maps in one request, as many as a worker requests at once.
const MAPS_PER_REQUEST: u32 = 16;
/// Bytes of a value in a segment.
const VALUE_BYTES: u64 = 200;

/// Number and size of the segments to fetch.
#[derive(Clone, Copy)]
struct Shape {
    maps: u32,
    partitions: u32,
    pairs_per_segment: u64,
    on_disk: bool,
}

const MANY_SMALL: Shape = Shape { maps: 64, partitions: 64, pairs_per_segment: 2, on_disk: false };
const FEW_LARGE: Shape = Shape { maps: 4, partitions: 2, pairs_per_segment: 16_000 / SHRINK, on_disk: false };

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "fetch");
    for (name, shape) in [
        ("many small segments", MANY_SMALL),
        ("few large segments", FEW_LARGE),
        ("few large segments from disk", Shape { on_disk: true, ..FEW_LARGE }),
    ] {
        let segments = u64::from(shape.maps * shape.partitions);
        let bytes = segments * shape.pairs_per_segment * VALUE_BYTES;
        group.throughput(Throughput::ElementsAndBytes { elements: segments, bytes });
        let pair = LazyCell::new(|| Pair::new(shape));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(|| pair.fetcher(), |fetcher| pair.fetch(fetcher), BatchSize::PerIteration);
        });
    }
    group.finish();
}

/// Allows access to segments with the job's key, as a worker does.
struct OpenAuth(Store);

impl RouteAuth for OpenAuth {
    fn access(&self, method: &Method, path: &str, _: &str) -> Access {
        let job = path.strip_prefix("/shuffle/").and_then(|job| job.parse::<JobId>().ok());
        match job {
            Some(job) if method == Method::POST => self.0.key(job).map_or(Access::Closed, Access::Secret),
            _ => Access::Closed,
        }
    }
}

/// Shuffle server of one worker, on its own thread.
struct SegmentServer {
    endpoint: Endpoint,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SegmentServer {
    fn start(store: Store) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let listener = Bind::loopback().listen().await.expect("loopback has free ports");
                let address = listener.local_addr().expect("the listener is open");
                tell.send(address).expect("the other thread waits for it");
                let auth = Arc::new(OpenAuth(store.clone()));
                let handler = move |request: Request<Incoming>| {
                    let store = store.clone();
                    async move {
                        let path = request.uri().path();
                        match path.strip_prefix("/shuffle/").and_then(|job| job.parse().ok()) {
                            Some(job) => segments(&store, job, request).await,
                            None => response::status(StatusCode::NOT_FOUND),
                        }
                    }
                };
                let config = Arc::new(ServerConfig::new(Transport::Plain));
                serve(listener, config, auth, handler, async { drop(stopped.await) }).await;
            });
        });
        let address = told.recv().expect("the server says where it listens");
        Self { endpoint: Endpoint::of_address(address, None), stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for SegmentServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic");
        }
    }
}

fn runtime() -> Runtime {
    // Workers drive their connections with one thread too.
    Builder::new_current_thread().enable_all().build().expect("the system has room for an event loop")
}

/// Worker that has outputs, and one that fetches them.
struct Pair {
    // First, so that connections are closed before the server waits for them.
    pool: Pool,
    runtime: Runtime,
    server: SegmentServer,
    key: Secret,
    shape: Shape,
    spill: SpillDirs,
    _folder: TempDir,
}

impl Pair {
    fn new(shape: Shape) -> Self {
        let folder = tempfile::tempdir().expect("the folder for temporary files can be written");
        let spill = SpillDirs::new(vec![folder.path().to_owned()]);
        let key = Secret::from_bytes([7; 32]);
        let store = Store::default();
        store.open_job(JOB, key.clone(), shape.maps);
        for map in 0..shape.maps {
            store.put_output(attempt(map), Arc::new(output(shape, map, &spill)));
        }
        Self {
            pool: Pool::new(Timeouts::default(), Plaintext::OnLoopback),
            runtime: runtime(),
            server: SegmentServer::start(store),
            key,
            shape,
            spill,
            _folder: folder,
        }
    }

    /// Returns a worker that is the keep of all partitions and has no segments yet.
    fn fetcher(&self) -> Fetcher {
        let store = Store::default();
        store.open_job(JOB, self.key.clone(), self.shape.maps);
        for partition in 0..self.shape.partitions {
            store.home(JOB, partition);
        }
        Fetcher {
            pool: self.pool.clone(),
            store,
            budget: Budget::new(usize::MAX),
            spill: self.spill.clone(),
            sees: None,
        }
    }

    /// Fetches everything. Returns the fetcher, so that its data is not dropped while the time is measured.
    fn fetch(&self, fetcher: Fetcher) -> Fetcher {
        self.runtime.block_on(async {
            let maps: Vec<AttemptId> = (0..self.shape.maps).map(attempt).collect();
            for (id, maps) in maps.chunks(MAPS_PER_REQUEST as usize).enumerate() {
                let fetch = Fetch {
                    id: id as u64,
                    from: WorkerId(1),
                    endpoint: self.server.endpoint.clone(),
                    job: JOB,
                    maps: maps.to_vec(),
                };
                for outcome in fetcher.fetch(&fetch, &self.key).await {
                    assert!(outcome.error.is_none(), "{outcome:?}");
                    assert_eq!(outcome.filled.len(), self.shape.partitions as usize, "{outcome:?}");
                }
            }
        });
        fetcher
    }
}

fn attempt(map: u32) -> AttemptId {
    TaskId::map(JOB, map).attempt(0)
}

/// Builds the output of one map: pairs of a number and bytes that do not compress.
fn output(shape: Shape, map: u32, spill: &SpillDirs) -> MapOutput {
    let setting = WriteSetting {
        job: JOB,
        map,
        epoch: 0,
        partitions: shape.partitions,
        order: SegmentOrder::Key,
        spill: spill.clone(),
        compression: SpillCompression::None,
    };
    let writer = if shape.on_disk {
        SegmentsWriter::on_disk(setting)
    } else {
        SegmentsWriter::in_memory(setting, &Budget::new(usize::MAX), 0)
    };
    let mut writer = writer.expect("a spill file can be created");
    let value: Vec<u8> =
        (0..VALUE_BYTES / 8).flat_map(|index| draw(u64::from(map), index).to_le_bytes()).collect();
    for partition in 0..shape.partitions {
        for pair in 0..shape.pairs_per_segment {
            writer.pair(partition, &pair.to_be_bytes(), &value).expect("a spill file can be written");
        }
    }
    writer.finish().expect("a spill file can be written")
}
