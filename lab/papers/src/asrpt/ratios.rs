//! Efficiency ratios: figures 5 to 8 by setting, figure 9 over time, and the claims about ratios.

use super::WORDS;
use super::constants::constants;
use super::counterexample::{self, BurstRatios};
use super::runs::{AsrptRuns, PROVED, SCENARIOS, SCHEDULERS, STEP, STEPS};
use crate::prelude::*;
use crate::workload::asrpt::{SETTINGS, SLOTS};

/// Index of the setting of figure 9.
const UNIFORM_SMALL: usize = 3;

/// Returns every pair of setting and scenario.
fn cases() -> impl Iterator<Item = (usize, usize)> {
    (0..SETTINGS.len()).flat_map(|setting| (0..SCENARIOS.len()).map(move |scenario| (setting, scenario)))
}

/// The efficiency ratios, one figure for each setting.
pub(super) fn figures_5_to_8(runs: &AsrptRuns) -> Vec<Section> {
    (0..SETTINGS.len()).map(|setting| ratios_in(runs, setting)).collect()
}

fn ratios_in(runs: &AsrptRuns, setting: usize) -> Section {
    let (number, title) = (5 + setting, SETTINGS[setting].title);
    let ratio = |scenario, scheduler| runs.mean([setting, scenario, scheduler], |kept| kept.ratio);
    let scenarios = 0..SCENARIOS.len();
    let series = SCHEDULERS.iter().enumerate().map(|(scheduler, named)| {
        let bar = |scenario| Some((scenario as f64, ratio(scenario, scheduler)?));
        Series::means(named.title, scenarios.clone().filter_map(bar))
    });
    let names = SCENARIOS.map(|(name, _)| name);
    let chart = WORDS.chart_by_name("figures-5-to-8", holes![number, title], names, series.collect());
    WORDS.section("figures-5-to-8", holes![number, title, seeds = runs.seeds_in_words()], vec![chart])
}

/// The convergence of the ratios.
pub(super) fn figure_9(runs: &AsrptRuns) -> Section {
    let [preemptive, other] = [(0, "preemptive"), (1, "non-preemptive")].map(|case| convergence(runs, case));
    let blocks = vec![preemptive, other, Block::Claims(vec![constant_ratio(runs)])];
    WORDS.section("figure-9", holes![seeds = runs.seeds_in_words()], blocks)
}

fn convergence(runs: &AsrptRuns, (scenario, name): (usize, &str)) -> Block {
    let series = (0..4).map(|scheduler| {
        let slots = |step: usize| f64::from(STEP) * (step + 1) as f64;
        let ratio = |step| runs.mean([UNIFORM_SMALL, scenario, scheduler], |kept| kept.within[step]);
        let points = (0..STEPS).filter_map(|step| Some((slots(step), ratio(step)?.mean)));
        Series::new(SCHEDULERS[scheduler].title, points.collect())
    });
    let scenario = SCENARIOS[scenario].0;
    WORDS.chart("figure-9-{name}", holes![name, scenario], series.collect())
}

/// Index in `SCHEDULERS`.
const ASRPT: usize = 0;
const LRPT: usize = 3;
const DSRPT: usize = SCHEDULERS.len() - 1;

/// Relative change over a doubling of T below which a ratio counts as constant. A ratio that grows like
/// the logarithm of T would change by 12.6 %, one that grows like T by 100 %.
const CONSTANT: f64 = 0.1;

/// Theorems 2 and 3: the ratio of any work-conserving scheduler tends to a constant.
pub(super) fn constant_ratio(runs: &AsrptRuns) -> Claim {
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
    let seen = changes.iter().map(|(_, change)| CaseVerdict::alike(change, CONSTANT));
    let constant = 100.0 * CONSTANT;
    let [preemptive, other] = constants(&SETTINGS[UNIFORM_SMALL]).unwrap_or([f64::NAN; 2]);
    let most = most.unwrap_or_default();
    let holes = holes![half = SLOTS / 2, slots = SLOTS, most, constant, preemptive, other];
    WORDS.claim("constant-ratio", every(seen), holes)
}

/// Claims of sections VI and VII B.
pub(super) fn theorem_4(runs: &AsrptRuns, bursts: &BurstRatios) -> Section {
    let claims = vec![Block::Claims(of_ratios(runs, bursts))];
    WORDS.section("theorem-4", holes![seeds = runs.seeds_in_words()], claims)
}

pub(super) fn of_ratios(runs: &AsrptRuns, bursts: &BurstRatios) -> Vec<Claim> {
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
        bound_of_all(runs, bursts),
        asrpt_against_dsrpt(runs),
        efficiency_ratio("theorem-4", runs, bursts, [DSRPT, counterexample::DSRPT]),
        three_times_the_bound(runs, bursts),
        efficiency_ratio("corollary-2", runs, bursts, [ASRPT, counterexample::ASRPT]),
    ]
}

/// Judges if the ratio of one scheduler is above that of another in every case and for all pairs, and
/// returns the differences in words.
fn above_in_all_cases(runs: &AsrptRuns, pairs: [(usize, usize, usize); 3]) -> (Verdict, String) {
    let differences = cases().flat_map(|(setting, scenario)| {
        pairs.into_iter().filter_map(move |(above, below, named)| {
            let ratios = |scheduler| runs.numbers([setting, scenario, scheduler], |kept| kept.ratio);
            let (above, below) = (ratios(above), ratios(below));
            let (name, cut) = (SETTINGS[setting].name, SCENARIOS[scenario].0);
            let what = format!("{} in {name}, {cut}", SCHEDULERS[named].title);
            (!above.is_empty() && !below.is_empty()).then(|| (what, paired(&above, &below)))
        })
    });
    let differences: Vec<(String, Interval)> = differences.collect();
    let seen: Vec<CaseVerdict> =
        differences.iter().map(|(_, apart)| CaseVerdict::above(apart, 0.0)).collect();
    let words = differences.iter().min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean)).map(|(what, least)| {
        format!(
            "Above by more than the 95 % interval of the seeds' differences in {} of {} comparisons, below in {}; \
             closest: {what}, {:+.3} ± {:.3}.",
            CaseVerdict::Yes.count(&seen),
            differences.len(),
            CaseVerdict::No.count(&seen),
            least.mean,
            least.half_width.unwrap_or(f64::INFINITY)
        )
    });
    (every(seen), words.unwrap_or_default())
}

/// Returns the ratios of a scheduler in all preemptive runs.
fn preemptive(runs: &AsrptRuns, scheduler: usize) -> impl Iterator<Item = f64> {
    (0..SETTINGS.len()).flat_map(move |setting| runs.numbers([setting, 0, scheduler], |kept| kept.ratio))
}

/// Judges Lemma 1 on all runs: no total flow time is below that of SRPT without precedence.
fn bound_of_all(runs: &AsrptRuns, bursts: &BurstRatios) -> Claim {
    let all = cases().flat_map(|(setting, scenario)| {
        (0..SCHEDULERS.len())
            .flat_map(move |scheduler| runs.numbers([setting, scenario, scheduler], |kept| kept.ratio))
    });
    let ratios: Vec<f64> = all.chain(bursts.0.iter().flatten().copied()).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    WORDS.claim("lemma-1", least >= 1.0, holes![runs = ratios.len(), least])
}

fn asrpt_against_dsrpt(runs: &AsrptRuns) -> Claim {
    let pairs = preemptive(runs, ASRPT).zip(preemptive(runs, DSRPT));
    let gaps: Vec<f64> = pairs.map(|(asrpt, dsrpt)| dsrpt - asrpt).collect();
    let worse = gaps.iter().filter(|&&gap| gap < 0.0).count();
    let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    WORDS.claim("asrpt-against-dsrpt", worse == 0, holes![worse, runs = gaps.len(), least])
}

fn three_times_the_bound(runs: &AsrptRuns, bursts: &BurstRatios) -> Claim {
    let [asrpt, dsrpt] = [ASRPT, DSRPT].map(|scheduler| preemptive(runs, scheduler).fold(0.0, f64::max));
    let burst = bursts.to_bound(counterexample::DSRPT);
    let seen = [(asrpt.max(dsrpt) < PROVED).into(), CaseVerdict::below(&burst, PROVED)];
    WORDS.claim("three-times-the-bound", every(seen), holes![asrpt, dsrpt, burst = burst.mean])
}

/// Judges if the ratio of a scheduler to the optimum, which is between the bound and the best known schedule, is at most
/// two: in the settings of the paper, and in bursts, where it has another number.
fn efficiency_ratio(
    key: &str,
    runs: &AsrptRuns,
    bursts: &BurstRatios,
    [scheduler, in_bursts]: [usize; 2],
) -> Claim {
    let of_setting = |setting: usize| {
        let ratios = |scheduler| runs.numbers([setting, 0, scheduler], |kept| kept.ratio);
        let all: Vec<Vec<f64>> = (0..SCHEDULERS.len()).map(ratios).collect();
        let known = |seed: usize| {
            all.iter().filter_map(|ratios| ratios.get(seed)).copied().fold(f64::INFINITY, f64::min)
        };
        let over_known = all[scheduler].iter().enumerate().map(|(seed, ratio)| ratio / known(seed));
        [mean_of(&all[scheduler]), mean_of(&over_known.collect::<Vec<f64>>())]
    };
    let found: Vec<[Interval; 2]> = (0..SETTINGS.len()).map(of_setting).collect();
    let [most, least] = [0, 1].map(|end| found.iter().map(|means| means[end].mean).fold(0.0, f64::max));
    let burst = [bursts.to_bound(in_bursts), bursts.to_best_known(in_bursts)];
    let holes = holes![least, most, burst = burst[1].mean];
    let seen =
        found.iter().chain([&burst]).map(|[at_most, at_least]| CaseVerdict::at_most(at_least, at_most, 2.0));
    WORDS.claim(key, every(seen), holes)
}
