//! Guarantees wait until they are written down, and synced for a job that asks for syncs. Also tests a master that
//! cannot write.

use super::comeback::header;
use super::*;
use crate::api::ErrorCode;
use crate::master::recovery::RecoveryJournal;

/// A master with this recovery file, and a worker.
fn scene(path: std::path::PathBuf) -> (Scene, WorkerId) {
    let mut scene = Scene::new(&[]);
    let worker = scene.try_join(Scene::hello(2)).unwrap();
    scene.state.journal.come_back_from(RecoveryJournal::create(path, &header()).unwrap());
    (scene, worker)
}

/// Syncs what a guarantee waits for. Returns true if there was anything.
fn sync(scene: &mut Scene, works: bool) -> bool {
    let Some(order) = scene.state.journal.sync_order() else { return false };
    let synced = if works { order.carry_out() } else { order.fail() };
    scene.state.journal.synced(synced);
    scene.settle();
    true
}

fn grants(said: &[MasterFrame]) -> usize {
    said.iter().filter(|frame| matches!(frame, MasterFrame::CommitGranted { .. })).count()
}

/// Runs a job until its only reduce asks for its permit.
fn until_a_permit_is_asked_for(scene: &mut Scene, worker: WorkerId, sync: bool) -> (JobId, AttemptId) {
    let job = scene.submit(|submission| submission.sync = sync).unwrap();
    let map = TaskId::map(job, 0).attempt(0);
    scene.map_done(worker, map);
    scene.fetched(worker, worker, map);
    let reduce = TaskId::reduce(job, 0).attempt(0);
    scene.deliver(worker, WorkerFrame::CommitRequest { attempt: reduce });
    (job, reduce)
}

fn hand_in(scene: &mut Scene, worker: WorkerId, attempt: AttemptId) {
    let part = Part { name: String::new(), bytes: 5, records: 1, crc32c: 7, named: Vec::new() };
    let (stamp, report) = (FileStamp { size: 5, modified_ns: 1, inode: 1 }, AttemptReport::default());
    scene.deliver(worker, WorkerFrame::PartFinished { attempt, part, stamp, report });
}

#[test]
fn permit_and_end_of_a_synced_job_are_told_when_they_are_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let (mut scene, worker) = scene(directory.path().join("recovery"));
    let (job, reduce) = until_a_permit_is_asked_for(&mut scene, worker, true);
    assert_eq!(grants(&scene.sent(worker)), 0);
    assert!(sync(&mut scene, true));
    assert_eq!(grants(&scene.sent(worker)), 1);
    hand_in(&mut scene, worker, reduce);
    let told = |scene: &Scene| scene.state.queries().followed_status(scene.now, job, true).unwrap().state;
    assert_eq!(told(&scene), JobState::Running, "its client would publish");
    assert!(sync(&mut scene, true));
    assert_eq!(told(&scene), JobState::Publishing);
    assert!(!sync(&mut scene, true), "nobody waits");
}

#[test]
fn promises_of_several_jobs_take_one_sync() {
    let directory = tempfile::tempdir().unwrap();
    let (mut scene, worker) = scene(directory.path().join("recovery"));
    let first = scene.state.journal.guarantee(true);
    let order = scene.state.journal.sync_order();
    assert!(order.is_none(), "there is nothing yet that is not on disk, or it is not written");
    until_a_permit_is_asked_for(&mut scene, worker, true);
    until_a_permit_is_asked_for(&mut scene, worker, true);
    assert!(sync(&mut scene, true));
    assert_eq!(grants(&scene.sent(worker)), 2);
    assert!(scene.state.journal.stands(first) && !sync(&mut scene, true));
}

#[test]
fn nothing_is_synced_for_a_job_that_does_not_ask_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let (mut scene, worker) = scene(directory.path().join("recovery"));
    let (_, reduce) = until_a_permit_is_asked_for(&mut scene, worker, false);
    assert_eq!(grants(&scene.sent(worker)), 1);
    hand_in(&mut scene, worker, reduce);
    assert!(!sync(&mut scene, true));
}

#[test]
fn master_without_room_gives_no_orders_and_takes_no_jobs_and_goes_on_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("recovery");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let (mut scene, worker) = scene(path.clone());
    scene.submit(|_| {}).unwrap();
    assert!(scene.sent(worker).is_empty(), "what is not written down is not ordered");
    assert!(scene.state.journal.trouble().unwrap().contains("No space left on device"));
    let refused = scene.submit(|_| {}).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Journal);
    scene.state.ping(scene.now);
    let said = scene.sent(worker);
    assert!(matches!(said[..], [MasterFrame::Ping { .. }]), "it is there: {said:?}");
    // A new file in place of the link has room.
    scene.state.compact(scene.now).unwrap();
    scene.settle();
    assert_eq!(scene.state.journal.trouble(), None);
    let said = scene.sent(worker);
    assert!(said.iter().any(|frame| matches!(frame, MasterFrame::LaunchMap { .. })), "{said:?}");
    let (again, _) = super::comeback::replayed(&path);
    assert_eq!(again.state.core.live_jobs().count(), 1);
}

#[test]
fn file_that_could_not_be_synced_is_begun_anew_and_promises_wait_for_that() {
    let directory = tempfile::tempdir().unwrap();
    let (mut scene, worker) = scene(directory.path().join("recovery"));
    until_a_permit_is_asked_for(&mut scene, worker, true);
    assert!(sync(&mut scene, false));
    assert_eq!(grants(&scene.sent(worker)), 0);
    assert!(scene.state.journal.trouble().unwrap().contains("could not be synced"));
    assert!(scene.state.journal.sync_order().is_none(), "a second try would say that all is well");
    scene.state.compact_if_grown(scene.now);
    scene.settle();
    assert_eq!(scene.state.journal.trouble(), None);
    assert_eq!(grants(&scene.sent(worker)), 1);
}
