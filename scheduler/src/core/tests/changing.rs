//! Tests of changing the policy or the placement, and of a worker that joins after it.

use super::driver::{JOB, Table, check, map, plain, reduce};
use crate::core::ShuffleOrder;
use crate::event::Event;
use crate::ids::{AttemptId, JobId, TaskId, WorkerId};
use crate::placement::{AssignmentRequest, Choice, HomeRequest, Offer, Placement, Pull};
use crate::plan::{Line, Plan, Reason, Share};
use crate::policy::{Fair, Fifo, Lrpt, Policy};
use crate::units::{Span, Time};
use crate::view::{Change, Handle, Station, View};
use std::sync::mpsc::{Receiver, Sender, channel};

const SECOND: JobId = JobId(2);

/// Policy that records what it sees: jobs in the order of arrival, and ticks.
struct Witness {
    tells: Sender<String>,
    wakes: Option<Time>,
    line: bool,
}

impl Witness {
    fn new() -> (Self, Receiver<String>) {
        let (tells, hears) = channel();
        (Self { tells, wakes: None, line: false }, hears)
    }
}

impl Policy for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }
    fn observe(&mut self, view: View<'_>, change: Change) {
        let told = match change {
            Change::Arrived(job) => {
                format!("arrived {} running {}", view.row(job).seq, view.row(job).held[Station::Map])
            }
            Change::Left(job) => format!("left {}", view.row(job).seq),
            Change::Tick => "tick".to_owned(),
            Change::Progress => return,
        };
        self.tells.send(told).expect("the test listens");
    }
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        if let Some(wake) = self.wakes {
            plan.wake(wake);
        }
        if self.line && view.rows.first().is_some_and(|row| row.live) {
            plan.lines(Station::Map, &[1.0]);
            plan.grant(crate::view::Handle(0), Station::Map, Share::In(Line(0)), Reason::Own("a line"));
        }
    }
}

#[test]
fn a_new_policy_sees_all_live_jobs_arrive_in_their_order_and_attempts_go_on() {
    let mut table = Table::with_workers(&[2]);
    for maps in [1, 5, 3] {
        table.submit(plain(maps, 0));
    }
    table.ask_commit(map(0, 0));
    table.map_done(map(0, 0));
    let (witness, seen) = Witness::new();
    table.core.decide_by(Box::new(witness), Box::new(Pull::new()));
    assert_eq!(table.core.audit(), Ok(()));
    check(&table.handle(&[]), "");
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["arrived 1 running 2", "arrived 2 running 0"]);
    assert_eq!(table.job(SECOND).maps.running, 2);
    table.handle(&[Event::JobCancelled { job: SECOND }]);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["left 1"]);
}

#[test]
fn the_first_call_after_the_change_plans_by_the_new_policy() {
    let mut table = Table::with_workers(&[1]);
    for maps in [3, 1, 9] {
        table.submit(plain(maps, 0));
    }
    table.core.decide_by(Box::new(Lrpt::default()), Box::new(Pull::new()));
    table.ask_commit(map(0, 0));
    check(&table.map_done(map(0, 0)), "launch job-3/map-0.0 on w1");
}

#[test]
fn the_wake_lines_and_standing_order_of_the_old_policy_are_dropped() {
    let wake = Time(1_000_000_000);
    let (old, _told) = Witness::new();
    let old = Witness { wakes: Some(wake), line: true, ..old };
    let mut table = Table::new(old);
    table.join(1);
    table.submit(plain(2, 0));
    assert_eq!(table.job(JOB).maps.running, 1);
    let (witness, seen) = Witness::new();
    table.core.decide_by(Box::new(witness), Box::new(Pull::new()));
    assert_eq!(table.core.audit(), Ok(()), "the attempt that runs is in no line any more");
    table.now = wake;
    table.handle(&[]);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["arrived 0 running 1"], "nobody asked for a tick");
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(2, 1));
    table.map_done(map(0, 0));
    assert_eq!(table.core.shuffle_order().grants.len(), 1);
    let revision = table.core.shuffle_revision();
    let (witness, _told) = Witness::new();
    table.core.decide_by(Box::new(witness), Box::new(Pull::new()));
    assert_eq!(table.core.shuffle_order(), &ShuffleOrder::default());
    assert!(revision < table.core.shuffle_revision());
}

#[test]
fn reduces_are_suspended_when_the_new_policy_preempts_and_resumed_when_the_next_does_not() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.submit(plain(3, 0));
    table.map_done(map(0, 0));
    let other = |index: u32| TaskId::map(SECOND, index).attempt(0);
    table.fetched(1, map(0, 0), &[0]);
    table.ask_commit(other(0));
    check(&table.map_done(other(0)), "launch reduce-0.0 on w1");
    table.now = table.now + Span::whole_seconds(1);
    table.core.decide_by(Box::new(Lrpt::new(true)), Box::new(Pull::new()));
    check(&table.handle(&[]), "suspend reduce-0.0 on w1");
    check(&table.handle(&[Event::AttemptSuspended { attempt: reduce(0, 0) }]), "launch job-2/map-1.0 on w1");
    table.core.decide_by(Box::new(Fair::new()), Box::new(Pull::new()));
    table.ask_commit(other(1));
    check(&table.map_done(other(1)), "resume reduce-0.0 on w1");
}

/// Placement that assigns all maps to the worker with the highest number.
struct ToLast(Pull);

impl Placement for ToLast {
    fn name(&self) -> &'static str {
        "to-last"
    }
    fn choose(&mut self, offer: Offer<'_>) -> Option<Choice> {
        self.0.choose(offer)
    }
    fn assign(&mut self, request: AssignmentRequest<'_>) -> Option<Vec<WorkerId>> {
        let last = request.usable().last().expect("there is a worker").id();
        Some(vec![last; request.maps])
    }
    fn home(&mut self, request: HomeRequest<'_>) -> WorkerId {
        self.0.home(request)
    }
}

fn running(table: &Table) -> Vec<AttemptId> {
    table.core.attempts().map(|(attempt, _)| attempt).collect()
}

#[test]
fn maps_that_were_dealt_and_have_not_begun_are_dealt_again_by_the_new_placement() {
    let mut table = Table::with_workers(&[1, 1]);
    table.core.decide_by(Box::new(Fifo::new()), Box::new(ToLast(Pull::new())));
    check(&table.submit(plain(4, 0)), "launch map-0.0 on w2");
    table.core.decide_by(Box::new(Fifo::new()), Box::new(Pull::new()));
    check(&table.handle(&[]), "launch map-1.0 on w1");
    table.core.decide_by(Box::new(Fifo::new()), Box::new(ToLast(Pull::new())));
    table.ask_commit(map(1, 0));
    check(&table.map_done(map(1, 0)), "");
    assert_eq!(running(&table), [map(0, 0)], "the others wait for the second worker");
}

#[test]
fn maps_that_were_dealt_and_have_not_begun_are_dealt_again_when_a_worker_joins() {
    let mut table = Table::with_workers(&[1]);
    table.core.decide_by(Box::new(Fifo::new()), Box::new(ToLast(Pull::new())));
    check(&table.submit(plain(4, 0)), "launch map-0.0 on w1");
    check(&table.join(2), "launch map-1.0 on w2\nlaunch map-2.0 on w2");
}

/// Policy that panics at every call.
struct Broken;

impl Policy for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn observe(&mut self, _: View<'_>, _: Change) {
        panic!("what was that?");
    }
    fn plan(&mut self, _: View<'_>, _: &mut Plan<'_>) {
        panic!("no idea");
    }
}

/// Policy that grants to an unknown job.
struct Stray;

impl Policy for Stray {
    fn name(&self) -> &'static str {
        "stray"
    }
    fn observe(&mut self, _: View<'_>, _: Change) {}
    fn plan(&mut self, _: View<'_>, plan: &mut Plan<'_>) {
        plan.grant(Handle(1_000), Station::Map, Share::All, Reason::Oldest);
    }
}

#[test]
fn a_grant_to_a_job_that_nobody_knows_is_a_panic_of_the_policy_alone() {
    let mut table = Table::new(Stray);
    table.join(1);
    check(&table.submit(plain(1, 1)), "home 0 at w1\nlaunch map-0.0 on w1");
    assert_eq!(table.core.policy_panics().count, 2);
}

#[test]
fn a_policy_that_panics_is_replaced_by_fifo_for_that_decision_and_counted() {
    let mut table = Table::new(Broken);
    table.join(1);
    assert_eq!(table.core.policy_panics().count, 1);
    check(&table.submit(plain(2, 1)), "home 0 at w1\nlaunch map-0.0 on w1");
    table.submit(plain(1, 1));
    check(&table.map_done(map(0, 0)), "announce map-0.0 from w1 to w1\nlaunch map-1.0 on w1");
    let panics = table.core.policy_panics();
    assert!(4 < panics.count && panics.last == "no idea", "{panics:?}");
}
