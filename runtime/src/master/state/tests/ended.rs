//! Jobs that are closing or have ended.

use super::*;

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
        let built = BuiltPart::new(map(job), stamp);
        let indices = 1..=jobs::TRACED_RECORDS_MAX as u32;
        entry.output.parts = indices.map(|index| (index, (part.clone(), built.clone()))).collect();
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
