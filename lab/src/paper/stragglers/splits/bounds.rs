//! Lemma 9: bounds of the mean sojourn time.

use super::super::{by_rate, curve, placed, series};
use crate::paper::{Axis, Block, Claim, Section};
use gristmill_scheduler::placement::Placed;

const SPLIT: &str = "m-ep:d=3.5";

/// A number of 40 workers at each rate.
fn at_each_rate(pick: fn(&Placed) -> f64) -> anyhow::Result<Vec<(f64, f64)>> {
    let rates = (1..=63).map(|i| 0.5 * f64::from(i));
    curve(rates, |lambda| Ok(Some(pick(&placed(SPLIT, 40, lambda)?))))
}

pub(super) fn section() -> anyhow::Result<Section> {
    let lower = at_each_rate(|placed| placed.bounds.lower)?;
    let mean = at_each_rate(|placed| placed.mean)?;
    let upper = at_each_rate(|placed| placed.bounds.upper)?;
    let between = (0..mean.len()).all(|i| lower[i].1 <= mean[i].1 && mean[i].1 <= upper[i].1);
    let claim = within_bounds(between, mean.len(), [lower[19].1, mean[19].1, upper[19].1]);
    let curves = vec![
        series("upper bound", upper).as_reference(),
        series("MST", mean),
        series("lower bound", lower).as_reference(),
    ];
    let caption = "MST and its bounds against the arrival rate.";
    Ok(Section::new(
        "lemma-9",
        "Lemma 9: bounds of the mean sojourn time",
        ["M-EP split, 40 workers (half at 0.8, half at 1), D = 3.5 s."],
        vec![by_rate("lemma-9", caption, Axis::logarithmic("time, s"), curves), Block::Claims(vec![claim])],
    ))
}

/// By whether it is so at all of so many rates; the bound below, MST and the bound above at lambda 10.
pub(in crate::paper::stragglers) fn within_bounds(
    between: bool,
    rates: usize,
    [lower, mean, upper]: [f64; 3],
) -> Claim {
    Claim::new(
        "Lemma 9",
        "MST lies between the largest and the sum of the mean completion times.",
        between,
        format!("at {rates} rates; at lambda 10 it is {mean:.2} s between {lower:.2} and {upper:.1} s"),
    )
}
