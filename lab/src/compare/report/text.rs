//! The table for the terminal, and what the differences show in words.
//!
//! Not here: pages.

use crate::compare::Comparison;
use crate::compare::summary::Summary;
use crate::report::number;
use gristmill_scheduler::metrics::{Interval, Metric};

/// Metrics of the table, if they mean anything.
const COLUMNS: [Metric; 8] = [
    Metric::Flow,
    Metric::FlowP95,
    Metric::FlowP99,
    Metric::Slowdown,
    Metric::Makespan,
    Metric::Waiting,
    Metric::DeadlinesMet,
    Metric::EfficiencyRatio,
];

/// Those of these metrics that any policy has.
pub(super) fn columns(metrics: &[Metric], summaries: &[Summary]) -> Vec<Metric> {
    let known = |metric: &Metric| summaries.iter().any(|summary| summary.metrics.contains_key(metric));
    metrics.iter().copied().filter(known).collect()
}

/// A line for each policy: mean over repetitions ± half the width of the 95 % interval.
#[must_use]
pub fn table(comparison: &Comparison) -> String {
    let summaries = comparison.summaries();
    let metrics = columns(&COLUMNS, &summaries);
    let predicted = summaries.iter().any(|summary| summary.predicted.is_some());
    let header = metrics.iter().map(|metric| metric.declaration().title());
    let mut header: Vec<String> = std::iter::once("policy".to_owned()).chain(header).collect();
    if predicted {
        header.push("simulated, s".to_owned());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header);
    for summary in &summaries {
        let mut cells = vec![summary.contender.name.clone()];
        cells.extend(metrics.iter().map(|metric| match summary.metrics.get(metric) {
            Some(Interval { mean, half_width, .. }) => number::with_interval(*mean, *half_width),
            None => number::NOTHING.to_owned(),
        }));
        if predicted {
            cells.push(summary.predicted.map_or_else(
                || number::NOTHING.to_owned(),
                |phases| with_error(phases.iter().sum(), summary.phases.iter().sum()),
            ));
        }
        table.add_row(cells);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// A simulated number with how far it is from the real one.
fn with_error(simulated: f64, real: f64) -> String {
    if real <= 0.0 {
        return number::number(simulated);
    }
    format!("{} ({})", number::number(simulated), number::percent((simulated - real) / real))
}

/// What each pair of policies shows, in sentences; with more than three policies only against the first one.
#[must_use]
pub fn verdicts(comparison: &Comparison) -> Vec<String> {
    let first = comparison.contenders.first().map(|contender| contender.name.as_str());
    let few = comparison.contenders.len() <= 3;
    let differences = comparison.differences();
    let shown = differences.iter().filter(|difference| few || Some(difference.other.as_str()) == first);
    shown.map(|difference| difference.words()).collect()
}
