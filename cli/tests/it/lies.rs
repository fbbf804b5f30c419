//! False data sent to a whole process: each lie is rejected, and takes no more memory than the budget and 64
//! MiB.
//!
//! The test plays the liar, with the product's own frames and auth. To a worker it is an honest master and a
//! lying worker; to a master it is a worker that has joined.

use crate::support::standing::Standing;
use crate::support::{Sandbox, TIMEOUT};
use bytes::Bytes;
use gristmill::scheduler::ids::{AttemptId, JobId, TaskId, WorkerId};
use gristmill::worker::codec;
use gristmill::worker::directory::PlainName;
use gristmill::worker::http::{
    self, Access, Bind, Body, Connection, Duplex, Endpoint, JoinLine, Key, Plaintext, RouteAuth, Secret,
    ServerConfig, Timeouts, Token, Transport,
};
use gristmill::worker::input::{FilePath, FilePlace, FileStamp};
use gristmill::worker::output::PartFormat;
use gristmill::worker::protocol::{
    AttemptProgress, AttemptReport, CONNECT_PATH, CONTROL_PROTOCOL, FRAME_BYTES_MAX, FailureClass,
    FetchedOutput, FrameReader, Heartbeat, Hello, JobOrder, MasterFrame, PROTOCOL_VERSION, RecordLimits,
    Session, Slots, WorkerFrame, push_frame,
};
use gristmill::worker::segment::Fingerprint;
use gristmill::worker::shuffle::{FetchHead, OutputHead};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Memory budget of the worker, KiB.
const BUDGET_KIB: u64 = 64 << 10;

/// KiB that a process may use beyond its budget.
const BEYOND_BUDGET_KIB: u64 = 64 << 10;

/// Bytes that a liar sends at once.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of a segment of which next to nothing arrives.
const SLOW_SEGMENT_BYTES: u64 = 20 << 20;

/// Bytes of an endless body that may be accepted before the receiver stops reading: what fits into sockets
/// and buffers.
const TAKEN_BYTES_MAX: u64 = 16 << 20;

fn memory_kib(pid: u32, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Memory that a process may use beyond what it had before the lies.
struct Allowance {
    pid: u32,
    most_kib: u64,
}

impl Allowance {
    /// From its present memory and a budget in KiB.
    fn new(pid: u32, budget_kib: u64) -> Self {
        Self { pid, most_kib: memory_kib(pid, "VmRSS:") + budget_kib + BEYOND_BUDGET_KIB }
    }

    /// Resets the peak that the kernel has recorded.
    fn start(&self) {
        fs::write(format!("/proc/{}/clear_refs", self.pid), "5").unwrap();
    }

    fn check(&self, lie: &str) {
        let peak = memory_kib(self.pid, "VmHWM:");
        eprintln!("{lie}: {peak} KiB of {}", self.most_kib);
        assert!(
            peak <= self.most_kib,
            "{lie} made process {} take {peak} KiB of {}",
            self.pid,
            self.most_kib
        );
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Frames of one side of a control connection.
struct Line {
    reader: FrameReader<ReadHalf<Duplex>>,
    writer: WriteHalf<Duplex>,
}

impl Line {
    fn new(io: Duplex) -> Self {
        let (reader, writer) = tokio::io::split(io);
        Self { reader: FrameReader::new(reader, FRAME_BYTES_MAX), writer }
    }

    async fn send<T: serde::Serialize>(&mut self, frame: &T) {
        self.say_often(frame, 1).await;
    }

    /// Sends a frame this many times.
    async fn say_often<T: serde::Serialize>(&mut self, frame: &T, times: usize) {
        let mut bytes = Vec::new();
        push_frame(frame, &mut bytes).unwrap();
        for _ in 0..times {
            self.writer.write_all(&bytes).await.unwrap();
        }
        self.writer.flush().await.unwrap();
    }

    /// Receives frames until `find` accepts one.
    async fn hear<T: serde::de::DeserializeOwned, U>(
        &mut self,
        what: &str,
        mut is: impl FnMut(T) -> Option<U>,
    ) -> U {
        let heard = async {
            loop {
                let frame = self.reader.next::<T>().await.unwrap().expect("the connection is open");
                if let Some(it) = is(frame) {
                    return it;
                }
            }
        };
        tokio::time::timeout(TIMEOUT, heard).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
    }

    /// Waits until the other side has closed the connection.
    async fn closed(mut self, what: &str) {
        let heard = async { while let Ok(Some(_)) = self.reader.next::<MasterFrame>().await {} };
        tokio::time::timeout(TIMEOUT, heard).await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
    }
}

// To a worker.

/// Response to a fetch.
type Lie = Arc<dyn Fn() -> Body + Send + Sync>;

/// Expected result of a lie.
enum End {
    /// The output is reported as unavailable, for this reason and with these words.
    Failed(FailureClass, &'static str),
    /// The correct part of it is accepted.
    Taken,
}

struct LyingAuth {
    token: Secret,
    job: Secret,
}

impl RouteAuth for LyingAuth {
    fn access(&self, _: &Method, path: &str, _: &str) -> Access {
        let secret = if path == CONNECT_PATH { &self.token } else { &self.job };
        Access::Secret(secret.clone())
    }
}

fn head(lengths: Vec<u64>) -> FetchHead {
    FetchHead { outputs: vec![Some(OutputHead { lengths, in_file: None })], damaged: Vec::new() }
}

fn encoded<T: serde::Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(value, &mut bytes);
    bytes
}

/// Encodes a head as it precedes a response.
fn framed(head: &[u8]) -> Vec<u8> {
    [&(head.len() as u32).to_le_bytes(), head].concat()
}

/// A body of these bytes, followed by endless repetitions of this piece with a pause between. Counts the
/// bytes that are accepted.
fn endless(first: Vec<u8>, piece: usize, pause: Duration, taken: Arc<AtomicU64>) -> Body {
    let (sender, body) = http::stream(1);
    tokio::spawn(async move {
        let mut next = Bytes::from(first);
        let again = Bytes::from(vec![0; piece]);
        while sender.send(next.clone()).await.is_ok() {
            taken.fetch_add(next.len() as u64, Ordering::Relaxed);
            next = again.clone();
            tokio::time::sleep(pause).await;
        }
    });
    body
}

/// A segment of one block, of a few MB, that claims to unpack to more than a GB, and would: see FORMAT.md.
fn bomb(map: AttemptId, partition: u32) -> Vec<u8> {
    const LENGTH_BYTES: u32 = 4_700_000;
    // One literal, then a match of that byte with the length in the following bytes, then five literals.
    let mut packed = vec![0x1f, 0, 1, 0];
    packed.resize(packed.len() + LENGTH_BYTES as usize, 255);
    packed.extend([0, 0x50, 0, 0, 0, 0, 0]);
    let raw = 1 + 19 + 255 * LENGTH_BYTES + 5;
    let mut segment = b"GMSG\x01\0\0\0".to_vec();
    for number in [map.task.job.0, map.task.index, map.epoch, partition] {
        segment.extend(number.to_le_bytes());
    }
    segment.extend(1_u64.to_le_bytes());
    segment.extend((48 + 12 + packed.len() as u64).to_le_bytes());
    segment.extend(raw.to_le_bytes());
    segment.extend(crc32c::crc32c(&segment).to_le_bytes());
    let seed = crc32c::crc32c(&segment[4..24]);
    let block = [(packed.len() as u32).to_le_bytes(), raw.to_le_bytes()].concat();
    let checksum = crc32c::crc32c_append(crc32c::crc32c_append(seed, &block), &packed);
    [segment, block, checksum.to_le_bytes().to_vec(), packed].concat()
}

/// The lies, each for a job of its own: job 1 gets the first.
fn lies_to_a_worker(taken: &Arc<AtomicU64>) -> Vec<(&'static str, Lie, End)> {
    let stamp = FileStamp::from_metadata(&fs::metadata("/proc/self/exe").unwrap());
    let place = encoded(&(FilePath::from("/proc/self/exe"), FilePath::from("exe"), stamp));
    let place: FilePlace = codec::decode(&place, 1 << 10).unwrap();
    let in_file = OutputHead { lengths: vec![100], in_file: Some((place, 0)) };
    let in_file =
        [framed(&encoded(&FetchHead { outputs: vec![Some(in_file)], damaged: Vec::new() })), vec![0; 100]]
            .concat();

    let bomb = bomb(TaskId::map(JobId(2), 0).attempt(0), 0);
    let bomb = [framed(&encoded(&head(vec![bomb.len() as u64]))), bomb].concat();

    // A byte each, and the size of an output in memory.
    let places = FetchHead { outputs: vec![None; 60_000_000], damaged: Vec::new() };
    let places = Bytes::from(framed(&encoded(&places)));
    // As many of them as a valid head may have bytes.
    let allowed =
        Bytes::from(framed(&encoded(&FetchHead { outputs: vec![None; 16 << 10], damaged: Vec::new() })));

    let nothing = framed(&encoded(&head(vec![0])));
    let slow = framed(&encoded(&head(vec![SLOW_SEGMENT_BYTES])));
    let no_count = Arc::new(AtomicU64::new(0));
    let taken = taken.clone();
    let said = |bytes: Bytes| -> Lie { Arc::new(move || http::full(bytes.clone())) };
    let mismatch = || End::Failed(FailureClass::Fetch, "did not answer what was asked");
    vec![
        ("the order of a file that nobody asked for", said(in_file.into()), mismatch()),
        ("a bomb", said(bomb.into()), End::Failed(FailureClass::Fetch, "came damaged")),
        ("60 MB of a head", said(places), mismatch()),
        ("a head of the right length", said(allowed), mismatch()),
        (
            "a body without an end",
            Arc::new(move || endless(nothing.clone(), PIECE_BYTES, Duration::ZERO, taken.clone())),
            End::Taken,
        ),
        (
            "a byte at a time",
            Arc::new(move || endless(slow.clone(), 1, Duration::from_millis(20), no_count.clone())),
            End::Failed(FailureClass::Fetch, "without progress"),
        ),
    ]
}

fn order(job: JobId, key: &Secret) -> JobOrder {
    JobOrder {
        job,
        name: "wordcount".to_owned(),
        parameters: r#"{"inputs":["text"],"words":"ascii","lowercase":false,"top":null}"#.to_owned(),
        maps: 1,
        partitions: 1,
        cuts: Vec::new(),
        key: key.clone(),
        output: FilePath::from("output"),
        output_probe: "probe".parse::<PlainName>().unwrap(),
        part_format: PartFormat::default(),
        side: Vec::new(),
        submitter: None,
        peers: Vec::new(),
        limits: RecordLimits { record_bytes_max: 1 << 20, expansion_max: 200, bad_records_max: 0 },
        sync: false,
        hang_ms: 60_000,
    }
}

/// An honest master and a lying worker behind one endpoint; returns the connections of workers that join.
async fn liars(auth: LyingAuth, lies: Vec<Lie>) -> (Endpoint, UnboundedReceiver<Duplex>) {
    let listener = Bind::loopback().listen().await.unwrap();
    let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), None);
    let (joined, joining) = unbounded_channel();
    let handler = move |mut request: Request<Incoming>| {
        let lie = request.uri().path().strip_prefix("/shuffle/").map(|job| {
            let job: JobId = job.parse().unwrap();
            Response::new(lies[job.0 as usize - 1]())
        });
        let joined = joined.clone();
        async move {
            lie.unwrap_or_else(|| {
                let (answer, upgraded) = http::accept_upgrade(&mut request, CONTROL_PROTOCOL).unwrap();
                tokio::spawn(async move { joined.send(upgraded.await.unwrap()) });
                answer
            })
        }
    };
    let config = Arc::new(ServerConfig::new(Transport::Plain));
    tokio::spawn(http::serve(listener, config, Arc::new(auth), handler, std::future::pending()));
    (endpoint, joining)
}

#[test]
fn worker_that_is_lied_to_stays_within_its_budget_and_64_mib() {
    let sandbox = Sandbox::new();
    sandbox.write("faults/worker.stall", "500");
    // This master does not ping.
    sandbox.write("faults/worker.master_silence", "600000");
    runtime().block_on(async {
        let taken = Arc::new(AtomicU64::new(0));
        let table = lies_to_a_worker(&taken);
        let secret = Secret::generate().unwrap();
        let (token, key) = (Token::derive(&secret, "work@0").unwrap(), Secret::generate().unwrap());
        let auth = LyingAuth { token: token.secret().clone(), job: key.clone() };
        let (endpoint, mut joining) =
            liars(auth, table.iter().map(|(_, lie, _)| lie.clone()).collect()).await;
        let line = JoinLine { endpoint: endpoint.clone(), token, plaintext: Plaintext::default() };
        let join = sandbox.write_private("join", &**line.to_text());
        let flags = ["worker", "--workers", "1", "--slots", "1", "--memory", "64MiB", "--join", &join];
        let worker = sandbox.gristmill(flags).start();
        let mut victim = Line::new(tokio::time::timeout(TIMEOUT, joining.recv()).await.unwrap().unwrap());
        let pid = victim.hear("a hello", |frame| match frame {
            WorkerFrame::Hello(hello) => Some(hello.pid),
            _ => None,
        });
        let allowance = Allowance::new(pid.await, BUDGET_KIB);
        let list_key = Secret::generate().unwrap();
        let session = Session { generation: 1, returns: false, heard: 0 };
        let welcome = MasterFrame::Welcome { worker: WorkerId(1), heartbeat_ms: 100, list_key, session };
        victim.send(&welcome).await;
        for ((lie, _, end), job) in table.iter().zip(1..) {
            let (job, from) = (JobId(job), WorkerId(job + 1));
            let map = TaskId::map(job, 0).attempt(0);
            allowance.start();
            victim.send(&MasterFrame::Job(Box::new(order(job, &key)))).await;
            victim.send(&MasterFrame::Home { job, reduce: 0, partition: 0 }).await;
            victim.send(&MasterFrame::Announce { maps: vec![map], from, endpoint: endpoint.clone() }).await;
            let heard = victim.hear(lie, |frame| match frame {
                WorkerFrame::FetchFailed { map: of, class, message, .. } if of == map => {
                    Some(Some((class, message)))
                }
                WorkerFrame::Fetched { outputs, .. } if outputs[0].map == map => Some(None),
                _ => None,
            });
            match (heard.await, end) {
                (Some((class, message)), End::Failed(expected, words)) => {
                    assert!(class == *expected && message.contains(words), "{lie}: {class:?}: {message}");
                }
                (None, End::Taken) => {}
                (heard, _) => panic!("{lie} came to {heard:?}"),
            }
            allowance.check(lie);
        }
        let taken = taken.load(Ordering::Relaxed);
        assert!(0 < taken && taken <= TAKEN_BYTES_MAX, "{taken} bytes of a body without an end were taken");
        victim.send(&MasterFrame::Shutdown).await;
        // The supervisor ends with its process.
        let ended = tokio::task::spawn_blocking(move || worker.finish());
        let _ = ended.await.unwrap();
    });
    sandbox.assert_nothing_left();
}

// To a master.

/// Bytes of a long text in a frame: accepted, since its length is allowed.
const TEXT_BYTES: usize = 9 << 20;

/// Number of frames of a lie in bulk: of [`TEXT_BYTES`] each, 190 MB.
const FRAMES: usize = 20;

/// Number of frames with long lists, which take long to read: more than may be in flight at once.
const LIST_FRAMES: usize = 4;

/// Maximum memory of the lists in a frame.
const LIST_BYTES: usize = 9 << 20;

/// Connects to a master with the token of a worker, before any frame is sent.
async fn connect(line: &JoinLine) -> Line {
    let connection = Connection::open(&line.endpoint, Timeouts::default(), line.plaintext).await.unwrap();
    Line::new(connection.upgrade(Some(&line.token), CONNECT_PATH, CONTROL_PROTOCOL).await.unwrap())
}

fn hello(build: &str, host: String) -> WorkerFrame {
    WorkerFrame::Hello(Hello {
        protocol: PROTOCOL_VERSION,
        build: build.to_owned(),
        slots: Slots::Unified(1),
        speed: 1.0,
        nic_bytes_per_second: None,
        shuffle: Endpoint { host: String::new(), port: 1, pin: None },
        host,
        pid: 1,
        ended_proof: Secret::from_bytes([1; 32]),
        memory_bytes: 1 << 30,
        worker_ns: 0,
        rejoin: None,
    })
}

/// Joins, and returns the name that the worker gets.
async fn join(line: &JoinLine, build: &str) -> (Line, WorkerId) {
    let mut joined = connect(line).await;
    joined.send(&hello(build, "liar".to_owned())).await;
    let worker = joined.hear("a welcome", |frame| match frame {
        MasterFrame::Welcome { worker, .. } => Some(worker),
        _ => None,
    });
    let worker = worker.await;
    (joined, worker)
}

fn launched(frame: &MasterFrame) -> Option<AttemptId> {
    match frame {
        MasterFrame::LaunchMap { attempt, .. } => Some(*attempt),
        _ => None,
    }
}

fn failed(attempt: AttemptId, words: &str) -> WorkerFrame {
    let message = format!("{words} {}", "x".repeat(TEXT_BYTES));
    WorkerFrame::AttemptFailed {
        attempt,
        class: FailureClass::User,
        message,
        report: AttemptReport::default(),
    }
}

/// A heartbeat with a list of attempts that takes this much memory.
fn signs_of_life(bytes: usize) -> WorkerFrame {
    let attempt = TaskId::map(JobId(1), 7).attempt(0);
    let progress = AttemptProgress { attempt, bytes_in: 1, records_in: 1, divisible_bytes: 0 };
    let running = vec![progress; bytes / size_of::<AttemptProgress>()];
    WorkerFrame::Heartbeat(Heartbeat { running, ..Heartbeat::default() })
}

/// Frames about attempts that the liar does not hold, with the maximum length of a frame and its lists.
fn forgeries(worker: WorkerId) -> Vec<(&'static str, WorkerFrame)> {
    let attempt = TaskId::map(JobId(1), 7).attempt(0);
    let report =
        AttemptReport { counters: vec![(String::new(), 1); LIST_BYTES / 32], ..AttemptReport::default() };
    let output =
        FetchedOutput { map: attempt, partitions: vec![1; LIST_BYTES / 4], bytes: 1 << 40, resent: 0 };
    vec![
        ("a log", WorkerFrame::Log { attempt: Some(attempt), bytes: vec![b'y'; 1 << 20] }),
        ("signs of life", signs_of_life(LIST_BYTES)),
        ("totals", WorkerFrame::MapFinished { attempt, fingerprint: Fingerprint::default(), report }),
        (
            "an incident",
            WorkerFrame::FetchFailed {
                map: attempt,
                from: worker,
                class: FailureClass::Fetch,
                message: "y".repeat(TEXT_BYTES),
            },
        ),
        (
            "arrivals",
            WorkerFrame::Fetched { outputs: vec![output], from: worker, started_ns: 0, ended_ns: 1 },
        ),
    ]
}

/// Returns the next attempt, or `Some(None)` if the job is over.
fn next(frame: &MasterFrame) -> Option<Option<AttemptId>> {
    match frame {
        MasterFrame::Forget { .. } => Some(None),
        frame => launched(frame).map(Some),
    }
}

#[test]
fn master_that_is_lied_to_takes_no_more_than_64_mib() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let file = sandbox.text("work.join");
    sandbox.gristmill(["token", "new", "work", "--output", &file]).finish().expect_code(0);
    let line: JoinLine = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    let status = || sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
    let build = status()["build"].as_str().unwrap().to_owned();
    let allowance = Allowance::new(standing.master.pid(), 0);
    let input = sandbox.write("text", "a\n");
    let attempts = (5 + FRAMES).to_string();
    let command = ["submit", "wordcount", &input, "--reduces", "1", "--attempts", &attempts];
    let job = runtime().block_on(async {
        allowance.start();
        let mut stranger = connect(&line).await;
        let mut bytes = Vec::new();
        push_frame(&hello(&build, "h".repeat(FRAME_BYTES_MAX - 1024)), &mut bytes).unwrap();
        // The receiver may close the connection before it has all bytes, as intended.
        let _ = stranger.writer.write_all(&bytes).await;
        stranger.closed("the end of a worker with an endless name").await;
        allowance.check("an endless name of a host");

        allowance.start();
        let (mut liar, _) = join(&line, &build).await;
        let _ = liar.writer.write_all(&u32::MAX.to_le_bytes()).await;
        let _ = liar.writer.write_all(&bytes).await;
        liar.closed("the end of a worker with a huge frame").await;
        allowance.check("a frame that claims to be huge");

        allowance.start();
        let (mut liar, _) = join(&line, &build).await;
        // Much shorter than the limit of a frame.
        liar.send(&signs_of_life(4 * LIST_BYTES)).await;
        liar.closed("the end of a worker with an endless list").await;
        allowance.check("an endless list");

        let (mut liar, worker) = join(&line, &build).await;
        let job = sandbox.gristmill(command).start();
        let mut attempt = liar.hear("an attempt", |frame| launched(&frame)).await;
        for (lie, frame) in forgeries(worker) {
            allowance.start();
            liar.say_often(&frame, LIST_FRAMES).await;
            // Frames are received in order: what follows this one comes after the whole lie.
            liar.send(&failed(attempt, lie)).await;
            attempt = liar.hear("another attempt", |frame| launched(&frame)).await;
            allowance.check(lie);
        }
        allowance.start();
        for _ in 0..FRAMES {
            liar.send(&failed(attempt, "a long story")).await;
            let Some(next) = liar.hear("what follows", |frame| next(&frame)).await else { break };
            attempt = next;
        }
        allowance.check("long texts about failures");
        job
    });
    job.finish().expect_code(1).expect_words(&["a long story"]);
    let job = standing.job("job-1");
    let incidents = job["incidents"].to_string();
    for lie in ["a log", "signs of life", "totals", "an incident", "arrivals", "a long story"] {
        assert!(incidents.contains(lie), "{lie} is not among {incidents}");
    }
    assert!(!incidents.contains("yyy") && job["totals"]["shuffle_bytes"] == 0, "{job}");
    standing.end();
}
