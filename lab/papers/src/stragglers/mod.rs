//! The stragglers thesis: time of the slowest of many workers, and its consequences for splitting work
//! and buying workers.
//!
//! Not here: the mathematics and the splits (`gristmill_scheduler::queueing`, `gristmill_scheduler::placement`).

mod equal;
mod equations;
mod fitted;
mod numbers;
mod simulated;
mod sojourn;
mod splits;
#[cfg(test)]
pub(super) mod tests;

use crate::prelude::*;
use gristmill_scheduler::placement::{Placed, place};
use gristmill_scheduler::queueing::Server;

pub(super) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Numbers of workers in the figures of chapter 6.
const COUNTS: [u32; 5] = [40, 80, 120, 160, 200];
/// Service rate of slow and fast workers in chapter 6, in tasks per second.
const SLOW: f64 = 0.8;
const FAST: f64 = 1.0;

/// Runs all experiments.
///
/// # Errors
/// A computation that fails, which is a bug.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    (context.progress)("distributions fitted to task times");
    let mut sections = vec![fitted::generated(context)?, fitted::measured()?];
    (context.progress)("the largest of many times");
    sections.push(equal::figure_4_1()?);
    sections.extend(sojourn::figures_6()?);
    (context.progress)("queues simulated task by task");
    sections.push(simulated::section(context)?);
    (context.progress)("splits against the optimum");
    sections.extend(splits::sections(context)?);
    (context.progress)("numbers and mixes of workers");
    sections.push(numbers::figure_7_1()?);
    for (figure, traffic, lambda) in [(2, "high", 25.0), (3, "medium", 5.0), (4, "low", 1.0)] {
        sections.push(numbers::section(figure, traffic, lambda)?);
    }
    (context.progress)("a stream of jobs on a simulated cluster");
    sections.push(simulated::stream(context)?);
    sections.push(equations::section()?);
    Ok(WORDS.paper("stragglers", holes![], sections))
}

/// Returns this many workers, half of them slow.
fn halves(count: u32) -> Vec<Server> {
    (0..count).map(|i| Server::exponential(if i < count / 2 { SLOW } else { FAST })).collect()
}

/// Returns the split of this text for half slow and half fast workers.
fn placed(split: &str, count: u32, lambda: f64) -> anyhow::Result<Placed> {
    Ok(place(split, &halves(count), lambda)?)
}

/// Returns the mean sojourn time, where it is finite.
fn mean(split: &str, count: u32, lambda: f64) -> anyhow::Result<Option<f64>> {
    Ok(Some(placed(split, count, lambda)?.mean).filter(|mean| mean.is_finite()))
}

/// Returns the points of a curve, without infinite ones.
fn curve(
    xs: impl IntoIterator<Item = f64>,
    y: impl Fn(f64) -> anyhow::Result<Option<f64>>,
) -> anyhow::Result<Vec<(f64, f64)>> {
    let points = xs.into_iter().map(|x| Ok(y(x)?.map(|y| (x, y))));
    Ok(points.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Returns the point with the smallest value.
fn least(points: impl IntoIterator<Item = (f64, f64)>) -> (f64, f64) {
    let least = points.into_iter().reduce(|least, point| if point.1 < least.1 { point } else { least });
    least.unwrap_or((f64::NAN, f64::NAN))
}
