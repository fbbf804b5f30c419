//! Table for the terminal, and the differences in words.
//!
//! Not here: pages.

use crate::compare::comparison::Comparison;
use crate::compare::simulation_error::SimulationError;
use crate::compare::statistics::{Difference, FALSE_MAX, PLANNED_SHARE, Shown};
use crate::compare::summary::Summary;
use crate::report::number;
use gristmill_scheduler::metrics::{Declaration, Interval, Metric};

/// Metrics of the table, if they apply.
const COLUMNS: [Metric; 9] = [
    Metric::Flow,
    Metric::FlowP95,
    Metric::FlowP99,
    Metric::FlowMax,
    Metric::Slowdown,
    Metric::Makespan,
    Metric::Waiting,
    Metric::DeadlinesMet,
    Metric::EfficiencyRatio,
];

/// Name of a simulation, and its error in a summary.
pub(super) type NamedSimulation = (&'static str, fn(&Summary) -> Option<&SimulationError>);

/// Both simulations.
pub(super) const SIMULATIONS: [NamedSimulation; 2] =
    [("replayed", |summary| summary.replayed.as_ref()), ("predicted", |summary| summary.predicted.as_ref())];

pub(super) fn columns(metrics: &[Metric], summaries: &[Summary]) -> Vec<Metric> {
    let known = |metric: &Metric| summaries.iter().any(|summary| summary.metrics.contains_key(metric));
    metrics.iter().copied().filter(known).collect()
}

/// Returns the name of a metric with the unit in which it is shown, and how many of it its own unit has.
pub(super) fn title_and_scale(metric: Metric, summaries: &[Summary]) -> (String, f64) {
    let declared = metric.declaration();
    if declared.unit != "s" {
        return (declared.title(), 1.0);
    }
    let intervals = summaries.iter().filter_map(|one| one.metrics.get(&metric));
    let means: Vec<f64> = intervals.map(|interval| interval.mean).collect();
    let (unit, scale) = number::unit_of_times(&means);
    (Declaration { unit, ..declared }.title(), scale)
}

/// Returns the interval of a metric in the unit in which it is shown.
pub(super) fn scaled(summary: &Summary, metric: Metric, scale: f64) -> Option<Interval> {
    let interval = *summary.metrics.get(&metric)?;
    let half_width = interval.half_width.map(|half_width| half_width * scale);
    Some(Interval { mean: interval.mean * scale, half_width, ..interval })
}

/// Returns a line for each policy: mean over repetitions ± half the width of the 95 % interval.
#[must_use]
pub fn table(comparison: &Comparison) -> String {
    let summaries = comparison.summaries();
    let metrics = columns(&COLUMNS, &summaries);
    let simulations = SIMULATIONS.iter().filter(|(_, of)| summaries.iter().any(|one| of(one).is_some()));
    let simulations: Vec<&NamedSimulation> = simulations.collect();
    let (titles, scales): (Vec<String>, Vec<f64>) =
        metrics.iter().map(|&metric| title_and_scale(metric, &summaries)).unzip();
    let mut header: Vec<String> = std::iter::once("policy".to_owned()).chain(titles).collect();
    header.extend(simulations.iter().map(|(name, _)| format!("{name}, s")));
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header);
    for summary in &summaries {
        let mut cells = vec![summary.contender.name.clone()];
        cells.extend(metrics.iter().zip(&scales).map(|(&metric, &scale)| {
            match scaled(summary, metric, scale) {
                Some(Interval { mean, half_width, .. }) => number::with_interval(mean, half_width),
                None => number::NOTHING.to_owned(),
            }
        }));
        cells.extend(simulations.iter().map(|(_, of)| match of(summary) {
            None => number::NOTHING.to_owned(),
            Some(error) => {
                let flow: f64 = error.phases.iter().sum();
                format!("{} ({})", number::number(flow), number::percent(error.mean_flow))
            }
        }));
        table.add_row(cells);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// True if a pair of policies has a sentence. With more than three policies only pairs with the named one
/// have, or else those with the first.
fn is_shown(comparison: &Comparison, one: &str, other: &str) -> bool {
    let first = comparison.contenders.first().map(|contender| contender.name.as_str());
    let reference = comparison.against.as_deref().or(first);
    comparison.contenders.len() <= 3 || Some(one) == reference || Some(other) == reference
}

/// Returns the differences between pairs of policies in sentences, with what they are valid for: the planned one first,
/// pairs without a difference last.
#[must_use]
pub fn verdicts(comparison: &Comparison) -> Vec<String> {
    in_words(comparison, Difference::words)
}

/// Returns the same without what they are valid for.
pub(super) fn findings(comparison: &Comparison) -> Vec<String> {
    in_words(comparison, Difference::verdict)
}

fn in_words(comparison: &Comparison, words: fn(&Difference) -> String) -> Vec<String> {
    let mut shown = comparison.differences();
    shown.retain(|one| is_shown(comparison, &one.one, &one.other));
    shown.sort_by_key(|one| (!one.planned, matches!(one.shown, Shown::Nothing | Shown::TooFew)));
    let planned = |one: &Difference| if one.planned { "planned: " } else { "" };
    shown.iter().map(|one| format!("{}{}", planned(one), words(one))).collect()
}

/// Describes the correction for several comparisons on one page; `None` for a single comparison.
#[must_use]
pub fn correction(comparison: &Comparison) -> Option<String> {
    let policies = comparison.contenders.len();
    let all = policies * policies.saturating_sub(1) / 2;
    if all < 2 {
        return None;
    }
    let percent = |share: f64| number::number(100.0 * share);
    let page = format!(
        "so that with equal policies a false \"faster\" or \"slower\" stands on at most {} % of such pages",
        percent(FALSE_MAX)
    );
    Some(match comparison.planned() {
        None => format!(
            "none of the {all} comparisons was planned (--against), so all are corrected (Holm), {page}"
        ),
        Some((one, other)) => format!(
            "planned was {} against {}, judged at {} %; the {} other comparisons are corrected (Holm): they share {} %, \
             and {} % once the planned one shows a difference, {page}",
            one.name,
            other.name,
            percent(FALSE_MAX * PLANNED_SHARE),
            all - 1,
            percent(FALSE_MAX * (1.0 - PLANNED_SHARE)),
            percent(FALSE_MAX),
        ),
    })
}
