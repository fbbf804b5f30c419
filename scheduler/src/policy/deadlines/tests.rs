//! Tests of both schedulers against the paper's rules, slot by slot, and against the requirements of a live master.

use super::*;
use crate::plan::tests::Counts;
use crate::station::PerStation;
use crate::station::Station;
use crate::view::Row;
use proptest::prelude::*;

/// Job as in the rows.
#[derive(Clone, Debug)]
struct Seen {
    arrival: u32,
    deadline: Option<u32>,
    done: Vec<u32>,
    elapsed: Vec<u32>,
    pending: u32,
    pending_reduces: u32,
}

const NOW: u32 = 100;

fn any_seen() -> impl Strategy<Value = Seen> {
    let lengths = |max: usize| prop::collection::vec(1..60_u32, 0..max);
    (0..NOW, prop::option::weighted(0.9, 50..600_u32), lengths(5), lengths(5), 0..30_u32, 0..5_u32).prop_map(
        |(arrival, deadline, done, elapsed, pending, pending_reduces)| Seen {
            arrival,
            deadline,
            done,
            elapsed,
            pending,
            pending_reduces,
        },
    )
}

fn at(seconds: u32) -> Time {
    Time::ZERO + Span::whole_seconds(u64::from(seconds))
}

/// Builds the rows, the start times of running maps, and an executor without grants.
fn scene(free: u32, jobs: &[Seen]) -> (Vec<Row>, Vec<Vec<Time>>, Counts) {
    let row = |(seq, job): (usize, &Seen)| Row {
        seq: seq as u64,
        arrival: at(job.arrival),
        deadline: job.deadline.map(at),
        weight: 1.0,
        live: true,
        can: PerStation::new(f64::from(job.pending), 0.0, 0.0),
        held: PerStation::new(job.elapsed.len() as f64, 0.0, 0.0),
        pend: PerStation::new(job.pending, 0, job.pending_reduces),
        done: job.done.len() as u32,
        done_time: job.done.iter().map(|&length| f64::from(length)).sum(),
        ..Row::default()
    };
    let mut floor = Counts::unified(0, jobs.iter().map(|job| [job.pending, 0, 0]));
    floor.unified = false;
    floor.free = PerStation::new(free, 0, 0);
    floor.held = jobs.iter().map(|job| PerStation::new(job.elapsed.len() as u32, 0, 0)).collect();
    let runs =
        jobs.iter().map(|job| job.elapsed.iter().map(|&elapsed| at(NOW - elapsed)).collect()).collect();
    (jobs.iter().enumerate().map(row).collect(), runs, floor)
}

struct Planned {
    started: Vec<u32>,
    wake: Option<Time>,
    policy: Deadlines,
}

/// Shows these jobs to a policy at `NOW` and plans this often.
fn planned(excess: Excess, free: u32, jobs: &[Seen], times: u32) -> Planned {
    let (rows, runs, mut floor) = scene(free, jobs);
    let mut policy = Deadlines::new(excess, Span::whole_seconds(3), 1.0);
    let cap = [f64::from(free), 0.0, 0.0];
    let view = View { now: at(NOW), rows: &rows, touched: &[], cap: cap.into(), unified: false, runs: &runs };
    for job in (0..rows.len() as u32).map(Handle) {
        policy.observe(View { touched: &[job], ..view }, Change::Arrived(job));
    }
    let mut wake = None;
    for _ in 0..times {
        let mut plan = Plan::new(&mut floor);
        policy.plan(view, &mut plan);
        plan.finish();
        wake = plan.wished_wake();
    }
    let started = floor
        .held
        .iter()
        .zip(jobs)
        .map(|(held, job)| held[Station::Map] - job.elapsed.len() as u32)
        .collect();
    Planned { started, wake, policy }
}

/// Direct implementation of the paper's loop: one slot, then everything is recomputed.
fn by_hand(excess: Excess, mut free: u32, jobs: &[Seen]) -> Vec<u32> {
    let mut started = vec![0; jobs.len()];
    while 0 < free {
        let best = (0..jobs.len())
            .filter(|&job| started[job] < jobs[job].pending)
            .map(|job| (priority(&jobs[job], started[job]), job))
            .max_by(|(a, i), (b, j)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(j.cmp(i)));
        let Some(((class, urgency), job)) = best else { break };
        if excess == Excess::Idle && class == 0 && urgency <= 1e-9 {
            // Slots that no job needs go to jobs without a deadline.
            let aimless =
                (0..jobs.len()).find(|&job| jobs[job].deadline.is_none() && started[job] < jobs[job].pending);
            let Some(job) = aimless else { break };
            started[job] += 1;
        } else {
            started[job] += 1;
        }
        free -= 1;
    }
    started
}

/// Returns the class (2 UNDEAD, 1 NODATA, 0 ADJUST) and urgency of a job with this many maps started now.
fn priority(job: &Seen, started: u32) -> (u32, f64) {
    let running = f64::from(job.elapsed.len() as u32 + started);
    let mean = (!job.done.is_empty())
        .then(|| job.done.iter().map(|&length| f64::from(length)).sum::<f64>() / job.done.len() as f64);
    let work = mean.map(|mean| {
        let left: f64 = job.elapsed.iter().map(|&elapsed| (mean - f64::from(elapsed)).max(0.0)).sum();
        let pending = f64::from(job.pending - started + job.pending_reduces);
        left + f64::from(started) * mean + pending * mean
    });
    let Some(deadline) = job.deadline else { return (0, -running) };
    if deadline <= NOW {
        let aim = f64::from(deadline) - f64::from(job.arrival);
        let end = work.filter(|_| 0.0 < running).map(|work| f64::from(NOW) + work / running);
        let lateness = end.filter(|_| 0.0 < aim).map(|end| (end - f64::from(job.arrival)) / aim);
        return (2, lateness.unwrap_or(f64::INFINITY));
    }
    match work {
        None => (1, -f64::from(job.arrival)),
        Some(work) => (0, work / f64::from(deadline - NOW) - running),
    }
}

proptest! {
    #[test]
    fn both_schedulers_share_slots_as_the_paper_does_one_at_a_time(
        free in 0..40_u32,
        jobs in prop::collection::vec(any_seen(), 1..8),
    ) {
        for excess in [Excess::Idle, Excess::Given] {
            let planned = planned(excess, free, &jobs, 1);
            prop_assert_eq!(planned.started, by_hand(excess, free, &jobs), "{:?}", excess);
        }
    }

    #[test]
    fn a_second_plan_at_the_same_instant_changes_nothing_under_max(
        free in 0..40_u32,
        jobs in prop::collection::vec(any_seen(), 1..8),
    ) {
        let once = planned(Excess::Given, free, &jobs, 1).started;
        prop_assert_eq!(once, planned(Excess::Given, free, &jobs, 2).started);
    }

    #[test]
    fn max_leaves_no_slot_idle_and_min_gives_no_job_with_data_more_than_it_needs(
        free in 0..40_u32,
        jobs in prop::collection::vec(any_seen(), 1..8),
    ) {
        let pending: u32 = jobs.iter().map(|job| job.pending).sum();
        prop_assert_eq!(planned(Excess::Given, free, &jobs, 1).started.iter().sum::<u32>(), free.min(pending));
        let min = planned(Excess::Idle, free, &jobs, 1);
        for (job, &started) in jobs.iter().zip(&min.started) {
            let (class, need) = priority(job, 0);
            if class == 0 && job.deadline.is_some() {
                prop_assert!(f64::from(started) <= need.max(0.0).ceil(), "{started} for a need of {need}");
            }
        }
        let given: u32 = min.started.iter().sum();
        let waits = jobs.iter().zip(&min.started).any(|(job, &s)| job.deadline.is_some() && s < job.pending);
        prop_assert_eq!(min.wake, (given < free && waits).then(|| at(102)), "the next multiple of the tick");
    }

    #[test]
    fn standings_are_in_the_order_of_the_next_slot(jobs in prop::collection::vec(any_seen(), 1..8)) {
        let (rows, runs, _) = scene(0, &jobs);
        let view = View { now: at(NOW), rows: &rows, touched: &[], cap: PerStation::all(0.0), unified: false, runs: &runs };
        let first = planned(Excess::Given, 0, &jobs, 1).policy.standings(view).first().map(|s| s.job.index());
        let started = by_hand(Excess::Given, 1, &jobs);
        prop_assert_eq!(first, started.iter().position(|&started| 0 < started));
    }
}

fn with_deadline(deadline: u32) -> Seen {
    Seen {
        arrival: 0,
        deadline: Some(deadline),
        done: vec![10],
        elapsed: vec![],
        pending: 9,
        pending_reduces: 0,
    }
}

#[test]
fn a_job_that_left_is_forgotten_and_the_others_keep_their_places() {
    let jobs = [with_deadline(500), with_deadline(400), with_deadline(300)];
    let (mut rows, runs, _) = scene(0, &jobs);
    let mut policy = planned(Excess::Given, 0, &jobs, 1).policy;
    rows[0].live = false;
    let view = View {
        now: at(NOW),
        rows: &rows,
        touched: &[],
        cap: PerStation::all(0.0),
        unified: false,
        runs: &runs,
    };
    policy.observe(view, Change::Left(Handle(0)));
    let order: Vec<u32> = policy.standings(view).iter().map(|standing| standing.job.0).collect();
    assert_eq!(order, [2, 1]);
    rows[2].can = PerStation::all(0.0);
    let view = View {
        now: at(NOW),
        rows: &rows,
        touched: &[Handle(2)],
        cap: PerStation::all(0.0),
        unified: false,
        runs: &runs,
    };
    policy.observe(view, Change::Progress);
    assert_eq!(policy.standings(view).len(), 1, "a job that can use no slot does not wait for one");
}

#[test]
fn needs_rise_while_time_passes_and_tasks_become_overdue() {
    let job = Seen { elapsed: vec![1, 8], ..with_deadline(200) };
    let jobs = [job];
    let (rows, runs, _) = scene(0, &jobs);
    let policy = planned(Excess::Given, 0, &jobs, 1).policy;
    for later in [0, 1, 2, 5, 9, 20] {
        let now = at(NOW + later);
        let view =
            View { now, rows: &rows, touched: &[], cap: PerStation::all(0.0), unified: false, runs: &runs };
        let left: f64 =
            [1_u32, 8].iter().map(|elapsed| 10.0 - f64::from(elapsed + later)).filter(|l| 0.0 < *l).sum();
        let need = (left + 90.0) / f64::from(100 - later) - 2.0;
        let required = policy.standings(view)[0].required.unwrap();
        assert!((required - need).abs() < 1e-9, "after {later} s: {required} instead of {need}");
    }
}

#[test]
fn the_shuffle_goes_to_the_nearest_deadline() {
    let jobs = [with_deadline(500), with_deadline(300), Seen { deadline: None, ..with_deadline(0) }];
    let (mut rows, _, mut floor) = scene(0, &jobs);
    floor.wants.iter_mut().for_each(|wants| wants[Station::Shuffle] = 1);
    floor.plan(&mut Deadlines::new(Excess::Idle, Span::whole_seconds(1), 1.0), &mut rows);
    assert_eq!(floor.lanes, [Handle(1), Handle(0), Handle(2)]);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |text: &str| {
        let mut arguments = Arguments::read(text).unwrap();
        made(Excess::Idle, &mut arguments).unwrap_err().to_string()
    };
    assert_eq!(refused("tick=0s"), "parameter `tick` is a length of time of at least 1ms, not `0s`");
    assert_eq!(
        refused("reduce-cost=-1"),
        "parameter `reduce-cost` is a finite number of at least 0, not `-1`"
    );
}
