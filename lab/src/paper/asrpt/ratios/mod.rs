//! Efficiency ratios: figures 5 to 8 by setting, figure 9 over time, and what is claimed of them.

pub(super) mod claims;
mod reference;

use super::runs::{Kept, Runs, SCHEDULERS, STEP, STEPS, Scenario};
use crate::paper::{Axis, Block, Cell, Chart, Column, Section, Series, Table};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::asrpt::{SETTINGS, SLOTS};

/// The setting of figure 9.
const UNIFORM_SMALL: usize = 3;

/// Every setting and scenario.
fn cases() -> impl Iterator<Item = (usize, usize)> {
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
        let bars = scenarios.clone().filter_map(|scenario| Some((scenario, ratio(scenario, scheduler)?)));
        let bars: Vec<(usize, Interval)> = bars.collect();
        Series::new(named.title, bars.iter().map(|(scenario, bar)| (*scenario as f64, bar.mean)).collect())
            .with_half_widths(bars.iter().map(|(_, bar)| bar.half_width.unwrap_or(0.0)).collect())
    });
    let names = Scenario::ALL.map(Scenario::name);
    let chart = Chart::bars(
        format!("figure-{number}"),
        format!("Efficiency ratio by scheduler: total flow time over the bound; {title}"),
        [Axis::names("scenario and cut of the reduces", names), Axis::linear("efficiency ratio")],
        series.collect(),
    );
    let all = scenarios.flat_map(|scenario| (0..SCHEDULERS.len()).map(move |s| (scenario, s)));
    let rows = all.filter_map(|(scenario, scheduler)| {
        reference::of_ratio(setting, scenario, scheduler, ratio(scenario, scheduler)?)
    });
    Section::new(
        format!("figure-{number}"),
        format!("Figure {number}: efficiency ratio, {title}"),
        [format!(
            "{}. Total flow time until all jobs have ended, over that of SRPT without precedence.",
            runs.seeds_in_words()
        )],
        vec![Block::Chart(chart), Block::Comparison(rows.collect())],
    )
}

/// The convergence of the ratios.
pub(super) fn figure_9(runs: &Runs) -> Section {
    let (mut blocks, mut rows) = (Vec::new(), Vec::new());
    for (scenario, name) in [(0, "preemptive"), (1, "non-preemptive")] {
        blocks.push(Block::Chart(convergence(runs, scenario, name)));
        rows.extend((0..4).flat_map(|scheduler| {
            let ours = |step| within(runs, scenario, scheduler, step);
            reference::of_convergence((scenario, name), scheduler, ours)
        }));
    }
    blocks.push(Block::Comparison(rows));
    blocks.push(Block::Claims(vec![claims::constant_ratio(runs)]));
    Section::new(
        "figure-9",
        "Figure 9: convergence of efficiency ratios, U[10,50] map, U[10,20] reduce",
        [format!(
            "{}. Flow times count slots up to T only, those of jobs that have not ended included, here and \
             in the bound; the mean of the seeds' ratios is drawn.",
            runs.seeds_in_words()
        )],
        blocks,
    )
}

/// The ratio within the first slots, up to the end of a step.
fn within(runs: &Runs, scenario: usize, scheduler: usize, step: usize) -> Option<Interval> {
    runs.mean([UNIFORM_SMALL, scenario, scheduler], |kept| kept.within[step])
}

fn convergence(runs: &Runs, scenario: usize, name: &str) -> Chart {
    let series = (0..4).map(|scheduler| {
        let slots = |step: usize| f64::from(STEP) * (step + 1) as f64;
        let ratio = |step| within(runs, scenario, scheduler, step);
        let points = (0..STEPS).filter_map(|step| Some((slots(step), ratio(step)?.mean)));
        Series::new(SCHEDULERS[scheduler].title, points.collect())
    });
    Chart::lines(
        format!("figure-9-{name}"),
        format!("Efficiency ratio within the first slots, {}", Scenario::ALL[scenario].name()),
        [Axis::linear("total time T, slots"), Axis::linear("efficiency ratio")],
        series.collect(),
    )
}

/// What the paper leaves open and how much depends on it.
pub(super) fn left_open(runs: &Runs) -> Section {
    let mut rows = Vec::new();
    for (setting, scenario) in cases() {
        for (scheduler, named) in SCHEDULERS.iter().enumerate() {
            let mean = |number: &dyn Fn(&Kept) -> f64| runs.mean([setting, scenario, scheduler], number);
            let Some(drained) = mean(&|kept| kept.ratio) else { continue };
            let within = mean(&|kept| kept.within[STEPS - 1]);
            let change = within.map(|within| 100.0 * (within.mean / drained.mean - 1.0));
            let words = [SETTINGS[setting].title.to_owned(), Scenario::ALL[scenario].name()];
            let mut row: Vec<Cell> = words.into_iter().map(Cell::text).collect();
            row.extend([Cell::text(named.title), drained.into(), within.into(), change.into()]);
            rows.push(row);
        }
    }
    let table = Table::new(
        "left-open",
        "Ratios until all jobs have ended, and within the slots of arrivals",
        Column::list(&[
            ("setting", ""),
            ("scenario and cut", ""),
            ("scheduler", ""),
            ("until all ended", ""),
            (&format!("within {SLOTS} slots"), ""),
            ("change", "%"),
        ]),
        rows,
    );
    Section::new(
        "left-open",
        "What the paper leaves open: how reduces are cut, and what is counted",
        ["The text gives totals \"in T time slots\": whether flow times are counted until all jobs have \
             ended or up to T changes preemptive ratios little and non-preemptive ones by some per cent. \
             The cut of the reduces decides the non-preemptive ratios: the longer the tasks, the less any \
             policy can do, since the bound may spread a job over all machines. No ranking depends on \
             either."],
        vec![Block::Table(table)],
    )
}
