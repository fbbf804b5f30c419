//! Tests of policies on the core: which jobs get the slots, and the cost.

use super::driver::{JOB, Table, check, map, map_finished, plain};
use crate::command::Command;
use crate::core::{Core, CoreConfig};
use crate::event::{Event, Failure, Slots};
use crate::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::{JobSpec, MapSpec};
use crate::placement::Pull;
use crate::plan::{Line, Plan, Reason, Share};
use crate::policy::{Fair, Fifo, Policy};
use crate::units::{Bytes, Span, Time};
use crate::view::{Change, Handle, Station, View};
use std::collections::BTreeMap;

fn held(table: &Table, jobs: u32) -> Vec<u32> {
    (1..=jobs).map(|job| table.job(JobId(job)).maps.running).collect()
}

/// Finishes one map attempt of the job, or returns it for another worker.
fn give_back_one(table: &mut Table, job: u32) {
    let attempt = table.core.attempts().map(|(id, _)| id).find(|id| id.task.job == JobId(job)).unwrap();
    table.fail(attempt, Failure::Cancelled);
}

#[test]
fn fifo_gives_an_older_jobs_reduces_the_slot_before_a_younger_jobs_maps() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.submit(plain(3, 1));
    check(&table.map_done(map(0, 0)), "announce map-0.0 from w1 to w1\nlaunch job-2/map-0.0 on w1");
    table.fetched(1, map(0, 0), &[0]);
    let younger = TaskId::map(JobId(2), 0).attempt(0);
    check(
        &table.map_done(younger),
        "announce job-2/map-0.0 from w1 to w1
         launch reduce-0.0 on w1",
    );
}

#[test]
fn fifo_orders_the_shuffle_by_age() {
    let mut table = Table::with_workers(&[2]);
    table.submit(plain(1, 1));
    table.submit(plain(1, 1));
    table.map_done(TaskId::map(JobId(2), 0).attempt(0));
    table.map_done(map(0, 0));
    let order: Vec<JobId> = table.core.shuffle_order().grants.iter().map(|&(job, _)| job).collect();
    assert_eq!(order, [JOB, JobId(2)]);
}

#[test]
fn fair_gives_each_job_the_same_when_all_want_more() {
    let mut table = Table::new(Fair::new());
    let jobs: Vec<Event> =
        (1..=3).map(|job| Event::JobArrived { job: JobId(job), spec: plain(20, 0).into() }).collect();
    table.handle(&jobs);
    table.join(9);
    assert_eq!(held(&table, 3), [3, 3, 3]);
    assert_eq!(
        table.reasons[8].grant.to_string(),
        "its pool held the least for its weight: 2 slots at weight 1"
    );
}

#[test]
fn fair_follows_weights_and_pools_and_gives_idle_shares_to_the_hungry() {
    let spec = |maps, weight, pool| JobSpec { weight, pool, ..plain(maps, 0) };
    let arrive = |specs: Vec<JobSpec>| -> Vec<Event> {
        let ids = (1..).map(JobId);
        ids.zip(specs).map(|(job, spec)| Event::JobArrived { job, spec: spec.into() }).collect()
    };
    let run = |fair: Fair, specs: Vec<JobSpec>, slots| {
        let mut table = Table::new(fair);
        let jobs = specs.len() as u32;
        table.handle(&arrive(specs));
        table.join(slots);
        held(&table, jobs)
    };
    let weighted = vec![spec(20, 1.0, None), spec(20, 3.0, None)];
    assert_eq!(run(Fair::new(), weighted, 8), [2, 6]);
    let capped = vec![spec(1, 1.0, None), spec(20, 1.0, None), spec(20, 1.0, None)];
    assert_eq!(run(Fair::new(), capped, 9), [1, 4, 4]);
    let pooled = vec![spec(20, 1.0, Some(7)), spec(20, 1.0, Some(7)), spec(20, 1.0, None)];
    assert_eq!(run(Fair::new(), pooled.clone(), 8), [2, 2, 4]);
    let mut heavy = pooled;
    heavy.iter_mut().for_each(|spec| spec.pool_weight = spec.pool.map(|_| 3.0));
    assert_eq!(run(Fair::new(), heavy, 8), [3, 3, 2]);
}

#[test]
fn fair_lets_a_newcomer_catch_up_as_attempts_end() {
    let mut table = Table::new(Fair::new());
    table.join(4);
    table.submit(plain(20, 0));
    table.submit(plain(20, 0));
    assert_eq!(held(&table, 2), [4, 0]);
    for _ in 0..4 {
        give_back_one(&mut table, 1);
    }
    assert_eq!(held(&table, 2), [2, 2]);
}

/// Policy with two classes, by odd or even job id, in two lines.
struct TwoLines {
    fractions: [f64; 2],
    jobs: Vec<(Handle, u64)>,
}

impl Policy for TwoLines {
    fn name(&self) -> &'static str {
        "two-lines"
    }
    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Arrived(job) = change {
            self.jobs.push((job, view.row(job).seq));
        }
    }
    fn plan(&mut self, _: View<'_>, plan: &mut Plan<'_>) {
        plan.lines(Station::Map, &self.fractions);
        for &(job, seq) in &self.jobs {
            plan.grant(job, Station::Map, Share::In(Line(seq as u32 % 2)), Reason::Own("its line"));
        }
    }
}

#[test]
fn lines_split_one_slot_in_their_ratio_over_time() {
    let mut table = Table::new(TwoLines { fractions: [0.7, 0.3], jobs: Vec::new() });
    table.join(1);
    let endless = JobSpec { attempts_max: u32::MAX, ..plain(2000, 0) };
    table.submit(endless.clone());
    table.submit(endless);
    let mut times = [0, 0];
    for _ in 0..1000 {
        let (attempt, _) = table.core.attempts().next().expect("the slot is never idle");
        times[attempt.task.job.0 as usize - 1] += 1;
        table.ask_commit(attempt);
        table.map_done(attempt);
    }
    assert!((690..=710).contains(&times[0]), "{times:?}");
}

#[test]
fn lines_give_whole_slots_exactly_and_leave_unclaimed_ones_idle() {
    let mut table = Table::new(TwoLines { fractions: [0.75, 0.25], jobs: Vec::new() });
    table.join(4);
    table.submit(plain(10, 0));
    assert_eq!(table.core.slots(), (4, 1));
    table.submit(plain(10, 0));
    assert_eq!(held(&table, 2), [3, 1]);
}

/// Policy that grants a fixed share at all stations, in the order of arrival.
struct Uniform {
    share: Share,
    jobs: Vec<Handle>,
}

impl Policy for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }
    fn observe(&mut self, _: View<'_>, change: Change) {
        match change {
            Change::Arrived(job) => self.jobs.push(job),
            Change::Left(job) => self.jobs.retain(|&other| other != job),
            Change::Progress | Change::Tick => {}
        }
    }
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        for &job in &self.jobs {
            plan.grant(job, Station::Reduce, self.share, Reason::Own("uniform"));
            plan.grant(job, Station::Map, self.share, Reason::Own("uniform"));
            plan.grant(job, Station::Shuffle, self.share, Reason::Own("uniform"));
        }
        plan.wake(Time(view.now.0 + 5));
    }
}

#[test]
fn shares_mean_on_the_core_what_they_say() {
    let run = |share: Share| {
        let mut table = Table::new(Uniform { share, jobs: Vec::new() });
        let jobs: Vec<Event> =
            (1..=3).map(|job| Event::JobArrived { job: JobId(job), spec: plain(4, 0).into() }).collect();
        table.handle(&jobs);
        table.join(6);
        held(&table, 3)
    };
    assert_eq!(run(Share::All), [4, 2, 0]);
    assert_eq!(run(Share::Slots(1)), [1, 1, 1]);
    assert_eq!(run(Share::Weight(1.0)), [2, 2, 2]);
    assert_eq!(run(Share::In(Line(0))), [0, 0, 0]);
}

#[test]
fn a_policy_is_woken_when_it_asked_and_asks_once_for_the_same_time() {
    let mut table = Table::new(Uniform { share: Share::All, jobs: Vec::new() });
    let mut commands = Vec::new();
    for now in [Time(10), Time(10), Time(12), Time(17)] {
        table.core.handle(now, &[], &mut commands);
    }
    let wakes: Vec<Time> = commands
        .iter()
        .filter_map(|c| if let Command::WakeAt { time } = c { Some(*time) } else { None })
        .collect();
    assert_eq!(wakes, [Time(15), Time(17), Time(22)]);
}

#[test]
fn a_policy_gets_its_tick_when_another_fact_overtakes_the_timer() {
    struct Ticking(Option<u64>);
    impl Policy for Ticking {
        fn name(&self) -> &'static str {
            "ticking"
        }
        fn observe(&mut self, view: View<'_>, change: Change) {
            if change == Change::Tick {
                self.0 = Some(view.now.0);
            }
        }
        fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
            // The next wish depends on what was observed.
            plan.wake(Time(self.0.map_or(10, |ticked| ticked + 1000).max(view.now.0)));
        }
    }
    let mut table = Table::new(Ticking(None));
    let mut commands = Vec::new();
    table.core.handle(Time(1), &[], &mut commands);
    table.core.handle(Time(12), &[Event::JobCancelled { job: JOB }], &mut commands);
    assert_eq!(commands, [Command::WakeAt { time: Time(10) }, Command::WakeAt { time: Time(1012) }]);
}

#[test]
fn handles_are_used_again_when_jobs_have_left() {
    let mut table = Table::new(Uniform { share: Share::All, jobs: Vec::new() });
    table.join(1);
    for job in 1..=50 {
        table.submit(plain(1, 0));
        let attempt = TaskId::map(JobId(job), 0).attempt(0);
        table.ask_commit(attempt);
        table.map_done(attempt);
    }
    assert_eq!(table.core.rows.len(), 1);
}

/// Runs jobs to their end without the cost of an audit. Returns the number of calls.
fn run_all(policy: impl Policy + 'static, jobs: u32, maps: usize, reduces: u32) -> u32 {
    let mut core = Core::new(CoreConfig::default(), Box::new(policy), Box::new(Pull::new()));
    let mut events: Vec<Event> = (1..=20)
        .map(|worker| Event::WorkerJoined {
            worker: WorkerId(worker),
            host: HostId(worker),
            slots: Slots::Unified(4),
        })
        .collect();
    for job in 1..=jobs {
        let near = |index: usize| vec![WorkerId(1 + index as u32 % 20)];
        let map = |index| MapSpec { bytes: Bytes(1), preferred: near(index), pinned: false };
        events.push(Event::JobArrived {
            job: JobId(job),
            spec: JobSpec::new((0..maps).map(map).collect(), reduces).into(),
        });
    }
    let mut calls = 0;
    let mut homes: BTreeMap<(JobId, WorkerId), Vec<u32>> = BTreeMap::new();
    while !events.is_empty() {
        let mut commands = Vec::new();
        for batch in events.chunks(2) {
            calls += 1;
            core.handle(Time(u64::from(calls)), batch, &mut commands);
        }
        events = commands.iter().flat_map(|command| events_after(command, &mut homes)).collect();
    }
    assert_eq!(core.live_jobs().count(), 0);
    calls
}

fn events_after(command: &Command, homes: &mut BTreeMap<(JobId, WorkerId), Vec<u32>>) -> Vec<Event> {
    let finish = |attempt: AttemptId| match attempt.task.kind {
        TaskKind::Map => map_finished(attempt, Span(1000)),
        TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes: Bytes(1), took: Span::default() },
    };
    match *command {
        Command::Launch { attempt, .. } if attempt.task.kind == TaskKind::Map => vec![finish(attempt)],
        Command::Launch { attempt, .. } => vec![Event::CommitRequested { attempt }],
        Command::GrantCommit { attempt, .. } => vec![finish(attempt)],
        Command::Home { job, partition, worker } => {
            homes.entry((job, worker)).or_default().push(partition);
            Vec::new()
        }
        Command::Announce { job, map, to, .. } => {
            vec![Event::Fetched { job, home: to, map, partitions: homes[&(job, to)].clone() }]
        }
        _ => Vec::new(),
    }
}

#[test]
fn many_jobs_and_tasks_pass_without_work_for_all_of_them_at_each_fact() {
    // With quadratic work this would take minutes.
    assert!(1_000 < run_all(Fifo::new(), 1_000, 4, 2));
    assert!(1_000 < run_all(Fair::new(), 1_000, 4, 2));
    assert!(10_000 < run_all(Fair::new(), 1, 20_000, 2));
}
