//! Notices to users: full spill disks, and lines of workers in explanations.

use super::*;
use gristmill_worker::protocol::DiskRoom;

#[test]
fn full_spill_disks_and_new_room_are_incidents_of_live_jobs_at_most_every_100_ms() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|_| {}).unwrap();
    let room = |scene: &mut Scene, free_mib: u64| {
        let room = DiskRoom { free_bytes: free_mib << 20, reserve_bytes: 10 << 20 };
        scene.state.notice_disk_room(scene.now, worker, room);
        scene.settle();
        scene.state.queries().status(scene.now, job).unwrap().incidents
    };
    let full = room(&mut scene, 5);
    assert!(full.len() == 1 && full[0].contains("the spill disks of worker-1 are full: "), "{full:?}");
    assert_eq!(room(&mut scene, 5000), full, "it is too early for another notice");
    scene.pass(Span::milliseconds(200));
    assert_eq!(room(&mut scene, 5), full, "nothing has changed");
    let free = room(&mut scene, 5000);
    assert!(free.len() == 2 && free[1].contains("worker-1 has room on its spill disks again"), "{free:?}");
}

#[test]
fn further_lines_of_a_worker_are_indented_in_an_explanation() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|submission| submission.attempts_max = 1).unwrap();
    let (attempt, class, message) = (map(job), FailureClass::User, "first\nsecond".to_owned());
    scene.deliver(
        worker,
        WorkerFrame::AttemptFailed { attempt, class, message, report: AttemptReport::default() },
    );
    let sentences = scene.state.explain(scene.now, job, Some((TaskKind::Map, 0))).unwrap();
    assert!(sentences[0].contains("first\n    second"), "{sentences:?}");
}
