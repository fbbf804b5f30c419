//! Tests of the master's part in suspending reduces and handing them over to another attempt.

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
