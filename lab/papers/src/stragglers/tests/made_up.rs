//! Made-up results that refute and that support the claims of this thesis.

use super::super::simulated::{self, SimulatedPlacement};
use super::super::{equal, equations, fitted, lemmas, numbers, sojourn, splits};
use crate::Claim;
use crate::tests::refuted::{Rules, only};
use gristmill_scheduler::queueing::sizing::WorkerMix;

fn one(refuted: Claim, borne_out: Claim) -> Rules {
    Rules { refuted: vec![refuted], borne_out: vec![borne_out] }
}

/// Returns a mix of slow and fast workers.
fn mix(slow: u32, fast: u32) -> Option<WorkerMix> {
    Some(WorkerMix { counts: vec![slow, fast], mean: 1.0, cost: 0.0 })
}

/// Returns the claims about a stream with this time under the fair split, and 1 under all others.
fn streams(fair: f64) -> Vec<Claim> {
    let measured = |placement: &'static str| {
        let time = if placement == "fair-split" { fair } else { 1.0 };
        SimulatedPlacement {
            placement,
            by_rate: vec![(5.0, vec![time, 1.01 * time]), (10.0, vec![time, 0.99 * time])],
        }
    };
    simulated::of_placements(
        &["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "pull"].map(measured),
    )
}

/// Returns the claims about three seeds with about these ratios of slow and fast workers' times, by split.
fn spreads(of: [f64; 4]) -> Vec<Claim> {
    simulated::of_splits(&of.map(|ratio| [1.0, 1.005, 0.995].map(|factor| factor * ratio).to_vec()))
}

fn of_equations() -> Rules {
    let all = |zero: f64, off: f64, zeros: u32, lost: f64| {
        vec![
            equations::transform("equation-32", [off, 0.0]),
            equations::transform("equation-33", [off, 0.0]),
            equations::holds_for_every_delay([zero, 0.5, 0.5], 0.0),
            equations::is_kingmans([0.0, off]),
            equations::has_its_minimum(zeros, 18),
            equations::can_be_computed(lost),
        ]
    };
    Rules { refuted: all(f64::NAN, 2.25, 18, 54.0), borne_out: all(0.5, 0.0, 0, f64::NAN) }
}

fn of_lemmas() -> Rules {
    let tails = |ratios: [f64; 2]| {
        let cases = [("one".to_owned(), [1.0, 1.0]), ("other".to_owned(), ratios)];
        ["lemma-1", "lemma-2"].map(|key| lemmas::tails_meet(key, &cases)).to_vec()
    };
    let mut refuted = tails([1.0, 1.2]);
    let mut borne_out = tails([1.001, 1.0]);
    refuted.extend([[[2.0, 1.9], [1.0, 1.0]], [[1.0, 1.0], [2.0, 1.9]]].map(lemmas::is_sufficient));
    borne_out.push(lemmas::is_sufficient([[1.0, 1.0], [1.0, 1.1]]));
    Rules { refuted, borne_out }
}

/// Rules on the smallest and largest excess over the optimum of the eight splits.
fn of_splits() -> Rules {
    let all = |nearly: f64, negative: f64, far: f64| {
        let mut excesses = vec![(0.0, nearly); 8];
        excesses[2].0 = negative;
        let mut claims = splits::bound_by_memory(&excesses).unwrap().to_vec();
        excesses[2].1 = far;
        claims.extend(splits::bound_by_processors(&excesses));
        claims
    };
    let mut refuted = all(0.2, 0.0, 0.01);
    // Each split that should be nearly the optimum is far from it on its own: by memory without negative
    // rates and as printed, by processors.
    for place in [2, 3, 4, 5, 6] {
        let mut excesses = vec![(0.0, 0.0); 8];
        excesses[place].1 = 0.2;
        refuted.extend(only(splits::bound_by_memory(&excesses).unwrap().to_vec(), "Bound by memory"));
    }
    for place in [1, 5] {
        let mut excesses = vec![(0.0, 0.0); 8];
        excesses[place].1 = 0.2;
        refuted.extend(only(splits::bound_by_processors(&excesses).to_vec(), "Bound by processors (D"));
    }
    Rules { refuted, borne_out: all(0.0, -0.1, 0.5) }
}

/// Rules on the budgets of chapter 7, smallest first.
fn of_mixes() -> Rules {
    let rising = [mix(10, 0), mix(10, 0), mix(0, 50)];
    let falling = [mix(0, 10), mix(0, 10), mix(50, 0)];
    one(numbers::switch(5.0, &falling), numbers::switch(5.0, &rising))
}

pub(crate) fn rules() -> Vec<Rules> {
    vec![
        Rules {
            refuted: [(0.06, 0.01), (0.01, 0.06)].map(fitted::rates_recovered).to_vec(),
            borne_out: vec![fitted::rates_recovered((0.01, 0.01))],
        },
        one(fitted::small_errors(0.06), fitted::small_errors(0.01)),
        Rules {
            refuted: {
                let mut refuted = equal::of_growth(0.1, 40, 2.0, [5.0, 4.0]);
                let beyond = "Beyond about 10 workers";
                refuted.extend(only(equal::of_growth(1e-12, 40, 1.0, [4.0, 5.0]), beyond));
                refuted.extend(only(equal::of_growth(1e-12, 8, 1.0, [5.0, 4.0]), beyond));
                refuted
            },
            borne_out: equal::of_growth(1e-12, 8, 1.0, [4.0, 5.0]),
        },
        Rules {
            refuted: {
                let mut refuted = sojourn::of_minima(&[40.0, 30.0, 20.0], false);
                // It rises, but is at the upper end of the search: there may be no minimum.
                refuted.extend(only(sojourn::of_minima(&[20.0, 30.0, 800.0], true), "There is a best"));
                refuted
            },
            borne_out: sojourn::of_minima(&[20.0, 30.0, 40.0], true),
        },
        one(sojourn::lowest_of_all([false, false], 3, 10), sojourn::lowest_of_all([true, true], 3, 10)),
        Rules {
            refuted: {
                let mut refuted = spreads([1.2, 1.3, 1.5, 3.0]);
                // Only fair is out of order, only pure-deterministic, or pure-stochastic is not nearly equal.
                for spread in [[1.2, 1.3, 1.05, 1.1], [3.0, 1.04, 1.05, 1.1], [3.0, 1.3, 1.2, 1.25]] {
                    refuted.extend(only(spreads(spread), "Times at slow and fast"));
                }
                refuted
            },
            borne_out: spreads([3.0, 1.3, 1.05, 1.1]),
        },
        of_splits(),
        Rules {
            refuted: vec![
                splits::half_as_good_again([2.0, 3.0], 1.03),
                // This advantage occurs at one rate, not on average.
                splits::half_as_good_again([9.0, 12.0], 1.6),
            ],
            borne_out: vec![splits::half_as_good_again([51.2, 12.0], 1.6)],
        },
        one(
            splits::within_bounds(false, 63, [3.0, 2.0, 9.0]),
            splits::within_bounds(true, 63, [2.0, 3.0, 9.0]),
        ),
        one(numbers::knee(&[89, 300]), numbers::knee(&[89, 57])),
        of_mixes(),
        Rules { refuted: streams(0.5), borne_out: streams(2.0) },
        of_equations(),
        of_lemmas(),
    ]
}
