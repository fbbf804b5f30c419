//! Table 3: what each policy makes of a stream, over all its jobs.

use super::super::offline::describe;
use super::super::{cell, mean, title};
use super::{MINUTE, Outcome, Times};
use crate::paper::{Cell, Column, Table};
use gristmill_scheduler::workload::pairs::Sizes;

pub(super) fn of(sizes: Sizes, outcomes: &[Outcome]) -> Table {
    Table::new(
        format!("table-3-{}", sizes.name()),
        format!("Sizes {}; the printed column is the paper's own trace", describe(sizes)),
        columns(),
        outcomes.iter().map(row).collect(),
    )
}

fn columns() -> Vec<Column> {
    let minutes = |name: &str| Column::new(name, "min");
    vec![
        Column::new("policy", ""),
        minutes("average waiting"),
        minutes("waiting, 80 % interval"),
        minutes("longest waiting"),
        minutes("average execution"),
        minutes("execution, 80 % interval"),
        Column::new("worst ratio", ""),
        minutes("average makespan"),
        minutes("makespan, 80 % interval"),
        minutes("smallest makespan"),
        minutes("largest makespan"),
        minutes("printed average makespan"),
    ]
}

fn row(outcome: &Outcome) -> Vec<Cell> {
    let waiting = outcome.sorted(|times| times.waiting);
    let execution = outcome.sorted(|times| times.execution);
    let makespan = outcome.sorted(Times::makespan);
    let mean_of = |value: fn(&Times) -> f64| cell(mean(&outcome.means(value)));
    vec![
        Cell::text(title(&outcome.rule)),
        mean_of(|times| times.waiting),
        inner(&waiting),
        Cell::number(most(&waiting) / MINUTE),
        mean_of(|times| times.execution),
        inner(&execution),
        Cell::number(most(&outcome.sorted(|times| times.ratio))),
        mean_of(Times::makespan),
        inner(&makespan),
        Cell::number(makespan.first().copied().unwrap_or_default() / MINUTE),
        Cell::number(most(&makespan) / MINUTE),
        Cell::number(outcome.printed),
    ]
}

fn most(sorted: &[f64]) -> f64 {
    sorted.last().copied().unwrap_or_default()
}

/// The ends of an 80 % interval, in minutes.
fn inner(sorted: &[f64]) -> Cell {
    let cut = sorted.len() / 10;
    let (low, high) = (sorted.get(cut), sorted.get(sorted.len() - 1 - cut));
    let minutes = |value: Option<&f64>| value.copied().unwrap_or_default() / MINUTE;
    Cell::text(format!("[{:.1}, {:.1}]", minutes(low), minutes(high)))
}
