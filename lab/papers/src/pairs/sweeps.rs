//! Figures 2 and 3: effect of the step, the weight and the number of groups.

use super::offline::{NUMBERS, averages_of, describe};
use super::sweeps_claims::{of_figure_2, of_figure_3};
use super::{ALPHA, DELTA, MEAN, WORDS, title};
use crate::judge::{log_ratio, mean_of};
use crate::words::holes;
use crate::{Block, Context, Section, Series};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::policy::pairs::{Averages, Rule};
use gristmill_scheduler::workload::pairs::Sizes;

/// Distributions of the sweeps: a mild one and a heavy-tailed one.
pub(super) const SIZES: [Sizes; 2] = [Sizes::Uniform, Sizes::Google];
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
    sizes: Sizes,
    jobs: usize,
    seeds: Vec<u64>,
}

impl Setting {
    fn new(context: &Context<'_>, sizes: Sizes) -> Self {
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

    fn curve(&self, name: &str, xs: &[f64], rule: impl Fn(f64) -> Rule) -> Curve {
        let rules: Vec<Rule> = xs.iter().map(|&x| rule(x)).collect();
        let outcomes = averages_of(&rules, self.sizes, self.jobs, &self.seeds);
        let point = |averages: &Vec<Averages>| {
            NUMBERS.map(|(_, number)| averages.iter().map(number).collect::<Vec<f64>>())
        };
        Curve { name: name.to_owned(), xs: xs.to_vec(), points: outcomes.iter().map(point).collect() }
    }
}

/// Charts, one for each number of [`NUMBERS`].
fn charts(figure: &str, sizes: Sizes, x: &str, curves: &[Curve]) -> Vec<Block> {
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
    let rules: [fn(f64) -> Rule; 4] = [
        |delta| Rule::Pair { delta },
        |delta| Rule::Couple { delta },
        |delta| Rule::Generalized { delta, alpha: ALPHA },
        |delta| Rule::NewCouple { delta },
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
            setting.curve(&format!("Group-based, k = {k}"), &alphas, |alpha| Rule::Group { alpha, k })
        };
        let generalized =
            setting.curve("Generalized", &alphas, |alpha| Rule::Generalized { delta: DELTA, alpha });
        let matched = setting.curve("Match-based", &alphas, |alpha| Rule::Match { alpha });
        [generalized, group(5), group(20), group(80), matched]
    });
    let groups = GROUPS.map(|k| k as f64);
    let by_k = settings.each_ref().map(|setting| {
        setting.curve("Group-based", &groups, |k| Rule::Group { alpha: ALPHA, k: k as usize })
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
