//! Results made up to refute and to bear out what this paper claims.

use super::examples::{not_always_optimal, schedule_is_as_printed};
use super::offline::claims as table_2;
use super::online::{Outcome as StreamOutcome, Times, claims as streams, rules as stream_rules};
use super::sweeps::{Curve, GROUPS, STEPS, claims as sweeps};
use super::theorems::{Found, Tried, of_tried};
use super::{OFFLINE, offline};
use crate::paper::Claim;
use crate::paper::judge::refuted::Rules;
use gristmill_scheduler::bound::optimum::Optimum;
use gristmill_scheduler::policy::pairs::Averages;
use gristmill_scheduler::workload::pairs::Sizes;

/// Three samples about a value.
fn seeds(value: f64) -> Vec<f64> {
    [1.0, 1.001, 0.999].map(|factor| factor * value).to_vec()
}

fn of_examples() -> [Rules; 2] {
    let best = Optimum { order: vec![2, 3, 0, 1, 4, 5], total: 87.0 };
    [
        Rules {
            file: "pairs/examples.rs",
            refuted: vec![not_always_optimal(88.5, 88.5, &[0, 1, 2, 3])],
            borne_out: vec![not_always_optimal(112.0, 88.5, &[0, 2, 3, 1])],
        },
        Rules {
            file: "pairs/examples.rs",
            refuted: vec![schedule_is_as_printed(&best.order, 14.5, &best)],
            borne_out: vec![schedule_is_as_printed(&[2, 3, 0, 1, 5, 4], 14.7, &best)],
        },
    ]
}

fn of_theorems() -> Rules {
    let claims = |worse: usize, pairs: f64| {
        let tried = || Tried { count: 100, worse, ratio: 1.1 };
        let found = Found { pairs: [pairs; 2], optimum: [21.0; 2], order: String::new() };
        of_tried([&tried(), &tried(), &tried(), &tried()], &found)
    };
    Rules { file: "pairs/theorems.rs", refuted: claims(1, 22.0), borne_out: claims(0, 21.0) }
}

/// Averages of each rule of Table 2 by its place there, the best of the paper first.
fn of_table_2() -> Rules {
    let claims = |averages: fn(f64) -> [f64; 3]| -> Vec<Claim> {
        let by_seed = |place: usize| {
            let [waiting, execution, makespan] = averages(place as f64).map(seeds);
            let one = |seed: usize| Averages {
                waiting: waiting[seed],
                execution: execution[seed],
                makespan: makespan[seed],
            };
            (0..3).map(one).collect()
        };
        let rules = (0..OFFLINE.len()).map(by_seed).collect();
        table_2::of(&[offline::Outcome { sizes: Sizes::Uniform, rules }])
    };
    const PAIRWISE: f64 = 8.0;
    Rules {
        file: "pairs/offline/mod.rs",
        refuted: claims(|place| [1.0 + place, 11.0 - place, 11.0 - place]),
        borne_out: claims(|place| {
            [11.0 - place, if place == PAIRWISE { 0.5 } else { 1.0 + place }, 1.0 + place]
        }),
    }
}

fn curve(xs: &[f64], value: impl Fn(f64) -> [f64; 3]) -> Curve {
    let points = xs.iter().map(|&x| value(x).map(seeds)).collect();
    Curve { name: "made up".to_owned(), xs: xs.to_vec(), points }
}

fn of_figure_2() -> Rules {
    let claims = |value: fn(f64) -> [f64; 3]| {
        let one = curve(&STEPS, value);
        sweeps::of_figure_2([&one, &one])
    };
    Rules {
        file: "pairs/sweeps/mod.rs",
        refuted: claims(|step| match step {
            step if step < 0.1 => [20.0, 1.0, 30.0],
            step if step < 100.0 => [10.0, 2.0, if step < 1.0 { 30.0 } else { 10.0 }],
            _ => [5.0, 1.0, 20.0],
        }),
        borne_out: claims(|step| match step {
            step if step < 0.01 => [10.0, 2.0, 20.0],
            step if step < 100.0 => [10.0, 1.0, if step < 1.0 { 10.0 } else { 30.0 }],
            _ => [20.0, 2.0, 30.0],
        }),
    }
}

fn of_figure_3() -> Rules {
    type Value = fn(f64) -> [f64; 3];
    let alphas: Vec<f64> = (0..=10).map(|tenths| f64::from(tenths) / 10.0).collect();
    let groups = GROUPS.map(|k| k as f64);
    let claims = |generalized: Value, group: Value, matched: Value, by_k: Value| {
        let by_alpha = || [generalized, group, group, group, matched].map(|value| curve(&alphas, value));
        sweeps::of_figure_3(&[by_alpha(), by_alpha()], &[curve(&groups, by_k), curve(&groups, by_k)])
    };
    Rules {
        file: "pairs/sweeps/mod.rs",
        refuted: claims(
            |alpha| [1.0 + alpha, 1.0 + alpha, 1.0],
            |alpha| [1.0, 1.0 + alpha, 1.0],
            |alpha| [2.0 - alpha, 1.0, 2.0],
            |k| [1.0 + k, 1.0, 1.0 + k],
        ),
        borne_out: claims(
            |alpha| [1.0 + (alpha - 0.6).abs(), 1.0, 2.0],
            |_| [1.0, 1.0, 2.0],
            |alpha| [1.0 + (alpha - 0.2).abs(), 1.0 + alpha, 1.0],
            |k| [1.0 / k, 1.0 + k, (k / 20.0).ln().abs() + 1.0],
        ),
    }
}

/// Streams whose jobs wait and execute so long under a policy of this name.
fn outcomes(times: fn(&str) -> [f64; 2]) -> Vec<Vec<StreamOutcome>> {
    let one = |(rule, printed): (gristmill_scheduler::policy::pairs::Rule, f64)| {
        let [waiting, execution] = times(rule.name()).map(seeds);
        let run = |seed: usize| {
            vec![Times { arrival: 0.0, waiting: waiting[seed], execution: execution[seed], ratio: 1.0 }]
        };
        StreamOutcome { rule, printed, runs: (0..3).map(run).collect() }
    };
    let all = || stream_rules(0).map(one).into_iter().collect::<Vec<_>>();
    vec![all(), all()]
}

fn of_streams() -> [Rules; 2] {
    let contrary = outcomes(|name| match name {
        "pairwise" => [1.0, 3.0],
        "max-srpt" => [2.0, 0.1],
        "max-diff" | "max-shuffle" => [1.0, 1.0],
        "match" => [20.0, 1.0],
        "o-match" => [40.0, 1.0],
        "group" => [10.0, 1.0],
        "o-group" => [19.0, 1.0],
        _ => [5.0, 1.0],
    });
    let as_claimed = outcomes(|name| match name {
        "pairwise" => [20.0, 0.1],
        "max-srpt" => [6.0, 3.0],
        "max-diff" | "max-shuffle" => [16.0, 1.0],
        "match" => [1.0, 1.0],
        "o-match" => [1.05, 1.0],
        "group" => [2.0, 1.0],
        "o-group" => [2.1, 1.0],
        _ => [5.0, 1.0],
    });
    [
        Rules {
            file: "pairs/online/mod.rs",
            refuted: vec![streams::of_figure_4(&contrary)],
            borne_out: vec![streams::of_figure_4(&as_claimed)],
        },
        Rules {
            file: "pairs/online/mod.rs",
            refuted: streams::of_table_3(&contrary),
            borne_out: streams::of_table_3(&as_claimed),
        },
    ]
}

pub(in crate::paper) fn rules() -> Vec<Rules> {
    let mut rules = vec![of_theorems(), of_table_2(), of_figure_2(), of_figure_3()];
    rules.extend(of_examples());
    rules.extend(of_streams());
    rules
}
