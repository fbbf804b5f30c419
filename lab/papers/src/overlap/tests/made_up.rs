//! Made-up results that refute and that support the claims of this paper.

use super::super::cells::{BOUND, CLASSES, CellRun, PolicyAtLoad, SlowdownShare};
use super::super::hardness::{Adversary, is_reduction, no_policy_is_competitive};
use super::super::means::order_of_means;
use super::super::random::{InstanceResult, claims as of_instances};
use super::super::slowdown::slowdown_claims;
use super::super::tight::{Approaching, STATEMENTS, approached};
use super::super::trace::{Relative, better_than_k_lps, max_against_split};
use super::super::unstable::{AtLength, LiteralReading, READINGS};
use crate::tests::refuted::{Rules, only};
use crate::workload::overlap_trace::Balance;
use crate::{Claim, Verdict};

fn of_random() -> Rules {
    let broken = InstanceResult {
        parts: [1.1; 4],
        at_most: [1.2; 4],
        by_optimum: [None; 4],
        makespan: 1.1,
        fixed_order_excess: 1.0,
        beats_orders: false,
    };
    let kept = InstanceResult {
        parts: [0.9; 4],
        at_most: [0.95; 4],
        by_optimum: [None; 4],
        makespan: 1.0,
        fixed_order_excess: 0.0,
        beats_orders: true,
    };
    Rules { refuted: of_instances(1, &[broken]), borne_out: of_instances(1, &[kept]) }
}

fn of_hardness() -> Rules {
    let two = |ratios: [f64; 2]| {
        let at = |k: f64, ratio: f64| Adversary { k, ratios: vec![9.0, ratio], guaranteed: 0.25 * k };
        no_policy_is_competitive(&[at(4.0, ratios[0]), at(8.0, ratios[1])])
    };
    let refuted = vec![
        // A solution whose schedule is late, and a schedule without a solution.
        is_reduction(&[(true, Some(true)), (true, Some(false))]),
        is_reduction(&[(false, Some(false)), (false, Some(true))]),
        // A ratio that the proof excludes, and one that does not grow.
        two([1.5, 1.9]),
        two([3.0, 2.5]),
    ];
    Rules {
        refuted,
        borne_out: vec![is_reduction(&[(true, Some(true)), (false, Some(false))]), two([1.5, 2.5])],
    }
}

fn of_tight() -> Rules {
    let claims = |last: f64| {
        let curve =
            || Approaching { name: String::new(), points: vec![(4.0, 1.1), (1000.0, last)], limit: 1.5 };
        STATEMENTS.map(|statement| approached(statement, &[curve()])).to_vec()
    };
    Rules { refuted: claims(1.3), borne_out: claims(1.499) }
}

/// Responses under k-LPS, MaxSRPT and SplitSRPT of three traces at two loads. `at` takes the index of the
/// load.
fn of_trace() -> Rules {
    let claims = |balance: Balance, at: [Relative; 2]| {
        let traces =
            |relative: Relative| [1.0, 1.01, 0.99].map(|trace| relative.map(|one| trace * one)).to_vec();
        let by_load: Vec<(f64, Vec<Relative>)> = [0.25, 0.75].into_iter().zip(at.map(traces)).collect();
        [better_than_k_lps("made up", &by_load), max_against_split("made up", balance, &by_load)]
    };
    // k-LPS is better than one of them at one load only.
    let one_policy = |split: f64| [[1.0, 0.9, 1.1], [5.0, 1.5, split]];
    // k-LPS is better at one load only.
    let one_load = |split: f64| [[1.0, 1.2, 1.1], [5.0, 1.5, split]];
    let neither = |split: f64| [[2.0, 1.2, 1.1], [5.0, 1.5, split]];
    let all = |of: fn(f64) -> [Relative; 2], [original, balanced]: [f64; 2]| -> Vec<Claim> {
        let pairs = [claims(Balance::Original, of(original)), claims(Balance::CubeRoot, of(balanced))];
        pairs.into_iter().flatten().flatten().collect()
    };
    let mut refuted = all(one_load, [2.0, 1.2]);
    refuted.extend(only(all(one_policy, [1.2, 2.0]), "Both algorithms"));
    Rules { refuted, borne_out: all(neither, [1.2, 2.0]) }
}

/// Policy with this mean, whose slowdown goes from the first number for the smallest jobs to the second
/// for the largest.
fn cell(name: &'static str, mean: f64, [small, large]: [f64; 2]) -> PolicyAtLoad {
    let share = |run: f64, class: usize| {
        let part = class as f64 / CLASSES.len() as f64;
        SlowdownShare { slowdowns: run * (small + part * (large - small)), jobs: 1.0 }
    };
    let run = |factor: f64| CellRun {
        mean: factor * mean,
        buckets: Vec::new(),
        classes: std::array::from_fn(|class| share(factor, class)),
    };
    PolicyAtLoad { load: 0.75, name, runs: [1.0, 1.02, 0.97].map(run).into() }
}

fn of_means() -> [Rules; 2] {
    let named = |[lps, max, split, bound]: [f64; 4]| {
        [("k-LPS", lps), ("MaxSRPT", max), ("SplitSRPT", split), (BOUND, bound)]
    };
    let as_claimed = named([6.5, 3.3, 3.5, 2.0]);
    let contrary = [
        // The order is as claimed, but no policy is much better.
        [4.0, 3.3, 3.5, 2.0],
        // Only MaxSRPT is much better.
        [5.1, 3.3, 3.5, 2.0],
        // MaxSRPT is much better than SplitSRPT, or worse.
        [9.0, 3.3, 5.0, 2.0],
        [6.5, 3.5, 3.3, 2.0],
        // The bound is not a bound.
        [6.5, 3.3, 3.5, 3.4],
    ];
    let means = |all: [(&'static str, f64); 4]| {
        let cells = all.map(|(name, mean)| cell(name, mean, [1.0, 1.0]));
        order_of_means(0.75, &cells).into_iter().collect::<Vec<_>>()
    };
    let slowdowns = |all: [(&'static str, [f64; 2]); 3]| {
        slowdown_claims(&all.map(|(name, slowdown)| cell(name, 1.0, slowdown)), 0.75)
    };
    let mut refuted = slowdowns([("k-LPS", [3.0, 5.0]), ("MaxSRPT", [4.0, 2.0]), ("SplitSRPT", [3.5, 3.0])]);
    let (nearly, better, worse) = ("The slowdown of k-LPS", "Jobs of all sizes", "SplitSRPT is worse");
    for (statement, lps, max, split) in [
        // First: it falls by half. Second: it is nearly the same, but rises.
        (nearly, [4.2, 2.0], [1.0, 1.5], [1.5, 1.0]),
        (nearly, [4.0, 4.2], [1.0, 3.4], [3.6, 3.1]),
        // The largest jobs are worse off under one policy, the smallest under the other.
        (better, [4.2, 4.0], [1.0, 4.4], [3.6, 3.1]),
        (better, [4.2, 4.0], [1.0, 3.4], [4.6, 3.1]),
        // SplitSRPT is better for all, or worse for all.
        (worse, [4.2, 4.0], [1.0, 3.4], [0.9, 3.1]),
        (worse, [4.2, 4.0], [1.0, 3.4], [3.6, 3.5]),
    ] {
        let claims = slowdowns([("k-LPS", lps), ("MaxSRPT", max), ("SplitSRPT", split)]);
        refuted.extend(only(claims, statement));
    }
    [
        Rules {
            refuted: contrary.into_iter().flat_map(|one| means(named(one))).collect(),
            borne_out: means(as_claimed),
        },
        Rules {
            refuted,
            borne_out: slowdowns([("k-LPS", [4.2, 4.0]), ("MaxSRPT", [1.0, 3.4]), ("SplitSRPT", [3.6, 3.1])]),
        },
    ]
}

/// Reading whose mean response grows by these factors with each doubling of the length, in five nearly
/// equal seeds.
fn reading((name, stable): (&'static str, bool), growth: [f64; 3]) -> LiteralReading {
    let mut mean = 3.3;
    let growth = [1.0].into_iter().chain(growth);
    let lengths: Vec<AtLength> = growth
        .zip(1_usize..)
        .map(|(growth, length)| {
            mean *= growth;
            let means =
                [1.0, 1.01, 0.99, 1.02, 0.98].map(|seed: f64| mean * seed.powi(length as i32)).to_vec();
            AtLength { jobs: 10_000 << length, means, most: 10.0 }
        })
        .collect();
    LiteralReading { name, stable, lengths: lengths.try_into().ok().unwrap() }
}

fn of_readings() -> Rules {
    const STEADY: [f64; 3] = [1.02, 1.0, 1.01];
    const GROWING: [f64; 3] = [1.5, 1.6, 1.7];
    // First: it grows and then levels off. Second: it is steady and then grows.
    const FILLING: [f64; 3] = [1.8, 1.7, 1.0];
    const BURSTING: [f64; 3] = [1.0, 1.0, 1.7];
    let claims = |stable: [f64; 3], unstable: [f64; 3]| -> Vec<Claim> {
        let claim = |(name, _, is_stable): (&'static str, &str, bool)| {
            reading((name, is_stable), if is_stable { stable } else { unstable }).claim()
        };
        READINGS.map(claim).to_vec()
    };
    let refuted = [(GROWING, STEADY), (FILLING, FILLING), (BURSTING, BURSTING)];
    Rules {
        refuted: refuted.into_iter().flat_map(|(stable, unstable)| claims(stable, unstable)).collect(),
        borne_out: claims(STEADY, GROWING),
    }
}

#[test]
fn stability_is_partly_shown_or_open_where_seeds_differ_too_much() {
    let verdict = |stable: bool, by_seed: [[f64; 2]; 5]| {
        let mut made = reading(("made up", stable), [1.0; 3]);
        // From the shortest runs to half the length, and on to the longest.
        for (seed, [early, last]) in by_seed.into_iter().enumerate() {
            let [shortest, .., half, longest] = &mut made.lengths;
            half.means[seed] = early * shortest.means[seed];
            longest.means[seed] = last * half.means[seed];
        }
        made.claim().verdict
    };
    let clear_but_at_last = [[4.0, 1.1], [4.1, 1.9], [4.2, 1.0], [4.3, 1.8], [4.4, 1.2]];
    assert_eq!(verdict(false, clear_but_at_last), Verdict::Partly);
    let unlike = [[0.5, 0.6], [4.0, 3.0], [0.7, 0.5], [5.0, 2.5], [1.0, 1.2]];
    assert_eq!(verdict(false, unlike), Verdict::Open);
    assert_eq!(verdict(true, unlike), Verdict::Open);
}

pub(crate) fn rules() -> Vec<Rules> {
    let mut rules = vec![of_random(), of_hardness(), of_tight(), of_trace(), of_readings()];
    rules.extend(of_means());
    rules
}

#[test]
fn theorem_is_not_said_to_hold_where_only_a_better_schedule_was_not_found() {
    let result =
        |at_most| InstanceResult { parts: [0.9; 4], at_most: [at_most; 4], ..InstanceResult::default() };
    let verdicts = |results: &[InstanceResult]| {
        let claims = of_instances(1, results).into_iter();
        let bounds = claims.filter(|claim| claim.evidence.contains("by the optimum in"));
        bounds.map(|claim| claim.verdict).collect::<Vec<Verdict>>()
    };
    assert_eq!(verdicts(&[result(0.95), result(0.99)]), [Verdict::Holds; 4]);
    assert_eq!(verdicts(&[result(0.95), result(1.05)]), [Verdict::Partly; 4]);
    assert_eq!(verdicts(&[result(1.05)]), [Verdict::Open; 4]);
    let decided = |kept| InstanceResult { by_optimum: [Some(kept); 4], ..result(1.05) };
    assert_eq!(verdicts(&[result(0.95), decided(true)]), [Verdict::Holds; 4]);
    assert_eq!(verdicts(&[result(0.95), decided(false)]), [Verdict::Fails; 4]);
}
