//! Tests with the paper's examples, and with orders computed by another program.

use super::sizes;
use crate::policy::pairs::optimum::one_order;
use crate::policy::pairs::{PairsRule, averages, order, spread, times, total};
use crate::sim::fluid::orders::orders;

/// Seven jobs for all algorithms.
const SEVEN: [(f64, f64); 7] =
    [(2.3, 7.1), (6.4, 1.9), (3.2, 3.6), (8.8, 4.1), (1.7, 9.4), (5.5, 5.1), (4.9, 8.2)];

fn check(rule: &str, jobs: &[(f64, f64)], expected: &[usize], means: [f64; 3]) {
    let ordered = order(rule, jobs).unwrap();
    assert_eq!(ordered.order, expected, "{rule}");
    assert_eq!(ordered.blocks.concat(), expected, "{rule}");
    let averages = ordered.averages;
    for (found, mean) in [averages.waiting, averages.execution, averages.makespan].into_iter().zip(means) {
        assert!((found - mean).abs() < 1e-9, "{rule}: {averages:?} against {means:?}");
    }
    assert!(ordered.optimum.unwrap() <= averages.makespan + 1e-9, "{rule}");
}

#[test]
fn sec1_the_shuffle_heavy_job_first_takes_3_slots_and_last_4() {
    let jobs = sizes(&[(1.0, 2.0), (2.0, 1.0)]);
    let of = |order: &[usize]| {
        let row = |times: &crate::policy::pairs::OrderTimes| [times.start, times.execution(), times.end];
        times(&jobs, order).iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(of(&[0, 1]), [[0.0, 2.0, 2.0], [1.0, 2.0, 3.0]]);
    assert_eq!(of(&[1, 0]), [[2.0, 2.0, 4.0], [0.0, 2.0, 2.0]]);
}

#[test]
fn weak4_pairs_in_a_row_take_112_and_the_optimum_88_and_a_half() {
    let jobs = sizes(&[(1.0, 2.0), (98.0, 97.0), (45.0, 49.0), (55.0, 51.0)]);
    let pairs = times(&jobs, &[0, 1, 2, 3]);
    assert_eq!(pairs.iter().map(|times| times.end).collect::<Vec<_>>(), [2.0, 99.0, 148.0, 199.0]);
    let means = averages(&pairs);
    assert_eq!([means.waiting, means.execution, means.makespan], [61.0, 51.0, 112.0]);
    let better = times(&jobs, &[0, 2, 3, 1]);
    assert_eq!(better.iter().map(|times| times.end).collect::<Vec<_>>(), [2.0, 199.0, 51.0, 102.0]);
    let means = averages(&better);
    assert_eq!([means.waiting, means.execution, means.makespan], [37.0, 51.5, 88.5]);
    let best = one_order(&jobs);
    assert_eq!((best.total, best.order), (354.0, vec![0, 2, 3, 1]));
}

#[test]
fn ncouple6_runs_j3_j4_j1_j2_j6_j5() {
    let jobs = [(3.0, 4.0), (7.0, 6.0), (2.0, 4.0), (3.0, 1.0), (7.0, 5.0), (8.0, 10.0)];
    let means = [8.83333333333333, 5.83333333333333, 14.6666666666667];
    check("n-couple:delta=0", &jobs, &[2, 3, 0, 1, 5, 4], means);
}

/// In steps of 1 s all four have m = s; exactly, the second and the fourth are more shuffle-heavy than their partners.
#[test]
fn ncouple_puts_the_exactly_shuffle_heavier_of_two_first_where_their_steps_are_equal() {
    let jobs = [(2.8, 2.1), (2.2, 2.7), (5.6, 5.5), (5.1, 5.9)];
    assert_eq!(order("n-couple:delta=1", &jobs).unwrap().order, [1, 0, 3, 2]);
}

/// Returns the smallest total if each given pair runs in sequence, shuffle-heavy job first.
fn best_in_pairs(jobs: &[(f64, f64)], pairs: &[[usize; 2]]) -> f64 {
    let jobs = sizes(jobs);
    let order = |order: &Vec<usize>| order.iter().flat_map(|&pair| pairs[pair]).collect::<Vec<_>>();
    orders(pairs.len()).iter().map(|pairs| total(&jobs, &order(pairs))).fold(f64::INFINITY, f64::min)
}

#[test]
fn thm4_counterexample_strict_weak_pairs_in_a_row_are_not_optimal() {
    let jobs = [(1.0, 4.0), (3.0, 0.0), (0.0, 2.0), (4.0, 2.0)];
    assert_eq!(best_in_pairs(&jobs, &[[0, 1], [2, 3]]), 22.0);
    let best = one_order(&sizes(&jobs));
    assert_eq!((best.total, best.order), (21.0, vec![2, 1, 0, 3]));
}

#[test]
fn thm4_counterexample_big_has_positive_work_and_a_wide_gap() {
    let jobs = [(1.0, 50.0), (99.0, 50.0), (52.0, 103.0), (52.0, 1.0)];
    assert_eq!(best_in_pairs(&jobs, &[[0, 1], [2, 3]]), 557.0);
    let best = one_order(&sizes(&jobs));
    assert_eq!((best.total, best.order), (465.0, vec![0, 3, 2, 1]));
}

#[test]
fn strong6_algorithm_2_is_optimal() {
    let jobs = [(1.0, 6.0), (4.0, 3.0), (6.0, 1.0), (3.0, 4.0), (2.0, 9.0), (9.0, 2.0)];
    let found = order("couple:delta=0", &jobs).unwrap();
    assert_eq!(found.order, [0, 2, 3, 1, 4, 5]);
    assert_eq!(total(&sizes(&jobs), &found.order), 86.0);
    let found = order("pair:delta=0", &jobs).unwrap();
    assert_eq!(found.order, [3, 1, 0, 2, 4, 5]);
    assert_eq!(total(&sizes(&jobs), &found.order), 86.0);
    assert_eq!(one_order(&sizes(&jobs)).total, 86.0);
}

#[test]
fn mapheavy4_algorithm_1_is_optimal() {
    let jobs = [(5.0, 1.0), (3.0, 2.0), (9.0, 8.0), (4.0, 4.0)];
    let found = order("pair:delta=0", &jobs).unwrap();
    assert_eq!(found.order, [1, 3, 0, 2]);
    assert_eq!(total(&sizes(&jobs), &found.order), 43.0);
    assert_eq!(one_order(&sizes(&jobs)).total, 43.0);
}

#[test]
fn balanced4_algorithms_1_and_2_agree_and_are_optimal() {
    let jobs = [(5.0, 5.0), (3.0, 3.0), (9.0, 9.0), (4.0, 4.0)];
    for rule in ["pair:delta=0", "couple:delta=0"] {
        let found = order(rule, &jobs).unwrap();
        assert_eq!(found.order, [1, 3, 0, 2]);
        assert_eq!(total(&sizes(&jobs), &found.order), 43.0);
    }
    assert_eq!(one_order(&sizes(&jobs)).total, 43.0);
}

#[test]
fn dp_of_the_spread_is_the_range_without_the_largest_gaps() {
    let priorities = [1.0, 2.0, 4.0, 9.0, 10.0, 15.0];
    let spreads: Vec<f64> = (1..=6).map(|k| spread(&priorities, k)).collect();
    assert_eq!(spreads, [14.0, 9.0, 4.0, 2.0, 1.0, 0.0]);
    // With alpha 1 the priority of a balanced job is its size.
    let jobs = sizes(&priorities.map(|priority| (priority, priority)));
    let sizes: Vec<usize> =
        PairsRule::Group { alpha: 1.0, k: 3 }.blocks(&jobs).iter().map(Vec::len).collect();
    assert_eq!(sizes, [3, 2, 1]);
}

#[test]
fn seven_alg1_pair() {
    let means = [13.9714285714286, 8.65714285714286, 22.6285714285714];
    check("pair:delta=1", &SEVEN, &[2, 5, 1, 0, 6, 3, 4], means);
}

#[test]
fn seven_alg2_couple() {
    check("couple:delta=1", &SEVEN, &[2, 1, 0, 5, 4, 3, 6], [12.7285714285714, 10.3714285714286, 23.1]);
}

#[test]
fn seven_alg3_generalized() {
    let means = [12.7285714285714, 10.3714285714286, 23.1];
    check("generalized:delta=1,alpha=0.5", &SEVEN, &[2, 1, 0, 5, 4, 3, 6], means);
}

#[test]
fn seven_alg4_group() {
    let means = [12.1428571428571, 8.18571428571429, 20.3285714285714];
    check("group:alpha=0.5,k=3", &SEVEN, &[2, 0, 1, 5, 4, 3, 6], means);
}

#[test]
fn seven_alg7_match() {
    let means = [11.9142857142857, 9.17142857142857, 21.0857142857143];
    check("match:alpha=0.5", &SEVEN, &[2, 5, 0, 1, 4, 6, 3], means);
    let weight = crate::policy::pairs::smallest_weight(&sizes(&SEVEN), 0.5);
    assert!((weight - 9.1).abs() < 1e-9, "{weight}");
}

#[test]
fn seven_maxdiff() {
    let means = [9.75714285714286, 16.9571428571429, 26.7142857142857];
    check("max-diff", &SEVEN, &[4, 0, 6, 2, 5, 1, 3], means);
}

#[test]
fn seven_pairwise() {
    let means = [13.9857142857143, 10.5714285714286, 24.5571428571429];
    check("pairwise", &SEVEN, &[4, 3, 0, 1, 6, 5, 2], means);
}

#[test]
fn seven_maxshuffle() {
    check("max-shuffle", &SEVEN, &[4, 6, 0, 5, 3, 2, 1], [11.6, 15.8714285714286, 27.4714285714286]);
}

#[test]
fn seven_maxsrpt() {
    let means = [13.9714285714286, 8.65714285714286, 22.6285714285714];
    check("max-srpt", &SEVEN, &[2, 5, 1, 0, 6, 3, 4], means);
}

#[test]
fn an_order_of_one_job_by_any_rule_is_that_job() {
    for rule in super::super::RULES.iter().map(|entry| entry.name) {
        assert_eq!(order(rule, &[(3.0, 2.0)]).unwrap().order, [0], "{rule}");
    }
}

#[test]
fn what_cannot_be_ordered_says_why() {
    let error = |rule: &str, jobs: &[(f64, f64)]| order(rule, jobs).unwrap_err().to_string();
    assert!(error("mach", &[(1.0, 1.0)]).starts_with("there is no order `mach`; did you mean `match`?"));
    assert!(error("group:k=0", &[(1.0, 1.0)]).contains("parameter `k` is a whole number above 0, not `0`"));
    assert!(error("pair:delta=-1", &[(1.0, 1.0)]).contains("parameter `delta`"));
    assert!(error("match:alpha=NaN", &[(1.0, 1.0)]).contains("parameter `alpha`"));
    assert_eq!(error("match", &[]), "there is no job to order");
    assert!(error("match", &[(1.0, 1.0), (1.0, -1.0)]).starts_with("job 1: `shuffle` is -1, which is not"));
    assert!(error("match", &[(f64::NAN, 1.0)]).starts_with("job 0: `map` is NaN, which is not"));
    assert!(error("match", &[(f64::INFINITY, 1.0)]).starts_with("job 0: `map` is inf, which is not"));
}

mod online {
    use crate::policy::pairs::{Branch, OnlineGroups, Schedule};

    fn size(map: f64, shuffle: f64) -> super::super::Size {
        (map, shuffle).into()
    }

    #[test]
    fn online5_groups_after_every_arrival() {
        type Step = ((f64, f64), f64, Branch, &'static [&'static [u64]]);
        let steps: [Step; 9] = [
            ((2.218, 4.944), 0.6039, Branch::NewGroup, &[&[0]]),
            ((0.683, 0.217), 1e-06, Branch::Reschedule, &[&[1], &[0]]),
            ((2.186, 8.961), 0.8365, Branch::NewGroup, &[&[1], &[0], &[2]]),
            ((5.788, 1.44), 0.868, Branch::Joined(1), &[&[1], &[0, 3], &[2]]),
            ((6.697, 6.076), 0.7582, Branch::Joined(2), &[&[1], &[0, 3], &[2, 4]]),
            ((2.781, 0.376), 1e-06, Branch::Reschedule, &[&[1, 5], &[0, 3], &[2, 4]]),
            ((6.498, 7.921), 0.9211, Branch::Joined(2), &[&[1, 5], &[0, 3], &[2, 4, 6]]),
            ((7.228, 4.057), 1e-06, Branch::Reschedule, &[&[1, 5], &[0, 3], &[2, 7, 6, 4]]),
            ((0.967, 1.31), 0.9655, Branch::Joined(0), &[&[8, 5, 1], &[0, 3], &[2, 7, 6, 4]]),
        ];
        let mut groups = OnlineGroups::new(0.5, 3);
        for (id, (job, drawn, branch, expected)) in (0..).zip(steps) {
            assert_eq!(groups.arrive(id, job.into(), drawn), branch, "job {id}");
            assert_eq!(groups.blocks(), expected, "job {id}");
        }
    }

    #[test]
    fn online8_schedule_after_every_arrival() {
        let mut schedule = Schedule::new(0.5);
        let mut check = |id: u64, job: (f64, f64), drawn: f64, anew: bool, expected: &[u64], pops: bool| {
            assert_eq!(schedule.arrive(id, job.into(), drawn), anew, "job {id}");
            assert_eq!(schedule.order().collect::<Vec<_>>(), expected, "job {id}");
            if pops {
                let first = schedule.order().next().unwrap();
                schedule.leave(first);
            }
        };
        check(0, (2.201, 1.018), 0.155, true, &[0], false);
        check(1, (3.674, 8.27), 1e-06, true, &[1, 0], false);
        check(2, (2.075, 4.876), 0.1727, false, &[1, 2, 0], true);
        check(4, (8.355, 7.477), 1e-06, true, &[2, 4, 0], false);
        check(5, (1.822, 2.858), 0.7319, false, &[2, 4, 5, 0], false);
        check(6, (7.932, 0.872), 0.6717, false, &[2, 6, 4, 5, 0], false);
        check(7, (1.682, 4.315), 0.9346, false, &[2, 6, 4, 5, 7, 0], false);
        check(8, (4.974, 2.772), 1e-06, true, &[5, 0, 2, 8, 7, 4, 6], false);
    }

    #[test]
    fn groups_that_lost_all_jobs_are_gone_and_ranges_shrink() {
        let mut groups = OnlineGroups::new(1.0, 2);
        for (id, size) in [(0, size(1.0, 1.0)), (1, size(9.0, 9.0)), (2, size(3.0, 3.0))] {
            groups.arrive(id, size, 0.999);
        }
        assert_eq!(groups.blocks(), [vec![0, 2], vec![1]]);
        groups.leave(0);
        groups.leave(2);
        assert_eq!(groups.blocks(), [[1]]);
        groups.leave(1);
        assert_eq!(groups.order().count(), 0);
    }
}
