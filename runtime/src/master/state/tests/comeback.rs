//! A state rebuilt from an earlier master's records, and workers that reconnect to it.

use super::*;
use crate::journal::checked::{CheckedReader, CheckedWriter};
use crate::journal::{self, Encoded, JournalHeader};
use crate::master::recovery::{RecallError, RecoveryJournal, recall};
use crate::output_dir::OutputDirectory;
use gristmill_worker::protocol::{HeldAttempt, HeldHome, Holding, Rejoin, Session};
use std::path::{Path, PathBuf};

/// A scene whose master keeps a recovery file, and the output directory of its job.
struct Standing {
    scene: Scene,
    directory: tempfile::TempDir,
    _claim: OutputDirectory,
    probe: gristmill_worker::directory::PlainName,
}

pub(super) fn header() -> JournalHeader {
    JournalHeader {
        schema: journal::SCHEMA,
        version: String::new(),
        build: "build".to_owned(),
        policy: "ruthless".to_owned(),
        placement: "pull".to_owned(),
        estimator: "linear".to_owned(),
        memory: serde_json::Value::Null,
        core: CoreConfig::default(),
    }
}

impl Standing {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut scene = Scene::new(&[]);
        let journal = RecoveryJournal::create(directory.path().join("recovery"), &header()).unwrap();
        scene.state.journal.come_back_from(journal);
        scene.state.start_generation(Time(1), 1);
        let claim =
            OutputDirectory::claim(&directory.path().join("out"), false, false, "0123456789").unwrap();
        let probe = claim.probe().clone();
        Self { scene, directory, _claim: claim, probe }
    }

    fn journal(&self) -> PathBuf {
        self.directory.path().join("recovery")
    }

    /// Submits a detached job of three maps and a reduce.
    fn submit(&mut self) -> JobId {
        let (output, probe) = (self.directory.path().join("out"), self.probe.clone());
        let change = |submission: &mut Submission| {
            submission.splits = vec![submission.splits[0].clone(); 3];
            (submission.attached, submission.output) = (false, FilePath::from(output.as_path()));
            submission.output_probe = probe;
        };
        self.scene.submit(change).unwrap()
    }

    /// Kills the master and replaces it.
    fn next(self) -> (Scene, tempfile::TempDir) {
        let Self { scene, directory, _claim, probe: _ } = self;
        let now = scene.now;
        drop(scene);
        let path = directory.path().join("recovery");
        let (mut next, length) = replayed(&path);
        next.now = now;
        let journal = RecoveryJournal::go_on(path, length).unwrap();
        next.state.go_on(now, 2, Register::in_memory(), journal);
        (next, directory)
    }
}

/// Rebuilds a scene from this journal. Also returns the length of its intact part.
pub(super) fn replayed(path: &Path) -> (Scene, u64) {
    let mut scene = Scene::new(&[]);
    let mut journal = recall(path).unwrap().unwrap();
    scene.state.replay(&mut journal).unwrap();
    (scene, journal.offset())
}

/// Text of the core's state of tasks and workers.
fn known(state: &MasterState) -> String {
    let core = &state.core;
    let attempts: Vec<_> = core.attempts().collect();
    let (jobs, workers): (Vec<_>, Vec<_>) = (core.live_jobs().collect(), core.workers().collect());
    format!("{attempts:?} {jobs:?} {workers:?}")
}

fn come_back(scene: &mut Scene, worker: WorkerId, holding: Holding) -> Vec<MasterFrame> {
    let hello = Hello { rejoin: Some(Rejoin { worker, generation: 1 }), ..Scene::hello(1) };
    let (frames, inbox) = unbounded_channel();
    assert_eq!(scene.state.join(scene.now, hello, frames), Ok(worker));
    scene.inboxes.insert(worker, inbox);
    let greeting = scene.sent(worker);
    assert!(matches!(greeting[..], [MasterFrame::Welcome { .. }, MasterFrame::Ping { .. }]), "{greeting:?}");
    scene.deliver(worker, WorkerFrame::Holding(holding));
    scene.sent(worker)
}

fn nth_map(job: JobId, index: u32) -> AttemptId {
    TaskId::map(job, index).attempt(0)
}

fn running(attempt: AttemptId) -> HeldAttempt {
    HeldAttempt { attempt, suspended: false, awaits_permit: false }
}

#[test]
fn state_is_the_same_when_it_is_made_again_of_what_was_written_down_and_of_every_beginning_of_that() {
    let mut standing = Standing::new();
    let [first, second] = [standing.scene.join(), standing.scene.join()];
    let job = standing.submit();
    standing.scene.map_done(first, nth_map(job, 0));
    standing.scene.pass(Span::milliseconds(5));
    standing.scene.map_done(second, nth_map(job, 1));
    standing.scene.state.lost(standing.scene.now, second, None);
    standing.scene.settle();
    let (again, length) = replayed(&standing.journal());
    assert_eq!(known(&again.state), known(&standing.scene.state));
    let (one, other) =
        (again.state.queries().status(Time(9), job), standing.scene.state.queries().status(Time(9), job));
    let counts = |status: Option<JobStatus>| status.map(|it| (it.maps, it.reduces, it.attempts, it.totals));
    assert_eq!(format!("{:?}", counts(one)), format!("{:?}", counts(other)));
    let whole = std::fs::read(standing.journal()).unwrap();
    assert_eq!(whole.len() as u64, length);
    let path = standing.directory.path().join("beginning");
    let first_line = 1 + whole.iter().position(|byte| *byte == b'\n').unwrap();
    for end in (first_line..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..end]).unwrap();
        let (beginning, _) = replayed(&path);
        #[cfg(debug_assertions)]
        beginning.state.core.audit().unwrap();
    }
}

/// Rewrites the journal with changed orders in the instant of the first map's end.
fn with_other_orders(path: &Path, change: impl Fn(&mut Vec<u8>)) {
    let mut lines = CheckedReader::open(path).unwrap();
    let mut written: Vec<(u8, serde_json::Value)> = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        written.push((line.letter, serde_json::from_slice(line.json).unwrap()));
    }
    let said = written.iter().position(|(_, line)| line.get("said").is_some()).unwrap();
    let orders = written[said..].iter_mut().find_map(|(_, line)| line.get_mut("instant")?.get_mut("orders"));
    let orders = orders.unwrap();
    let mut bytes = serde_json::from_value::<Encoded>(orders.clone()).unwrap().bytes().to_vec();
    change(&mut bytes);
    *orders = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
    let mut again = CheckedWriter::create(path).unwrap();
    written.iter().for_each(|(letter, line)| again.line(*letter, line).unwrap());
    again.write_out().unwrap();
}

#[test]
fn journal_whose_facts_lead_to_other_orders_than_it_says_is_refused_and_the_first_such_order_is_named() {
    let refused = |change: fn(&mut Vec<u8>)| {
        let mut standing = Standing::new();
        let worker = standing.scene.join();
        let job = standing.submit();
        standing.scene.map_done(worker, nth_map(job, 0));
        let path = standing.journal();
        with_other_orders(&path, change);
        let mut journal = recall(&path).unwrap().unwrap();
        match Scene::new(&[]).state.replay(&mut journal) {
            Err(RecallError::Differs { what, .. }) => what,
            other => panic!("{:?}", other.map(|replayed| replayed.now)),
        }
    };
    let what = refused(|orders| *orders.last_mut().unwrap() ^= 1);
    assert!(what.starts_with("order 3 of that moment is Launch"), "{what}");
    let what = refused(|orders| *orders = vec![0]);
    assert!(what.starts_with("order 1 of that moment is Announce"), "{what}");
    let what = refused(|orders| orders[0] += 1);
    assert_eq!(what, "there are only 3 orders at that moment");
}

#[test]
fn worker_that_has_what_it_should_is_told_nothing_but_that_it_is_in() {
    let mut standing = Standing::new();
    let worker = standing.scene.join();
    let job = standing.submit();
    let (mut scene, _directory) = standing.next();
    let homes = vec![HeldHome { job, partition: 0, segments: 0 }];
    let attempts = vec![running(nth_map(job, 0))];
    let said = come_back(&mut scene, worker, Holding { jobs: vec![job], attempts, homes });
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn worker_that_missed_its_orders_is_told_them_again_by_the_same_numbers() {
    let mut standing = Standing::new();
    let worker = standing.scene.join();
    let job = standing.submit();
    let (mut scene, _directory) = standing.next();
    let said = come_back(&mut scene, worker, Holding::default());
    let [MasterFrame::Job(_), rest @ ..] = &said[..] else { panic!("{said:?}") };
    let homes = rest.iter().any(|frame| matches!(frame, MasterFrame::Home { partition: 0, .. }));
    let launches: Vec<_> = rest
        .iter()
        .filter_map(|frame| match frame {
            MasterFrame::LaunchMap { attempt, .. } => Some(*attempt),
            _ => None,
        })
        .collect();
    assert_eq!((homes, launches), (true, vec![nth_map(job, 0)]), "{rest:?}");
    assert_eq!(scene.state.queries().status(scene.now, job).unwrap().attempts.launched, 1);
}

#[test]
fn worker_stops_what_nobody_knows_and_forgets_jobs_that_are_over() {
    let mut standing = Standing::new();
    let worker = standing.scene.join();
    let (mut scene, _directory) = standing.next();
    let stray = nth_map(JobId(77), 0);
    let said = come_back(
        &mut scene,
        worker,
        Holding { jobs: vec![JobId(77)], attempts: vec![running(stray)], homes: Vec::new() },
    );
    let forgets = said.iter().any(|frame| matches!(frame, MasterFrame::Forget { job: JobId(77) }));
    let kills = said.iter().any(|frame| matches!(frame, MasterFrame::Kill { attempt } if *attempt == stray));
    assert!(forgets && kills, "{said:?}");
}

#[test]
fn frames_of_a_worker_are_counted_over_masters() {
    let mut standing = Standing::new();
    let worker = standing.scene.join();
    let job = standing.submit();
    standing.scene.map_done(worker, nth_map(job, 0));
    standing.scene.deliver(worker, WorkerFrame::Heartbeat(Heartbeat::default()));
    let (mut scene, _directory) = standing.next();
    let hello = Hello { rejoin: Some(Rejoin { worker, generation: 1 }), ..Scene::hello(1) };
    let (frames, inbox) = unbounded_channel();
    scene.state.join(scene.now, hello, frames).unwrap();
    scene.inboxes.insert(worker, inbox);
    let said = scene.sent(worker);
    let [MasterFrame::Welcome { session, .. }, ..] = &said[..] else { panic!("{said:?}") };
    assert_eq!(*session, Session { generation: 2, returns: true, heard: 1 }, "a sign of life does not count");
}

#[test]
fn only_a_worker_that_is_waited_for_is_taken_back_and_only_by_a_master_that_is_not_outdated() {
    let mut standing = Standing::new();
    let worker = standing.scene.join();
    let (mut scene, _directory) = standing.next();
    let other = ended_proof(&Secret::from_bytes([8; 32]));
    let rejoin = |worker, generation| Some(Rejoin { worker, generation });
    let cases = [
        (Hello { rejoin: rejoin(WorkerId(99), 1), ..Scene::hello(1) }, "is not waited for"),
        (Hello { rejoin: rejoin(worker, 1), ended_proof: other, ..Scene::hello(1) }, "is not waited for"),
        (Hello { rejoin: rejoin(worker, 3), ..Scene::hello(1) }, "a later master, of generation 3"),
    ];
    for (hello, words) in cases {
        let (frames, _inbox) = unbounded_channel();
        let refused = scene.state.join(scene.now, hello, frames).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
    come_back(&mut scene, worker, Holding::default());
    let again = Hello { rejoin: rejoin(worker, 2), ..Scene::hello(1) };
    let (frames, _inbox) = unbounded_channel();
    assert!(scene.state.join(scene.now, again, frames).is_err(), "it is here already");
}
