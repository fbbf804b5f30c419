//! Tests of preemption: which attempts leave their slots, where they continue or start again, and what happens in between.

use super::driver::{JOB, Table, check, map, plain, reduce};
use crate::core::{CoreConfig, SuspendLimits};
use crate::event::{Event, Failure, Slots};
use crate::ids::{AttemptId, HostId, JobId, TaskId, WorkerId};
use crate::job::JobSpec;
use crate::plan::{Plan, Reason, Share};
use crate::policy::Policy;
use crate::units::Span;
use crate::view::{Change, Handle, Station, View};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Policy by priority, then age, that preempts lower priorities.
#[derive(Default)]
pub(super) struct Ruthless {
    jobs: BTreeSet<(Reverse<i32>, u64, Handle)>,
}

impl Policy for Ruthless {
    fn name(&self) -> &'static str {
        "ruthless"
    }
    fn preempts(&self) -> bool {
        true
    }
    fn observe(&mut self, view: View<'_>, change: Change) {
        match change {
            Change::Left(job) => self.jobs.retain(|&(.., other)| other != job),
            Change::Arrived(job) => {
                let row = view.row(job);
                self.jobs.insert((Reverse(row.priority), row.seq, job));
            }
            Change::Progress | Change::Tick => {}
        }
    }
    fn plan(&mut self, _: View<'_>, plan: &mut Plan<'_>) {
        for &(.., job) in &self.jobs {
            for station in [Station::Reduce, Station::Map] {
                plan.grant(job, station, Share::All, Reason::Own("ruthless"));
            }
        }
    }
}

const SECOND: JobId = JobId(2);

fn urgent(maps: usize, reduces: u32) -> JobSpec {
    JobSpec { priority: 1, ..plain(maps, reduces) }
}

fn other(index: u32) -> AttemptId {
    TaskId::map(SECOND, index).attempt(0)
}

/// Builds workers with these slots, with the first job's only reduce running on the first.
fn with_reduce_running(slots: &[u32]) -> Table {
    let mut table = Table::new(Ruthless::default());
    for &slots in slots {
        table.join(slots);
    }
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    check(&table.fetched(1, map(0, 0), &[0]), "launch reduce-0.0 on w1");
    table.now = table.now + Span::whole_seconds(1);
    table
}

fn suspended(attempt: AttemptId) -> Event {
    Event::AttemptSuspended { attempt }
}

/// As [`with_reduce_running`], with the reduce suspended for a map of a second job of higher priority.
fn with_reduce_suspended(slots: &[u32], maps: usize) -> Table {
    let mut table = with_reduce_running(slots);
    table.submit(urgent(maps, 0));
    table.handle(&[suspended(reduce(0, 0))]);
    assert_eq!(table.job(JOB).reduces.suspended, 1);
    table
}

fn end_map(table: &mut Table, index: u32) -> Vec<String> {
    table.ask_commit(other(index));
    table.map_done(other(index))
}

#[test]
fn a_reduce_leaves_its_slot_for_whom_the_policy_puts_first_and_goes_on_after() {
    let mut table = with_reduce_running(&[1]);
    check(&table.submit(urgent(1, 0)), "suspend reduce-0.0 on w1");
    check(&table.handle(&[suspended(reduce(0, 0))]), "launch job-2/map-0.0 on w1");
    let job = table.job(JOB);
    assert_eq!((job.reduces.running, job.reduces.suspended, job.attempts.suspended), (0, 1, 1));
    let snapshot = table.core.attempt(reduce(0, 0)).expect("it is in the table");
    assert!(snapshot.suspended);
    check(&end_map(&mut table, 0), "forget job-2 at w1\njob-2 succeeded\nresume reduce-0.0 on w1");
    check(&table.ask_commit(reduce(0, 0)), "grant reduce-0.0");
    check(&table.reduce_done(reduce(0, 0)), "forget job-1 at w1\njob-1 succeeded");
    assert_eq!(table.core.slots(), (1, 1));
    assert_eq!(table.core.late_events(), 0);
}

#[test]
fn nothing_is_asked_twice_and_no_more_than_is_needed() {
    let mut table = Table::new(Ruthless::default());
    table.join(3);
    table.submit(plain(1, 3));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0, 1, 2]);
    table.now = table.now + Span::whole_seconds(1);
    // The last of a job's reduces is suspended first.
    check(&table.submit(urgent(1, 0)), "suspend reduce-2.0 on w1");
    check(&table.handle(&[]), "");
    check(&table.submit(urgent(1, 0)), "suspend reduce-1.0 on w1");
    check(&table.handle(&[suspended(reduce(1, 0))]), "launch job-2/map-0.0 on w1");
    check(&table.handle(&[suspended(reduce(2, 0))]), "launch job-3/map-0.0 on w1");
}

#[test]
fn a_slot_that_is_free_or_comes_free_by_itself_is_used_before_any_is_taken_back() {
    let mut table = with_reduce_running(&[1, 1]);
    check(&table.submit(urgent(1, 0)), "launch job-2/map-0.0 on w2");
    assert_eq!(table.job(JOB).reduces.running, 1);
}

#[test]
fn a_reduce_keeps_its_slot_for_a_while_whoever_comes() {
    let mut table = Table::new(Ruthless::default());
    table.join(1);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0]);
    let due = table.now + CoreConfig::default().suspending.suspend_after_min;
    check(&table.submit(urgent(1, 0)), &format!("wake at {due}"));
    table.now = due;
    check(&table.handle(&[Event::Tick]), "suspend reduce-0.0 on w1");
    table.handle(&[suspended(reduce(0, 0))]);
    check(&end_map(&mut table, 0), "forget job-2 at w1\njob-2 succeeded\nresume reduce-0.0 on w1");
    // A resumed attempt counts as launched.
    let due = table.now + CoreConfig::default().suspending.suspend_after_min;
    check(&table.submit(urgent(1, 0)), &format!("wake at {due}"));
}

#[test]
fn equals_do_not_take_slots_from_each_other_and_nobody_gives_one_up_for_who_cannot_use_it() {
    let mut table = with_reduce_running(&[1, 1]);
    check(&table.submit(plain(1, 1)), "home job-2/0 at w2\nlaunch job-2/map-0.0 on w2");
    // The second job's reduce is urgent and has its home on another worker, where a map runs.
    let mut table = with_reduce_running(&[1, 1]);
    table.submit(urgent(1, 1));
    table.submit(urgent(1, 0));
    check(&table.handle(&[suspended(reduce(0, 0))]), "launch job-3/map-0.0 on w1");
    let done = table.map_done(TaskId::map(SECOND, 0).attempt(0));
    assert_eq!(done[0], "announce job-2/map-0.0 from w2 to w2", "{done:?}");
    check(&table.fetched(2, TaskId::map(SECOND, 0).attempt(0), &[0]), "launch job-2/reduce-0.0 on w2");
}

#[test]
fn a_ready_reduce_takes_a_slot_back_at_its_home_alone() {
    let mut table = Table::new(Ruthless::default());
    table.join(1);
    table.join(1);
    table.submit(plain(1, 2));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0]);
    table.fetched(2, map(0, 0), &[1]);
    assert_eq!(table.job(JOB).reduces.running, 2);
    table.now = table.now + Span::whole_seconds(1);
    // A job without maps: its reduces are ready at once at their homes.
    let orders = table.submit(urgent(0, 1));
    check(&orders, "home job-2/0 at w1\nsuspend reduce-0.0 on w1");
    let launched = format!("launch {} on w1", TaskId::reduce(SECOND, 0).attempt(0));
    check(&table.handle(&[suspended(reduce(0, 0))]), &launched);
}

#[test]
fn a_reduce_that_asks_to_publish_before_it_hears_the_order_simply_ends() {
    let mut table = with_reduce_running(&[1]);
    check(&table.submit(urgent(1, 0)), "suspend reduce-0.0 on w1");
    check(&table.ask_commit(reduce(0, 0)), "grant reduce-0.0");
    check(&table.handle(&[Event::Tick]), "");
    check(
        &table.reduce_done(reduce(0, 0)),
        "forget job-1 at w1\njob-1 succeeded\nlaunch job-2/map-0.0 on w1",
    );
}

#[test]
fn a_reduce_that_has_no_room_to_wait_in_keeps_its_slot_and_another_is_asked() {
    let mut table = Table::new(Ruthless::default());
    table.join(2);
    table.submit(plain(1, 2));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0, 1]);
    table.now = table.now + Span::whole_seconds(1);
    check(&table.submit(urgent(1, 0)), "suspend reduce-1.0 on w1");
    let refused = Event::SuspensionRefused { attempt: reduce(1, 0) };
    check(&table.handle(&[refused]), "suspend reduce-0.0 on w1");
    check(&table.handle(&[suspended(reduce(0, 0))]), "launch job-2/map-0.0 on w1");
    check(&table.submit(urgent(1, 0)), "");
    check(&table.ask_commit(reduce(1, 0)), "grant reduce-1.0");
    assert_eq!(table.core.late_events(), 0);
}

#[test]
fn a_map_that_is_pinned_to_a_worker_takes_a_slot_back_there() {
    let mut table = with_reduce_running(&[1]);
    let mut job = urgent(1, 0);
    (job.maps[0].preferred, job.maps[0].pinned) = (vec![WorkerId(1)], true);
    check(&table.submit(job), "suspend reduce-0.0 on w1");
    check(&table.handle(&[suspended(reduce(0, 0))]), "launch job-2/map-0.0 on w1");
}

#[test]
fn a_reduce_that_may_publish_is_left_alone() {
    let mut table = with_reduce_running(&[1]);
    table.ask_commit(reduce(0, 0));
    check(&table.submit(urgent(1, 0)), "");
}

#[test]
fn a_suspended_reduce_is_resumed_before_anything_new_of_its_job_begins() {
    let mut table = Table::new(Ruthless::default());
    table.join(1);
    table.submit(plain(2, 2));
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    table.fetched(1, map(0, 0), &[0, 1]);
    check(&table.fetched(1, map(1, 0), &[1]), "launch reduce-1.0 on w1");
    table.now = table.now + Span::whole_seconds(1);
    check(&table.submit(urgent(1, 0)), "suspend reduce-1.0 on w1");
    table.handle(&[suspended(reduce(1, 0))]);
    table.fetched(1, map(1, 0), &[0]);
    let orders = end_map(&mut table, 0);
    assert_eq!(orders.last().map(String::as_str), Some("resume reduce-1.0 on w1"), "{orders:?}");
}

#[test]
fn a_suspended_reduce_whose_worker_is_lost_begins_again_from_its_inputs() {
    let mut table = with_reduce_suspended(&[1, 1], 3);
    let orders = table.lose(1);
    check(&orders, "home 0 at w2");
    assert_eq!(table.job(JOB).attempts_lost(), 1);
    assert_eq!(table.job(JOB).reduces.suspended, 0);
    let of_second = |table: &Table| {
        table.core.attempts().map(|(attempt, _)| attempt).find(|attempt| attempt.task.job == SECOND)
    };
    while let Some(attempt) = of_second(&table) {
        table.ask_commit(attempt);
        table.map_done(attempt);
    }
    table.map_done(map(0, 1));
    check(&table.fetched(2, map(0, 1), &[0]), "launch reduce-0.1 on w2");
}

#[test]
fn a_suspended_reduce_that_fails_is_tried_again_and_charged_like_any() {
    let mut table = with_reduce_suspended(&[1], 1);
    check(&table.fail(reduce(0, 0), Failure::User), "");
    let job = table.job(JOB);
    assert_eq!((job.reduces.ready, job.attempts.failed[Failure::User.index()]), (1, 1));
    let orders = end_map(&mut table, 0);
    assert_eq!(orders.last().map(String::as_str), Some("launch reduce-0.1 on w1"), "{orders:?}");
}

#[test]
fn a_cancelled_job_has_its_suspended_reduces_killed() {
    let mut table = with_reduce_suspended(&[1], 1);
    check(
        &table.handle(&[Event::JobCancelled { job: JOB }]),
        "kill reduce-0.0 on w1
         forget job-1 at w1
         job-1 cancelled",
    );
    check(&table.fail(reduce(0, 0), Failure::Cancelled), "");
    assert_eq!(table.core.attempts().count(), 1, "the map alone");
}

#[test]
fn a_job_that_ends_while_its_reduce_leaves_its_slot_gets_the_slot_back_once() {
    let mut table = with_reduce_running(&[1]);
    table.submit(urgent(1, 0));
    table.handle(&[Event::JobCancelled { job: JOB }]);
    check(&table.handle(&[suspended(reduce(0, 0))]), "launch job-2/map-0.0 on w1");
    check(&table.fail(reduce(0, 0), Failure::Cancelled), "");
    assert_eq!(table.core.slots(), (1, 0));
}

#[test]
fn no_worker_keeps_more_suspended_attempts_than_it_may() {
    let config = CoreConfig {
        suspending: SuspendLimits { suspended_per_worker_max: 1, ..SuspendLimits::default() },
        ..CoreConfig::default()
    };
    let mut table = Table::with_config(Ruthless::default(), config);
    table.join(2);
    table.submit(plain(1, 2));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0, 1]);
    table.now = table.now + Span::whole_seconds(1);
    check(&table.submit(urgent(2, 0)), "suspend reduce-1.0 on w1");
    check(&table.handle(&[suspended(reduce(1, 0))]), "launch job-2/map-0.0 on w1");
}

#[test]
fn pools_for_maps_are_no_reason_to_suspend_a_reduce() {
    let mut table = Table::new(Ruthless::default());
    let slots = Slots::Pools { map: 1, reduce: 1 };
    table.handle(&[Event::WorkerJoined { worker: WorkerId(1), host: HostId(1), slots }]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0]);
    table.now = table.now + Span::whole_seconds(1);
    check(&table.submit(urgent(2, 0)), "launch job-2/map-0.0 on w1");
    check(&table.submit(urgent(0, 1)), "home job-3/0 at w1\nsuspend reduce-0.0 on w1");
}

#[test]
fn a_suspended_reduce_of_a_draining_worker_starts_again_elsewhere_at_once() {
    let mut table = with_reduce_suspended(&[1], 1);
    table.join(1);
    check(
        &table.handle(&[Event::WorkerDraining { worker: WorkerId(1) }]),
        "kill reduce-0.0 on w1
         unhome 0 at w1
         home 0 at w2
         announce map-0.0 from w1 to w2",
    );
    check(&table.fetched(2, map(0, 0), &[0]), "launch reduce-0.1 on w2");
    // The end of the first attempt arrives late, and does not concern the second.
    check(&table.fail(reduce(0, 0), Failure::Cancelled), "");
    assert_eq!(table.job(JOB).attempts.failed, [0; Failure::ALL.len()], "nothing has failed");
    table.ask_commit(reduce(0, 1));
    let orders = table.reduce_done(reduce(0, 1));
    assert_eq!(orders.last().map(String::as_str), Some("job-1 succeeded"), "{orders:?}");
}

#[test]
fn a_suspended_reduce_of_the_only_worker_waits_although_that_drains() {
    let mut table = with_reduce_suspended(&[1], 1);
    check(&table.handle(&[Event::WorkerDraining { worker: WorkerId(1) }]), "");
    let orders = table.join(1);
    assert!(orders.contains(&"kill reduce-0.0 on w1".to_owned()), "{orders:?}");
}

#[test]
fn a_reduce_is_resumed_where_it_is_when_its_worker_has_a_slot_in_time() {
    let mut table = with_reduce_suspended(&[1], 1);
    table.join(1);
    table.now = table.now + Span::whole_seconds(1);
    check(&end_map(&mut table, 0), "forget job-2 at w1\njob-2 succeeded\nresume reduce-0.0 on w1");
    table.now = table.now + Span::whole_seconds(60);
    check(&table.handle(&[Event::Tick]), "");
}

#[test]
fn an_order_that_was_overtaken_is_late_news() {
    let mut table = with_reduce_running(&[1]);
    check(&table.handle(&[suspended(reduce(0, 0))]), "");
    assert_eq!(table.core.late_events(), 1);
    assert_eq!(table.job(JOB).reduces.running, 1);
}
