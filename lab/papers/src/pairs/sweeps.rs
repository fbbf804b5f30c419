//! Figures 2 and 3: effect of the step, the weight and the number of groups; and the claims about it.

use super::WORDS;
use super::offline::{NUMBERS, averages_of};
use super::rules::{ALPHA, DELTA, MEAN, describe, title};
use crate::prelude::*;
use crate::workload::pairs::SizeLaw;
use gristmill_scheduler::policy::pairs::{Averages, PairsRule};
use std::ops::RangeInclusive;

/// Distributions of the sweeps: a mild one and a heavy-tailed one.
pub(super) const SIZES: [SizeLaw; 2] = [SizeLaw::Uniform, SizeLaw::Google];
/// Steps, in seconds.
pub(super) const STEPS: [f64; 13] =
    [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 10.0, 20.0, 40.0, 100.0];
/// Numbers of groups.
pub(super) const GROUPS: [usize; 9] = [1, 2, 5, 10, 20, 40, 60, 100, 200];
/// One curve: a name, and the three numbers of [`NUMBERS`] at every point of the axis.
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) xs: Vec<f64>,
    /// Samples of each metric, one for each seed, on the same jobs at every point.
    pub(super) points: Vec<[Vec<f64>; 3]>,
}

impl Curve {
    fn interval(&self, metric: usize, at: usize) -> Interval {
        mean_of(&self.points[at][metric])
    }

    pub(super) fn value(&self, metric: usize, at: usize) -> f64 {
        self.interval(metric, at).mean
    }

    /// Returns the index at which the metric is smallest, among the points that satisfy the condition.
    pub(super) fn least_where(&self, metric: usize, wanted: impl Fn(f64) -> bool) -> Option<usize> {
        let places = (0..self.xs.len()).filter(|&at| wanted(self.xs[at]));
        places.min_by(|&a, &b| self.value(metric, a).total_cmp(&self.value(metric, b)))
    }

    /// Returns the excess of a metric at one point over that at another, as the logarithm of the ratio,
    /// seed by seed.
    pub(super) fn above(&self, metric: usize, one: usize, other: usize) -> Interval {
        log_ratio(&self.points[one][metric], &self.points[other][metric])
    }

    pub(super) fn place(&self, x: f64) -> usize {
        self.xs.iter().position(|&other| other == x).unwrap_or(0)
    }

    /// Returns the point at which the metric is smallest, and its value there.
    pub(super) fn least(&self, metric: usize) -> (f64, f64) {
        let at = self.least_where(metric, |_| true);
        at.map_or((f64::NAN, f64::NAN), |at| (self.xs[at], self.value(metric, at)))
    }

    pub(super) fn at(&self, metric: usize, x: f64) -> f64 {
        self.xs.iter().position(|&other| other == x).map_or(f64::NAN, |at| self.value(metric, at))
    }

    pub(super) fn last(&self, metric: usize) -> f64 {
        self.value(metric, self.xs.len() - 1)
    }
}

struct Setting {
    sizes: SizeLaw,
    jobs: usize,
    seeds: Vec<u64>,
}

impl Setting {
    fn new(context: &Context<'_>, sizes: SizeLaw) -> Self {
        let (jobs, runs) = (context.scaled(60, 200, 200), context.scaled(3, 60, 100));
        Self { sizes, jobs, seeds: context.seeds(runs) }
    }

    fn in_words(&self) -> String {
        format!(
            "{} jobs at time 0, mean map time {MEAN} s, {} seeds from {} on.",
            self.jobs,
            self.seeds.len(),
            self.seeds.first().copied().unwrap_or_default()
        )
    }

    fn curve(&self, name: &str, xs: &[f64], rule: impl Fn(f64) -> PairsRule) -> Curve {
        let rules: Vec<PairsRule> = xs.iter().map(|&x| rule(x)).collect();
        let outcomes = averages_of(&rules, self.sizes, self.jobs, &self.seeds);
        let point = |averages: &Vec<Averages>| {
            NUMBERS.map(|(_, number)| averages.iter().map(number).collect::<Vec<f64>>())
        };
        Curve { name: name.to_owned(), xs: xs.to_vec(), points: outcomes.iter().map(point).collect() }
    }
}

/// Charts, one for each number of [`NUMBERS`].
fn charts(figure: &str, sizes: SizeLaw, x: &str, curves: &[Curve]) -> Vec<Block> {
    let chart = |number: usize| {
        let metric = NUMBERS[number].0;
        let series = curves.iter().map(|curve| {
            let means = curve.xs.iter().enumerate().map(|(at, &x)| (x, curve.interval(number, at)));
            Series::means(&*curve.name, means)
        });
        let label = format!("average {metric}, s");
        let holes = holes![figure, metric, name = sizes.name(), label, sizes = describe(sizes), x];
        WORDS.chart("sweeps", holes, series.collect())
    };
    (0..NUMBERS.len()).map(chart).collect()
}

pub(super) fn figure_2(context: &Context<'_>) -> Section {
    let settings = SIZES.map(|sizes| Setting::new(context, sizes));
    let rules: [fn(f64) -> PairsRule; 4] = [
        |delta| PairsRule::Pair { delta },
        |delta| PairsRule::Couple { delta },
        |delta| PairsRule::Generalized { delta, alpha: ALPHA },
        |delta| PairsRule::NewCouple { delta },
    ];
    let all =
        settings.each_ref().map(|setting| rules.map(|rule| setting.curve(title(&rule(DELTA)), &STEPS, rule)));
    let panels = SIZES.iter().zip(&all);
    let charts = panels.flat_map(|(&sizes, curves)| charts("figure-2", sizes, "log: step delta, s", curves));
    // Generalized represents the three policies that the figure shows.
    let claims = Block::Claims(of_figure_2([&all[0][2], &all[1][2]]));
    let blocks = charts.chain([claims]).collect();
    WORDS.section("figure-2", holes![setting = settings[0].in_words()], blocks)
}

pub(super) fn figure_3(context: &Context<'_>) -> Section {
    let settings = SIZES.map(|sizes| Setting::new(context, sizes));
    let alphas: Vec<f64> = (0..=10).map(|tenths| f64::from(tenths) / 10.0).collect();
    let by_alpha = settings.each_ref().map(|setting| {
        let group = |k: usize| {
            setting.curve(&format!("Group-based, k = {k}"), &alphas, |alpha| PairsRule::Group { alpha, k })
        };
        let generalized =
            setting.curve("Generalized", &alphas, |alpha| PairsRule::Generalized { delta: DELTA, alpha });
        let matched = setting.curve("Match-based", &alphas, |alpha| PairsRule::Match { alpha });
        [generalized, group(5), group(20), group(80), matched]
    });
    let groups = GROUPS.map(|k| k as f64);
    let by_k = settings.each_ref().map(|setting| {
        setting.curve("Group-based", &groups, |k| PairsRule::Group { alpha: ALPHA, k: k as usize })
    });
    let mut blocks = Vec::new();
    for (place, &sizes) in SIZES.iter().enumerate() {
        blocks.extend(charts("figure-3-alpha", sizes, "weight alpha", &by_alpha[place]));
        let by_k = std::slice::from_ref(&by_k[place]);
        blocks.extend(charts("figure-3-groups", sizes, "log: number of groups k", by_k));
    }
    blocks.push(Block::Claims(of_figure_3(&by_alpha, &by_k)));
    WORDS.section("figure-3", holes![setting = settings[0].in_words()], blocks)
}

/// Indices of the numbers.
const WAITING: usize = 0;
const EXECUTION: usize = 1;
const MAKESPAN: usize = 2;

/// Relative change below which a parameter does not matter much, and relative distance to the best below
/// which a value is good.
const SMALL: f64 = 0.02;

/// Smallest relative difference that counts as "much longer".
const MUCH: f64 = 0.1;

/// Curves of one policy, by index in [`SIZES`].
pub(super) type Both<'a> = [&'a Curve; 2];

/// Judges a claim on the curve of each distribution separately.
fn of_each(key: &str, curves: Both<'_>, found: impl Fn(&Curve) -> (CaseVerdict, Vec<Filled>)) -> Claim {
    let found = curves.map(found);
    let seen = found.each_ref().map(|(seen, _)| *seen);
    let with_name = |(sizes, (_, mut holes)): (&_, (CaseVerdict, Vec<Filled>))| {
        holes.extend_from_slice(holes![sizes = describe(*sizes)]);
        holes
    };
    let cases: Vec<Vec<Filled>> = SIZES.iter().zip(found).map(with_name).collect();
    WORDS.claim_of_cases(key, by_case(seen), &cases)
}

/// True if a number at an end of the axis is above the smallest one between both ends.
fn above_the_middle(curve: &Curve, number: usize, end: usize) -> CaseVerdict {
    let (first, last) = (curve.xs[0], curve.xs[curve.xs.len() - 1]);
    let between = curve.least_where(number, |x| first < x && x < last);
    between.map_or(CaseVerdict::Unclear, |least| CaseVerdict::above(&curve.above(number, end, least), 0.0))
}

pub(super) fn of_figure_2(curves: Both<'_>) -> Vec<Claim> {
    let last = |curve: &Curve| curve.xs.len() - 1;
    vec![
        of_each("small-step", curves, |curve| {
            let change = curve.above(WAITING, curve.place(STEPS[0]), curve.place(DELTA));
            let [small, usual] = [STEPS[0], DELTA].map(|step| curve.at(WAITING, step));
            (CaseVerdict::alike(&change, SMALL), holes![small, usual, much = 100.0 * SMALL].into())
        }),
        of_each("large-step", curves, |curve| {
            let longer = curve.above(WAITING, last(curve), curve.place(DELTA));
            let (usual, large) = (curve.at(WAITING, DELTA), curve.last(WAITING));
            (CaseVerdict::above(&longer, MUCH.ln_1p()), holes![usual, large].into())
        }),
        of_each("both-ends", curves, |curve| {
            let longer = [0, last(curve)].map(|end| above_the_middle(curve, EXECUTION, end));
            let (step, least) = curve.least(EXECUTION);
            let (first, last) = (curve.value(EXECUTION, 0), curve.last(EXECUTION));
            (CaseVerdict::all(longer), holes![first, least, step, last].into())
        }),
        of_each("good-steps", curves, |curve| {
            let (step, least) = curve.least(MAKESPAN);
            let [smallest, small, large] = [STEPS[0], 0.01, 0.1].map(|step| curve.at(MAKESPAN, step));
            let largest = curve.last(MAKESPAN);
            (good_steps(curve), holes![smallest, small, large, largest, least, step].into())
        }),
    ]
}

/// True if every step of the range is as good as the best, and neither end of the tested range is. If all
/// steps are equally good, no step counts as good.
fn good_steps(curve: &Curve) -> CaseVerdict {
    let last = curve.xs.len() - 1;
    let Some(best) = curve.least_where(MAKESPAN, |_| true) else { return CaseVerdict::Unclear };
    let above = |at: usize| curve.above(MAKESPAN, at, best);
    let inside = (0..=last).filter(|&at| (0.01..=0.1).contains(&curve.xs[at]));
    let good = inside.map(|at| CaseVerdict::below(&above(at), SMALL.ln_1p()));
    let poor = [0, last].map(|end| CaseVerdict::above(&above(end), SMALL.ln_1p()));
    CaseVerdict::all(good.chain(poor))
}

/// Returns the claims by weight for Generalized, Group with k of 5, 20 and 80, and Match, and by number
/// of groups for Group.
pub(super) fn of_figure_3(by_alpha: &[[Curve; 5]; 2], by_k: &[Curve; 2]) -> Vec<Claim> {
    let of = |curve: usize| [&by_alpha[0][curve], &by_alpha[1][curve]];
    // Match, and the policies it is compared with.
    let policies = [("Match", of(4)), ("Generalized", of(0)), ("Group", of(2))];
    let at_alpha = |curve: &Curve| curve.points[curve.place(ALPHA)][MAKESPAN].clone();
    vec![
        waits_least("generalized-waits", of(0), 0.4..=0.8),
        waits_least("match-waits", of(4), 0.0..=0.4),
        beside_match(
            "match-depends",
            policies,
            |one, other| CaseVerdict::less(&swings(other), &swings(one)),
            |curve| format!("{:.0} %", 100.0 * mean_of(&swings(curve)).mean),
        ),
        beside_match(
            "match-makespan",
            policies,
            |one, other| CaseVerdict::less(&at_alpha(one), &at_alpha(other)),
            |curve| format!("{:.1} s", curve.at(MAKESPAN, ALPHA)),
        ),
        groups_in_the_middle(by_k.each_ref()),
    ]
}

fn waits_least(key: &str, curves: Both<'_>, weights: RangeInclusive<f64>) -> Claim {
    of_each(key, curves, |curve| {
        let inside = curve.least_where(WAITING, |alpha| weights.contains(&alpha));
        let outside = curve.least_where(WAITING, |alpha| !weights.contains(&alpha));
        let above = outside.zip(inside).map(|(outside, inside)| curve.above(WAITING, outside, inside));
        let seen = above.map_or(CaseVerdict::Unclear, |above| CaseVerdict::above(&above, 0.0));
        let (alpha, least) = curve.least(WAITING);
        (seen, holes![least, alpha, from = *weights.start(), to = *weights.end()].into())
    })
}

/// Returns the growth of the execution time from its smallest to its largest value, seed by seed.
fn swings(curve: &Curve) -> Vec<f64> {
    let places = 0..curve.xs.len();
    let by_value = |a: &usize, b: &usize| curve.value(EXECUTION, *a).total_cmp(&curve.value(EXECUTION, *b));
    let (least, most) = (places.clone().min_by(by_value), places.max_by(by_value));
    let (Some(least), Some(most)) = (least, most) else { return Vec::new() };
    let [least, most] = [least, most].map(|at| &curve.points[at][EXECUTION]);
    most.iter().zip(least).map(|(most, least)| most / least - 1.0).collect()
}

/// Judges a claim about Match and each of two others, on both distributions.
fn beside_match(
    key: &str,
    policies: [(&str, Both<'_>); 3],
    holds: impl Fn(&Curve, &Curve) -> CaseVerdict,
    value: impl Fn(&Curve) -> String,
) -> Claim {
    let [(_, matched), others @ ..] = policies;
    let seen = [0, 1].map(|at| CaseVerdict::all(others.map(|(_, other)| holds(matched[at], other[at]))));
    let found = policies.map(|(name, [one, other])| format!("{name} {} and {}", value(one), value(other)));
    let [one, other] = SIZES.map(describe);
    WORDS.claim(key, by_case(seen), holes![found = found.join(", "), one, other])
}

fn groups_in_the_middle(curves: Both<'_>) -> Claim {
    of_each("groups", curves, |curve| {
        let last = curve.xs.len() - 1;
        let waits = CaseVerdict::above(&curve.above(WAITING, 0, last), 0.0);
        let executes = CaseVerdict::above(&curve.above(EXECUTION, last, 0), 0.0);
        let worse = [0, last].map(|end| above_the_middle(curve, MAKESPAN, end));
        let (groups, least) = curve.least(MAKESPAN);
        let [few_wait, few_execute] = [WAITING, EXECUTION].map(|number| curve.value(number, 0));
        let [many_wait, many_execute] = [WAITING, EXECUTION].map(|number| curve.last(number));
        let many = curve.xs[last];
        let holes = holes![few_wait, many_wait, many, few_execute, many_execute, least, groups];
        (CaseVerdict::all([waits, executes].into_iter().chain(worse)), holes.into())
    })
}
