//! Segments, transfers and lanes in counts, traces and orders.

use super::*;

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
    let (mut scene, [first, second], job) = with_reduce_starting_again();
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
