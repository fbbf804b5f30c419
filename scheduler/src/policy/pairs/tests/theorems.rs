//! Tests of the paper's theorems, on small random instances against the optimum over all orders.

use super::optimum::two_orders;
use super::whole_jobs;
use crate::job::Size;
use crate::policy::pairs::optimum::one_order;
use crate::policy::pairs::{
    JobBlocks, OnlineGroups, PairsRule, RULES, group, in_pairs, matched, n_couple, smallest_weight, spread,
    total,
};
use proptest::prelude::*;

/// Jobs that can be decomposed into strong pairs, in any order.
fn strong_pairs(pairs: usize) -> impl Strategy<Value = Vec<Size>> {
    let pair = (0_u8..10, 0_u8..10).prop_map(|(a, b)| {
        let (a, b) = (f64::from(a), f64::from(b));
        [Size::from((a, b)), Size::from((b, a))]
    });
    prop::collection::vec(pair, 1..=pairs).prop_map(|pairs| pairs.concat()).prop_shuffle()
}

/// Jobs that are all map-heavy or balanced, or all shuffle-heavy or balanced.
fn one_sided() -> impl Strategy<Value = Vec<Size>> {
    (whole_jobs(6), any::<bool>()).prop_map(|(jobs, map_heavy)| {
        let turned = |job: Size| {
            let (small, large) = (job.map.min(job.shuffle), job.dominant());
            if map_heavy { (large, small).into() } else { (small, large).into() }
        };
        jobs.into_iter().map(turned).collect()
    })
}

fn optimal(jobs: &[Size], blocks: &JobBlocks) -> Result<(), TestCaseError> {
    let best = one_order(jobs);
    prop_assert_eq!(total(jobs, &blocks.concat()), best.total, "{:?} against {:?}", blocks, best.order);
    Ok(())
}

/// Returns the smallest sum of spreads over all splits of sorted priorities into at most `k` groups, by the paper's
/// dynamic program with its initial values fixed.
fn spread_by_dynamic_program(sorted: &[f64], k: usize) -> f64 {
    let n = sorted.len();
    let mut opt = vec![vec![f64::INFINITY; k.min(n) + 1]; n + 1];
    opt[0][0] = 0.0;
    for j in 1..=n {
        for l in 1..=k.min(j) {
            opt[j][l] = (l..=j)
                .map(|i| opt[i - 1][l - 1] + sorted[j - 1] - sorted[i - 1])
                .fold(f64::INFINITY, f64::min);
        }
    }
    if n == 0 { 0.0 } else { opt[n][k.min(n)] }
}

proptest! {
    #[test]
    fn theorem_1_strong_pairs_in_a_row_are_optimal(jobs in strong_pairs(3)) {
        // Pairs by the sum of both sizes, which is the same within a strong pair; then the order is optimal.
        let blocks = PairsRule::Couple { delta: 0.0 }.blocks(&jobs);
        for two in blocks.concat().chunks(2) {
            let [first, second] = [jobs[two[0]], jobs[two[1]]];
            prop_assert_eq!((first.map, first.shuffle), (second.shuffle, second.map), "{:?}", two);
            prop_assert!(second.surplus() <= first.surplus());
        }
        optimal(&jobs, &blocks)?;
    }

    #[test]
    fn theorem_2_algorithm_1_is_optimal_when_all_jobs_lean_to_one_side(jobs in one_sided()) {
        optimal(&jobs, &PairsRule::Pair { delta: 0.0 }.blocks(&jobs))?;
    }

    #[test]
    fn theorem_3_algorithm_2_is_optimal_for_strong_pairs(jobs in strong_pairs(3)) {
        optimal(&jobs, &PairsRule::Couple { delta: 0.0 }.blocks(&jobs))?;
    }

    #[test]
    fn corollary_1_algorithms_1_and_2_agree_and_are_optimal_for_balanced_jobs(jobs in whole_jobs(6)) {
        let jobs: Vec<Size> = jobs.into_iter().map(|job| (job.map, job.map).into()).collect();
        let blocks = PairsRule::Pair { delta: 0.0 }.blocks(&jobs);
        prop_assert_eq!(&blocks, &PairsRule::Couple { delta: 0.0 }.blocks(&jobs));
        optimal(&jobs, &blocks)?;
    }

    #[test]
    fn grouping_at_the_largest_gaps_is_what_the_dynamic_program_finds(jobs in whole_jobs(12), k in 1_usize..9) {
        let mut priorities: Vec<f64> = jobs.iter().map(|job| job.blend(0.5)).collect();
        priorities.sort_by(f64::total_cmp);
        let expected = spread_by_dynamic_program(&priorities, k);
        prop_assert_eq!(spread(&priorities, k), expected);
        let blocks = group(&jobs, 0.5, k);
        prop_assert_eq!(blocks.len(), k.min(jobs.len()));
        let width = |block: &Vec<usize>| {
            let of = |fold: fn(f64, f64) -> f64, from| block.iter().map(|&job| jobs[job].blend(0.5)).fold(from, fold);
            of(f64::max, f64::NEG_INFINITY) - of(f64::min, f64::INFINITY)
        };
        prop_assert_eq!(blocks.iter().map(width).sum::<f64>(), expected);
    }

    #[test]
    fn pairs_are_taken_from_both_ends_one_by_one(jobs in whole_jobs(12)) {
        // As printed: the most shuffle-heavy, then the most map-heavy of the rest; ties keep their order.
        let mut rest: Vec<usize> = (0..jobs.len()).collect();
        let mut expected = Vec::new();
        while !rest.is_empty() {
            let sign = if expected.len() % 2 == 0 { 1.0 } else { -1.0 };
            let best = rest.iter().map(|&job| sign * jobs[job].surplus()).fold(f64::NEG_INFINITY, f64::max);
            let place = rest.iter().position(|&job| sign * jobs[job].surplus() == best).unwrap();
            expected.push(rest.remove(place));
        }
        let all: Vec<usize> = (0..jobs.len()).collect();
        prop_assert_eq!(in_pairs(&jobs, &all), expected);
    }

    #[test]
    fn algorithm_6_takes_out_the_smallest_pair_one_by_one(jobs in whole_jobs(12)) {
        let lean = |job: usize| jobs[job].surplus().abs();
        let pair_total = |&(a, b): &(usize, usize)| jobs[a].total() + jobs[b].total();
        let mut rest: Vec<usize> = (0..jobs.len()).collect();
        let mut expected = Vec::new();
        loop {
            let pairs = rest.iter().flat_map(|&a| rest.iter().map(move |&b| (a, b)));
            let fits = |&(a, b): &(usize, usize)| {
                a != b && lean(a) == lean(b) && (lean(a) == 0.0 || 0.0 < jobs[a].surplus() && jobs[b].surplus() < 0.0)
            };
            let Some(best) = pairs.filter(fits).min_by(|a, b| pair_total(a).total_cmp(&pair_total(b))) else { break };
            rest.retain(|&job| job != best.0 && job != best.1);
            expected.push(pair_total(&best));
        }
        expected.sort_by(f64::total_cmp);
        let blocks = n_couple(&jobs, 0.0);
        let pairs: Vec<f64> = blocks.iter().filter(|block| block.len() == 2).map(|two| pair_total(&(two[0], two[1]))).collect();
        prop_assert_eq!(pairs, expected);
        let alone: Vec<f64> = blocks.iter().skip_while(|block| block.len() == 2).map(|one| jobs[one[0]].total()).collect();
        prop_assert!(alone.is_sorted());
    }

    #[test]
    fn algorithm_7_runs_a_lightest_matching_by_total_workload(jobs in whole_jobs(11), alpha in 0.0_f64..=1.0) {
        let blocks = matched(&jobs, alpha);
        let pairs: Vec<&Vec<usize>> = blocks.iter().take(jobs.len() / 2).collect();
        let weight: f64 = pairs.iter().map(|two| jobs[two[0]].weight(jobs[two[1]], alpha)).sum();
        prop_assert!((weight - smallest_weight(&jobs, alpha)).abs() < 1e-9);
        prop_assert!(pairs.is_sorted_by_key(|two| jobs[two[0]].total() + jobs[two[1]].total()));
        prop_assert!(pairs.iter().all(|two| jobs[two[1]].surplus() <= jobs[two[0]].surplus()));
        if jobs.len() % 2 == 1 {
            let last = jobs[blocks.last().unwrap()[0]].surplus();
            prop_assert!(jobs.iter().all(|job| last <= job.surplus()));
        }
    }

    #[test]
    fn every_rule_gives_every_job_once(jobs in whole_jobs(30)) {
        for entry in &RULES {
            let rule = super::super::rule(entry.name).unwrap();
            prop_assert_eq!(rule.name(), entry.name);
            let mut order = rule.order(&jobs);
            order.sort_unstable();
            prop_assert_eq!(order, (0..jobs.len()).collect::<Vec<_>>(), "{}", entry.name);
        }
    }

    #[test]
    fn groups_told_one_by_one_and_rescheduled_at_the_end_are_those_of_algorithm_4(jobs in whole_jobs(20), k in 1_usize..6) {
        let mut groups = OnlineGroups::new(0.5, k);
        for (id, &job) in (0..).zip(&jobs) {
            groups.arrive(id, job, if id as usize + 1 == jobs.len() { 0.0 } else { 0.999 });
        }
        let found: Vec<Vec<usize>> =
            groups.blocks().into_iter().map(|ids| ids.into_iter().map(|id| id as usize).collect()).collect();
        prop_assert_eq!(found, group(&jobs, 0.5, k));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn theorems_1_and_3_hold_against_different_orders_at_the_two_stations(jobs in strong_pairs(2)) {
        let found = total(&jobs, &PairsRule::Couple { delta: 0.0 }.order(&jobs));
        prop_assert!((found - two_orders(&jobs)).abs() < 1e-9);
    }
}
