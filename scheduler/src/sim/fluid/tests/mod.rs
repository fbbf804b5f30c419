//! Tests of the paper's theorems on random instances, and of invariants of every simulation.

use super::lower_bound::lower_bound;
use super::*;
use crate::policy::by_name;
use crate::sim::fluid::orders::{best_in_order, completions_in_order};
use crate::station::{PerStation, Station};
use proptest::prelude::*;

const POLICIES: [&str; 10] = [
    "fcfs",
    "ps",
    "k-lps:k=2",
    "map-fifo-shuffle-ps",
    "max-srpt",
    "max-srpt:shuffle=head",
    "split-srpt",
    "split-srpt:idle=lost",
    "split-srpt:idle=empty",
    "makespan",
];

/// Policies that leave neither map nor shuffle idle while a job could use them.
const WORK_CONSERVING: [&str; 7] =
    ["fcfs", "ps", "k-lps:k=2", "map-fifo-shuffle-ps", "max-srpt", "split-srpt", "makespan"];

/// Reported intervals: from, to, rates.
type Pieces = Vec<(f64, f64, Vec<(u64, [f64; 2])>)>;

fn jobs_of(sizes: &[[f64; 3]]) -> Vec<Job> {
    let job = |&[arrival, map, shuffle]: &[f64; 3]| Job {
        arrival,
        work: PerStation::new(map, shuffle, 0.0),
        ..Job::default()
    };
    sizes.iter().map(job).collect()
}

fn run_all(policy: &str, sizes: &[[f64; 3]]) -> (Vec<JobRecord>, Pieces, FluidSummary) {
    let mut policy = by_name(policy).unwrap();
    let (mut records, mut pieces) = (Vec::new(), Vec::new());
    let summary = trace(&mut *policy, jobs_of(sizes), &mut |record| records.push(*record), &mut |piece| {
        pieces.push((piece.from, piece.to, piece.rates.to_vec()));
    });
    let summary = summary.unwrap();
    records.sort_unstable_by_key(|record| record.seq);
    (records, pieces, summary)
}

fn total(policy: &str, sizes: &[[f64; 3]]) -> f64 {
    run_all(policy, sizes).0.iter().map(JobRecord::flow).sum()
}

fn batch(sizes: &[[f64; 2]]) -> Vec<[f64; 3]> {
    sizes.iter().map(|&[map, shuffle]| [0.0, map, shuffle]).collect()
}

/// Sizes in quarters, so that ties occur.
fn size() -> impl Strategy<Value = f64> {
    (1..48_u32).prop_map(|quarters| f64::from(quarters) / 4.0)
}

fn batches(jobs: usize) -> impl Strategy<Value = Vec<[f64; 2]>> {
    prop::collection::vec((size(), size()).prop_map(|(map, shuffle)| [map, shuffle]), 1..=jobs)
}

/// Streams of jobs, some without map or without shuffle work.
fn streams() -> impl Strategy<Value = Vec<[f64; 3]>> {
    let work = || prop_oneof![8 => size(), 1 => Just(0.0)];
    prop::collection::vec((0..12_u32, work(), work()), 1..14).prop_map(|jobs| {
        let mut now = 0.0;
        jobs.into_iter()
            .map(|(gap, map, shuffle)| {
                now += f64::from(gap) / 2.0;
                [now, map, shuffle]
            })
            .collect()
    })
}

/// Returns the largest and the smallest imbalance `max(x/y, y/x)`.
fn imbalances(batch: &[[f64; 2]]) -> [f64; 2] {
    let each = batch.iter().map(|[map, shuffle]| (map / shuffle).max(shuffle / map));
    [each.clone().fold(1.0, f64::max), each.fold(f64::INFINITY, f64::min)]
}

/// Returns the smallest known total of a batch, over all orders and all policies. The optimum is at most this.
fn best_known(sizes: &[[f64; 2]]) -> f64 {
    let [in_order, _] = best_in_order(sizes).unwrap();
    POLICIES.iter().map(|policy| total(policy, &batch(sizes))).fold(in_order, f64::min)
}

/// Returns the unused capacity of the shuffle that a job could have used, over all intervals, and that of the map.
fn wasted(sizes: &[[f64; 3]], pieces: &Pieces) -> [f64; 2] {
    let mut left: Vec<[f64; 2]> = sizes.iter().map(|&[_, map, shuffle]| [map, shuffle]).collect();
    let mut wasted = [0.0; 2];
    for (from, to, rates) in pieces {
        let idle = [0, 1].map(|station| 1.0 - rates.iter().map(|(_, rates)| rates[station]).sum::<f64>());
        let rate = |job: usize| {
            rates.iter().find(|&&(seq, _)| seq as usize == job).map_or([0.0; 2], |&(_, rates)| rates)
        };
        let present = |job: usize| sizes[job][0] <= *from;
        let could_map = (0..sizes.len()).any(|job| present(job) && 1e-9 < left[job][0]);
        let could_shuffle = (0..sizes.len()).any(|job| {
            let [_, map, shuffle] = sizes[job];
            let mapped = if 0.0 < map { 1.0 - left[job][0] / map } else { 1.0 };
            let buffered = left[job][1] - shuffle * (1.0 - mapped);
            let fed = if 0.0 < map { rate(job)[0] * shuffle / map } else { 0.0 };
            present(job) && (1e-9 < buffered || rate(job)[1] + 1e-9 < fed)
        });
        for (station, could) in [could_map, could_shuffle].into_iter().enumerate() {
            if could {
                wasted[station] += idle[station] * (to - from);
            }
        }
        for &(seq, rates) in rates {
            for station in [0, 1] {
                left[seq as usize][station] -= rates[station] * (to - from);
            }
        }
    }
    wasted
}

/// Fails if a job is shuffled further than it is mapped, a station exceeds its capacity, or a rate is out of
/// range. Also fails if a job has not been served exactly its work at the end.
fn check_feasible(sizes: &[[f64; 3]], pieces: &Pieces) -> Result<(), TestCaseError> {
    let mut left: Vec<[f64; 2]> = sizes.iter().map(|&[_, map, shuffle]| [map, shuffle]).collect();
    let mut last = 0.0;
    for (from, to, rates) in pieces {
        prop_assert!(last <= *from && from < to, "piece from {} to {} after {}", from, to, last);
        last = *to;
        for station in [0, 1] {
            let sum: f64 = rates.iter().map(|(_, rates)| rates[station]).sum();
            prop_assert!(sum <= 1.0 + 1e-9, "rates {} at station {}", sum, station);
        }
        for &(seq, rates) in rates {
            let [arrival, map, shuffle] = sizes[seq as usize];
            prop_assert!(arrival <= *from, "job {} is served before it arrives", seq);
            let left = &mut left[seq as usize];
            for station in [0, 1] {
                prop_assert!(0.0 <= rates[station]);
                left[station] -= rates[station] * (to - from);
            }
            if 0.0 < map && 0.0 < shuffle {
                prop_assert!(
                    left[0] / map <= left[1] / shuffle + 1e-9,
                    "job {} shuffles before it maps",
                    seq
                );
            }
        }
    }
    for (job, left) in left.iter().enumerate() {
        prop_assert!(left[0].abs() < 1e-9 && left[1].abs() < 1e-9, "job {} is left with {:?}", job, left);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_policy_keeps_the_constraints_of_the_model_and_the_lower_bound(sizes in streams()) {
        let bound = lower_bound(sizes.iter().copied());
        for policy in POLICIES {
            let (records, pieces, summary) = run_all(policy, &sizes);
            check_feasible(&sizes, &pieces)?;
            prop_assert_eq!(records.len(), sizes.len());
            prop_assert_eq!(summary.jobs, sizes.len() as u64);
            let flow: f64 = records.iter().map(JobRecord::flow).sum();
            prop_assert!(bound <= flow + 1e-9, "{} ends in {}, below the bound {}", policy, flow, bound);
            for record in records {
                let PerStation([map, shuffle, _]) = record.work;
                prop_assert!(map.max(shuffle) <= record.flow() + 1e-9);
                prop_assert!(record.arrival <= record.start && record.start <= record.completion);
                prop_assert!(map <= 0.0 || record.start <= record.maps_done + 1e-9);
                prop_assert!(record.maps_done <= record.completion);
            }
        }
    }

    #[test]
    fn policies_that_conserve_work_leave_nothing_idle_that_somebody_could_use(sizes in streams()) {
        for policy in WORK_CONSERVING {
            let (_, pieces, _) = run_all(policy, &sizes);
            let wasted = wasted(&sizes, &pieces);
            prop_assert!(wasted.iter().all(|&wasted| wasted < 1e-6), "{} wastes {:?}", policy, wasted);
        }
    }

    #[test]
    fn corollary_4_max_srpt_is_within_its_ratio_of_the_best(sizes in batches(6)) {
        let [largest, _] = imbalances(&sizes);
        let ratio = 2.0 * largest / (1.0 + largest);
        let best = best_known(&sizes);
        for policy in ["max-srpt", "max-srpt:shuffle=head"] {
            let total = total(policy, &batch(&sizes));
            prop_assert!(total <= ratio * best + 1e-9, "{}: {} against {} times {}", policy, total, ratio, best);
        }
        // The fixed order by max(x, y) satisfies it as well.
        let mut fixed = sizes.clone();
        fixed.sort_by(|a, b| a[0].max(a[1]).total_cmp(&b[0].max(b[1])));
        prop_assert!(completions_in_order(&fixed).iter().sum::<f64>() <= ratio * best + 1e-9);
    }

    #[test]
    fn corollary_6_split_srpt_is_within_its_ratio_of_the_best(sizes in batches(6)) {
        let [_, smallest] = imbalances(&sizes);
        let ratio = 1.0 + 1.0 / smallest;
        let best = best_known(&sizes);
        for policy in ["split-srpt", "split-srpt:idle=lost", "split-srpt:idle=empty"] {
            let total = total(policy, &batch(&sizes));
            prop_assert!(total <= ratio * best + 1e-9, "{}: {} against {} times {}", policy, total, ratio, best);
        }
    }

    #[test]
    fn shuffle_heavy_jobs_first_end_a_batch_as_early_as_possible(sizes in batches(6)) {
        let (records, _, summary) = run_all("makespan", &batch(&sizes));
        let sum = |station: usize| sizes.iter().map(|sizes| sizes[station]).sum::<f64>();
        let [_, makespan] = best_in_order(&sizes).unwrap();
        prop_assert!((summary.end - sum(0).max(sum(1))).abs() < 1e-9);
        prop_assert!((summary.end - makespan).abs() < 1e-9);
        prop_assert_eq!(records.len(), sizes.len());
    }

    #[test]
    fn fcfs_is_the_closed_form_of_one_order_at_both_stations(sizes in batches(12)) {
        let (records, _, _) = run_all("fcfs", &batch(&sizes));
        for (record, end) in records.iter().zip(completions_in_order(&sizes)) {
            prop_assert!((record.completion - end).abs() < 1e-9, "job {}: {} not {}", record.seq, record.completion, end);
        }
    }

    #[test]
    fn k_lps_with_room_for_all_is_ps_and_with_room_for_one_is_fifo_at_the_map(sizes in streams()) {
        for (limited, same) in [("k-lps:k=100", "ps"), ("k-lps:k=1", "map-fifo-shuffle-ps")] {
            prop_assert_eq!(run_all(limited, &sizes).0, run_all(same, &sizes).0);
        }
    }

    #[test]
    fn the_same_jobs_give_the_same_bytes(sizes in streams()) {
        for policy in POLICIES {
            prop_assert_eq!(format!("{:?}", run_all(policy, &sizes)), format!("{:?}", run_all(policy, &sizes)));
        }
    }
}

/// Twenty thousand jobs of one seed: two simulations with reused handles give the same bytes, and plans requested twice
/// are the same as plans requested once.
#[test]
fn plans_are_idempotent_and_long_runs_repeat() {
    struct Twice(Box<dyn Policy>);
    impl Policy for Twice {
        fn name(&self) -> &'static str {
            self.0.name()
        }
        fn observe(&mut self, view: View<'_>, change: Change) {
            self.0.observe(view, change);
        }
        fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
            self.0.plan(view, plan);
            plan.finish();
            self.0.plan(view, plan);
        }
    }
    for name in ["fcfs", "max-srpt", "split-srpt", "makespan"] {
        let records = |policy: &mut dyn Policy| {
            let mut records = Vec::new();
            let jobs = crate::workload::overlap::Poisson::new(0.7, 5).unwrap().take(20_000);
            run(policy, jobs, &mut |record| records.push(*record)).unwrap();
            format!("{records:?}")
        };
        let once = records(&mut *by_name(name).unwrap());
        assert_eq!(once, records(&mut *by_name(name).unwrap()), "{name}");
        assert_eq!(once, records(&mut Twice(by_name(name).unwrap())), "{name}");
    }
}

#[test]
fn weights_share_a_station_in_their_proportion() {
    let mut jobs = jobs_of(&[[0.0, 3.0, 0.0], [0.0, 1.0, 0.0]]);
    jobs[0].weight = 3.0;
    let mut ends = Vec::new();
    run(&mut *by_name("ps").unwrap(), jobs, &mut |record| ends.push(record.completion)).unwrap();
    assert_eq!(ends, [4.0, 4.0]);
}

#[test]
fn jobs_without_work_at_a_station_pass_it_at_once() {
    let sizes = [[0.0, 2.0, 0.0], [0.0, 0.0, 2.0], [1.0, 0.0, 0.0]];
    for policy in WORK_CONSERVING {
        let (records, _, _) = run_all(policy, &sizes);
        let ends: Vec<f64> = records.iter().map(|record| record.completion).collect();
        assert_eq!(ends, [2.0, 2.0, 1.0], "{policy}");
    }
}

#[test]
fn jobs_out_of_range_are_refused_with_their_field() {
    let refused = |sizes: &[[f64; 3]]| {
        run(&mut *by_name("fcfs").unwrap(), jobs_of(sizes), &mut |_| {}).unwrap_err().to_string()
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e16] {
        assert!(refused(&[[0.0, 1.0, 1.0], [0.0, bad, 1.0]]).starts_with("job 1: `map work` is"));
        assert!(refused(&[[0.0, 1.0, bad]]).starts_with("job 0: `shuffle work` is"));
    }
    assert!(refused(&[[2.0, 1.0, 1.0], [1.0, 1.0, 1.0]]).starts_with("job 1: `arrival` is 1"));
    assert!(refused(&[[f64::NAN, 1.0, 1.0]]).starts_with("job 0: `arrival` is NaN"));
    assert!(refused(&[[0.0, 1e-300, 1e15]]).starts_with("job 0: `map work` is"));
}

#[test]
fn a_policy_that_gives_nobody_anything_is_an_error() {
    struct Nothing;
    impl Policy for Nothing {
        fn name(&self) -> &'static str {
            "nothing"
        }
        fn observe(&mut self, _: View<'_>, _: Change) {}
        fn plan(&mut self, _: View<'_>, _: &mut Plan<'_>) {}
    }
    let error = run(&mut Nothing, jobs_of(&[[1.0, 1.0, 1.0]]), &mut |_| {}).unwrap_err();
    assert_eq!(error, SimError::Stuck { at: 1.0, jobs: 1 });
}

#[test]
fn no_jobs_give_an_empty_summary() {
    let summary = run(&mut *by_name("fcfs").unwrap(), [], &mut |_| {}).unwrap();
    assert_eq!((summary.jobs, summary.end), (0, 0.0));
}

/// The tight example after Corollary 4, a = 2, e = 0.1: half of the jobs `(a - e, 1)`, half `(1, a)`.
#[track_caller]
fn check_corollary_4(jobs: usize, max_srpt: f64, alternating: f64) {
    let (short, long) = ([1.9, 1.0], [1.0, 2.0]);
    let mut sizes = vec![short; jobs / 2];
    sizes.extend(vec![long; jobs / 2]);
    let pairs: Vec<[f64; 2]> = (0..jobs / 2).flat_map(|_| [long, short]).collect();
    let ours = total("max-srpt", &batch(&sizes));
    assert!((ours - max_srpt).abs() < 1e-9 * max_srpt, "max-srpt takes {ours}");
    let other: f64 = completions_in_order(&pairs).iter().sum();
    assert!((other - alternating).abs() < 1e-9 * alternating, "alternating takes {other}");
}

#[test]
fn worked_cor4_n4() {
    check_corollary_4(4, 19.3, 16.0);
}

#[test]
fn worked_cor4_n10() {
    check_corollary_4(10, 106.0, 85.0);
}

#[test]
fn worked_cor4_n1000() {
    check_corollary_4(1000, 963_475.0, 751_000.0);
}

/// The tight example after Corollary 6, b = 2: all jobs but one `(b, 1)`, one `(n - 1, (n - 1) b)`.
#[track_caller]
fn check_corollary_6(jobs: usize, split_srpt: f64, one_by_one: f64) {
    let others = (jobs - 1) as f64;
    let mut sizes = vec![[2.0, 1.0]; jobs - 1];
    sizes.push([others, others * 2.0]);
    let ours = total("split-srpt:idle=lost", &batch(&sizes));
    assert!((ours - split_srpt).abs() < 1e-9 * split_srpt, "split-srpt takes {ours}");
    assert_eq!(completions_in_order(&sizes).iter().sum::<f64>(), one_by_one);
}

#[test]
fn worked_cor6_n4() {
    check_corollary_6(4, 27.0, 24.0);
}

#[test]
fn worked_cor6_n10() {
    check_corollary_6(10, 162.0, 126.0);
}

#[test]
fn worked_cor6_n200() {
    check_corollary_6(200, 60_297.0, 40_596.0);
}

/// A small part of the table; the paper's page runs all of it. Seeds 1 to 6.
#[test]
fn worked_mc_table_at_load_075_is_within_the_intervals() {
    const JOBS: usize = 20_000;
    let poisson = |seed| crate::workload::overlap::Poisson::new(0.75, seed).unwrap().take(JOBS);
    let check = |name: &str, reference: f64, reference_half_width: f64, mean: &dyn Fn(u64) -> f64| {
        let means: Vec<f64> = (1..=6).map(mean).collect();
        let ours = crate::metrics::Interval::from_samples(&means).unwrap();
        let gap = (ours.mean - reference).abs();
        assert!(
            gap <= ours.half_width.unwrap() + reference_half_width,
            "{name}: {ours:?} against {reference}"
        );
    };
    for (policy, reference, half_width) in [("max-srpt", 3.326, 0.012), ("split-srpt", 3.583, 0.013)] {
        check(policy, reference, half_width, &|seed| {
            let mut flow = 0.0;
            run(&mut *by_name(policy).unwrap(), poisson(seed), &mut |record| flow += record.flow()).unwrap();
            flow / JOBS as f64
        });
    }
    check("lower bound", 2.361, 0.009, &|seed| {
        lower_bound(
            poisson(seed).map(|job| [job.arrival, job.work[Station::Map], job.work[Station::Shuffle]]),
        ) / JOBS as f64
    });
}
