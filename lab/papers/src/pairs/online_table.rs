//! Table 3: times of a stream under each policy, over all its jobs.

use super::offline::describe;
use super::online::{MINUTE, Outcome, Times};
use super::{WORDS, title};
use crate::judge::mean_of;
use crate::words::holes;
use crate::{Block, Cell};
use gristmill_scheduler::workload::pairs::Sizes;

pub(super) fn of(sizes: Sizes, outcomes: &[Outcome]) -> Block {
    let holes = holes![name = sizes.name(), sizes = describe(sizes)];
    WORDS.table("table-3-{name}", holes, outcomes.iter().map(row).collect())
}

fn row(outcome: &Outcome) -> Vec<Cell> {
    let waiting = outcome.sorted(|times| times.waiting);
    let execution = outcome.sorted(|times| times.execution);
    let makespan = outcome.sorted(Times::makespan);
    let mean = |value: fn(&Times) -> f64| mean_of(&outcome.means(value)).into();
    vec![
        Cell::text(title(&outcome.rule)),
        mean(|times| times.waiting),
        inner(&waiting),
        Cell::number(most(&waiting) / MINUTE),
        mean(|times| times.execution),
        inner(&execution),
        Cell::number(most(&outcome.sorted(|times| times.ratio))),
        mean(Times::makespan),
        inner(&makespan),
        Cell::number(makespan.first().copied().unwrap_or_default() / MINUTE),
        Cell::number(most(&makespan) / MINUTE),
        Cell::number(outcome.printed),
    ]
}

fn most(sorted: &[f64]) -> f64 {
    sorted.last().copied().unwrap_or_default()
}

/// Returns the ends of an 80 % interval, in minutes.
fn inner(sorted: &[f64]) -> Cell {
    let cut = sorted.len() / 10;
    let (low, high) = (sorted.get(cut), sorted.get(sorted.len() - 1 - cut));
    let minutes = |value: Option<&f64>| value.copied().unwrap_or_default() / MINUTE;
    Cell::text(format!("[{:.1}, {:.1}]", minutes(low), minutes(high)))
}
