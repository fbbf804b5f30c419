//! Tests of the master's state between a core and workers that are only channels: the frames sent, and their times.

mod comeback;
mod compaction;
mod counts;
mod every_line;
mod fault_simulator;
mod feed;
mod guarantees;
mod notices;

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
    AttemptProgress, AttemptReport, FRAME_BYTES_MAX, FailureClass, FetchedOutput, HandOver, Heartbeat, Hello,
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

pub(super) fn submission() -> Submission {
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
    let launched = said.iter().any(|frame| matches!(frame, MasterFrame::LaunchReduce { resume: None, .. }));
    assert!(launched, "{said:?}");
    scene.pass(Span::whole_seconds(1));
    (scene, worker, job)
}

#[test]
fn shuffle_is_done_when_no_reduce_lacks_a_segment_and_stays_so_when_a_reduce_moves() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|submission| submission.splits = vec![submission.splits[0].clone(); 2]).unwrap();
    let done = |scene: &Scene, job| scene.state.queries().status(scene.now, job).unwrap().shuffle_done_ns;
    for index in 0..2 {
        let map = TaskId::map(job, index).attempt(0);
        scene.map_done(worker, map);
        assert_eq!(done(&scene, job), None);
        scene.pass(Span::milliseconds(1));
        scene.fetched(worker, worker, map);
        assert_eq!(done(&scene, job), (index == 1).then_some(scene.now.0));
    }
    let (mut scene, [first, second], job, _) = with_reduce_handed_over();
    let before = done(&scene, job);
    assert!(before.is_some());
    scene.fetched(second, first, map(job));
    assert_eq!(launched(&mut scene, second).len(), 1, "it has moved");
    assert_eq!(done(&scene, job), before);
}

#[test]
fn segments_are_counted_once_when_the_backup_of_a_reduce_gathers_them_too() {
    let config = CoreConfig { backups: Some(BackupLimits::default()), ..CoreConfig::default() };
    let mut scene = Scene::with_config(config, &[]);
    let workers = [(); 4].map(|()| scene.join());
    let job = scene.submit(|submission| submission.reduces = 4).unwrap();
    scene.map_done(workers[0], map(job));
    let homes_said = |scene: &mut Scene| -> Vec<(WorkerId, u32)> {
        let said = workers.map(|worker| scene.sent(worker).into_iter().map(move |frame| (worker, frame)));
        let home = |(worker, frame)| match frame {
            MasterFrame::Home { partition, .. } => Some((worker, partition)),
            _ => None,
        };
        said.into_iter().flatten().filter_map(home).collect()
    };
    let homes = homes_said(&mut scene);
    for &(home, partition) in &homes {
        scene.fetched_of(home, workers[0], map(job), partition);
    }
    let segments =
        |scene: &Scene| scene.state.queries().status(scene.now, job).unwrap().totals.shuffle_segments;
    assert_eq!((homes.len(), segments(&scene)), (4, 4), "{homes:?}");
    scene.pass(Span::whole_seconds(1));
    for &(home, partition) in &homes[..3] {
        let attempt = TaskId::reduce(job, partition).attempt(0);
        let part = Part { name: String::new(), bytes: 5, records: 1, crc32c: 7, named: Vec::new() };
        let stamp = FileStamp { size: 5, modified_ns: 1, inode: 1 };
        let report = AttemptReport { ended_ns: Span::whole_seconds(1).0, ..AttemptReport::default() };
        scene.deliver(home, WorkerFrame::CommitRequest { attempt });
        scene.deliver(home, WorkerFrame::PartFinished { attempt, part, stamp, report });
    }
    // It takes more than twice as long as the others.
    scene.pass(Span::milliseconds(1_100));
    let [(second, partition)] = homes_said(&mut scene)[..] else { panic!("no worker gathers it once more") };
    assert_eq!(partition, homes[3].1);
    scene.fetched_of(second, workers[0], map(job), partition);
    scene.pass(Span::milliseconds(100));
    assert_eq!(launched(&mut scene, second).len(), 1, "its backup has begun");
    assert_eq!(segments(&scene), 4);
}

#[test]
fn slots_of_a_job_are_those_of_its_end_and_a_job_alone_had_all_of_them() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let had_all = |scene: &Scene, job| scene.state.queries().trace(scene.now, job).unwrap().had_all_slots;
    let first = scene.submit(|_| {}).unwrap();
    assert!(had_all(&scene, first));
    scene.state.cancel(first);
    scene.settle();
    let second = scene.submit(|_| {}).unwrap();
    assert!(had_all(&scene, first) && had_all(&scene, second), "they were not there together");
    scene.join();
    assert!(had_all(&scene, second), "the other worker has come at its beginning");
    scene.pass(Span::whole_seconds(5));
    let third = scene.submit(|_| {}).unwrap();
    assert!(had_all(&scene, first) && !had_all(&scene, second) && !had_all(&scene, third));
    let slots = [first, second].map(|job| scene.state.queries().status(scene.now, job).unwrap().slots);
    assert_eq!(slots, [1, 2]);
    let mut scene = Scene::new(&[]);
    scene.join();
    let alone = scene.submit(|_| {}).unwrap();
    scene.pass(Span::whole_seconds(5));
    assert!(had_all(&scene, alone));
    scene.join();
    assert!(!had_all(&scene, alone), "a worker has come late");
    let divided = Hello { slots: Slots::Pools { map: 1, reduce: 1 }, ..Scene::hello(1) };
    let mut scene = Scene::new(&[]);
    scene.state.join_terms.divided_slots = true;
    let ahead = scene.submit(|_| {}).unwrap();
    assert!(had_all(&scene, ahead));
    scene.join_saying(divided);
    assert!(!had_all(&scene, ahead), "slots are for one kind of task each");
    scene.state.cancel(ahead);
    scene.settle();
    let behind = scene.submit(|_| {}).unwrap();
    assert!(!had_all(&scene, behind));
}

#[test]
fn transfers_that_came_damaged_are_counted_and_their_way_is_named_once() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|submission| submission.splits = vec![submission.splits[0].clone(); 2]).unwrap();
    for index in 0..2 {
        let map = TaskId::map(job, index).attempt(0);
        scene.map_done(worker, map);
        let outputs = vec![FetchedOutput { map, partitions: vec![0], bytes: 10, resent: 2 }];
        scene.deliver(worker, WorkerFrame::Fetched { outputs, from: worker, started_ns: 0, ended_ns: 0 });
    }
    let entry = &scene.state.jobs.entries[&job];
    assert_eq!(entry.records.sums.totals.transfers_damaged, 4);
    let named = entry.incidents.latest.iter().filter(|text| text.contains("came damaged")).count();
    assert_eq!(named, 1, "{:?}", entry.incidents.latest);
}

#[test]
fn transfer_that_a_clock_ahead_tells_of_keeps_its_length_and_ends_when_it_was_told_of() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|_| {}).unwrap();
    scene.map_done(worker, map(job));
    scene.pass(Span::whole_seconds(1));
    let (told_ns, took_ns) = (scene.now.0, 2_000_000);
    let ended_ns = told_ns + 5_000_000;
    let outputs = vec![FetchedOutput { map: map(job), partitions: vec![0], bytes: 10, resent: 0 }];
    let started_ns = ended_ns - took_ns;
    scene.deliver(worker, WorkerFrame::Fetched { outputs, from: worker, started_ns, ended_ns });
    let trace = scene.state.queries().trace(scene.now, job).unwrap();
    let fetch = &trace.fetches[0];
    assert_eq!((fetch.started_ns, fetch.ended_ns), (told_ns - took_ns, told_ns));
}

#[test]
fn suspension_and_resumption_are_frames_and_stand_in_the_trace() {
    let (mut scene, worker, job) = with_reduce_running();
    let urgent = scene.submit(|submission| (submission.priority, submission.reduces) = (1, 0)).unwrap();
    let said = scene.sent(worker);
    assert!(matches!(said[..], [MasterFrame::Suspend { attempt }] if attempt == reduce(job, 0)), "{said:?}");
    scene.deliver(worker, WorkerFrame::Suspended { attempt: reduce(job, 0) });
    assert!(scene.record(reduce(job, 0)).suspended);
    let why = scene.state.explain(scene.now, job, Some((TaskKind::Reduce, 0))).unwrap();
    assert!(why[0].starts_with("job-1/reduce-0.0 is suspended on worker-1"), "{why:?}");
    let from = scene.now;
    let said = scene.sent(worker);
    assert!(matches!(said[..], [MasterFrame::Job(_), MasterFrame::LaunchMap { .. }]), "{said:?}");
    scene.pass(Span::milliseconds(300));
    let report = AttemptReport::default();
    let class = FailureClass::Config;
    let failed = WorkerFrame::AttemptFailed { attempt: map(urgent), class, message: "no".to_owned(), report };
    scene.deliver(worker, failed);
    let said = scene.sent(worker);
    let resumed = said
        .iter()
        .any(|frame| matches!(frame, MasterFrame::Resume { attempt } if *attempt == reduce(job, 0)));
    assert!(resumed, "{said:?}");
    let record = scene.record(reduce(job, 0));
    assert_eq!((record.suspensions, record.suspended), (vec![(from.0, scene.now.0)], false));
}

/// As [`with_reduce_running`], but the reduce has been handed over while another worker was idle, which gathers now.
fn with_reduce_handed_over() -> (Scene, [WorkerId; 2], JobId, HandOver) {
    let (mut scene, first, job) = with_reduce_running();
    scene.submit(|submission| (submission.priority, submission.reduces) = (1, 0)).unwrap();
    scene.deliver(first, WorkerFrame::Suspended { attempt: reduce(job, 0) });
    let second = scene.join();
    scene.sent(first);
    scene.pass(CoreConfig::default().suspending.hand_over_after);
    let said = scene.sent(first);
    assert!(matches!(said[..], [MasterFrame::HandOver { attempt }] if attempt == reduce(job, 0)), "{said:?}");
    let state = HandOver {
        last_key: Some(vec![1, 2]),
        groups: 3,
        bytes: 4,
        records: 5,
        crc32c: 6,
        reducer: vec![7],
        counters: vec![("seen".to_owned(), 8)],
    };
    let report = AttemptReport { cpu_ns: 9, counters: state.counters.clone(), ..AttemptReport::default() };
    let handed_over = WorkerFrame::HandedOver { attempt: reduce(job, 0), state: state.clone(), report };
    scene.deliver(first, handed_over);
    (scene, [first, second], job, state)
}

/// Reduces that a worker was ordered to launch since the last call.
fn launched(scene: &mut Scene, worker: WorkerId) -> Vec<MasterFrame> {
    let said = scene.sent(worker);
    said.into_iter().filter(|frame| matches!(frame, MasterFrame::LaunchReduce { .. })).collect()
}

#[test]
fn successor_of_a_reduce_that_was_handed_over_is_told_where_it_stood_and_where_its_output_lies() {
    let (mut scene, [first, second], job, state) = with_reduce_handed_over();
    assert_eq!(scene.record(reduce(job, 0)).end, AttemptEnd::handed_over());
    scene.fetched(second, first, map(job));
    let frames = launched(&mut scene, second);
    let [MasterFrame::LaunchReduce { attempt, resume: Some(resume), .. }] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!((*attempt, resume.attempt, &resume.state), (reduce(job, 1), reduce(job, 0), &state));
    assert_eq!((resume.endpoint.host.as_str(), resume.endpoint.port), ("127.0.0.1", 1001));
    let status = scene.state.queries().status(scene.now, job).unwrap();
    assert_eq!((status.totals.cpu_ns, status.counters.len()), (9, 0), "the successor counts for both");
}

#[test]
fn successor_begins_from_its_inputs_when_what_was_written_is_lost() {
    let (mut scene, [first, second], job, _) = with_reduce_handed_over();
    scene.now = scene.now + Span::milliseconds(1);
    scene.state.lost(scene.now, first, None);
    scene.settle();
    // The map's output is lost too, so the map runs again first.
    let again = TaskId::map(job, 0).attempt(1);
    let said = scene.sent(second);
    let runs = said.iter().find_map(|frame| match frame {
        MasterFrame::LaunchMap { attempt, .. } => Some(*attempt),
        _ => None,
    });
    // The urgent job's map was lost as well, and goes first.
    let urgent = runs.unwrap();
    assert_ne!(urgent.task.job, job);
    let report = AttemptReport::default();
    let class = FailureClass::Config;
    let failed = WorkerFrame::AttemptFailed { attempt: urgent, class, message: "no".to_owned(), report };
    scene.deliver(second, failed);
    scene.map_done(second, again);
    scene.fetched(second, second, again);
    let frames = launched(&mut scene, second);
    assert!(matches!(frames[..], [MasterFrame::LaunchReduce { resume: None, .. }]), "{frames:?}");
}

#[test]
fn order_of_lanes_goes_to_workers_that_gather_when_two_jobs_shuffle_and_not_too_often() {
    let mut scene = Scene::new(&[]);
    let (first, second) = (scene.join(), scene.join());
    let lanes = |scene: &mut Scene, worker| -> Vec<LaneOrder> {
        let said = scene.sent(worker).into_iter();
        said.filter_map(|frame| if let MasterFrame::Lanes(order) = frame { Some(order) } else { None })
            .collect()
    };
    let two = |submission: &mut Submission| submission.splits = vec![submission.splits[0].clone(); 2];
    let low = scene.submit(two).unwrap();
    let workers = [first, second];
    let running = |scene: &Scene, job: JobId| -> Vec<(WorkerId, AttemptId)> {
        let at = |worker: WorkerId| {
            scene.state.fleet.workers[&worker].running.keys().map(move |attempt| (worker, *attempt))
        };
        workers.into_iter().flat_map(at).filter(|(_, attempt)| attempt.task.job == job).collect()
    };
    let (worker, attempt) = running(&scene, low)[0];
    scene.map_done(worker, attempt);
    assert_eq!(lanes(&mut scene, first).len() + lanes(&mut scene, second).len(), 0, "one job needs no order");
    let high = scene.submit(|submission| {
        two(submission);
        submission.priority = 1;
    });
    let high = high.unwrap();
    let (worker, attempt) = running(&scene, low).first().copied().unwrap();
    scene.map_done(worker, attempt);
    let (worker, attempt) = running(&scene, high)[0];
    scene.map_done(worker, attempt);
    let expected = [(high, LaneShare::All), (low, LaneShare::All)];
    let notified = [lanes(&mut scene, first), lanes(&mut scene, second)];
    let gathers: Vec<bool> =
        workers.iter().map(|worker| !scene.state.fleet.workers[worker].gathers.is_empty()).collect();
    for (notified, gathers) in notified.iter().zip(gathers) {
        assert_eq!(notified.len(), usize::from(gathers), "{notified:?}");
        assert!(notified.iter().all(|order| order.grants == expected && !order.only), "{notified:?}");
    }
    // The next order waits until the pause is over.
    let urgent = scene.submit(|submission| submission.priority = 2).unwrap();
    let (worker, attempt) = running(&scene, high)[0];
    scene.map_done(worker, attempt);
    let (worker, attempt) = running(&scene, urgent)[0];
    scene.map_done(worker, attempt);
    assert_eq!(lanes(&mut scene, first).len() + lanes(&mut scene, second).len(), 0);
    let due = scene.state.due().unwrap();
    scene.pass(due.since(scene.now));
    let notified: Vec<LaneOrder> = workers.into_iter().flat_map(|worker| lanes(&mut scene, worker)).collect();
    assert!(!notified.is_empty() && notified.iter().all(|order| order.grants[0].0 == urgent), "{notified:?}");
}

#[test]
fn submission_that_makes_no_sense_is_refused_before_anything_starts() {
    let mut scene = Scene::new(&[("reports", 2.0), ("adhoc", 1.0)]);
    let exact = |maps: usize, seconds: f64| {
        Some(ExactWork { map_seconds: vec![seconds; maps], shuffle_bytes: 0.0, reduce_seconds: vec![1.0] })
    };
    type Case = (ErrorCode, &'static str, Box<dyn FnOnce(&mut Submission)>);
    let cases: Vec<Case> = vec![
        (ErrorCode::Deadline, "over already", Box::new(|submission| submission.deadline_ns = Some(0))),
        (ErrorCode::Spec, "weight 0", Box::new(|submission| submission.weight = 0.0)),
        (ErrorCode::Spec, "weight NaN", Box::new(|submission| submission.weight = f64::NAN)),
        (
            ErrorCode::Spec,
            "exact work of 2 maps",
            Box::new(move |submission| submission.exact = exact(2, 1.0)),
        ),
        (ErrorCode::Exact, "holds -1", Box::new(move |submission| submission.exact = exact(1, -1.0))),
        (
            ErrorCode::Pool,
            "did you mean `reports`?",
            Box::new(|submission| submission.pool = Some("report".to_owned())),
        ),
        (
            ErrorCode::Build,
            "build other instead of build",
            Box::new(|submission| submission.build = "other".to_owned()),
        ),
        (ErrorCode::Build, "build not named", Box::new(|submission| submission.build = String::new())),
        (
            ErrorCode::Spec,
            "web server, which is only read",
            Box::new(|submission| submission.output = std::path::Path::new("http://127.0.0.1:9/out").into()),
        ),
        (
            ErrorCode::JobName,
            "did you mean `wordcount`?",
            Box::new(|submission| submission.name = "word-count".to_owned()),
        ),
        (ErrorCode::Key, "not a secret", Box::new(|submission| submission.key = "x".to_owned())),
    ];
    for (code, words, change) in cases {
        let error = scene.submit(change).unwrap_err();
        assert_eq!(error.code, code, "{}", error.message);
        assert!(error.message.contains(words), "{}", error.message);
    }
    assert_eq!(scene.state.jobs.live_count(), 0);
    let job = scene.submit(|submission| submission.pool = Some("reports".to_owned())).unwrap();
    assert_eq!(scene.state.queries().status(scene.now, job).unwrap().pool.as_deref(), Some("reports"));
}

#[test]
fn job_with_a_deadline_gets_an_outlook_when_it_arrives() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let job = scene.submit(|submission| submission.deadline_ns = Some(5_000_000_000)).unwrap();
    let status = scene.state.queries().status(scene.now, job).unwrap();
    let outlook = status.deadline_outlook.unwrap();
    assert_eq!((outlook.feasible, status.deadline_ns), (None, Some(scene.now.0 + 5_000_000_000)));
    assert!(outlook.words.contains("5.0 s"), "{}", outlook.words);
}

#[test]
fn worker_that_is_unlike_the_others_is_refused_with_the_difference() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let pools = Slots::Pools { map: 1, reduce: 1 };
    let refused = scene.try_join(Hello { slots: pools, ..Scene::hello(1) }).unwrap_err();
    assert!(
        refused.contains("map slots and reduce slots") && refused.contains("--divided-slots"),
        "{refused}"
    );
    // The first worker to join does not decide for the others.
    let mut empty = Scene::new(&[]);
    empty.try_join(Hello { slots: pools, ..Scene::hello(1) }).unwrap_err();
    empty.join();
    for (hello, words) in [
        (Hello { slots: Slots::Unified(0), ..Scene::hello(1) }, "no slots"),
        (Hello { speed: 0.0, ..Scene::hello(1) }, "speed 0"),
        (Hello { speed: f64::NAN, ..Scene::hello(1) }, "speed NaN"),
        (Hello { nic_bytes_per_second: Some(0), ..Scene::hello(1) }, "0 bytes"),
        (Hello { build: "other".to_owned(), ..Scene::hello(1) }, "same executable"),
        (Hello { slots: Slots::Unified(u32::MAX), ..Scene::hello(1) }, "4294967295 slots"),
        (Hello { host: harm(10), ..Scene::hello(1) }, "its host's name `"),
        (Hello { host: "x".repeat(300), ..Scene::hello(1) }, "its host's name has 300 bytes"),
    ] {
        let refused = scene.try_join(hello).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
}

/// A text of this length with terminal control sequences.
fn harm(bytes: usize) -> String {
    "\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\n".repeat(bytes / 16 + 1)
}

fn check_clean(text: &str) {
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
    assert!(text.len() < 5000, "{} bytes", text.len());
}

#[test]
fn words_of_a_worker_are_cleaned_and_clipped_when_they_come_in() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|submission| submission.attempts_max = 1).unwrap();
    let report = AttemptReport { counters: vec![(harm(1 << 20), 1)], ..AttemptReport::default() };
    let (attempt, class, message) = (map(job), FailureClass::User, harm(10 << 20));
    scene.deliver(worker, WorkerFrame::AttemptFailed { attempt, class, message, report });
    let status = scene.state.queries().status(scene.now, job).unwrap();
    assert_eq!(status.incidents.len(), 1);
    check_clean(&status.incidents[0]);
    check_clean(&status.failure.unwrap().detail.unwrap());
    let AttemptEnd::Failed(_, words) = scene.record(attempt).end else { panic!("it failed") };
    check_clean(&words);
}

#[test]
fn names_of_counters_are_cleaned_and_clipped() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|_| {}).unwrap();
    let counters = vec![(harm(1 << 20), 1), ("lines".to_owned(), 2)];
    let report = AttemptReport { bytes_out: 10, counters, ..AttemptReport::default() };
    let fingerprint = Fingerprint::default();
    scene.deliver(worker, WorkerFrame::MapFinished { attempt: map(job), fingerprint, report });
    let counters = scene.state.queries().status(scene.now, job).unwrap().counters;
    assert_eq!((counters.len(), counters["lines"]), (2, 2));
    counters.keys().for_each(|name| check_clean(name));
    assert!(counters.keys().all(|name| name.len() < 300));
}

#[test]
fn counters_of_too_many_names_are_left_out_and_that_is_said_once() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|_| {}).unwrap();
    let counters: Vec<(String, u64)> = (0..5000).map(|number| (format!("{number:05}"), 1)).collect();
    let fingerprint = Fingerprint::default();
    let report = |from: usize| AttemptReport {
        bytes_out: 10,
        counters: counters[from..].to_vec(),
        ..AttemptReport::default()
    };
    scene.deliver(worker, WorkerFrame::MapFinished { attempt: map(job), fingerprint, report: report(0) });
    let status = |scene: &Scene| scene.state.queries().status(scene.now, job).unwrap();
    let kept = status(&scene);
    assert_eq!((kept.counters.len(), kept.counters["00000"], kept.counters["00999"]), (1000, 1, 1));
    let said =
        |status: &JobStatus| status.incidents.iter().filter(|text| text.contains("1000 names")).count();
    assert_eq!(said(&kept), 1);
    let trace = scene.state.queries().trace(scene.now, job).unwrap();
    assert!(trace.attempts.iter().all(|it| it.report.as_ref().is_none_or(|it| it.counters.len() <= 1000)));
    let job = scene.state.jobs.get_mut(job).unwrap();
    for from in [0, 500, 4000] {
        job.records.reduced(map(JobId(1)), Time(2), report(from), 0);
        job.report_left_out_counters(Time(2));
    }
    let kept = scene.state.queries().status(scene.now, JobId(1)).unwrap();
    assert_eq!((kept.counters.len(), kept.counters["00000"], kept.counters["00999"]), (1000, 2, 3));
    assert_eq!(said(&kept), 1);
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
fn submission_with_names_that_are_too_long_or_unclean_is_refused() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let long = || "x".repeat(10 << 20);
    let host = |host: String| Some(Endpoint { host, port: 1, pin: None });
    let changes: [Submitted<'_>; 9] = [
        ("the label has 10485760 bytes", &|it| it.label = Some(long())),
        ("the label `", &|it| it.label = Some(harm(10))),
        ("the pool has 10485760 bytes", &|it| it.pool = Some(long())),
        ("the pool `", &|it| it.pool = Some(harm(10))),
        ("the name of the job has 10485760 bytes", &|it| it.name = long()),
        ("the submitter's host `", &|it| it.submitter = host(harm(10))),
        ("10485760 bytes of parameters", &|it| it.parameters = long()),
        ("1000 remarks", &|it| it.remarks = vec![String::new(); 1000]),
        ("10485760 bytes of names of columns", &|it| it.columns = Some(vec![long()])),
    ];
    for (words, change) in changes {
        let refused = scene.submit(change).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Name);
        assert!(refused.message.contains(words), "{}", refused.message);
        check_clean(&refused.message);
    }
    let job = scene.submit(|it| it.remarks = vec![harm(1 << 20)]).unwrap();
    check_clean(&scene.state.queries().status(scene.now, job).unwrap().remarks[0]);
}

#[test]
fn core_knows_the_rate_of_the_network_when_all_workers_are_held_to_one() {
    let mut scene = Scene::new(&[]);
    let paced = |rate| Hello { nic_bytes_per_second: Some(rate), ..Scene::hello(1) };
    scene.try_join(paced(100)).unwrap();
    assert_eq!(scene.state.fleet.network, Some(Bytes(100)));
    scene.try_join(paced(50)).unwrap();
    assert_eq!(scene.state.fleet.network, Some(Bytes(50)));
    let free = scene.join();
    assert_eq!(scene.state.fleet.network, None);
    scene.state.lost(scene.now, free, None);
    assert_eq!(scene.state.fleet.network, Some(Bytes(50)));
}

#[test]
fn bytes_of_a_running_map_count_until_it_ends_or_is_lost() {
    let mut scene = Scene::new(&[]);
    let (first, second) = (scene.join(), scene.join());
    let job = scene.submit(|submission| submission.splits = vec![submission.splits[0].clone(); 2]).unwrap();
    let runs_on: BTreeMap<WorkerId, AttemptId> = [first, second]
        .into_iter()
        .flat_map(|worker| {
            let said = scene.sent(worker);
            said.into_iter().find_map(|frame| match frame {
                MasterFrame::LaunchMap { attempt, .. } => Some((worker, attempt)),
                _ => None,
            })
        })
        .collect();
    assert_eq!(runs_on.len(), 2);
    let read = |scene: &Scene| scene.state.queries().status(scene.now, job).unwrap().input_bytes_read;
    for bytes_in in [3, 7] {
        for (&worker, &attempt) in &runs_on {
            let running = vec![AttemptProgress { attempt, bytes_in, records_in: 0 }];
            scene.deliver(worker, WorkerFrame::Heartbeat(Heartbeat { running, ..Heartbeat::default() }));
        }
        assert_eq!(read(&scene), 2 * bytes_in);
    }
    let report = AttemptReport { bytes_in: 8, ..AttemptReport::default() };
    let fingerprint = Fingerprint::default();
    scene.deliver(first, WorkerFrame::MapFinished { attempt: runs_on[&first], fingerprint, report });
    assert_eq!(read(&scene), 8 + 7);
    scene.state.lost(scene.now, second, None);
    assert_eq!(read(&scene), 8);
}

#[test]
fn parts_of_ended_jobs_are_dropped_when_they_are_too_many_unless_somebody_follows() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let mut jobs = Vec::new();
    let mut followers = Vec::new();
    for number in 0..3 {
        let job = scene.submit(|submission| submission.reduces = 0).unwrap();
        if number == 1 {
            followers.push(scene.state.jobs.watch(job).unwrap());
        }
        let part = Part { name: "part-00000".to_owned(), bytes: 1, records: 1, crc32c: 1, named: Vec::new() };
        let entry = scene.state.jobs.get_mut(job).unwrap();
        let stamp = FileStamp { size: 1, modified_ns: 1, inode: 1 };
        let built = BuiltPart { attempt: map(job), stamp };
        let indices = 1..=jobs::TRACED_RECORDS_MAX as u32;
        entry.output.parts = indices.map(|index| (index, (part.clone(), built))).collect();
        let report = AttemptReport::default();
        scene.deliver(worker, WorkerFrame::CommitRequest { attempt: map(job) });
        scene.deliver(worker, WorkerFrame::PartFinished { attempt: map(job), part, stamp, report });
        assert!(scene.state.jobs.entries[&job].state.ended(), "{job}");
        scene.state.jobs.client_closed(scene.now, job, None, &mut scene.state.journal);
        jobs.push(job);
    }
    let parts = |scene: &Scene, job: &JobId| scene.state.jobs.entries[job].output.parts.len();
    scene.submit(|_| {}).unwrap();
    let whole = jobs::TRACED_RECORDS_MAX + 1;
    assert_eq!(jobs.iter().map(|job| parts(&scene, job)).collect::<Vec<_>>(), [0, whole, whole]);
    drop(followers);
    scene.submit(|_| {}).unwrap();
    assert_eq!(jobs.iter().map(|job| parts(&scene, job)).collect::<Vec<_>>(), [0, 0, whole]);
    assert!(
        scene.state.queries().statuses(scene.now).iter().all(|job| job.parts.is_empty()),
        "a list of jobs has no parts"
    );
    assert_eq!(scene.state.jobs.live_count(), 2);
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

#[test]
fn detached_job_is_publishing_while_the_master_closes_its_output() {
    let key = Secret::generate().unwrap();
    let (changed, _) = watch::channel(false);
    let mut job = JobEntry::new(
        submission(),
        JobKeys { segments: key.clone(), permits: key },
        Vec::new(),
        Time(1),
        changed,
    );
    job.submission.attached = false;
    job.state = JobState::Running;
    let shown = |job: &JobEntry| job.status(Time(1), JobId(1), StatusContext::default()).state;
    assert_eq!(shown(&job), JobState::Running);
    job.output.closing = Some(Outcome::Succeeded);
    assert_eq!(shown(&job), JobState::Publishing);
    job.output.closing = Some(Outcome::Cancelled);
    assert_eq!(shown(&job), JobState::Running);
    job.output.closing = None;
    job.end(Time(2), Outcome::Succeeded);
    assert_eq!(shown(&job), JobState::Succeeded);
}

/// The parts of a job's description that contain worker texts.
fn shown(scene: &Scene, job: JobId) -> serde_json::Value {
    let logs = scene.state.jobs.logs(job).unwrap();
    let trace = scene.state.queries().trace(scene.now, job).unwrap();
    serde_json::json!([logs, trace])
}

#[test]
fn word_about_attempts_and_partitions_that_a_worker_does_not_hold_changes_nothing() {
    let (mut scene, honest, job) = with_reduce_running();
    let liar = scene.join();
    let second =
        scene.submit(|submission| submission.splits = vec![submission.splits[0].clone(); 3]).unwrap();
    let held: Vec<AttemptId> = scene.state.fleet.workers[&liar].running.keys().copied().collect();
    assert_eq!(held.len(), 1, "it has a slot, and runs a map there");
    let before = [shown(&scene, job), shown(&scene, second)];
    scene.sent(honest);
    scene.sent(liar);
    let other = reduce(job, 0);
    let report = || AttemptReport { bytes_out: 7, records_in: 7, cpu_ns: 7, ..AttemptReport::default() };
    let fingerprint = Fingerprint::default();
    let state = HandOver {
        last_key: None,
        groups: 0,
        bytes: 0,
        records: 0,
        crc32c: 0,
        reducer: Vec::new(),
        counters: Vec::new(),
    };
    let part = || Part { name: "part-00000".to_owned(), bytes: 1, records: 1, crc32c: 0, named: Vec::new() };
    let stamp = FileStamp::from_metadata(&std::fs::metadata("/").unwrap());
    let class = FailureClass::User;
    let message = || "a lie".to_owned();
    let fetched = |map, partitions| WorkerFrame::Fetched {
        outputs: vec![FetchedOutput { map, partitions, bytes: u64::MAX, resent: 0 }],
        from: liar,
        started_ns: 0,
        ended_ns: 0,
    };
    let fetch_failed = |map, from| WorkerFrame::FetchFailed { map, from, class, message: message() };
    let unknown = AttemptId { task: TaskId::map(second, 1_000_000), epoch: 7 };
    let progress = |attempt| AttemptProgress { attempt, bytes_in: u64::MAX, records_in: u64::MAX };
    let beats = Heartbeat { running: vec![progress(other), progress(unknown)], ..Heartbeat::default() };
    let lies = [
        WorkerFrame::MapFinished { attempt: map(job), fingerprint, report: report() },
        WorkerFrame::MapFinished { attempt: unknown, fingerprint, report: report() },
        WorkerFrame::PartFinished { attempt: other, part: part(), stamp, report: report() },
        WorkerFrame::AttemptFailed { attempt: other, class, message: message(), report: report() },
        WorkerFrame::AttemptFailed { attempt: unknown, class, message: message(), report: report() },
        WorkerFrame::Returned { attempt: other },
        WorkerFrame::Suspended { attempt: other },
        WorkerFrame::NotSuspended { attempt: other },
        WorkerFrame::HandedOver { attempt: other, state: state.clone(), report: report() },
        WorkerFrame::HandedOver { attempt: held[0], state, report: report() },
        WorkerFrame::CommitRequest { attempt: other },
        WorkerFrame::Log { attempt: Some(other), bytes: b"forged".to_vec() },
        WorkerFrame::Log { attempt: Some(unknown), bytes: b"forged".to_vec() },
        fetched(map(job), vec![0]),
        fetched(map(second), vec![0, 1, 77]),
        fetched(unknown, vec![0]),
        fetched(other, vec![0]),
        fetch_failed(map(job), honest),
        fetch_failed(unknown, honest),
        fetch_failed(other, honest),
        WorkerFrame::Heartbeat(beats),
    ];
    for lie in lies {
        let what = format!("{lie:?}");
        scene.deliver(liar, lie);
        assert_eq!([shown(&scene, job), shown(&scene, second)], before, "{what}");
    }
    assert!(scene.sent(honest).is_empty());
    assert!(scene.state.fleet.workers[&liar].heartbeat.running.is_empty());
    assert_eq!(scene.state.fleet.workers[&liar].running.keys().copied().collect::<Vec<_>>(), held);
}

#[test]
fn attempt_that_ends_with_what_its_kind_does_not_make_has_failed() {
    let (mut scene, worker, job) = with_reduce_running();
    let (fingerprint, report) = (Fingerprint::default(), AttemptReport::default());
    scene.deliver(worker, WorkerFrame::MapFinished { attempt: reduce(job, 0), fingerprint, report });
    let end = scene.record(reduce(job, 0)).end;
    let (class, words) = end.shown().unwrap();
    assert_eq!((class, words.contains("a map output")), ("worker", true), "{words}");
}

#[test]
fn numbers_of_a_worker_that_are_too_large_to_add_end_nothing() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|submission| submission.splits = vec![submission.splits[0].clone(); 3]).unwrap();
    for index in 0..3 {
        let most = u64::MAX;
        scene.deliver(worker, WorkerFrame::Pong { master_ns: most - index, worker_ns: 1 << 63 });
        let report = AttemptReport {
            bytes_in: most,
            bytes_out: most,
            cpu_ns: most,
            spilled_bytes: most,
            ended_ns: most,
            counters: vec![("c".to_owned(), most)],
            ..AttemptReport::default()
        };
        let attempt = TaskId::map(job, index as u32).attempt(0);
        let running = vec![AttemptProgress { attempt, bytes_in: most, records_in: most }];
        scene.deliver(worker, WorkerFrame::Heartbeat(Heartbeat { running, ..Heartbeat::default() }));
        scene.deliver(
            worker,
            WorkerFrame::MapFinished { attempt, fingerprint: Fingerprint::default(), report },
        );
    }
    let status = scene.state.queries().status(scene.now, job).unwrap();
    assert_eq!((status.maps.done, status.totals.cpu_ns), (3, u64::MAX));
}

#[test]
fn long_word_about_a_failure_is_clipped() {
    let (mut scene, worker, job) = with_reduce_running();
    let (class, report) = (FailureClass::User, AttemptReport::default());
    let message = "x".repeat(1 << 20);
    scene.deliver(worker, WorkerFrame::AttemptFailed { attempt: reduce(job, 0), class, message, report });
    let AttemptEnd::Failed(_, words) = scene.record(reduce(job, 0)).end else { panic!("it ended well") };
    assert!((1000..10_000).contains(&words.len()), "{} bytes", words.len());
    let incidents = scene.state.queries().status(scene.now, job).unwrap().incidents;
    assert!(incidents.iter().all(|incident| incident.len() < 10_000));
}

fn ended_for_memory(begun: Vec<AttemptId>) -> WorkerEnded {
    WorkerEnded {
        pid: 1,
        host: String::new(),
        key: String::new(),
        signal: Some(9),
        out_of_memory: true,
        code: None,
        last_words: String::new(),
        begun,
        culprit: None,
    }
}

#[test]
fn job_whose_outputs_alone_take_the_memory_of_three_workers_fails() {
    let mut scene = Scene::new(&[]);
    let job = scene.submit(|_| {}).unwrap();
    for lost in 1..=3 {
        let worker = scene.join();
        scene.settle();
        scene.map_done(worker, TaskId::map(job, 0).attempt(lost - 1));
        let ended = |scene: &Scene| scene.state.queries().status(scene.now, job).unwrap().state.ended();
        assert!(!ended(&scene), "before loss {lost}");
        scene.state.lost(scene.now, worker, Some(&ended_for_memory(Vec::new())));
        scene.settle();
        assert_eq!(ended(&scene), lost == 3, "after loss {lost}");
    }
}

#[test]
fn what_ran_where_memory_ran_out_is_launched_again_to_run_alone() {
    let mut scene = Scene::new(&[]);
    let first = scene.join();
    let job = scene.submit(|_| {}).unwrap();
    let attempt = TaskId::map(job, 0).attempt(0);
    scene.state.lost(scene.now, first, Some(&ended_for_memory(vec![attempt])));
    scene.settle();
    let second = scene.join_saying(Scene::hello(1));
    let alone = scene.sent(second).into_iter().find_map(|frame| match frame {
        MasterFrame::LaunchMap { attempt, alone, .. } => Some((attempt, alone)),
        _ => None,
    });
    assert_eq!(alone, Some((TaskId::map(job, 0).attempt(1), true)));
    let status = scene.state.queries().status(scene.now, job).unwrap();
    assert!(
        status.incidents.iter().any(|it| it.contains("a worker process to themselves next")),
        "{status:?}"
    );
    assert_eq!((status.attempts.lost, status.attempts.failed_user), (1, 0));
}
