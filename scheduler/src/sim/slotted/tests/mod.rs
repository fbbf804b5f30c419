//! Tests of the slotted model against its definition, slot by slot, and of the paper's theorems on small instances.

mod on_core;

use super::*;
use crate::policy::{self, Fifo};
use crate::station::PerStation;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Feasible policies by name, with true if they run preemptively.
const SCHEDULERS: [(&str, bool); 9] = [
    ("dsrpt", true),
    ("asrpt", true),
    ("fifo", true),
    ("fair", true),
    ("lrpt", true),
    ("asrpt", false),
    ("fifo", false),
    ("fair", false),
    ("lrpt", false),
];

fn job(slot: u32, maps: u32, reduces: &[u32]) -> Job {
    let reduces: Vec<f64> = reduces.iter().map(|&units| f64::from(units)).collect();
    let work = [f64::from(maps), 0.0, reduces.iter().sum()];
    Job { arrival: f64::from(slot - 1), work: work.into(), reduces, ..Job::default() }
}

/// Results of a run: the records, and the service by slot.
#[derive(Clone, PartialEq, Debug, Default)]
struct Story {
    records: Vec<JobRecord>,
    slots: BTreeMap<u64, Vec<SlotService>>,
}

impl Story {
    fn completions(&self) -> Vec<f64> {
        let mut by_seq: Vec<_> = self.records.iter().map(|record| (record.seq, record.completion)).collect();
        by_seq.sort_by_key(|&(seq, _)| seq);
        by_seq.into_iter().map(|(_, completion)| completion).collect()
    }
}

fn try_story(policy: &mut dyn Policy, config: &Config, jobs: &[Job]) -> Result<Story, SimError> {
    let mut story = Story::default();
    let Story { records, slots } = &mut story;
    run(policy, config, jobs, &mut |record| records.push(*record), &mut |slot, served| {
        slots.insert(slot, served.to_vec());
    })?;
    Ok(story)
}

fn story(name: &str, preemptive: bool, machines: u32, jobs: &[Job]) -> Story {
    let mut policy = policy::by_name(name).unwrap();
    let config = Config::for_policy(&*policy, machines, preemptive);
    try_story(&mut *policy, &config, jobs).unwrap()
}

fn flow(name: &str, preemptive: bool, machines: u32, jobs: &[Job]) -> f64 {
    let mut policy = policy::by_name(name).unwrap();
    let config = Config::for_policy(&*policy, machines, preemptive);
    let mut total = 0.0;
    run(&mut *policy, &config, jobs, &mut |record| total += record.flow(), &mut |_, _| {}).unwrap();
    total
}

/// Jobs of few units that arrive in few slots. The third number of each chooses the split of its reduce work.
fn instances() -> impl Strategy<Value = (u32, Vec<Job>)> {
    let one = (0..4_u32, 0..7_u32, prop::collection::vec(0..6_u32, 0..4));
    (1..5_u32, prop::collection::vec(one, 1..7)).prop_map(|(machines, parts)| {
        let mut slot = 1;
        let jobs = parts.into_iter().map(|(gap, maps, reduces)| {
            slot += gap;
            job(slot, maps, &reduces)
        });
        (machines, jobs.collect())
    })
}

/// State of a job, as the checks below compute it independently.
struct Followed {
    maps_left: u32,
    reduces_left: u32,
    /// Lengths of the reduces that have not started, the next one last.
    waiting: Vec<u32>,
    /// Last slots of the running reduces.
    ends: Vec<u64>,
    /// Slot of the last map.
    maps_end: u64,
}

/// Replays a run from its jobs alone and checks all rules of the model.
fn check_story(story: &Story, preemptive: bool, conserving: bool, machines: u32, jobs: &[Job]) {
    let mut here: BTreeMap<u64, Followed> = BTreeMap::new();
    let mut next = 0;
    let mut completions = vec![0.0; jobs.len()];
    let last_arrival = jobs.last().map_or(0, |job| slot_of(job.arrival));
    for slot in 1..=story.slots.keys().next_back().copied().unwrap_or(0).max(last_arrival) {
        while let Some(job) = jobs.get(next).filter(|job| job.arrival < slot as f64) {
            let waiting = job.reduces.iter().rev().map(|&units| units as u32).filter(|&units| 0 < units);
            let [maps_left, reduces_left] =
                [job.work[Station::Map], job.work[Station::Reduce]].map(|units| units as u32);
            let followed =
                Followed { maps_left, reduces_left, waiting: waiting.collect(), ends: vec![], maps_end: 0 };
            completions[next] = job.arrival;
            if 0 < maps_left + reduces_left {
                here.insert(next as u64, followed);
            }
            next += 1;
        }
        let none = Vec::new();
        let served = story.slots.get(&slot).unwrap_or(&none);
        let used: u32 = served.iter().map(|job| job.maps + job.reduces).sum();
        assert!(used <= machines, "slot {slot}: {used} of {machines} machines");
        let got =
            |seq| served.iter().find(|job| job.seq == seq).map_or([0; 2], |job| [job.maps, job.reduces]);
        assert!(served.iter().all(|job| here.contains_key(&job.seq)), "slot {slot}: a job that is not here");
        for (&seq, job) in &mut here {
            let open = job.maps_left == 0 && job.maps_end < slot;
            let [maps, reduces] = got(seq);
            assert!(
                maps <= job.maps_left && (open || reduces == 0),
                "slot {slot}, job {seq}: a reduce too early"
            );
            assert!(reduces <= job.reduces_left);
            let hungry = if preemptive {
                job.reduces_left - reduces
            } else {
                // Running reduces keep their machines; further ones start in their order.
                let running = job.ends.len() as u32;
                assert!(running <= reduces, "slot {slot}, job {seq}: a running reduce lost its machine");
                for _ in running..reduces {
                    job.ends.push(slot - 1 + u64::from(job.waiting.pop().unwrap()));
                }
                job.ends.retain(|&end| slot < end);
                job.waiting.len() as u32
            };
            let idle = used < machines && (maps < job.maps_left || open && 0 < hungry);
            assert!(!conserving || !idle, "slot {slot}: a machine idles though job {seq} could use it");
            job.maps_left -= maps;
            job.reduces_left -= reduces;
            if 0 < maps {
                job.maps_end = slot;
            }
            if job.maps_left + job.reduces_left == 0 {
                completions[seq as usize] = slot as f64;
            }
        }
        here.retain(|_, job| 0 < job.maps_left + job.reduces_left);
    }
    assert!(here.is_empty() && next == jobs.len(), "not everything was worked off");
    assert_eq!(story.completions(), completions);
}

proptest! {
    #[test]
    fn every_policy_keeps_the_rules_of_the_model_and_all_but_dsrpt_conserve_work((machines, jobs) in instances()) {
        for (name, preemptive) in SCHEDULERS {
            let story = story(name, preemptive, machines, &jobs);
            check_story(&story, preemptive, name != "dsrpt", machines, &jobs);
        }
    }

    #[test]
    fn asrpt_never_has_more_total_flow_than_dsrpt((machines, jobs) in instances()) {
        let [asrpt, dsrpt] = ["asrpt", "dsrpt"].map(|name| flow(name, true, machines, &jobs));
        prop_assert!(asrpt <= dsrpt, "{asrpt} against {dsrpt}");
    }

    #[test]
    fn at_no_time_are_fewer_jobs_left_than_under_the_srpt_bound((machines, jobs) in instances()) {
        let sorted = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times
        };
        let bound = sorted(lower_bound::completions(machines, &jobs).unwrap());
        for (name, preemptive) in SCHEDULERS {
            let completions = sorted(story(name, preemptive, machines, &jobs).completions());
            prop_assert!(bound.iter().zip(&completions).all(|(bound, time)| bound <= time), "{name}");
        }
    }

    #[test]
    fn the_same_jobs_give_the_same_story((machines, jobs) in instances()) {
        for (name, preemptive) in SCHEDULERS {
            prop_assert_eq!(
                story(name, preemptive, machines, &jobs),
                story(name, preemptive, machines, &jobs)
            );
        }
    }
}

/// Returns the minimum total flow time of all preemptive schedules, by trying every assignment of the machines in every
/// slot.
fn optimum(machines: u32, jobs: &[Job]) -> u32 {
    /// Units of maps and of reduces left, and true if reduces may start.
    type State = Vec<(u32, u32, bool)>;
    fn divisions(free: u32, state: &[(u32, u32, bool)], so_far: &mut State, found: &mut Vec<State>) {
        let Some(&(maps, reduces, open)) = state.get(so_far.len()) else {
            return found.push(so_far.clone());
        };
        for taken in 0..=free.min(if open { reduces } else { maps }) {
            let next = if open { (0, reduces - taken, true) } else { (maps - taken, reduces, maps == taken) };
            so_far.push(next);
            divisions(free - taken, state, so_far, found);
            so_far.pop();
        }
    }
    fn least(
        slot: u32,
        state: State,
        machines: u32,
        jobs: &[Job],
        known: &mut BTreeMap<(u32, State), u32>,
    ) -> u32 {
        let mut state = state;
        let arrived = jobs[state.len()..].iter().take_while(|job| job.arrival < f64::from(slot));
        let arrived: State = arrived
            .map(|job| {
                (
                    job.work[Station::Map] as u32,
                    job.work[Station::Reduce] as u32,
                    job.work[Station::Map] == 0.0,
                )
            })
            .collect();
        state.extend(arrived);
        let present = state.iter().filter(|(maps, reduces, _)| 0 < maps + reduces).count() as u32;
        if present == 0 && state.len() == jobs.len() {
            return 0;
        }
        if let Some(&known) = known.get(&(slot, state.clone())) {
            return known;
        }
        let mut found = Vec::new();
        divisions(machines, &state, &mut Vec::new(), &mut found);
        // Idling is never better than the best assignment without unnecessary idling, so the search ends.
        let most = |state: &State| state.iter().map(|&(maps, reduces, _)| maps + reduces).sum::<u32>();
        let done = found.iter().map(most).min().unwrap();
        let found = found.into_iter().filter(|next| most(next) == done);
        let best = found.map(|next| least(slot + 1, next, machines, jobs, known)).min().unwrap() + present;
        known.insert((slot, state), best);
        best
    }
    least(1, Vec::new(), machines, jobs, &mut BTreeMap::new())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_policy_beats_the_exhaustive_optimum_nor_that_the_bound(
        machines in 1..4_u32,
        parts in prop::collection::vec((0..3_u32, 0..4_u32, 0..4_u32), 1..4),
    ) {
        let mut slot = 1;
        let jobs: Vec<Job> = parts.into_iter().map(|(gap, maps, reduces)| {
            slot += gap;
            job(slot, maps, &[reduces])
        }).collect();
        let optimum = f64::from(optimum(machines, &jobs));
        prop_assert!(lower_bound::total_flow(machines, &jobs).unwrap() <= optimum);
        for (name, preemptive) in SCHEDULERS {
            let flow = flow(name, preemptive, machines, &jobs);
            prop_assert!(optimum <= flow, "{name}: {flow} against {optimum}");
        }
    }
}

#[test]
fn a_reduce_waits_for_the_slot_after_the_last_map_unless_precedence_is_off() {
    // Two machines, three maps, reduces of 1 and 2 units; the table of section III.
    let jobs = [job(1, 3, &[1, 2])];
    let served = |name: &str| {
        let story = story(name, true, 2, &jobs);
        story.slots.values().map(|served| (served[0].maps, served[0].reduces)).collect::<Vec<_>>()
    };
    assert_eq!(served("srpt"), [(2, 0), (1, 1), (0, 2)]);
    assert_eq!(served("dsrpt"), [(2, 0), (1, 0), (0, 1), (0, 2)]);
    assert_eq!(served("asrpt"), [(2, 0), (1, 0), (0, 2), (0, 1)]);
}

#[test]
fn the_quick_example_punishes_a_reduce_that_cannot_be_interrupted() {
    // Section IV with H = 0, L = 1, Q = 3: small jobs arrive while the long reduce runs.
    let jobs = [job(1, 1, &[7]), job(3, 1, &[1]), job(5, 1, &[1]), job(7, 1, &[1])];
    assert_eq!(story("asrpt", true, 1, &jobs).completions(), [14.0, 4.0, 6.0, 8.0]);
    assert_eq!(story("asrpt", false, 1, &jobs).completions(), [8.0, 10.0, 12.0, 14.0]);
    assert_eq!(lower_bound::completions(1, &jobs).unwrap(), [14.0, 4.0, 6.0, 8.0]);
}

#[test]
fn a_record_tells_when_a_job_came_began_and_ended() {
    let half = Job { arrival: 2.5, deadline: Some(9.0), weight: 2.0, ..job(1, 3, &[2, 0]) };
    let story = story("fifo", true, 2, &[half]);
    let record = story.records[0];
    assert_eq!((record.arrival, record.start, record.maps_done, record.completion), (2.5, 3.0, 5.0, 6.0));
    assert_eq!((record.work.0, record.deadline, record.weight), ([3.0, 0.0, 2.0], Some(time_of(9.0)), 2.0));
    assert_eq!(story.slots.keys().copied().collect::<Vec<_>>(), [4, 5, 6]);
}

#[test]
fn jobs_without_work_end_as_they_arrive_and_without_jobs_nothing_happens() {
    let jobs = [job(4, 0, &[]), job(4, 1, &[0]), job(9, 0, &[0])];
    let story = story("fifo", false, 1, &jobs);
    assert_eq!(story.completions(), [3.0, 4.0, 8.0]);
    assert_eq!(story.records.len(), 3);
    assert_eq!(super::tests::story("asrpt", true, 1, &[]), Story::default());
}

#[test]
fn a_job_that_is_not_cut_has_one_reduce() {
    let whole = Job { work: PerStation::new(1.0, 0.0, 4.0), ..Job::default() };
    assert_eq!(story("fifo", false, 8, std::slice::from_ref(&whole)).completions(), [5.0]);
    assert_eq!(story("fifo", true, 8, &[whole]).completions(), [2.0]);
}

#[test]
fn what_cannot_be_simulated_is_named() {
    let error = |jobs: &[Job]| {
        let config = Config { machines: 1, preemptive: true, precedence: true };
        try_story(&mut Fifo::new(), &config, jobs).unwrap_err().to_string()
    };
    let with = |change: fn(&mut Job)| {
        let mut bad = job(2, 1, &[1]);
        change(&mut bad);
        error(&[job(1, 1, &[1]), bad])
    };
    let units = "which is not a whole number of units from 0 to 1e9";
    assert_eq!(with(|job| job.work[Station::Map] = 1.5), format!("job 1: `maps` is 1.5, {units}"));
    assert_eq!(with(|job| job.work[Station::Map] = f64::NAN), format!("job 1: `maps` is NaN, {units}"));
    assert_eq!(with(|job| job.reduces[0] = -1.0), format!("job 1: `reduces` is -1, {units}"));
    assert_eq!(
        with(|job| job.reduces = vec![1e9, 1.0]),
        "job 1: `reduces` is 1000000001, which is not at most 1e9 units together"
    );
    assert!(
        with(|job| job.arrival = f64::INFINITY)
            .starts_with("job 1: `arrival` is inf, which is not a number of slots")
    );
    assert!(with(|job| job.weight = -1.0).starts_with("job 1: `weight` is -1, which is not a finite number"));
    assert!(
        with(|job| job.deadline = Some(f64::NAN))
            .starts_with("job 1: `deadline` is NaN, which is not a finite time")
    );
    let backward = error(&[job(3, 1, &[]), job(2, 1, &[])]);
    assert_eq!(backward, "job 1: `arrival` is 1, which is not at or after the arrival of the job before it");
}

#[test]
fn systems_that_make_no_sense_are_refused() {
    let error = |machines, preemptive| {
        let config = Config { machines, preemptive, precedence: true };
        let mut policy = policy::by_name("dsrpt").unwrap();
        try_story(&mut *policy, &config, &[job(1, 1, &[])]).unwrap_err()
    };
    assert!(matches!(error(0, true), SimError::Setting { name: "machines", .. }));
    assert!(matches!(error(1, false), SimError::Setting { name: "preemptive", .. }));
}

#[test]
fn a_policy_that_gives_nobody_anything_is_stuck() {
    struct Idle;
    impl Policy for Idle {
        fn name(&self) -> &'static str {
            "idle"
        }
        fn observe(&mut self, _: View<'_>, _: Change) {}
        fn plan(&mut self, _: View<'_>, _: &mut Plan<'_>) {}
    }
    let config = Config { machines: 1, preemptive: true, precedence: true };
    let jobs = [job(1, 1, &[])];
    assert_eq!(
        try_story(&mut Idle, &config, &jobs),
        Err(SimError::Stuck { at: f64::from(IDLE_SLOTS_MAX), jobs: 1 })
    );
}

#[test]
fn lines_split_the_machines_between_classes() {
    use crate::plan::{Line, Reason, Share};
    use crate::view::Station;

    /// Policy with two lines, for jobs by odd or even seq.
    struct TwoLines(Vec<(Handle, u64)>);
    impl Policy for TwoLines {
        fn name(&self) -> &'static str {
            "two-lines"
        }
        fn observe(&mut self, view: View<'_>, change: Change) {
            if let Change::Arrived(job) = change {
                self.0.push((job, view.row(job).seq));
            }
        }
        fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
            plan.lines(Station::Map, &[0.7, 0.3]);
            for &(job, seq) in self.0.iter().filter(|(job, _)| view.row(*job).live) {
                plan.grant(job, Station::Map, Share::In(Line(seq as u32 % 2)), Reason::Own("its line"));
            }
        }
    }
    let config = Config { machines: 1, preemptive: true, precedence: true };
    let mut got = [0; 2];
    let mut count = |slot: u64, served: &[SlotService]| {
        for job in served.iter().filter(|_| slot <= 1000) {
            got[job.seq as usize] += job.maps;
        }
    };
    let jobs = [job(1, 700, &[]), job(1, 700, &[])];
    // The second job alone cannot use the first line, which stays idle.
    run(&mut TwoLines(Vec::new()), &config, &jobs, &mut |_| {}, &mut count).unwrap();
    assert!((690..=700).contains(&got[0]) && (295..=310).contains(&got[1]), "{got:?}");
}

#[test]
fn the_model_for_a_policy_follows_what_it_needs() {
    let of = |name: &str, preemptive| Config::for_policy(&*policy::by_name(name).unwrap(), 3, preemptive);
    assert_eq!(of("fifo", false), Config { machines: 3, preemptive: false, precedence: true });
    assert_eq!(of("asrpt:preemptive=yes", false), Config { machines: 3, preemptive: true, precedence: true });
    assert_eq!(of("srpt", false), Config { machines: 3, preemptive: true, precedence: false });
    assert!(policy::by_name("asrpt").unwrap().preempts() == of("asrpt", false).preemptive);
}
