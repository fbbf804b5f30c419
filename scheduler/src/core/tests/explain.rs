//! Tests of the explanations of waiting jobs, and of deadlines.

use super::driver::{JOB, Table, map, plain};
use crate::core::{Core, CoreConfig};
use crate::estimate::by_name;
use crate::event::{Event, Slots};
use crate::ids::{HostId, JobId, WorkerId};
use crate::job::{Exact, JobSpec};
use crate::placement::Pull;
use crate::policy::{Deadlines, Fair, Fifo, MaxSrpt, deadlines::Excess};
use crate::station::Station;
use crate::units::{Span, Time};

const SECOND: JobId = JobId(2);

#[test]
fn a_job_behind_another_is_told_who_holds_the_slots_and_how_many_tasks_come_before_it() {
    let mut table = Table::new(Fifo::new());
    table.join(2);
    table.submit(plain(5, 0));
    table.submit(plain(1, 0));
    assert_eq!(
        table.core.explain(SECOND),
        [
            "1 of its maps could start; it holds 0 slots, and 0 of 2 map slots are free (job-1 holds 2)",
            "by policy `fifo` 3 tasks come before it: 3 of job-1; its own reason: its job is the oldest that could use the slot",
        ]
    );
}

#[test]
fn a_job_whose_turn_is_next_is_told_so() {
    let mut table = Table::new(Fair::new());
    table.join(2);
    table.submit(plain(5, 0));
    table.submit(plain(1, 0));
    let sentences = table.core.explain(SECOND);
    assert_eq!(sentences[1].split(';').next(), Some("by policy `fair` it is next for a map slot"));
}

#[test]
fn turns_are_those_of_the_policy_one_job_after_the_other_and_no_more_slots_than_asked_for() {
    let mut table = Table::new(Fifo::new());
    table.join(2);
    table.submit(plain(5, 0));
    table.submit(plain(4, 0));
    let listed = |table: &mut Table, slots_max| -> Vec<_> {
        let turns = table.core.turns(slots_max).into_iter();
        turns.map(|turn| (turn.job, turn.station, turn.slots, turn.reason.to_string())).collect()
    };
    let oldest = || "its job is the oldest that could use the slot".to_owned();
    let (first, second) = ((JOB, Station::Map, 3, oldest()), (SECOND, Station::Map, 4, oldest()));
    assert_eq!(listed(&mut table, 100), [first.clone(), second.clone()]);
    assert_eq!(listed(&mut table, 5), [first, (SECOND, Station::Map, 2, oldest())]);
}

#[test]
fn explaining_changes_nothing_of_what_is_ordered_next() {
    let (mut asked, mut plain_table) = (Table::new(MaxSrpt::new()), Table::new(MaxSrpt::new()));
    for table in [&mut asked, &mut plain_table] {
        table.join(2);
        table.submit(plain(5, 2));
        table.submit(plain(3, 1));
    }
    for index in 0..2 {
        let _ = asked.core.explain(JOB);
        let _ = asked.core.explain(SECOND);
        let _ = asked.core.turns(100);
        let running: Vec<_> = asked.core.attempts().map(|(attempt, _)| attempt).collect();
        let attempt = running.get(index as usize % running.len()).copied().unwrap_or(map(index, 0));
        assert_eq!(asked.map_done(attempt), plain_table.map_done(attempt));
    }
}

#[test]
fn a_job_that_gathers_is_told_how_many_segments_are_in_and_an_unknown_one_nothing() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    assert_eq!(
        table.core.explain(JOB),
        ["1 of its reduces gather segments: 0 of 1 are in, and 1 maps are not done"]
    );
    assert_eq!(table.core.explain(SECOND), Vec::<String>::new());
    table.lose(1);
    assert_eq!(table.core.explain(JOB), ["there is no worker"]);
}

#[test]
fn a_job_that_the_min_scheduler_leaves_waiting_is_told_its_state_and_that_slots_stay_free() {
    let mut table = Table::new(Deadlines::new(Excess::Idle, Span::whole_seconds(1), 1.0));
    table.join(4);
    let deadline = Some(Time::ZERO + Span::whole_seconds(1000));
    table.submit(JobSpec { deadline, ..plain(8, 1) });
    for index in 0..4 {
        table.now = Time::ZERO + Span::whole_seconds(1);
        table.map_done(map(index, 0));
    }
    // The policy sees the launches of its last plan at the next instant.
    table.handle(&[]);
    let sentences = table.core.explain(JOB);
    assert!(sentences.iter().any(|s| s.contains("leaves slots free")), "{sentences:?}");
    assert!(sentences.iter().any(|s| s.starts_with("state ADJUST: ")), "{sentences:?}");
}

/// Returns the outlook in a core with this estimator, one worker with these slots, and a job of four maps of 10 s and
/// two reduces of 5 s.
fn outlook(estimator: &str, slots: Slots, seconds: u64) -> crate::core::Outlook {
    let core = Core::new(CoreConfig::default(), Box::new(Fifo::new()), Box::new(Pull::new()));
    let mut core = core.with_estimator(by_name(estimator).unwrap());
    let exact = Exact { maps: [10.0; 4].into(), shuffle_bytes: 0.0, reduces: [5.0; 2].into() };
    let deadline = Some(Time::ZERO + Span::whole_seconds(seconds));
    let spec = JobSpec { exact: Some(exact), deadline, ..plain(4, 2) };
    let joined = Event::WorkerJoined { worker: WorkerId(1), host: HostId(1), slots };
    core.handle(Time::ZERO, &[joined, Event::JobArrived { job: JOB, spec: spec.into() }], &mut Vec::new());
    core.outlook(JOB).expect("a job with a deadline")
}

#[test]
fn a_deadline_is_feasible_when_the_slots_suffice_and_no_task_is_longer_than_the_time() {
    let pools = Slots::Pools { map: 2, reduce: 1 };
    // sqrt(40) (sqrt(40) + sqrt(10)) = 60 slot-seconds of maps, 30 of reduces.
    let fits = outlook("oracle", pools, 30);
    assert_eq!(fits.feasible, Some(true));
    assert!((fits.map_slots - 2.0).abs() < 1e-9 && (fits.reduce_slots - 1.0).abs() < 1e-9, "{fits:?}");
    assert_eq!(outlook("oracle", pools, 29).feasible, Some(false), "slots suffice too early");
    assert_eq!(
        outlook("oracle", Slots::Unified(100), 14).feasible,
        Some(false),
        "a map and a reduce take 15 s"
    );
    assert_eq!(outlook("oracle", Slots::Unified(100), 16).feasible, Some(true));
    assert_eq!(outlook("tasks", pools, 30).feasible, None, "nothing is known before the first map");
}
