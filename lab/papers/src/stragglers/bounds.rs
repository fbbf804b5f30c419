//! Lemma 9: bounds of the mean sojourn time.

use super::{WORDS, curve, placed};
use crate::words::holes;
use crate::{Block, Claim, Section, Series};
use gristmill_scheduler::placement::Placed;

/// Returns a number of 40 workers at each rate.
fn at_each_rate(pick: fn(&Placed) -> f64) -> anyhow::Result<Vec<(f64, f64)>> {
    let rates = (1..=63).map(|i| 0.5 * f64::from(i));
    curve(rates, |lambda| Ok(Some(pick(&placed("m-ep:d=3.5", 40, lambda)?))))
}

pub(super) fn section() -> anyhow::Result<Section> {
    let lower = at_each_rate(|placed| placed.bounds.lower)?;
    let mean = at_each_rate(|placed| placed.mean)?;
    let upper = at_each_rate(|placed| placed.bounds.upper)?;
    let between = (0..mean.len()).all(|i| lower[i].1 <= mean[i].1 && mean[i].1 <= upper[i].1);
    let claim = within_bounds(between, mean.len(), [lower[19].1, mean[19].1, upper[19].1]);
    let curves = vec![
        Series::new("upper bound", upper).as_reference(),
        Series::new("MST", mean),
        Series::new("lower bound", lower).as_reference(),
    ];
    let blocks = vec![WORDS.chart("lemma-9", holes![], curves), Block::Claims(vec![claim])];
    Ok(WORDS.section("lemma-9", holes![], blocks))
}

/// Judges if the bounds hold at all of these rates, and the bound below, MST and the bound above at
/// lambda 10.
pub(super) fn within_bounds(between: bool, rates: usize, [lower, mean, upper]: [f64; 3]) -> Claim {
    WORDS.claim("lemma-9", between, holes![rates, mean, lower, upper])
}
