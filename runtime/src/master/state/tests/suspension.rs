//! Tests of the master's part in suspending and resuming reduces.

use super::*;

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

#[test]
fn suspended_reduce_of_a_draining_worker_is_killed_and_starts_again_elsewhere() {
    let (mut scene, [first, second], job) = with_reduce_starting_again();
    let (class, report) = (FailureClass::Cancelled, AttemptReport::default());
    let ended =
        WorkerFrame::AttemptFailed { attempt: reduce(job, 0), class, message: "no".to_owned(), report };
    scene.deliver(first, ended);
    assert!(!scene.record(reduce(job, 0)).suspended);
    scene.fetched(second, first, map(job));
    let frames = launched(&mut scene, second);
    assert!(
        matches!(frames[..], [MasterFrame::LaunchReduce { attempt, .. }] if attempt == reduce(job, 1)),
        "{frames:?}"
    );
}
