//! Tests of a worker from the side of its master, without a network between them: suspension, pools, pace.

use super::control::JoinedWorker;
use super::*;
use crate::api::{Input, JobPlan, Mapper, PlanError, Reducer, TaskContext, TaskResult};
use crate::collect::Emitter;
use crate::commit::{built_name, part_name};
use crate::http::{Bind, Permissions, Secret, Token};
use crate::input::record::{Record, RecordFormat};
use crate::input::{Compression, FilePath, FileStamp, Split};
use crate::merge::Values;
use crate::output::Output;
use crate::output::PartFormat;
use crate::protocol::{
    AttemptReport, FailureClass, FrameReader, JobOrder, MasterFrame, RecordLimits, Session, Slots,
    WorkerFrame,
};
use crate::segment::KeyBounds;
use crate::shuffle::plan::FetchLimits;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::units::Bytes;
use std::collections::VecDeque;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};

const WORKER: WorkerId = WorkerId(3);
const PARTITIONS: u32 = 2;
const KEYS: u32 = 60;
/// Timeout, longer than anything in these tests takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Blocks reducers at each group until they are released.
struct Gate {
    /// Number of groups of each partition that may start.
    let_in: Mutex<[u32; PARTITIONS as usize]>,
    changed: Condvar,
    /// Receives the partition of each group that is ready to start.
    arrivals: UnboundedSender<u32>,
}

impl Gate {
    fn enter(&self, partition: u32) {
        let _ = self.arrivals.send(partition);
        let mut let_in = self.let_in.lock().unwrap();
        while let_in[partition as usize] == 0 {
            let_in = self.changed.wait(let_in).unwrap();
        }
        let left = &mut let_in[partition as usize];
        *left = left.saturating_sub(u32::from(*left != u32::MAX));
    }

    fn let_in(&self, partition: u32, groups: u32) {
        self.let_in.lock().unwrap()[partition as usize] = groups;
        self.changed.notify_all();
    }
}

struct Keys;
impl Mapper for Keys {
    type Key = String;
    type Value = u64;
    fn map(&mut self, _: Record<'_>, _: &mut Emitter<String, u64>) -> TaskResult {
        Ok(())
    }
    fn finish(&mut self, out: &mut Emitter<String, u64>) -> TaskResult {
        (0..KEYS).for_each(|number| out.emit(&format!("key {number:03}"), u64::from(number)));
        Ok(())
    }
}

struct Numbered {
    gate: Arc<Gate>,
    partition: u32,
    number: u64,
}
impl Reducer for Numbered {
    type Key = String;
    type Value = u64;
    fn setup(&mut self, task: &TaskContext, out: &mut Output) -> TaskResult {
        self.partition = task.task().index;
        task.counter("parts").add(1);
        out.line(b"begin");
        Ok(())
    }
    fn reduce(&mut self, key: &str, values: &mut Values<'_, String, u64>, out: &mut Output) -> TaskResult {
        self.gate.enter(self.partition);
        self.number += 1;
        out.pair(key, values.iter().sum::<u64>() + self.number);
        Ok(())
    }
}

struct Source(Arc<Gate>);
impl JobSource for Source {
    fn plan(&self, _: &str, _: &str) -> Result<JobPlan, PlanError> {
        let gate = self.0.clone();
        let reducer = move || Numbered { gate: gate.clone(), partition: 0, number: 0 };
        Ok(JobPlan::map(Input::bare_tasks(1), || Keys).reduce(reducer))
    }
}

/// Worker and the master's end of its connection.
struct TestMaster {
    orders: Sender<Vec<MasterFrame>>,
    said: UnboundedReceiver<Vec<u8>>,
    received: VecDeque<WorkerFrame>,
    endpoint: Endpoint,
    gate: Arc<Gate>,
    arrivals: UnboundedReceiver<u32>,
    output: PathBuf,
    /// Destination of parts if the worker does not see the output.
    submitter: Option<Endpoint>,
    /// Number of parts of its jobs, some of which are produced.
    parts: u32,
    compression: Compression,
    _stop: tokio::sync::watch::Sender<bool>,
    _spill: tempfile::TempDir,
}

impl TestMaster {
    async fn start(slots: Slots, speed: f64, output: &std::path::Path) -> Self {
        let spill = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint::of_address(address, None);
        let config = WorkerConfig {
            master: endpoint.clone(),
            token: Token::derive(&Secret::from_bytes([7; 32]), "work@0").unwrap(),
            ended_proof: Secret::from_bytes([8; 32]),
            settings: WorkerSettings {
                speed,
                disk_reserve: Bytes::mib(0),
                ..WorkerSettings::new(slots, Bytes::mib(256))
            },
            spill_dirs: vec![spill.path().to_owned()],
            bind: Bind {
                address,
                last_port: 0,
                transport: Transport::Plain,
                permissions: Permissions::default(),
            },
            host: "here".into(),
            build: "this".into(),
            join_patience: TIMEOUT,
            master_silence_max: TIMEOUT,
            leave_max: TIMEOUT,
            fetch: FetchLimits::default(),
            capture: None,
        };
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let store = SegmentStore::default();
        serve_shuffle(listener, &config, store.clone(), Arc::default(), stopped.clone());
        let (orders, incoming) = channel(16);
        let (frames, said) = unbounded_channel();
        let (arrivals_in, arrivals) = unbounded_channel();
        let gate = Gate { let_in: Mutex::default(), changed: Condvar::new(), arrivals: arrivals_in };
        let gate = Arc::new(gate);
        let source = Arc::new(Source(gate.clone()));
        let joined = JoinedWorker {
            worker: WORKER,
            store,
            epoch: Instant::now(),
            frames,
            written: tokio::spawn(async {}),
            session: Session { generation: 1, returns: false, heard: 0 },
            hello: introduction(&config, endpoint.clone(), Duration::ZERO),
        };
        let mut agent = Agent::new(config, source, joined).unwrap();
        tokio::spawn(async move {
            agent.drive(incoming, EndRequests::at_once(stopped), 20).await;
            let _ = agent.leave().await;
        });
        let (output, received) = (output.to_owned(), VecDeque::new());
        Self {
            orders,
            said,
            received,
            endpoint,
            gate,
            arrivals,
            output,
            submitter: None,
            parts: PARTITIONS,
            compression: Compression::None,
            _stop: stop,
            _spill: spill,
        }
    }

    async fn order(&self, frames: Vec<MasterFrame>) {
        self.orders.send(frames).await.unwrap();
    }

    /// Returns the next frame that `pick` accepts, and discards earlier ones.
    async fn waits_for<T>(&mut self, what: &str, pick: impl Fn(&WorkerFrame) -> Option<T>) -> T {
        let hearing = async {
            loop {
                while let Some(frame) = self.received.pop_front() {
                    if let Some(found) = pick(&frame) {
                        return found;
                    }
                    assert!(
                        !matches!(frame, WorkerFrame::AttemptFailed { .. }),
                        "{frame:?} instead of {what}"
                    );
                }
                let bytes = self.said.recv().await.unwrap();
                let mut reader = FrameReader::new(Cursor::new(bytes), 1 << 20);
                while let Some(frame) = reader.next().await.unwrap() {
                    self.received.push_back(frame);
                }
            }
        };
        tokio::time::timeout(TIMEOUT, hearing).await.unwrap_or_else(|_| panic!("never heard of {what}"))
    }

    /// Waits until the worker has executed all orders so far.
    async fn has_handled_all(&mut self) {
        self.order(vec![MasterFrame::Ping { master_ns: 5 }]).await;
        self.waits_for("a pong", |frame| matches!(frame, WorkerFrame::Pong { .. }).then_some(())).await;
    }

    fn job(&self, job: JobId) -> MasterFrame {
        MasterFrame::Job(Box::new(JobOrder {
            job,
            name: "numbered".into(),
            parameters: String::new(),
            maps: 1,
            partitions: self.parts,
            cuts: Vec::new(),
            key: Secret::from_bytes([9; 32]),
            output: FilePath::from(&*self.output),
            output_probe: format!("probe-{job}").parse().unwrap(),
            part_format: self.compression.into(),
            side: Vec::new(),
            submitter: self.submitter.clone(),
            peers: Vec::new(),
            limits: RecordLimits { record_bytes_max: 1 << 20, expansion_max: 10, bad_records_max: 0 },
            sync: false,
            hang_ms: 30_000,
        }))
    }

    /// Runs the map of a job and gathers all its partitions.
    async fn maps(&mut self, job: JobId) {
        let map = TaskId::map(job, 0).attempt(0);
        let split = Split { input: 0, format: RecordFormat::Lines, pieces: Vec::new() };
        self.order(vec![self.job(job), MasterFrame::LaunchMap { attempt: map, split, alone: false }]).await;
        self.waits_for("a map", |frame| matches!(frame, WorkerFrame::MapFinished { .. }).then_some(())).await;
        self.gathers(job, WORKER, self.endpoint.clone()).await;
    }

    /// Gathers all partitions of a job from this worker.
    async fn gathers(&mut self, job: JobId, from: WorkerId, endpoint: Endpoint) {
        let mut orders: Vec<MasterFrame> = (0..PARTITIONS)
            .map(|partition| MasterFrame::Home { job, reduce: partition, partition })
            .collect();
        let maps = vec![TaskId::map(job, 0).attempt(0)];
        orders.push(MasterFrame::Announce { maps, from, endpoint });
        self.order(orders).await;
        self.waits_for("segments", |frame| matches!(frame, WorkerFrame::Fetched { .. }).then_some(())).await;
    }

    async fn launches(&mut self, attempt: AttemptId) {
        let (empty, added) = (Vec::new(), Vec::new());
        self.order(vec![MasterFrame::LaunchReduce {
            attempt,
            empty,
            added,
            alone: false,
            partition: attempt.task.index,
            bounds: KeyBounds::default(),
        }])
        .await;
    }

    /// Permits the attempt to publish, and returns its part and report.
    async fn publishes(&mut self, attempt: AttemptId) -> (String, AttemptReport) {
        let asks = |frame: &WorkerFrame| {
            matches!(frame, WorkerFrame::CommitRequest { attempt: asking } if *asking == attempt)
                .then_some(())
        };
        self.waits_for("a built part", asks).await;
        self.order(vec![MasterFrame::CommitGranted { attempt, permit: Secret::from_bytes([8; 32]) }]).await;
        let (part, stamp, report) = self
            .waits_for("a part", |frame| match frame {
                WorkerFrame::PartFinished { part, stamp, report, .. } => {
                    Some((part.clone(), *stamp, report.clone()))
                }
                _ => None,
            })
            .await;
        let stored = std::fs::read(self.built(attempt)).unwrap();
        assert_eq!(stamp, FileStamp::from_metadata(&std::fs::metadata(self.built(attempt)).unwrap()));
        assert_eq!(part.name, part_name(attempt.task.index, self.parts, self.compression.into()));
        assert_eq!((part.bytes, part.crc32c), (stored.len() as u64, crc32c::crc32c(&stored)));
        assert_eq!(report.bytes_out, part.bytes);
        (String::from_utf8(stored).unwrap(), report)
    }

    /// Returns the path of the file in which an attempt builds its part.
    fn built(&self, attempt: AttemptId) -> PathBuf {
        let built = built_name(&format!("probe-{}", attempt.task.job).parse().unwrap(), attempt);
        self.output.join("_temporary").join(built)
    }

    /// Suspends an attempt that has started a group and is blocked in it.
    async fn suspends(&mut self, attempt: AttemptId) {
        self.order(vec![MasterFrame::Suspend { attempt }]).await;
        self.has_handled_all().await;
        self.gate.let_in(attempt.task.index, 1);
        let is_it = |frame: &WorkerFrame| {
            matches!(frame, WorkerFrame::Suspended { attempt: stopped } if *stopped == attempt).then_some(())
        };
        self.waits_for("a suspension", is_it).await;
    }

    /// Returns the class and message of the next failed attempt.
    async fn fails(&mut self, attempt: AttemptId) -> (FailureClass, String) {
        self.waits_for("a failure", |frame| match frame {
            WorkerFrame::AttemptFailed { attempt: failed, class, message, .. } if *failed == attempt => {
                Some((*class, message.clone()))
            }
            _ => None,
        })
        .await
    }
}

/// Creates an output directory that workers see.
fn output() -> tempfile::TempDir {
    let output = tempfile::tempdir().unwrap();
    std::fs::create_dir(output.path().join("_temporary")).unwrap();
    for job in 1..=2 {
        std::fs::write(output.path().join(format!("_temporary/probe-job-{job}")), "").unwrap();
    }
    output
}

fn reduce(job: JobId, partition: u32) -> AttemptId {
    TaskId::reduce(job, partition).attempt(0)
}

fn counter(report: &AttemptReport) -> &[(String, u64)] {
    &report.counters
}

#[tokio::test]
async fn a_suspended_reduce_leaves_its_slot_to_others_and_goes_on_in_it_later() {
    let output = output();
    let mut master = TestMaster::start(Slots::Unified(1), 1.0, output.path()).await;
    let (job, [long, short]) = (JobId(1), [0, 1].map(|partition| reduce(JobId(1), partition)));
    master.maps(job).await;
    master.gate.let_in(0, 3);
    master.launches(long).await;
    for _ in 0..4 {
        assert_eq!(master.arrivals.recv().await, Some(0));
    }
    master.suspends(long).await;
    let running = master
        .waits_for("a sign of life", |frame| match frame {
            WorkerFrame::Heartbeat(heartbeat) => Some(heartbeat.running.len()),
            _ => None,
        })
        .await;
    assert_eq!(running, 0, "a suspended attempt does not run");
    master.gate.let_in(1, u32::MAX);
    master.launches(short).await;
    let (part, report) = master.publishes(short).await;
    assert_eq!(part.lines().next(), Some("begin"));
    assert_eq!(report.suspensions, 0);

    master.gate.let_in(0, u32::MAX);
    master.order(vec![MasterFrame::Resume { attempt: long }]).await;
    let (part, report) = master.publishes(long).await;
    assert_eq!(report.suspensions, 1);
    assert!(0 < report.suspended_ns && report.suspended_ns < report.ended_ns - report.started_ns);
    assert_eq!(counter(&report), [("parts".to_owned(), 1)]);

    let again = JobId(2);
    master.maps(again).await;
    master.launches(reduce(again, 0)).await;
    let (undisturbed, _) = master.publishes(reduce(again, 0)).await;
    assert_eq!(part, undisturbed);
}

#[tokio::test]
async fn a_suspended_reduce_that_is_killed_ends_and_its_slot_is_not_lost() {
    let output = output();
    let mut master = TestMaster::start(Slots::Pools { map: 1, reduce: 1 }, 1.0, output.path()).await;
    let (job, [first, second]) = (JobId(1), [0, 1].map(|partition| reduce(JobId(1), partition)));
    master.maps(job).await;
    master.launches(first).await;
    master.arrivals.recv().await;
    master.suspends(first).await;
    master.gate.let_in(1, 0);
    master.launches(second).await;
    assert_eq!(master.arrivals.recv().await, Some(1), "the slot was free for it");
    // Resumed, it waits for the slot, and is suspended again without having had it.
    master.order(vec![MasterFrame::Resume { attempt: first }, MasterFrame::Suspend { attempt: first }]).await;
    master
        .waits_for("a suspension", |frame| matches!(frame, WorkerFrame::Suspended { .. }).then_some(()))
        .await;
    master.order(vec![MasterFrame::Resume { attempt: first }, MasterFrame::Kill { attempt: first }]).await;
    assert_eq!(master.fails(first).await.0, FailureClass::Cancelled);
    master.gate.let_in(1, u32::MAX);
    master.publishes(second).await;
    master.gate.let_in(0, u32::MAX);
    let next = first.task.attempt(1);
    master.launches(next).await;
    master.publishes(next).await;
}

#[tokio::test]
async fn maps_run_beside_reduces_that_hold_all_slots_of_their_pool() {
    let output = output();
    let mut master = TestMaster::start(Slots::Pools { map: 1, reduce: 1 }, 1.0, output.path()).await;
    master.maps(JobId(1)).await;
    master.launches(reduce(JobId(1), 0)).await;
    master.launches(reduce(JobId(1), 1)).await;
    assert_eq!(master.arrivals.recv().await, Some(0));
    master.maps(JobId(2)).await;
    assert!(master.arrivals.try_recv().is_err(), "the second reduce does not take the slot for maps");
    master.gate.let_in(0, u32::MAX);
    master.gate.let_in(1, u32::MAX);
    master.publishes(reduce(JobId(1), 0)).await;
    master.publishes(reduce(JobId(1), 1)).await;
}

#[tokio::test]
async fn a_worker_of_half_the_speed_says_how_much_its_slots_waited() {
    let output = output();
    let mut master = TestMaster::start(Slots::Unified(1), 0.5, output.path()).await;
    master.gate.let_in(0, u32::MAX);
    master.maps(JobId(1)).await;
    master.launches(reduce(JobId(1), 0)).await;
    let (_, report) = master.publishes(reduce(JobId(1), 0)).await;
    let took = report.ended_ns - report.started_ns;
    assert!(0 < report.paced_ns && report.paced_ns < took, "{} of {took} ns", report.paced_ns);
}

#[tokio::test]
async fn a_map_is_not_suspended() {
    let output = output();
    let mut master = TestMaster::start(Slots::Unified(1), 1.0, output.path()).await;
    let map = TaskId::map(JobId(1), 0).attempt(0);
    assert_eq!(map.task.kind, TaskKind::Map);
    let split = Split { input: 0, format: RecordFormat::Lines, pieces: Vec::new() };
    let launch = MasterFrame::LaunchMap { attempt: map, split, alone: false };
    master.order(vec![master.job(JobId(1)), launch, MasterFrame::Suspend { attempt: map }]).await;
    let report = master
        .waits_for("a map", |frame| match frame {
            WorkerFrame::MapFinished { report, .. } => Some(report.clone()),
            WorkerFrame::Suspended { .. } => panic!("a map was suspended"),
            _ => None,
        })
        .await;
    assert_eq!(report.suspensions, 0);
}

#[tokio::test]
async fn parts_of_a_job_of_more_than_a_hundred_thousand_are_named_with_more_digits() {
    let output = output();
    let mut master = TestMaster::start(Slots::Unified(1), 1.0, output.path()).await;
    master.parts = 100_001;
    assert_eq!(part_name(0, master.parts, PartFormat::default()), "part-000000");
    master.maps(JobId(1)).await;
    for partition in 0..PARTITIONS {
        master.gate.let_in(partition, u32::MAX);
        master.launches(reduce(JobId(1), partition)).await;
        master.publishes(reduce(JobId(1), partition)).await;
    }
}

#[tokio::test]
async fn an_attempt_that_comes_too_late_touches_no_published_part_whatever_it_was_allowed() {
    let output = output();
    let mut master = TestMaster::start(Slots::Unified(1), 1.0, output.path()).await;
    let late = reduce(JobId(1), 0);
    master.maps(JobId(1)).await;
    master.gate.let_in(0, u32::MAX);
    master.launches(late).await;
    let published = output.path().join("part-00000");
    std::fs::write(&published, "of its successor").unwrap();
    // It has its permit, and is not notified of other attempts.
    master.publishes(late).await;
    assert_eq!(std::fs::read_to_string(&published).unwrap(), "of its successor");
}

#[tokio::test]
async fn a_part_that_cannot_be_sent_to_the_submitter_is_no_failed_fetch() {
    let nowhere = tempfile::tempdir().unwrap();
    let mut master = TestMaster::start(Slots::Unified(1), 1.0, &nowhere.path().join("out")).await;
    // A port without a listener.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    master.submitter = Some(Endpoint::of_address(listener.local_addr().unwrap(), None));
    drop(listener);
    let (job, attempt) = (JobId(1), reduce(JobId(1), 0));
    master.maps(job).await;
    master.gate.let_in(0, u32::MAX);
    master.launches(attempt).await;
    master
        .waits_for("a built part", |frame| matches!(frame, WorkerFrame::CommitRequest { .. }).then_some(()))
        .await;
    master.order(vec![MasterFrame::CommitGranted { attempt, permit: Secret::from_bytes([8; 32]) }]).await;
    let (class, message) = master.fails(attempt).await;
    assert_eq!(class, FailureClass::Unreachable, "{message}");
    assert!(message.contains("to the submitter at 127.0.0.1"), "{message}");
}

#[test]
fn a_fetch_that_was_given_up_is_blamed_on_the_way_only_if_the_output_is_not_at_fault() {
    use crate::shuffle::fetch::{FetchError, RequestError};
    let map = TaskId::map(JobId(1), 0).attempt(0);
    let endpoint = || "worker.example:1".to_owned();
    let missing = FetchError::Missing { endpoint: endpoint(), map };
    let broken = FetchError::Request { source: Arc::new(RequestError::Short { endpoint: endpoint() }) };
    let damaged = FetchError::Damaged { endpoint: endpoint(), map };
    let garbled = FetchError::Garbled { endpoint: endpoint(), map, times: 4, source: "checksum".into() };
    assert_eq!(control::fetches::fetch_class(&damaged), FailureClass::Corrupt);
    assert_eq!(control::fetches::fetch_class(&garbled), FailureClass::Fetch);
    assert_eq!(control::fetches::fetch_class(&missing), FailureClass::Missing);
    assert_eq!(control::fetches::fetch_class(&broken), FailureClass::Fetch);
}
