//! The table for the terminal, and what the differences show in words.
//!
//! Not here: pages.

use crate::compare::Comparison;
use crate::compare::difference::Difference;
use crate::compare::holm::{FALSE_MAX, PLANNED_SHARE};
use crate::compare::summary::Summary;
use crate::report::number;
use gristmill_scheduler::metrics::{Interval, Metric};

/// Metrics of the table, if they mean anything.
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

/// Whether a pair of policies has a sentence: with more than three policies only those with the one that was named, or
/// else the first.
pub(super) fn is_shown(comparison: &Comparison, one: &str, other: &str) -> bool {
    let first = comparison.contenders.first().map(|contender| contender.name.as_str());
    let reference = comparison.against.as_deref().or(first);
    comparison.contenders.len() <= 3 || Some(one) == reference || Some(other) == reference
}

/// What pairs of policies show, in sentences, what was planned first.
#[must_use]
pub fn verdicts(comparison: &Comparison) -> Vec<String> {
    let words = |difference: Difference| match difference.planned {
        true => format!("planned: {}", difference.words()),
        false => difference.words(),
    };
    let differences = comparison.differences().into_iter();
    differences.filter(|one| is_shown(comparison, &one.one, &one.other)).map(words).collect()
}

/// How the verdicts of a page of several comparisons are kept from showing by chance; `None` of a single comparison.
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
