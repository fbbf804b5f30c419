//! Efficiency ratios: figures 5 to 8 by setting, figure 9 over time, and their dependence on choices the
//! paper leaves open.

use super::runs::{Kept, Runs, SCHEDULERS, STEP, STEPS, Scenario};
use super::{WORDS, claims, reference};
use crate::words::holes;
use crate::{Block, Cell, Section, Series};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::asrpt::{SETTINGS, SLOTS};

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
        reference::of_ratio(setting, scenario, scheduler, ratio(scenario, scheduler)?)
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
            reference::of_convergence((scenario, name), scheduler, ours)
        }));
    }
    blocks.extend([Block::Comparison(rows), Block::Claims(vec![claims::constant_ratio(runs)])]);
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
