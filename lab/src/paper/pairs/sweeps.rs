//! Figures 2 and 3: how the step, the weight and the number of groups matter.

use super::offline::{averages_of, describe};
use super::{ALPHA, DELTA, MEAN, mean, seeds, title};
use crate::paper::{Axis, Block, Chart, ChartKind, Claim, Context, Section, Series, Verdict};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::policy::pairs::{Averages, Rule};
use gristmill_scheduler::workload::pairs::Sizes;

/// Distributions of the sweeps: a mild one and a heavy-tailed one.
const SIZES: [Sizes; 2] = [Sizes::Uniform, Sizes::Google];
/// Steps, in seconds.
const STEPS: [f64; 13] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 10.0, 20.0, 40.0, 100.0];
/// Numbers of groups.
const GROUPS: [usize; 9] = [1, 2, 5, 10, 20, 40, 60, 100, 200];
/// For files, for axes, and how it is taken.
type Metric = (&'static str, &'static str, fn(&Averages) -> f64);

/// What is shown of every setting.
const METRICS: [Metric; 3] = [
    ("waiting", "average waiting, s", |averages| averages.waiting),
    ("execution", "average execution, s", |averages| averages.execution),
    ("makespan", "average makespan, s", |averages| averages.makespan),
];

/// One curve: a name, and for every place on the axis the three metrics.
struct Curve {
    name: String,
    xs: Vec<f64>,
    points: Vec<[Interval; 3]>,
}

impl Curve {
    fn value(&self, metric: usize, at: usize) -> f64 {
        self.points[at][metric].mean
    }

    /// Where the metric is least, and how much that is.
    fn least(&self, metric: usize) -> (f64, f64) {
        let at = (0..self.xs.len()).min_by(|&a, &b| self.value(metric, a).total_cmp(&self.value(metric, b)));
        at.map_or((f64::NAN, f64::NAN), |at| (self.xs[at], self.value(metric, at)))
    }

    fn at(&self, metric: usize, x: f64) -> f64 {
        self.xs.iter().position(|&other| other == x).map_or(f64::NAN, |at| self.value(metric, at))
    }

    fn last(&self, metric: usize) -> f64 {
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
        let (jobs, runs) = (context.scaled(60, 200, 200), context.scaled(3, 24, 100));
        Self { sizes, jobs, seeds: seeds(context, runs) }
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
            METRICS.map(|(_, _, value)| mean(&averages.iter().map(value).collect::<Vec<_>>()))
        };
        Curve { name: name.to_owned(), xs: xs.to_vec(), points: outcomes.iter().map(point).collect() }
    }
}

fn charts(id: &str, sizes: Sizes, x: &Axis, curves: &[Curve]) -> Vec<Block> {
    let chart = |metric: usize| {
        let (name, label, _) = METRICS[metric];
        let series = curves.iter().map(|curve| Series {
            name: curve.name.clone(),
            points: (0..curve.xs.len()).map(|at| (curve.xs[at], curve.value(metric, at))).collect(),
            half_widths: curve.points.iter().map(|point| point[metric].half_width.unwrap_or(0.0)).collect(),
            reference: false,
        });
        Block::Chart(Chart {
            id: format!("{id}-{name}-{}", sizes.name()),
            caption: format!("{label}; sizes {}", describe(sizes)),
            x: x.clone(),
            y: Axis::linear(label),
            kind: ChartKind::Lines,
            series: series.collect(),
        })
    };
    (0..METRICS.len()).map(chart).collect()
}

fn claim(place: &str, statement: &str, found: [bool; 2], evidence: String) -> Claim {
    let verdict = match found {
        [true, true] => Verdict::Holds,
        [false, false] => Verdict::Fails,
        _ => Verdict::Partly,
    };
    Claim { place: place.to_owned(), statement: statement.to_owned(), verdict, evidence }
}

/// One sentence for each distribution.
fn for_both(curves: [&Curve; 2], words: impl Fn(&Curve) -> String) -> String {
    let sentences: Vec<String> = SIZES
        .iter()
        .zip(curves)
        .map(|(&sizes, curve)| format!("{}: {}.", describe(sizes), words(curve)))
        .collect();
    sentences.join(" ")
}

const WAITING: usize = 0;
const EXECUTION: usize = 1;
const MAKESPAN: usize = 2;
/// Differences below this part are small.
const SMALL: f64 = 0.02;

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
    let x = Axis::logarithmic("step delta, s");
    let blocks = SIZES.iter().zip(&all).flat_map(|(&sizes, curves)| charts("figure-2", sizes, &x, curves));
    let mut blocks: Vec<Block> = blocks.collect();
    // Generalized stands for the three that the figure shows.
    let curves = [&all[0][2], &all[1][2]];
    let place = "Section 6.2, figure 2";
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < SMALL;
    blocks.push(Block::Claims(vec![
        claim(
            place,
            "A small step does not matter much for the waiting time.",
            curves.map(|curve| near(curve.at(WAITING, STEPS[0]), curve.at(WAITING, DELTA))),
            for_both(curves, |curve| {
                format!(
                    "waiting {:.1} s with a step of 0.001 s, {:.1} s with 0.1 s (Generalized)",
                    curve.at(WAITING, STEPS[0]),
                    curve.at(WAITING, DELTA)
                )
            }),
        ),
        claim(
            place,
            "A large step makes jobs wait much longer.",
            curves.map(|curve| (1.0 + SMALL) * curve.at(WAITING, DELTA) < curve.last(WAITING)),
            for_both(curves, |curve| {
                format!("waiting {:.1} s with 0.1 s, {:.1} s with 100 s", curve.at(WAITING, DELTA), curve.last(WAITING))
            }),
        ),
        claim(
            place,
            "Steps that are too small and steps that are too large both make the execution longer.",
            curves.map(|curve| {
                let least = (1.0 + SMALL) * curve.least(EXECUTION).1;
                least < curve.value(EXECUTION, 0) && least < curve.last(EXECUTION)
            }),
            for_both(curves, |curve| {
                format!(
                    "execution {:.2} s with 0.001 s, least {:.2} s with {} s, {:.2} s with 100 s",
                    curve.value(EXECUTION, 0),
                    curve.least(EXECUTION).1,
                    curve.least(EXECUTION).0,
                    curve.last(EXECUTION)
                )
            }),
        ),
        claim(
            place,
            "Good steps are from 0.01 to 0.1 s.",
            curves.map(|curve| near(curve.at(MAKESPAN, 0.01).min(curve.at(MAKESPAN, 0.1)), curve.least(MAKESPAN).1)),
            for_both(curves, |curve| {
                format!(
                    "makespan {:.1} s with 0.01 s, {:.1} s with 0.1 s, least {:.1} s with {} s; within 2 % counts as good",
                    curve.at(MAKESPAN, 0.01),
                    curve.at(MAKESPAN, 0.1),
                    curve.least(MAKESPAN).1,
                    curve.least(MAKESPAN).0
                )
            }),
        ),
    ]));
    Section {
        id: "figure-2".to_owned(),
        title: "Figure 2: the step delta".to_owned(),
        text: vec![
            settings[0].in_words(),
            "A step counts against the mean size of a job, which the paper does not \
                    say of its own set; here it is 10 s. With few jobs in a step hardly any pairs form."
                .to_owned(),
        ],
        blocks,
    }
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
    let (x, groups_axis) = (Axis::linear("weight alpha"), Axis::logarithmic("number of groups k"));
    let mut blocks = Vec::new();
    for (place, &sizes) in SIZES.iter().enumerate() {
        blocks.extend(charts("figure-3-alpha", sizes, &x, &by_alpha[place]));
        blocks.extend(charts("figure-3-groups", sizes, &groups_axis, std::slice::from_ref(&by_k[place])));
    }
    blocks.push(Block::Claims(claims_of_figure_3(&by_alpha, &by_k)));
    Section {
        id: "figure-3".to_owned(),
        title: "Figure 3: the weight alpha and the number of groups k".to_owned(),
        text: vec![settings[0].in_words()],
        blocks,
    }
}

fn claims_of_figure_3(by_alpha: &[[Curve; 5]; 2], by_k: &[Curve; 2]) -> Vec<Claim> {
    let place = "Section 6.2, figure 3";
    let of = |curve: usize| [&by_alpha[0][curve], &by_alpha[1][curve]];
    let (generalized, group, matched) = (of(0), of(2), of(4));
    let by_k = [&by_k[0], &by_k[1]];
    let least_waiting = |curve: &Curve| {
        format!("least waiting {:.1} s with alpha {}", curve.least(WAITING).1, curve.least(WAITING).0)
    };
    let swing = |curve: &Curve| {
        let values = curve.points.iter().map(|point| point[EXECUTION].mean);
        values.clone().fold(0.0, f64::max) / values.fold(f64::INFINITY, f64::min) - 1.0
    };
    let below = |matched: &Curve, other: &Curve| matched.at(MAKESPAN, ALPHA) < other.at(MAKESPAN, ALPHA);
    let both = |test: &dyn Fn(usize) -> bool| [test(0), test(1)];
    vec![
        claim(
            place,
            "Generalized waits least with alpha about 0.6.",
            generalized.map(|curve| (0.4..=0.8).contains(&curve.least(WAITING).0)),
            for_both(generalized, least_waiting),
        ),
        claim(
            place,
            "Match waits least with alpha about 0.2.",
            matched.map(|curve| (0.0..=0.4).contains(&curve.least(WAITING).0)),
            for_both(matched, least_waiting),
        ),
        claim(
            place,
            "Alpha matters more for the execution time of Match than of Generalized and Group.",
            both(&|at| swing(generalized[at]).max(swing(group[at])) < swing(matched[at])),
            format!(
                "From its least to its largest the execution time grows by: Match {:.0} % and {:.0} %, Generalized \
                 {:.0} % and {:.0} %, Group {:.0} % and {:.0} % ({} and {}).",
                100.0 * swing(matched[0]),
                100.0 * swing(matched[1]),
                100.0 * swing(generalized[0]),
                100.0 * swing(generalized[1]),
                100.0 * swing(group[0]),
                100.0 * swing(group[1]),
                describe(SIZES[0]),
                describe(SIZES[1])
            ),
        ),
        claim(
            place,
            "Match has a smaller makespan than Generalized and Group (alpha 0.5, k 20).",
            both(&|at| below(matched[at], generalized[at]) && below(matched[at], group[at])),
            format!(
                "Match {:.1} s and {:.1} s, Generalized {:.1} s and {:.1} s, Group {:.1} s and {:.1} s ({} and {}).",
                matched[0].at(MAKESPAN, ALPHA),
                matched[1].at(MAKESPAN, ALPHA),
                generalized[0].at(MAKESPAN, ALPHA),
                generalized[1].at(MAKESPAN, ALPHA),
                group[0].at(MAKESPAN, ALPHA),
                group[1].at(MAKESPAN, ALPHA),
                describe(SIZES[0]),
                describe(SIZES[1])
            ),
        ),
        claim(
            place,
            "With too few groups jobs wait long, with too many they execute long; the makespan is least between.",
            by_k.map(|curve| {
                let (best, least) = curve.least(MAKESPAN);
                let inside = curve.xs[0] < best && best < curve.xs[curve.xs.len() - 1];
                let waits = (1.0 + SMALL) * curve.last(WAITING) < curve.value(WAITING, 0);
                let executes = (1.0 + SMALL) * curve.value(EXECUTION, 0) < curve.last(EXECUTION);
                inside && waits && executes && least < curve.last(MAKESPAN)
            }),
            for_both(by_k, |curve| {
                format!(
                    "waiting {:.1} s with one group and {:.1} s with {}, execution {:.2} s and {:.2} s, least makespan \
                     {:.1} s with k = {}",
                    curve.value(WAITING, 0),
                    curve.last(WAITING),
                    curve.xs[curve.xs.len() - 1],
                    curve.value(EXECUTION, 0),
                    curve.last(EXECUTION),
                    curve.least(MAKESPAN).1,
                    curve.least(MAKESPAN).0
                )
            }),
        ),
    ]
}
