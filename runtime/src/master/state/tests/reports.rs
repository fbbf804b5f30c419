//! Reports of workers that do not fit what they hold, or whose memory ran out.

use super::*;

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
    let progress =
        |attempt| AttemptProgress { attempt, bytes_in: u64::MAX, records_in: u64::MAX, divisible_bytes: 0 };
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
        let running = vec![AttemptProgress { attempt, bytes_in: most, records_in: most, divisible_bytes: 0 }];
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
            let running = vec![AttemptProgress { attempt, bytes_in, records_in: 0, divisible_bytes: 0 }];
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
