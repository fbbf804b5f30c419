//! Figures 6-1, 6-3, 6-5 and 6-7: mean sojourn time against arrival rate and number of workers, half of them slow.
//!
//! Not here: the advanced splits of figure 6-8.

use super::WORDS;
use super::common::{COUNTS, curve, halves, least, mean, placed};
use crate::prelude::*;
use gristmill_scheduler::placement::place;

/// Split, figure, title, equation.
const FIGURES: [(&str, &str, &str, &str); 3] = [
    ("fair-split", "figure-6-1", "Figure 6-1: the fair split", "equation 12"),
    ("pure-deterministic", "figure-6-3", "Figure 6-3: the pure-deterministic split", "equation 18"),
    (
        "pure-stochastic:rates=raw",
        "figure-6-5",
        "Figure 6-5: the pure-stochastic split",
        "equation 23 as printed",
    ),
];
const LAMBDAS: [f64; 5] = [2.0, 5.0, 10.0, 20.0, 30.0];

/// Returns arrival rates that 40 workers can carry under every split.
fn rates() -> impl Iterator<Item = f64> {
    (1..=63).map(|i| 0.5 * f64::from(i))
}

fn counts() -> impl Iterator<Item = f64> {
    (10..=50).map(|i| 4.0 * f64::from(i))
}

fn by_rate(name: impl Into<String>, split: &str, count: u32) -> anyhow::Result<Series> {
    Ok(Series::new(name, curve(rates(), |lambda| mean(split, count, lambda))?))
}

fn by_count(name: impl Into<String>, split: &str, lambda: f64) -> anyhow::Result<Series> {
    Ok(Series::new(name, curve(counts(), |count| mean(split, count as u32, lambda))?))
}

/// Sections on figures 6-1, 6-3, 6-5 and 6-7.
pub(super) fn figures_6() -> anyhow::Result<Vec<Section>> {
    let mut sections = FIGURES.into_iter().map(of_split).collect::<anyhow::Result<Vec<_>>>()?;
    sections.push(figure_6_7()?);
    Ok(sections)
}

fn of_split((split, figure, title, equation): (&str, &str, &str, &str)) -> anyhow::Result<Section> {
    let rates = COUNTS.iter().map(|&count| by_rate(format!("{count} workers"), split, count));
    let counts = LAMBDAS.iter().map(|&lambda| by_count(format!("lambda {lambda}"), split, lambda));
    let blocks = vec![
        WORDS.chart("{figure}-rate", holes![figure], rates.collect::<anyhow::Result<_>>()?),
        WORDS.chart("{figure}-number", holes![figure], counts.collect::<anyhow::Result<_>>()?),
        Block::Claims(minima(split)?),
    ];
    Ok(WORDS.section("{figure}", holes![figure, title, equation], blocks))
}

/// Returns the claims about the minimum over the number of workers.
fn minima(split: &str) -> anyhow::Result<Vec<Claim>> {
    let mut bests = Vec::new();
    for lambda in LAMBDAS {
        let numbers = (2..=400).map(|half| 2.0 * f64::from(half));
        bests.push(least(curve(numbers, |count| Ok(placed_or_none(split, count as u32, lambda)))?).0);
    }
    let mut rising = true;
    for count in COUNTS {
        let means = curve(rates(), |lambda| mean(split, count, lambda))?;
        rising &= means.is_sorted_by(|one, next| one.1 < next.1);
    }
    Ok(of_minima(&bests, rising))
}

/// Judges the best number of workers at each of [`LAMBDAS`], and if MST rises with the rate everywhere.
pub(super) fn of_minima(bests: &[f64], rising: bool) -> Vec<Claim> {
    let list = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<String>>().join(", ");
    let best_rises = bests.is_sorted_by(|one, next| one < next) && bests.last() < Some(&800.0);
    vec![
        WORDS.claim("always-rises", rising, holes![rates = rates().count(), counts = COUNTS.len()]),
        WORDS.claim("best-number", best_rises, holes![bests = list(bests), lambdas = list(&LAMBDAS)]),
    ]
}

/// Returns the split, or `None` where the workers cannot carry the load.
fn placed_or_none(split: &str, count: u32, lambda: f64) -> Option<f64> {
    place(split, &halves(count), lambda).ok().map(|placed| placed.mean).filter(|mean| mean.is_finite())
}

/// Names in legends, and splits.
const COMPARED: [(&str, &str); 4] = [
    ("fair", "fair-split"),
    ("pure-deterministic", "pure-deterministic"),
    ("pure-stochastic (printed)", "pure-stochastic:rates=raw"),
    ("pure-stochastic (nonneg)", "pure-stochastic"),
];

fn figure_6_7() -> anyhow::Result<Section> {
    let rates = COMPARED.iter().map(|&(name, split)| by_rate(name, split, 40));
    let counts = COMPARED.iter().map(|&(name, split)| by_count(name, split, 10.0));
    let blocks = vec![
        WORDS.chart("figure-6-7-rate", holes![], rates.collect::<anyhow::Result<_>>()?),
        WORDS.chart("figure-6-7-number", holes![], counts.collect::<anyhow::Result<_>>()?),
        Block::Claims(vec![stochastic_is_lowest()?]),
    ];
    Ok(WORDS.section("figure-6-7", holes![], blocks))
}

/// Judges if pure-stochastic, with printed rates and without negative ones, is never above the simpler
/// splits.
fn stochastic_is_lowest() -> anyhow::Result<Claim> {
    let mut lowest = [true; 2];
    let (mut negative, mut total) = (0, 0);
    for count in COUNTS {
        for lambda in rates() {
            let others = [mean("fair-split", count, lambda)?, mean("pure-deterministic", count, lambda)?];
            for (lowest, split) in lowest.iter_mut().zip(["pure-stochastic:rates=raw", "pure-stochastic"]) {
                let placed = placed(split, count, lambda)?;
                negative += u32::from(placed.rates.iter().any(|rate| *rate < 0.0));
                *lowest &= others.iter().flatten().all(|other| placed.mean <= other * (1.0 + 1e-12));
            }
            total += 1;
        }
    }
    Ok(lowest_of_all(lowest, negative, total))
}

/// Judges if the split is lowest as printed and without negative rates, and counts negative printed rates.
pub(super) fn lowest_of_all(lowest: [bool; 2], negative: u32, total: usize) -> Claim {
    let seen = lowest.map(CaseVerdict::from);
    let [printed, filled] = seen.map(CaseVerdict::word);
    WORDS.claim("lowest", by_case(seen), holes![printed, filled, total, negative])
}
