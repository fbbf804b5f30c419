//! Efficiency ratios: figures 5 to 8 by setting, figure 9 over time, their dependence on choices the
//! paper leaves open, the reference's numbers, and the claims about ratios.

use super::WORDS;
use super::runs::{Kept, PROVED, Runs, SCHEDULERS, STEP, STEPS, Scenario};
use crate::judge::{Beside, Known, Model, Seen, every, log_ratio, mean_of, paired, percent};
use crate::words::holes;
use crate::workload::asrpt::{Cut, SETTINGS, SLOTS};
use crate::{Block, Cell, Claim, Compared, Section, Series, Verdict};
use gristmill_scheduler::metrics::Interval;

/// Index of the setting of figure 9.
pub(super) const UNIFORM_SMALL: usize = 3;

/// Returns every pair of setting and scenario.
pub(super) fn cases() -> impl Iterator<Item = (usize, usize)> {
    (0..SETTINGS.len()).flat_map(|setting| (0..Scenario::ALL.len()).map(move |scenario| (setting, scenario)))
}

/// The efficiency ratios, one figure for each setting.
pub(super) fn figures_5_to_8(runs: &Runs) -> Vec<Section> {
    (0..SETTINGS.len()).map(|setting| ratios_in(runs, setting)).collect()
}

fn ratios_in(runs: &Runs, setting: usize) -> Section {
    let (number, title) = (5 + setting, SETTINGS[setting].title);
    let ratio = |scenario, scheduler| runs.mean([setting, scenario, scheduler], |kept| kept.ratio);
    let scenarios = 0..Scenario::ALL.len();
    let series = SCHEDULERS.iter().enumerate().map(|(scheduler, named)| {
        let bar = |scenario| Some((scenario as f64, ratio(scenario, scheduler)?));
        Series::means(named.title, scenarios.clone().filter_map(bar))
    });
    let names = Scenario::ALL.map(Scenario::name);
    let chart = WORDS.chart_by_name("figures-5-to-8", holes![number, title], names, series.collect());
    let all = scenarios.clone().flat_map(|scenario| (0..SCHEDULERS.len()).map(move |s| (scenario, s)));
    let rows = all.filter_map(|(scenario, scheduler)| {
        of_ratio(setting, scenario, scheduler, ratio(scenario, scheduler)?)
    });
    let blocks = vec![chart, Block::Comparison(rows.collect())];
    WORDS.section("figures-5-to-8", holes![number, title, seeds = runs.seeds_in_words()], blocks)
}

/// The convergence of the ratios.
pub(super) fn figure_9(runs: &Runs) -> Section {
    let (mut blocks, mut rows) = (Vec::new(), Vec::new());
    for (scenario, name) in [(0, "preemptive"), (1, "non-preemptive")] {
        blocks.push(convergence(runs, scenario, name));
        rows.extend((0..4).flat_map(|scheduler| {
            let ours = |step| within(runs, scenario, scheduler, step);
            of_convergence((scenario, name), scheduler, ours)
        }));
    }
    blocks.extend([Block::Comparison(rows), Block::Claims(vec![constant_ratio(runs)])]);
    WORDS.section("figure-9", holes![seeds = runs.seeds_in_words()], blocks)
}

/// Returns the ratio within the first slots, up to the end of a step.
fn within(runs: &Runs, scenario: usize, scheduler: usize, step: usize) -> Option<Interval> {
    runs.mean([UNIFORM_SMALL, scenario, scheduler], |kept| kept.within[step])
}

fn convergence(runs: &Runs, scenario: usize, name: &str) -> Block {
    let series = (0..4).map(|scheduler| {
        let slots = |step: usize| f64::from(STEP) * (step + 1) as f64;
        let ratio = |step| within(runs, scenario, scheduler, step);
        let points = (0..STEPS).filter_map(|step| Some((slots(step), ratio(step)?.mean)));
        Series::new(SCHEDULERS[scheduler].title, points.collect())
    });
    let scenario = Scenario::ALL[scenario].name();
    WORDS.chart("figure-9-{name}", holes![name, scenario], series.collect())
}

/// Section on the choices that the paper leaves open, and their effect.
pub(super) fn left_open(runs: &Runs) -> Section {
    let mut rows = Vec::new();
    for (setting, scenario) in cases() {
        for (scheduler, named) in SCHEDULERS.iter().enumerate() {
            let mean = |number: &dyn Fn(&Kept) -> f64| runs.mean([setting, scenario, scheduler], number);
            let Some(drained) = mean(&|kept| kept.ratio) else { continue };
            let within = mean(&|kept| kept.within[STEPS - 1]);
            let change = within.map(|within| 100.0 * (within.mean / drained.mean - 1.0));
            let words =
                [SETTINGS[setting].title, &Scenario::ALL[scenario].name(), named.title].map(Cell::text);
            rows.push(words.into_iter().chain([drained.into(), within.into(), change.into()]).collect());
        }
    }
    let table = WORDS.table("left-open", holes![slots = SLOTS], rows);
    WORDS.section("left-open", holes![], vec![table])
}

/// Index in `SCHEDULERS`.
const ASRPT: usize = 0;
const LRPT: usize = 3;
const DSRPT: usize = SCHEDULERS.len() - 1;

/// Relative change over a doubling of T below which a ratio counts as constant. A ratio that grows like
/// the logarithm of T would change by 12.6 %, one that grows like T by 100 %.
const CONSTANT: f64 = 0.1;

/// Theorems 2 and 3: the ratio of any work-conserving scheduler tends to a constant.
pub(super) fn constant_ratio(runs: &Runs) -> Claim {
    let change = |scenario: usize, scheduler: usize| {
        let at = |step: usize| runs.numbers([UNIFORM_SMALL, scenario, scheduler], |kept| kept.within[step]);
        log_ratio(&at(STEPS - 1), &at(STEPS / 2 - 1))
    };
    let of_scenario = |(scenario, name)| {
        let named = move |scheduler: usize| format!("{} {name}", SCHEDULERS[scheduler].title);
        (0..4).map(move |scheduler| (named(scheduler), change(scenario, scheduler)))
    };
    let changes: Vec<(String, Interval)> =
        [(0, "preemptive"), (1, "non-preemptive")].into_iter().flat_map(of_scenario).collect();
    let largest = changes.iter().max_by(|(_, a), (_, b)| a.mean.abs().total_cmp(&b.mean.abs()));
    let most = largest.map(|(name, change)| format!("that of {name}, changes by {}", percent(change)));
    let seen = changes.iter().map(|(_, change)| Seen::alike(change, CONSTANT));
    let constant = 100.0 * CONSTANT;
    let holes = holes![half = SLOTS / 2, slots = SLOTS, most = most.unwrap_or_default(), constant];
    WORDS.claim("constant-ratio", every(seen), holes)
}

/// Claims of sections VI and VII B.
pub(super) fn theorem_4(runs: &Runs) -> Section {
    let claims = vec![Block::Claims(of_ratios(runs))];
    WORDS.section("theorem-4", holes![seeds = runs.seeds_in_words()], claims)
}

pub(super) fn of_ratios(runs: &Runs) -> Vec<Claim> {
    // The scheduler with the larger ratio, the one with the smaller ratio, and the one that names the
    // comparison.
    let worse_than_asrpt = [1, 2, 3].map(|rival| (rival, ASRPT, rival));
    let better_than_lrpt = [0, 1, 2].map(|other| (LRPT, other, other));
    let of_pairs = |key: &str, pairs: [(usize, usize, usize); 3]| {
        let (verdict, found) = above_in_all_cases(runs, pairs);
        WORDS.claim(key, verdict, holes![found])
    };
    vec![
        of_pairs("asrpt-is-best", worse_than_asrpt),
        of_pairs("lrpt-is-worst", better_than_lrpt),
        asrpt_against_dsrpt(runs),
        three_times_the_bound(runs),
        ratio_of_two(runs),
    ]
}

/// Judges if the ratio of one scheduler is above that of another in every case and for all pairs, and
/// returns the differences in words.
fn above_in_all_cases(runs: &Runs, pairs: [(usize, usize, usize); 3]) -> (Verdict, String) {
    let differences = cases().flat_map(|(setting, scenario)| {
        pairs.into_iter().filter_map(move |(above, below, named)| {
            let ratios = |scheduler| runs.numbers([setting, scenario, scheduler], |kept| kept.ratio);
            let (above, below) = (ratios(above), ratios(below));
            let (name, cut) = (SETTINGS[setting].name, Scenario::ALL[scenario].name());
            let what = format!("{} in {name}, {cut}", SCHEDULERS[named].title);
            (!above.is_empty() && !below.is_empty()).then(|| (what, paired(&above, &below)))
        })
    });
    let differences: Vec<(String, Interval)> = differences.collect();
    let seen: Vec<Seen> = differences.iter().map(|(_, apart)| Seen::above(apart, 0.0)).collect();
    let words = differences.iter().min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean)).map(|(what, least)| {
        format!(
            "Above by more than the 95 % interval of the seeds' differences in {} of {} comparisons, below in {}; \
             closest: {what}, {:+.3} ± {:.3}.",
            Seen::Yes.count(&seen),
            differences.len(),
            Seen::No.count(&seen),
            least.mean,
            least.half_width.unwrap_or(f64::INFINITY)
        )
    });
    (every(seen), words.unwrap_or_default())
}

/// Returns the ratios of a scheduler in all preemptive runs.
fn preemptive(runs: &Runs, scheduler: usize) -> impl Iterator<Item = f64> {
    (0..SETTINGS.len()).flat_map(move |setting| runs.numbers([setting, 0, scheduler], |kept| kept.ratio))
}

fn asrpt_against_dsrpt(runs: &Runs) -> Claim {
    let pairs = preemptive(runs, ASRPT).zip(preemptive(runs, DSRPT));
    let gaps: Vec<f64> = pairs.map(|(asrpt, dsrpt)| dsrpt - asrpt).collect();
    let worse = gaps.iter().filter(|&&gap| gap < 0.0).count();
    let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    WORDS.claim("asrpt-against-dsrpt", worse == 0, holes![worse, runs = gaps.len(), least])
}

fn three_times_the_bound(runs: &Runs) -> Claim {
    let [asrpt, dsrpt] = [ASRPT, DSRPT].map(|scheduler| preemptive(runs, scheduler).fold(0.0, f64::max));
    WORDS.claim("three-times-the-bound", asrpt.max(dsrpt) < PROVED, holes![asrpt, dsrpt])
}

/// Judges the ratio to the optimum, which is between the bound and the best known schedule.
fn ratio_of_two(runs: &Runs) -> Claim {
    let of_setting = |setting: usize| {
        let ratios = |scheduler| runs.numbers([setting, 0, scheduler], |kept| kept.ratio);
        let all: Vec<Vec<f64>> = (0..SCHEDULERS.len()).map(ratios).collect();
        let known = |seed: usize| {
            all.iter().filter_map(|ratios| ratios.get(seed)).copied().fold(f64::INFINITY, f64::min)
        };
        let over_known = all[ASRPT].iter().enumerate().map(|(seed, ratio)| ratio / known(seed));
        [mean_of(&all[ASRPT]), mean_of(&over_known.collect::<Vec<f64>>())]
    };
    let found: Vec<[Interval; 2]> = (0..SETTINGS.len()).map(of_setting).collect();
    let seen = found.iter().map(|[at_most, at_least]| Seen::at_most(at_least, at_most, 2.0));
    let [most, least] = [0, 1].map(|end| found.iter().map(|means| means[end].mean).fold(0.0, f64::max));
    WORDS.claim("ratio-of-two", every(seen), holes![least, most])
}

/// Means and half widths of an independent reference implementation over 30 seeds, by setting and scheduler.
type References = [[(f64, f64); 4]; 4];

/// Ratios of DSRPT by setting.
const REFERENCE_DSRPT: [(f64, f64); 4] = [(1.48, 0.029), (1.889, 0.032), (1.42, 0.029), (1.568, 0.03)];

/// Ratios of ASRPT, FIFO, Fair and LRPT by setting, for each scenario in the order of [`Scenario::ALL`].
const REFERENCES: [References; 4] = [
    [
        [(1.452, 0.027), (2.9, 0.102), (2.523, 0.109), (6.535, 0.89)],
        [(1.53, 0.025), (2.149, 0.056), (2.424, 0.077), (7.292, 0.897)],
        [(1.388, 0.028), (2.13, 0.042), (2.256, 0.029), (3.237, 0.207)],
        [(1.404, 0.025), (1.524, 0.01), (2.111, 0.026), (3.587, 0.212)],
    ],
    [
        [(6.402, 0.286), (6.704, 0.233), (6.889, 0.215), (8.716, 0.448)],
        [(3.289, 0.105), (3.732, 0.065), (3.801, 0.055), (8.126, 0.843)],
        [(5.623, 0.327), (5.73, 0.309), (6.051, 0.263), (6.379, 0.188)],
        [(2.865, 0.119), (2.966, 0.106), (3.317, 0.079), (4.471, 0.077)],
    ],
    [
        [(10.272, 0.462), (10.484, 0.417), (10.438, 0.424), (11.725, 0.396)],
        [(4.42, 0.14), (4.806, 0.089), (4.819, 0.082), (8.217, 0.445)],
        [(8.603, 0.384), (8.705, 0.369), (8.76, 0.355), (9.165, 0.29)],
        [(3.729, 0.139), (3.824, 0.129), (4.137, 0.113), (5.193, 0.051)],
    ],
    [
        [(3.067, 0.072), (3.525, 0.042), (3.869, 0.058), (6.157, 0.637)],
        [(2.05, 0.057), (2.551, 0.043), (2.701, 0.07), (7.096, 1.068)],
        [(2.603, 0.116), (2.796, 0.095), (3.352, 0.065), (3.907, 0.09)],
        [(1.717, 0.049), (1.858, 0.032), (2.313, 0.015), (3.951, 0.201)],
    ],
];

/// Slots of the reference's convergence.
const REFERENCE_SLOTS: [u32; 6] = [50, 100, 200, 300, 400, 500];

/// Ratios of the reference within the first slots, by preemptive or even, then by scheduler.
const REFERENCE_WITHIN: [[[f64; 6]; 4]; 2] = [
    [
        [1.48, 1.43, 1.41, 1.40, 1.40, 1.40],
        [1.54, 1.53, 1.53, 1.52, 1.52, 1.52],
        [1.96, 2.04, 2.08, 2.10, 2.11, 2.11],
        [2.70, 3.19, 3.46, 3.61, 3.62, 3.58],
    ],
    [
        [3.09, 2.95, 2.89, 2.82, 2.83, 2.85],
        [3.13, 3.03, 2.98, 2.93, 2.93, 2.95],
        [3.35, 3.32, 3.30, 3.27, 3.28, 3.30],
        [3.87, 4.15, 4.35, 4.41, 4.44, 4.44],
    ],
];

/// Largest difference of ratios of drawn cuts where many jobs have fewer than ten units of reduce work.
const DRAWN_GAP: f64 = 0.1;

fn reference(setting: usize, scenario: usize, scheduler: usize) -> Option<(f64, f64)> {
    match SCHEDULERS[scheduler].title {
        "DSRPT" => (scenario == 0).then(|| REFERENCE_DSRPT[setting]),
        _ => Some(REFERENCES[scenario][setting][scheduler]),
    }
}

/// Number of seeds of the reference.
const SEEDS: u64 = 30;

/// Compares the ratio of a scheduler in a setting and scenario; `None` where it does not run.
pub(super) fn of_ratio(
    setting: usize,
    scenario: usize,
    scheduler: usize,
    ours: Interval,
) -> Option<Compared> {
    let what = format!("{}, {}", SCHEDULERS[scheduler].title, Scenario::ALL[scenario].name());
    let drawn = matches!(Scenario::ALL[scenario], Scenario::NonPreemptive(Cut::Even | Cut::Random));
    let cut = Model { gap: [0.0, DRAWN_GAP], why: WORDS.note("drawn", holes![]) };
    let model = (SETTINGS[setting].name == "exp-small" && drawn).then_some(&cut);
    let known = Known::mean(reference(setting, scenario, scheduler)?, SEEDS).rounded_to(3);
    Some(Beside::mean(what, ours, known).model(model).judged())
}

/// Compares the ratios of a scheduler within the first slots, in the setting of figure 9. `ours` is
/// indexed by step.
pub(super) fn of_convergence(
    (scenario, name): (usize, &str),
    scheduler: usize,
    ours: impl Fn(usize) -> Option<Interval>,
) -> Vec<Compared> {
    let half_width = REFERENCES[scenario][UNIFORM_SMALL][scheduler].1;
    let rows =
        REFERENCE_SLOTS.iter().zip(REFERENCE_WITHIN[scenario][scheduler]).filter_map(|(slots, ratio)| {
            let what = format!("{}, {name}, T = {slots}", SCHEDULERS[scheduler].title);
            let known = Known::mean((ratio, half_width), SEEDS).rounded_to(2);
            let beside = Beside::mean(what, ours((slots / STEP) as usize - 1)?, known);
            Some(beside.note(WORDS.note("half-width", holes![])).judged())
        });
    rows.collect()
}
