//! Figures 6-1, 6-3, 6-5 and 6-7: mean sojourn time against arrival rate and number of workers, half of them slow.
//!
//! Not here: the advanced splits of figure 6-8.

use super::{COUNTS, by_number, by_rate, curve, halves, mean, placed, series};
use crate::paper::judge::{Seen, by_case};
use crate::paper::{Axis, Block, Claim, Section};
use gristmill_scheduler::placement::place;

/// Split, figure, name in legends.
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

/// Arrival rates that 40 workers can carry under every split.
fn rates() -> impl Iterator<Item = f64> {
    (1..=63).map(|i| 0.5 * f64::from(i))
}

fn counts() -> impl Iterator<Item = f64> {
    (10..=50).map(|i| 4.0 * f64::from(i))
}

/// Figures 6-1, 6-3, 6-5 and 6-7.
pub(super) fn figures_6() -> anyhow::Result<Vec<Section>> {
    let mut sections = FIGURES.into_iter().map(of_split).collect::<anyhow::Result<Vec<_>>>()?;
    sections.push(figure_6_7()?);
    Ok(sections)
}

fn of_split((split, id, title, equation): (&str, &str, &str, &str)) -> anyhow::Result<Section> {
    let rate_curves = COUNTS.iter().map(|&count| {
        let points = curve(rates(), |lambda| mean(split, count, lambda))?;
        Ok(series(format!("{count} workers"), points))
    });
    let number_curves = LAMBDAS.iter().map(|&lambda| {
        let points = curve(counts(), |count| mean(split, count as u32, lambda))?;
        Ok(series(format!("lambda {lambda}"), points))
    });
    let y = || Axis::logarithmic("MST, s");
    let (of_rate, of_number) = ("MST against the arrival rate.", "MST against the number of workers.");
    let rate_curves = rate_curves.collect::<anyhow::Result<_>>()?;
    let number_curves = number_curves.collect::<anyhow::Result<_>>()?;
    Ok(Section::new(
        id,
        title,
        [format!("Half of the workers at mu = 0.8, half at mu = 1, D = 0; {equation}.")],
        vec![
            by_rate(&format!("{id}-rate"), of_rate, y(), rate_curves),
            by_number(&format!("{id}-number"), of_number, y(), number_curves),
            Block::Claims(minima(split)?),
        ],
    ))
}

/// Where the minimum over the number of workers lies.
fn minima(split: &str) -> anyhow::Result<Vec<Claim>> {
    let mut bests = Vec::new();
    for lambda in LAMBDAS {
        let numbers = (2..=400).map(|half| 2.0 * f64::from(half));
        let points = curve(numbers, |count| Ok(placed_or_none(split, count as u32, lambda)))?;
        let best = points.into_iter().reduce(|best, point| if point.1 < best.1 { point } else { best });
        bests.push(best.map_or(f64::NAN, |(count, _)| count));
    }
    let mut rising = true;
    for count in COUNTS {
        let means = curve(rates(), |lambda| mean(split, count, lambda))?;
        rising &= means.is_sorted_by(|one, next| one.1 < next.1);
    }
    Ok(of_minima(&bests, rising))
}

/// By the best number of workers at each of [`LAMBDAS`], and whether MST rises with the rate everywhere.
pub(super) fn of_minima(bests: &[f64], rising: bool) -> Vec<Claim> {
    let list = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<String>>().join(", ");
    vec![
        Claim::new(
            "section 6-1",
            "MST always rises with the arrival rate.",
            rising,
            format!("checked at {} rates for {} numbers of workers", rates().count(), COUNTS.len()),
        ),
        Claim::new(
            "section 6-1",
            "There is a best number of workers, and it rises with the arrival rate.",
            bests.is_sorted_by(|one, next| one < next) && bests.last() < Some(&800.0),
            format!("best numbers {} at lambda {}", list(bests), list(&LAMBDAS)),
        ),
    ]
}

/// None where the workers cannot carry the load.
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
    let (mut rate_curves, mut number_curves) = (Vec::new(), Vec::new());
    for (name, split) in COMPARED {
        rate_curves.push(series(name, curve(rates(), |lambda| mean(split, 40, lambda))?));
        number_curves.push(series(name, curve(counts(), |count| mean(split, count as u32, 10.0))?));
    }
    let (of_rate, of_number) =
        ("40 workers: MST against the arrival rate.", "lambda = 10: MST against the number of workers.");
    Ok(Section::new(
        "figure-6-7",
        "Figure 6-7: fair, pure-deterministic and pure-stochastic splits compared",
        ["Half of the workers at mu = 0.8, half at mu = 1, D = 0."],
        vec![
            by_rate("figure-6-7-rate", of_rate, Axis::logarithmic("MST, s"), rate_curves),
            by_number("figure-6-7-number", of_number, Axis::linear("MST, s"), number_curves),
            Block::Claims(vec![stochastic_is_lowest()?]),
        ],
    ))
}

/// Whether pure-stochastic, with printed rates and without negative ones, is never above the simpler splits.
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

/// By whether the split is lowest as printed and without negative rates, and how often the printed rates are negative.
pub(super) fn lowest_of_all(lowest: [bool; 2], negative: u32, total: usize) -> Claim {
    Claim::new(
        "section 6-3",
        "The MST of the pure-stochastic split is below the others even at very low arrival rates.",
        by_case(lowest.map(Seen::from)),
        format!(
            "as printed: {}, without negative rates: {}, at {total} settings with D = 0; in {negative} of them \
             the printed rates are negative (equation 24)",
            word(lowest[0]),
            word(lowest[1])
        ),
    )
}

fn word(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}
