//! Tests of the rules by name, one plan at a time, and of their combination on the cluster simulator.

use super::*;
use crate::estimate;
use crate::event::Slots;
use crate::plan::tests::Counts;
use crate::policy::by_name;
use crate::sim::cluster::{Config, Deciders, Observer, TaskRun, run};
use crate::station::PerStation;
use crate::station::Station;
use crate::units::Time;
use crate::view::Row;
use crate::workload::{self, Job};
use proptest::prelude::*;

/// Returns a job with this work left at the three stations, in seconds of a slot (of the network), and tasks to start.
fn row(seq: u64, left: [f64; 3], can: [u32; 3]) -> Row {
    Row {
        seq,
        whole: left.into(),
        left: left.into(),
        can: can.map(f64::from).into(),
        done: 1,
        known: true,
        live: true,
        weight: 1.0,
        ..Row::default()
    }
}

/// Returns the policy with jobs due after twice their time under equal sharing.
fn twice() -> Gristmill {
    Gristmill { fair: Some(FairRun::new(2.0)), ..Gristmill::new() }
}

/// Jobs that arrived at time 0.
struct Table {
    policy: Gristmill,
    rows: Vec<Row>,
    slots: u32,
}

impl Table {
    fn new(policy: Gristmill, slots: u32, rows: Vec<Row>) -> Self {
        let mut table = Table { policy, rows, slots };
        for job in 0..table.rows.len() as u32 {
            table.observe(0, &[job], Change::Arrived(Handle(job)));
        }
        table
    }

    fn view<'a>(&'a self, seconds: u64, touched: &'a [Handle]) -> View<'a> {
        let cap = [f64::from(self.slots), 1.0, f64::from(self.slots)];
        let now = Time(seconds * 1_000_000_000);
        View { now, rows: &self.rows, touched, cap: cap.into(), unified: true, runs: &[] }
    }

    fn observe(&mut self, seconds: u64, touched: &[u32], change: Change) {
        let touched: Vec<Handle> = touched.iter().map(|&job| Handle(job)).collect();
        let mut policy = std::mem::replace(&mut self.policy, Gristmill::new());
        policy.observe(self.view(seconds, &touched), change);
        self.policy = policy;
    }

    /// Returns the maps and reduces that each job holds after a plan with this many free slots, and the order of the
    /// lanes.
    fn plan(&mut self, seconds: u64, free: u32) -> (Vec<[u32; 2]>, Vec<u32>) {
        let wants = self.rows.iter().map(|row| row.can.map(|tasks| tasks as u32));
        let mut floor = Counts::unified(free, wants);
        floor.held = self.rows.iter().map(|row| row.held.map(|slots| slots as u32)).collect();
        let mut plan = Plan::new(&mut floor);
        let mut policy = std::mem::replace(&mut self.policy, Gristmill::new());
        policy.plan(self.view(seconds, &[]), &mut plan);
        self.policy = policy;
        plan.finish();
        let held = floor.held.iter().map(|held| [held[Station::Map], held[Station::Reduce]]).collect();
        (held, floor.lanes.iter().map(|job| job.0).collect())
    }
}

#[test]
fn the_job_with_the_least_time_to_its_end_goes_first_with_reduces_before_maps() {
    // On 4 slots: 8/4 + 0 = 2 s; max(4/4, 3) + 0 = 3 s; 2/4 + 8/4 = 2.5 s.
    let rows = vec![
        row(0, [8.0, 0.0, 0.0], [8, 0, 0]),
        row(1, [4.0, 3.0, 0.0], [4, 9, 0]),
        row(2, [2.0, 0.0, 8.0], [2, 9, 1]),
    ];
    let mut table = Table::new(Gristmill::new(), 4, rows);
    assert_eq!(table.plan(0, 4).0, [[4, 0], [0, 0], [0, 0]]);
    // Three times the weight, a third of the distance.
    table.rows[2].weight = 3.0;
    table.observe(0, &[2], Change::Progress);
    assert_eq!(table.plan(0, 3).0, [[0, 0], [0, 0], [2, 1]]);
    table.rows[2].weight = 1.0;
    table.observe(0, &[2], Change::Progress);
    table.rows[0].can = PerStation::new(1.0, 0.0, 0.0);
    table.observe(0, &[0], Change::Progress);
    assert_eq!(table.plan(0, 4), (vec![[1, 0], [0, 0], [2, 1]], vec![2, 1]));
    assert_eq!(table.plan(0, 4).0, [[1, 0], [0, 0], [2, 1]], "a plan changes nothing");
}

#[test]
fn without_reduces_the_order_is_that_of_max_srpt() {
    let rows = vec![row(0, [8.0, 0.0, 0.0], [8, 0, 0]), row(1, [4.0, 0.0, 40.0], [4, 0, 0])];
    let only = |reduces| Gristmill { reduces, pilot: false, fair: None, ..Gristmill::new() };
    assert_eq!(Table::new(only(true), 4, rows.clone()).plan(0, 4).0, [[4, 0], [0, 0]]);
    assert_eq!(Table::new(only(false), 4, rows).plan(0, 4).0, [[0, 0], [4, 0]]);
}

#[test]
fn one_map_of_a_job_of_which_none_has_finished_goes_before_everybody() {
    let mut rows = vec![row(0, [1.0, 0.0, 0.0], [9, 0, 0]), row(1, [50.0, 0.0, 0.0], [50, 0, 0])];
    (rows[1].known, rows[1].pend[Station::Map]) = (false, 50);
    let mut table = Table::new(Gristmill::new(), 4, rows);
    assert_eq!(table.plan(0, 4).0, [[3, 0], [1, 0]]);
    table.rows[1].held[Station::Map] = 1.0;
    table.observe(0, &[1], Change::Progress);
    assert_eq!(table.plan(0, 3).0, [[3, 0], [1, 0]], "one is enough");
    table.rows[1].held[Station::Map] = 0.0;
    table.observe(0, &[1], Change::Progress);
    table.policy.pilot = false;
    table.observe(0, &[1], Change::Progress);
    assert_eq!(table.plan(0, 4).0, [[4, 0], [0, 0]], "switched off");
}

#[test]
fn first_maps_of_new_jobs_go_by_age_so_that_newcomers_do_not_delay_that_of_a_large_job() {
    let mut rows = vec![row(0, [500.0, 0.0, 0.0], [500, 0, 0]), row(1, [5.0, 0.0, 0.0], [5, 0, 0])];
    for row in &mut rows {
        (row.known, row.pend[Station::Map]) = (false, row.can[Station::Map] as u32);
    }
    assert_eq!(Table::new(Gristmill::new(), 4, rows).plan(0, 1).0, [[1, 0], [0, 0]]);
}

#[test]
fn last_reduce_that_is_shorter_than_a_map_does_not_wait_for_first_maps_of_new_jobs() {
    let mut rows = vec![row(0, [8.0, 0.0, 0.0], [8, 0, 0]), row(1, [0.0, 0.0, 0.5], [0, 0, 1])];
    (rows[0].known, rows[0].pend[Station::Map]) = (false, 8);
    assert_eq!(Table::new(Gristmill::new(), 4, rows.clone()).plan(0, 1).0, [[0, 0], [0, 1]]);
    rows[1] = row(1, [0.0, 0.0, 1.5], [0, 0, 1]);
    assert_eq!(
        Table::new(Gristmill::new(), 4, rows).plan(0, 1).0,
        [[1, 0], [0, 0]],
        "it is longer than a map"
    );
}

#[test]
fn job_that_is_cancelled_leaves_the_virtual_run() {
    // Both need 10 s of the whole cluster. Without the other, the first is due at twice 10 s, else at twice 20 s.
    for (abandoned, due) in [(true, 21), (false, 41)] {
        let rows = vec![row(0, [40.0, 0.0, 0.0], [40, 0, 0]), row(1, [40.0, 0.0, 0.0], [40, 0, 0])];
        let mut table = Table::new(twice(), 4, rows);
        (table.rows[1].live, table.rows[1].abandoned) = (false, abandoned);
        table.observe(0, &[], Change::Left(Handle(1)));
        table.observe(due - 2, &[], Change::Tick);
        assert_eq!(table.policy.due.iter().count(), 0, "abandoned: {abandoned}");
        table.observe(due, &[], Change::Tick);
        assert_eq!(table.policy.due.iter().count(), 1, "abandoned: {abandoned}");
    }
}

#[test]
fn a_job_that_equal_sharing_would_have_ended_gets_its_equal_part_and_its_segments_first() {
    // Ten seconds of four slots and one: shared equally they end after 2 and 11 s, and are due after 4 and 22.
    let rows = vec![row(0, [40.0, 0.0, 0.0], [40, 1, 0]), row(1, [4.0, 0.0, 0.0], [9, 1, 0])];
    let mut table = Table::new(twice(), 4, rows);
    table.observe(3, &[], Change::Tick);
    assert_eq!(table.policy.due.iter().count(), 0);
    table.observe(21, &[], Change::Tick);
    assert_eq!(table.plan(21, 4), (vec![[0, 0], [4, 0]], vec![1, 0]));
    table.observe(22, &[], Change::Tick);
    assert_eq!(table.plan(22, 4), (vec![[2, 0], [2, 0]], vec![1, 0]), "each its part, the longer due before");
    table.observe(23, &[], Change::Left(Handle(1)));
    table.rows[1].can = PerStation::all(0.0);
    assert_eq!(table.plan(23, 4).0, [[4, 0], [0, 0]]);
}

#[test]
fn a_job_that_turns_out_larger_is_not_due_any_more() {
    let rows = vec![row(0, [4.0, 0.0, 0.0], [4, 0, 0]), row(1, [1.0, 0.0, 0.0], [9, 0, 0])];
    let mut table = Table::new(twice(), 2, rows);
    table.observe(10, &[], Change::Tick);
    assert_eq!(table.plan(10, 2).0, [[1, 0], [1, 0]]);
    table.rows[0].whole[Station::Map] = 400.0;
    table.rows[0].left[Station::Map] = 400.0;
    table.observe(10, &[0], Change::Progress);
    assert_eq!(table.plan(10, 2).0, [[0, 0], [2, 0]]);
}

#[test]
fn parameters_switch_each_rule_off_and_others_are_refused() {
    assert!(by_name("gristmill:pilot=no,aging=no,reduces=no,stretch=3").is_ok());
    assert!(by_name("gristmill").unwrap().preempts());
    assert!(!by_name("gristmill:preemptive=no").unwrap().preempts());
    for wrong in ["pilot=2", "aging=maybe", "stretch=0.5", "stretch=inf", "reduces=", "slots=1"] {
        assert!(by_name(&format!("gristmill:{wrong}")).is_err(), "{wrong}");
    }
}

/// Returns the flow times by order of arrival.
fn flows(config: &Config, policy: &str, estimator: &str, jobs: &[Job]) -> Vec<f64> {
    let mut flows = vec![0.0; jobs.len()];
    let policy = by_name(policy).unwrap();
    let estimator = Some(estimate::by_name(estimator).unwrap());
    let mut sink = |record: &crate::metrics::JobRecord| flows[record.seq as usize] = record.flow();
    run(config, Deciders { estimator, ..Deciders::with_policy(policy) }, jobs.to_vec(), &mut (), &mut sink)
        .unwrap();
    flows
}

#[test]
fn a_large_job_ends_under_a_stream_of_small_ones_that_starves_it_without_aging() {
    // Small jobs need both slots all the time, so others get slots only by rule 1.
    let small = (0..400).map(|i| Job { arrival: f64::from(i), maps: vec![1.0; 2], ..Job::default() });
    let large = Job { arrival: 0.5, maps: vec![2.0; 4], ..Job::default() };
    let mut jobs: Vec<Job> = small.chain([large]).collect();
    jobs.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
    let place = jobs.iter().position(|job| job.maps.len() == 4).unwrap();
    let config = Config::uniform(1, Slots::Unified(2));
    let flow = |policy| flows(&config, policy, "oracle", &jobs)[place];
    assert!(390.0 < flow("gristmill:aging=no,pilot=no"), "it is not starved: nothing is tested");
    // Under equal sharing with a growing backlog it would be present for about 20 s. It waits as long again, and then
    // needs 8 s on one slot, its share, between tasks of 1 s.
    let bounded = flow("gristmill:stretch=2");
    assert!(bounded < 60.0, "{bounded} s");
}

#[test]
fn small_jobs_whose_reduces_are_overestimated_starve_a_large_one_no_longer_than_known_ones() {
    // Until a reduce has ended, it is taken to be as long as a map. Virtual equal sharing must not keep that size.
    let small = (0..400).map(|i| Job {
        arrival: f64::from(i),
        maps: vec![1.0; 2],
        reduces: vec![0.001],
        ..Job::default()
    });
    let large = Job { arrival: 0.5, maps: vec![2.0; 4], ..Job::default() };
    let jobs: Vec<Job> = small.clone().take(1).chain([large]).chain(small.skip(1)).collect();
    let config = Config::uniform(1, Slots::Unified(2));
    let flow = |estimator| flows(&config, "gristmill:stretch=2", estimator, &jobs)[1];
    let (known, estimated) = (flow("oracle"), flow("linear"));
    assert!(estimated < 1.5 * known && known < 60.0, "{estimated} and {known} s");
}

/// Observer that checks if a slot was idle for a time in which a map could have run.
#[derive(Default)]
struct Idle {
    tasks: Vec<TaskRun>,
}

impl Observer for Idle {
    fn task(&mut self, run: &TaskRun) {
        self.tasks.push(*run);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_slot_idles_while_a_map_waits(
        jobs in prop::collection::vec((0..20_u32, prop::collection::vec(1..9_u32, 1..6), 0..3_usize), 1..12),
        slots in 1..4_u32,
        workers in 1..3_u32,
        rules in prop::sample::select(vec!["", "pilot=no", "aging=no", "stretch=1"]),
    ) {
        let mut jobs: Vec<Job> = jobs
            .into_iter()
            .map(|(arrival, maps, reduces)| Job {
                arrival: f64::from(arrival),
                maps: maps.into_iter().map(f64::from).collect(),
                reduces: vec![1.5; reduces],
                ..Job::default()
            })
            .collect();
        jobs.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
        let mut idle = Idle::default();
        let config = Config::uniform(workers, Slots::Unified(slots));
        // A suspended reduce is reported only with its last interval, so slots would seem idle.
        let switches = rules.split(',').chain(["preemptive=no"]).filter(|rule| !rule.is_empty());
        let policy = by_name(&format!("gristmill:{}", switches.collect::<Vec<_>>().join(","))).unwrap();
        let estimator = estimate::by_name("tasks").ok();
        run(&config, Deciders { estimator, ..Deciders::with_policy(policy) }, jobs.clone(), &mut idle, &mut |_| {}).unwrap();
        for map in idle.tasks.iter().filter(|run| run.task.kind == crate::ids::TaskKind::Map) {
            let waited = jobs[map.seq as usize].arrival..map.start;
            // Nothing changes between two ends of tasks, so the middle of each interval is checked.
            let mut cuts: Vec<f64> = idle.tasks.iter().flat_map(|run| [run.start, run.end]).collect();
            cuts.extend([waited.start, waited.end]);
            cuts.retain(|cut| waited.start <= *cut && *cut <= waited.end);
            cuts.sort_by(f64::total_cmp);
            for pair in cuts.windows(2).filter(|pair| 1e-6 < pair[1] - pair[0]) {
                let at = f64::midpoint(pair[0], pair[1]);
                let busy = idle.tasks.iter().filter(|run| run.start <= at && at < run.end).count();
                prop_assert_eq!(busy as u32, slots * workers, "idle at {} while {:?} waited", at, map);
            }
        }
    }

    #[test]
    fn equal_sharing_in_the_virtual_run_ends_jobs_when_it_should(
        jobs in prop::collection::vec((0..50_u32, 1..40_u32), 1..12),
    ) {
        // Second by second, with steps small enough that sharing changes only between them.
        let mut jobs: Vec<(u32, u32)> = jobs;
        jobs.sort_unstable();
        const STEP: f64 = 1e-3;
        let mut left: Vec<f64> = jobs.iter().map(|job| f64::from(job.1)).collect();
        let mut ends = vec![f64::NAN; jobs.len()];
        let mut now = 0.0;
        while ends.iter().any(|end| end.is_nan()) {
            let here: Vec<usize> =
                (0..jobs.len()).filter(|&i| f64::from(jobs[i].0) <= now + 1e-9 && 0.0 < left[i]).collect();
            for &i in &here {
                left[i] -= STEP / here.len() as f64;
                if left[i] <= 0.0 {
                    ends[i] = now + STEP;
                }
            }
            now += STEP;
        }
        let mut run = FairRun::new(1.0);
        let mut events: Vec<(f64, Option<usize>)> =
            jobs.iter().enumerate().map(|(i, job)| (f64::from(job.0), Some(i))).collect();
        events.extend(ends.iter().flat_map(|end| [(end - 0.1, None), (end + 0.1, None)]));
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, arrival) in events {
            run.advance(Time((at.max(0.0) * 1e9) as u64));
            if let Some(i) = arrival {
                let arrival = Time(u64::from(jobs[i].0) * 1_000_000_000);
                run.place(i as u64, (Handle(i as u32), arrival), f64::from(jobs[i].1));
            }
            for (i, end) in ends.iter().enumerate().filter(|(_, end)| 0.09 < (**end - at).abs()) {
                prop_assert_eq!(run.due(i as u64).is_some(), *end < at, "job {} at {}, end {}", i, at, end);
            }
        }
    }
}

#[test]
fn on_a_mix_with_estimated_sizes_it_is_ahead_of_fair_and_its_slowest_jobs_are_slowed_less() {
    const SEEDS: std::ops::Range<u64> = 1..9;
    let config = Config::uniform(2, Slots::Unified(1));
    let mix = workload::by_name("mix:kind=laptop,load=0.8,slots=2,jobs=80").unwrap();
    let (mut flow, mut slowest) = ([0.0; 2], [0.0_f64; 2]);
    for seed in SEEDS {
        let jobs: Vec<Job> = mix.jobs(seed).collect();
        for (place, policy) in ["gristmill", "fair"].into_iter().enumerate() {
            let flows = flows(&config, policy, "linear", &jobs);
            flow[place] += flows.iter().sum::<f64>();
            let slowdown = flows
                .iter()
                .zip(&jobs)
                .map(|(flow, job)| flow / (job.work[Station::Map] + job.work[Station::Reduce]) * 2.0);
            slowest[place] = slowest[place].max(slowdown.fold(0.0, f64::max));
        }
    }
    assert!(flow[0] < 0.7 * flow[1], "seeds {SEEDS:?}: {flow:?}");
    assert!(slowest[0] < slowest[1], "seeds {SEEDS:?}: {slowest:?}");
}
