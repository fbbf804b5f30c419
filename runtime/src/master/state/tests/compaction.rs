//! The recovery file stays bounded, however many jobs a master has had, also if it always has one.

use super::comeback::{header, replayed};
use super::*;
use crate::journal::{Journal, JournalReader};
use crate::master::recovery::{FACTS, RecoveryJournal};
use crate::replay::replay;
use std::io::BufReader;
use std::path::PathBuf;

/// Growth in bytes after which the file is compacted.
const COMPACT_AFTER_BYTES: u64 = 20_000;

/// Number of jobs, each of which arrives before the previous one has ended.
const JOBS: u32 = 100;

/// A master whose recovery file is compacted often.
fn scene(directory: &tempfile::TempDir) -> (Scene, PathBuf) {
    let mut scene = Scene::new(&[]);
    scene.state.jobs.register = Register::open(&directory.path().join("jobs"), JOBS as usize).unwrap();
    let path = directory.path().join("recovery");
    let journal = RecoveryJournal::create(path.clone(), &header()).unwrap();
    scene.state.journal.come_back_from(journal.compact_after(COMPACT_AFTER_BYTES));
    scene.state.start_generation(Time(1), 1);
    (scene, path)
}

/// Completes the only map of a job and its reduce.
fn finish(scene: &mut Scene, worker: WorkerId, job: JobId) {
    let map = TaskId::map(job, 0).attempt(0);
    scene.map_done(worker, map);
    scene.fetched(worker, worker, map);
    let reduce = TaskId::reduce(job, 0).attempt(0);
    scene.deliver(worker, WorkerFrame::CommitRequest { attempt: reduce });
    let part = Part { name: String::new(), bytes: 5, records: 1, crc32c: 7, named: Vec::new() };
    let (stamp, report) = (FileStamp { size: 5, modified_ns: 1, inode: 1 }, AttemptReport::default());
    scene.deliver(worker, WorkerFrame::PartFinished { attempt: reduce, part, stamp, report });
    scene.state.jobs.client_closed(scene.now, job, None, &mut scene.state.journal);
    scene.settle();
}

#[test]
fn file_stays_bounded_while_a_master_always_has_a_job_and_the_next_one_knows_what_stands() {
    let directory = tempfile::tempdir().unwrap();
    let (mut scene, path) = scene(&directory);
    let journal = directory.path().join("journal");
    scene.state.journal.write_also(Journal::create(&journal, &header()).unwrap());
    let worker = scene.try_join(Scene::hello(2)).unwrap();
    let (mut largest, mut rewritten, mut length) = (0, 0, 0);
    let mut live = scene.submit(|_| {}).unwrap();
    for _ in 1..JOBS {
        let next = scene.submit(|_| {}).unwrap();
        finish(&mut scene, worker, live);
        live = next;
        scene.state.compact_if_grown(scene.now);
        let before = std::mem::replace(&mut length, std::fs::metadata(&path).unwrap().len());
        rewritten += u32::from(length < before);
        largest = largest.max(length);
    }
    assert!(3 < rewritten, "rewritten {rewritten} times");
    // The state, the growth it is allowed before compaction, and what one iteration adds.
    assert!(largest < 3 * COMPACT_AFTER_BYTES, "{largest} bytes");
    let (mut again, length) = replayed(&path);
    assert_eq!(length, std::fs::metadata(&path).unwrap().len());
    #[cfg(debug_assertions)]
    again.state.core.audit().unwrap();
    let jobs: Vec<JobId> = again.state.core.live_jobs().map(|job| job.id).collect();
    assert_eq!(jobs, [live]);
    let status = |scene: &mut Scene| {
        let status = scene.state.queries().status(Time(9), live).unwrap();
        format!("{:?} {:?} {:?} {:?}", status.state, status.maps, status.attempts, status.totals)
    };
    assert_eq!(status(&mut again), status(&mut scene));
    let register = Register::open(&directory.path().join("jobs"), JOBS as usize).unwrap();
    let past = register.past(JobId(JOBS - 1)).unwrap();
    assert_eq!(past.state, JobState::Succeeded, "the register tells of what has ended");
    scene.state.journal.end(crate::master::ending::Ending::Abandons);
    let registry = Registry::standard().policy(&RUTHLESS);
    let mut reader = JournalReader::new(BufReader::new(std::fs::File::open(&journal).unwrap())).unwrap();
    let replayed = replay(&registry, &mut reader).unwrap();
    assert!(replayed.difference.is_none() && replayed.ended, "{replayed:?}");
}

#[test]
fn file_that_cannot_be_begun_anew_stays_as_it_was_and_grows_on() {
    let directory = tempfile::tempdir().unwrap();
    let (mut scene, path) = scene(&directory);
    scene.join();
    scene.submit(|_| {}).unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut journal = scene.state.journal.take_recovery().unwrap();
    let failed = journal.rewrite(&header(), |lines| {
        lines.line(FACTS, &7)?;
        Err(std::io::ErrorKind::StorageFull.into())
    });
    assert_eq!(failed.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    scene.state.journal.come_back_from(journal);
    scene.submit(|_| {}).unwrap();
    let (again, _) = replayed(&path);
    assert_eq!(again.state.core.live_jobs().count(), 2);
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        2,
        "the register, the file, and nothing else"
    );
}
