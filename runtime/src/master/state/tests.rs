//! Tests of the master's state between a core and workers that are only channels: the frames sent, and their times.

mod comeback;
mod compaction;
mod counts;
mod ended;
mod every_line;
mod fault_simulator;
mod feed;
mod guarantees;
mod notices;
mod refusals;
mod reports;
mod shuffle;
mod suspension;

use super::fleet::HOSTS_KEPT_MAX;
use super::job::{JobEntry, StatusContext};
use super::job_parts::JobKeys;
use super::*;
use crate::api::{
    ApiError, AttemptEnd, BuiltPart, ErrorCode, ExactWork, JobState, JobStatus, SCHEMA, Submission,
    WorkerEnded,
};
use crate::deciders::DeciderNames;
use crate::registry::Registry;
use gristmill_scheduler::catalogue::Entry;
use gristmill_scheduler::command::Outcome;
use gristmill_scheduler::core::{BackupLimits, CoreConfig};
use gristmill_scheduler::estimate;
use gristmill_scheduler::ids::{HostId, TaskId, TaskKind};
use gristmill_scheduler::placement::Pull;
use gristmill_scheduler::plan::{Plan, Reason, Share};
use gristmill_scheduler::policy::Policy;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_scheduler::view::{Change, Handle, Station, View};
use gristmill_worker::codec;
use gristmill_worker::http::Endpoint;
use gristmill_worker::input::{Compression, FilePath, FileStamp, Piece, Place, Split};
use gristmill_worker::output::PartFormat;
use gristmill_worker::protocol::{
    AttemptProgress, AttemptReport, FRAME_BYTES_MAX, FailureClass, FetchedOutput, Heartbeat, Hello,
    LaneOrder, LaneShare, MasterFrame, PROTOCOL_VERSION, Part, Slots, WorkerFrame, ended_proof,
};
use gristmill_worker::record::RecordFormat;
use gristmill_worker::segment::Fingerprint;
use std::cmp::Reverse;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

/// Orders jobs by priority, then age, at all stations; slots are preempted from those below.
#[derive(Default)]
struct Ruthless {
    jobs: BTreeSet<(Reverse<i32>, u64, Handle)>,
}

static RUTHLESS: Entry<dyn Policy> =
    Entry::new("ruthless", "by priority", |_| Ok(Box::<Ruthless>::default()));

impl Policy for Ruthless {
    fn name(&self) -> &'static str {
        "ruthless"
    }
    fn preempts(&self) -> bool {
        true
    }
    fn observe(&mut self, view: View<'_>, change: Change) {
        match change {
            Change::Left(job) => self.jobs.retain(|&(.., other)| other != job),
            Change::Arrived(job) => {
                let row = view.row(job);
                self.jobs.insert((Reverse(row.priority), row.seq, job));
            }
            Change::Progress | Change::Tick => {}
        }
    }
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        for &(.., job) in &self.jobs {
            for station in [Station::Reduce, Station::Map, Station::Shuffle] {
                if station != Station::Shuffle || 0.0 < view.row(job).can[station] {
                    plan.grant(job, station, Share::All, Reason::Own("ruthless"));
                }
            }
        }
    }
}

/// A field, and a change of it in a submission.
type Submitted<'a> = (&'a str, &'a dyn Fn(&mut Submission));

struct Scene {
    state: MasterState,
    inboxes: BTreeMap<WorkerId, UnboundedReceiver<Vec<u8>>>,
    now: Time,
}

impl Scene {
    fn new(pools: &[(&str, f64)]) -> Self {
        Self::with_config(CoreConfig::default(), pools)
    }

    fn with_config(config: CoreConfig, pools: &[(&str, f64)]) -> Self {
        let core = Core::new(config, Box::<Ruthless>::default(), Box::new(Pull::new()));
        let config = StateConfig {
            list_secret: gristmill_worker::http::Secret::from_bytes([7; 32]),
            build: "build".to_owned(),
            heartbeat_ms: 500,
            deciders: LiveDeciders::new(
                Registry::standard().policy(&RUTHLESS),
                DeciderNames {
                    policy: "ruthless".to_owned(),
                    placement: "pull".to_owned(),
                    estimator: "linear".to_owned(),
                },
            ),
            pools: pools.iter().map(|&(name, weight)| (name.to_owned(), weight)).collect(),
            divided_slots: false,
            journal: None,
            register: Register::in_memory(),
        };
        let core = core.with_estimator(estimate::by_name("linear").unwrap());
        Self { state: MasterState::new(core, config), inboxes: BTreeMap::new(), now: Time(1) }
    }

    fn hello(slots: u32) -> Hello {
        Hello {
            protocol: PROTOCOL_VERSION,
            build: "build".to_owned(),
            slots: Slots::Unified(slots),
            speed: 1.0,
            nic_bytes_per_second: None,
            shuffle: Endpoint { host: "127.0.0.1".to_owned(), port: 1000 + slots as u16, pin: None },
            host: "host".to_owned(),
            pid: 1,
            ended_proof: ended_proof(&Secret::from_bytes([9; 32])),
            memory_bytes: 1 << 20,
            worker_ns: 0,
            rejoin: None,
        }
    }

    fn try_join(&mut self, hello: Hello) -> Result<WorkerId, String> {
        let (frames, inbox) = unbounded_channel();
        let worker = self.state.join(self.now, hello, frames)?;
        self.inboxes.insert(worker, inbox);
        self.settle();
        self.sent(worker);
        Ok(worker)
    }

    /// Joins a worker and drops the frames of its welcome.
    fn join_saying(&mut self, hello: Hello) -> WorkerId {
        let (frames, inbox) = unbounded_channel();
        let worker = self.state.join(self.now, hello, frames).unwrap();
        self.inboxes.insert(worker, inbox);
        self.settle();
        worker
    }

    fn join(&mut self) -> WorkerId {
        self.try_join(Self::hello(1)).unwrap()
    }

    fn settle(&mut self) {
        self.state.settle(self.now);
        self.state.catch_up(self.now);
    }

    fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        if self.state.wake.is_some_and(|at| at <= self.now) {
            self.state.tick();
        }
        self.settle();
    }

    fn deliver(&mut self, from: WorkerId, frame: WorkerFrame) {
        self.state.frame(self.now, from, frame);
        self.settle();
    }

    fn submit(&mut self, change: impl FnOnce(&mut Submission)) -> Result<JobId, ApiError> {
        let mut submission = submission();
        change(&mut submission);
        let submitted = self.state.submit(self.now, submission).map(|(job, _)| job);
        self.settle();
        submitted
    }

    /// Frames sent to a worker since the last call.
    fn sent(&mut self, worker: WorkerId) -> Vec<MasterFrame> {
        let mut bytes = Vec::new();
        while let Ok(batch) = self.inboxes.get_mut(&worker).unwrap().try_recv() {
            bytes.extend(batch);
        }
        let mut frames = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((length, body)) = rest.split_first_chunk::<4>() {
            let (frame, after) = body.split_at(u32::from_le_bytes(*length) as usize);
            frames.push(codec::decode(frame, FRAME_BYTES_MAX).unwrap());
            rest = after;
        }
        frames
    }

    fn map_done(&mut self, worker: WorkerId, attempt: AttemptId) {
        let report = AttemptReport { bytes_out: 10, ..AttemptReport::default() };
        let fingerprint = Fingerprint::default();
        self.deliver(worker, WorkerFrame::MapFinished { attempt, fingerprint, report });
    }

    fn fetched(&mut self, home: WorkerId, from: WorkerId, map: AttemptId) {
        self.fetched_of(home, from, map, 0);
    }

    fn fetched_of(&mut self, home: WorkerId, from: WorkerId, map: AttemptId, partition: u32) {
        let outputs = vec![FetchedOutput { map, partitions: vec![partition], bytes: 10, resent: 0 }];
        self.deliver(home, WorkerFrame::Fetched { outputs, from, started_ns: 0, ended_ns: 0 });
    }

    /// Record of the attempt in the trace of its job.
    fn record(&self, attempt: AttemptId) -> crate::api::AttemptRecord {
        let trace = self.state.queries().trace(self.now, attempt.task.job).unwrap();
        trace.attempts.into_iter().find(|record| record.attempt == attempt).unwrap()
    }
}

pub(in crate::master) fn submission() -> Submission {
    let split = Split { input: 0, format: RecordFormat::Lines, pieces: Vec::new() };
    Submission {
        schema: SCHEMA,
        build: "build".to_owned(),
        owner: None,
        name: "wordcount".to_owned(),
        parameters: "{}".to_owned(),
        label: None,
        splits: vec![split],
        reduces: 1,
        combines: None,
        cuts: Vec::new(),
        side: Vec::new(),
        output: FilePath::from("/nowhere"),
        output_probe: "probe-1".parse().unwrap(),
        output_made: false,
        part_format: PartFormat::default(),
        submitter: None,
        key: Secret::generate().unwrap().to_text().to_string(),
        permit_key: Secret::generate().unwrap().to_text().to_string(),
        weight: 1.0,
        pool: None,
        priority: 0,
        deadline_ns: None,
        exact: None,
        attempts_max: 4,
        sync: false,
        record_bytes_max: 1 << 20,
        expansion_max: 10,
        bad_records_max: 0,
        hang_ms: 1000,
        attached: true,
        batch: None,
        remarks: Vec::new(),
        columns: None,
    }
}

/// Status of a job that has just arrived.
pub(crate) fn status_of(job: JobId) -> JobStatus {
    let key = Secret::generate().unwrap();
    let (changed, _) = watch::channel(false);
    JobEntry::new(submission(), JobKeys { segments: key.clone(), permits: key }, Vec::new(), Time(1), changed)
        .status(Time(1), job, StatusContext::default())
}

fn map(job: JobId) -> AttemptId {
    TaskId::map(job, 0).attempt(0)
}

fn reduce(job: JobId, epoch: u32) -> AttemptId {
    TaskId::reduce(job, 0).attempt(epoch)
}

/// Scene in which a worker runs the only reduce of a first job.
fn with_reduce_running() -> (Scene, WorkerId, JobId) {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|_| {}).unwrap();
    scene.map_done(worker, map(job));
    scene.fetched(worker, worker, map(job));
    let said = scene.sent(worker);
    let launched = said.iter().any(|frame| matches!(frame, MasterFrame::LaunchReduce { .. }));
    assert!(launched, "{said:?}");
    scene.pass(Span::whole_seconds(1));
    (scene, worker, job)
}

/// As [`with_reduce_running`], but the reduce was suspended and starts again on another worker, which gathers now, because
/// the first one drains.
fn with_reduce_starting_again() -> (Scene, [WorkerId; 2], JobId) {
    let (mut scene, first, job) = with_reduce_running();
    scene.submit(|submission| (submission.priority, submission.reduces) = (1, 0)).unwrap();
    scene.deliver(first, WorkerFrame::Suspended { attempt: reduce(job, 0) });
    let second = scene.join();
    scene.sent(first);
    scene.deliver(first, WorkerFrame::Leave);
    let said = scene.sent(first);
    let killed =
        |frame: &MasterFrame| matches!(frame, MasterFrame::Kill { attempt } if *attempt == reduce(job, 0));
    assert!(said.iter().any(killed), "{said:?}");
    (scene, [first, second], job)
}

/// Reduces that a worker was ordered to launch since the last call.
fn launched(scene: &mut Scene, worker: WorkerId) -> Vec<MasterFrame> {
    let said = scene.sent(worker);
    said.into_iter().filter(|frame| matches!(frame, MasterFrame::LaunchReduce { .. })).collect()
}

#[test]
fn names_of_hosts_without_workers_are_forgotten_when_they_are_too_many() {
    let mut scene = Scene::new(&[]);
    let on = |host: String| Hello { host, ..Scene::hello(1) };
    let stays = scene.try_join(on("stays".to_owned())).unwrap();
    let mut numbers = BTreeSet::new();
    for number in 0..HOSTS_KEPT_MAX + 100 {
        let host = format!("host-{number}");
        let worker = scene.try_join(on(host.clone())).unwrap();
        assert!(numbers.insert(scene.state.fleet.hosts[&host]), "a number is given twice");
        scene.state.lost(scene.now, worker, None);
        scene.settle();
        assert!(scene.state.fleet.hosts.len() <= HOSTS_KEPT_MAX);
    }
    assert_eq!(scene.state.fleet.hosts["stays"], HostId(0), "{stays} is there");
    assert!(scene.state.fleet.hosts.contains_key(&format!("host-{}", HOSTS_KEPT_MAX + 99)));
}

#[test]
fn file_of_a_lost_worker_is_read_by_another_on_its_host() {
    let mut scene = Scene::new(&[]);
    let gone = scene.join();
    let job = scene.submit(|submission| {
        let path = FilePath::from("/data/words");
        let stamp = FileStamp { size: 9, modified_ns: 1, inode: 1 };
        let place = Place::Worker(gone);
        let compression = Compression::None;
        let piece =
            Piece { name: path.clone(), path, place, offset: 0, length: 9, stamp, compression, table: None };
        submission.splits[0].pieces.push(piece);
    });
    let job = job.unwrap();
    scene.state.lost(scene.now, gone, None);
    scene.settle();
    let successor = scene.join_saying(Scene::hello(2));
    let frames = scene.sent(successor);
    let peers = frames.iter().find_map(|frame| match frame {
        MasterFrame::Job(order) => Some(&order.peers),
        _ => None,
    });
    let known = peers.is_some_and(|peers| peers.len() == 1 && peers[0].0 == gone && peers[0].1.port == 1002);
    assert!(known, "{frames:?}");
    let place = frames.iter().find_map(|frame| match frame {
        MasterFrame::LaunchMap { attempt, split, .. } if attempt.task.job == job => {
            Some(split.pieces[0].place)
        }
        _ => None,
    });
    assert_eq!(place, Some(Place::Worker(successor)));
}

#[test]
fn process_is_found_by_its_host_where_others_have_the_same_number() {
    let mut scene = Scene::new(&[]);
    let on = |host: &str| Hello { host: host.to_owned(), pid: 7, ..Scene::hello(1) };
    let (first, second) = (scene.try_join(on("a")).unwrap(), scene.try_join(on("b")).unwrap());
    let key = Secret::from_bytes([9; 32]);
    let found =
        |scene: &Scene| ["a", "b", "c"].map(|host| scene.state.fleet.worker_of_process(host, 7, &key));
    assert_eq!(found(&scene), [Some(first), Some(second), None]);
    // Neither another key nor the proof of the end, which the worker itself has, is accepted.
    for key in [Secret::from_bytes([8; 32]), ended_proof(&key)] {
        assert_eq!(scene.state.fleet.worker_of_process("a", 7, &key), None);
    }
    scene.state.lost(scene.now, first, None);
    assert_eq!(found(&scene), [None, Some(second), None]);
}
