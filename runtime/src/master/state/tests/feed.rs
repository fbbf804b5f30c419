//! The feed reports each change once, at a cost proportional to the changes.

use super::*;
use crate::api::{FeedAttempt, FeedEnd, FeedLine, MasterStatus, WorkerStatus};
use crate::master::state::FeedCursor;

fn master() -> MasterStatus {
    MasterStatus {
        schema: SCHEMA,
        version: String::new(),
        build: String::new(),
        policy: String::new(),
        placement: String::new(),
        estimator: String::new(),
        policy_panics: 0,
        policy_panic: String::new(),
        now_ns: 0,
        workers: Vec::new(),
        given_up: Vec::new(),
        jobs_live: 0,
        trouble: None,
        register_gap: None,
        returns: false,
    }
}

fn next_line(scene: &Scene, cursor: &mut FeedCursor) -> FeedLine {
    cursor.advance(scene.now, scene.state.queries(), master())
}

/// Job, kind, index and end of the attempts of a line.
fn ended_attempts(line: &FeedLine) -> Vec<(u32, u8, u32, FeedEnd)> {
    line.attempts.iter().map(|FeedAttempt(job, kind, index, .., end)| (*job, *kind, *index, *end)).collect()
}

#[test]
fn feed_tells_of_each_attempt_and_transfer_when_it_changes_and_not_again() {
    let mut scene = Scene::new(&[]);
    let (worker, mut cursor) = (scene.join(), FeedCursor::default());
    assert!(next_line(&scene, &mut cursor).jobs.is_empty());
    let job = scene.submit(|_| {}).unwrap();
    let line = next_line(&scene, &mut cursor);
    assert_eq!((line.jobs.len(), ended_attempts(&line)), (1, vec![(job.0, 0, 0, FeedEnd::Running)]));
    assert_eq!(ended_attempts(&next_line(&scene, &mut cursor)), [], "nothing has changed");
    scene.map_done(worker, map(job));
    scene.fetched(worker, worker, map(job));
    let line = next_line(&scene, &mut cursor);
    assert_eq!(ended_attempts(&line), [(job.0, 0, 0, FeedEnd::Succeeded), (job.0, 1, 0, FeedEnd::Running)]);
    assert_eq!(line.fetches.len(), 1);
    let line = next_line(&scene, &mut cursor);
    assert_eq!(
        (ended_attempts(&line), line.fetches.len(), line.jobs.len()),
        (vec![], 0, 0),
        "nothing has changed"
    );
}

#[test]
fn first_line_of_the_feed_has_the_jobs_of_earlier_masters() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs");
    let mut register = Register::open(&path, 10).unwrap();
    let job = register.next_job().unwrap();
    register.ended(|| status_of(job));
    let mut scene = Scene::new(&[]);
    scene.state.jobs.register = Register::open(&path, 10).unwrap();
    let mut cursor = FeedCursor::default();
    let first = next_line(&scene, &mut cursor).jobs;
    assert_eq!(first.iter().map(|status| status.job).collect::<Vec<_>>(), [job]);
    let next = scene.submit(|_| {}).unwrap();
    let second = next_line(&scene, &mut cursor).jobs;
    assert_eq!(second.iter().map(|status| status.job).collect::<Vec<_>>(), [next], "told once");
}

#[test]
fn feed_tells_how_a_job_ended_once_and_then_no_more_of_it() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let job = scene.submit(|_| {}).unwrap();
    let mut cursor = FeedCursor::default();
    next_line(&scene, &mut cursor);
    scene.state.cancel(job);
    scene.settle();
    let line = next_line(&scene, &mut cursor);
    assert_eq!(line.jobs.iter().map(|job| job.state).collect::<Vec<_>>(), [JobState::Cancelled]);
    assert!(next_line(&scene, &mut cursor).jobs.is_empty());
}

#[test]
fn first_look_tells_of_jobs_that_ended_just_now_with_their_attempts_and_of_older_ones_without() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let old = scene.submit(|_| {}).unwrap();
    scene.state.cancel(old);
    scene.settle();
    scene.pass(Span::whole_seconds(3600));
    scene.join();
    let new = scene.submit(|_| {}).unwrap();
    scene.state.cancel(new);
    scene.settle();
    let line = next_line(&scene, &mut FeedCursor::default());
    let jobs: BTreeSet<_> = line.jobs.iter().map(|job| job.job).collect();
    assert_eq!(jobs, BTreeSet::from([old, new]));
    let of_jobs: BTreeSet<u32> = ended_attempts(&line).iter().map(|(job, ..)| *job).collect();
    assert_eq!(of_jobs, BTreeSet::from([new.0]));
}

#[test]
fn line_that_has_no_room_for_all_says_so_and_the_next_ones_bring_the_rest() {
    const MAPS: usize = 9_000;
    let mut scene = Scene::new(&[]);
    for _ in 0..9 {
        scene.try_join(Scene::hello(1000)).unwrap();
    }
    scene.submit(|submission| submission.splits = vec![submission.splits[0].clone(); MAPS]).unwrap();
    let (mut cursor, mut seen, mut lines) = (FeedCursor::default(), BTreeSet::new(), 0);
    loop {
        let line = next_line(&scene, &mut cursor);
        lines += 1;
        assert!(line.attempts.len() <= 4_000);
        for attempt in ended_attempts(&line) {
            assert!(seen.insert(attempt.2), "map-{} twice", attempt.2);
        }
        if !line.more {
            break;
        }
    }
    assert_eq!((seen.len(), lines), (MAPS, 3));
}

#[test]
fn feed_reports_a_worker_when_it_joins_or_changes_but_not_a_little_memory() {
    let mut scene = Scene::new(&[]);
    let (first, second) = (scene.join(), scene.join());
    let mut workers = scene.state.queries().workers();
    let mut cursor = FeedCursor::default();
    let mut look = |workers: &[WorkerStatus]| {
        let master = MasterStatus { workers: workers.to_vec(), ..master() };
        let line = cursor.advance(scene.now, scene.state.queries(), master);
        assert!(line.master.workers.is_empty());
        let whole: Vec<WorkerId> = line.workers.iter().map(|worker| worker.worker).collect();
        (whole, line.left)
    };
    assert_eq!(look(&workers), (vec![first, second], vec![]));
    assert_eq!(look(&workers), (vec![], vec![]), "nothing has changed");
    workers[1].memory_bytes += 1 << 20;
    workers[1].clock_offset_ns += 5;
    assert_eq!(look(&workers), (vec![], vec![]), "a little memory is not worth a word");
    workers[1].memory_bytes += 64 << 20;
    assert_eq!(look(&workers), (vec![second], vec![]));
    workers[1].away = true;
    assert_eq!(look(&workers), (vec![second], vec![]));
    workers.remove(0);
    assert_eq!(look(&workers), (vec![], vec![first]));
    assert_eq!(look(&workers), (vec![], vec![]));
}
