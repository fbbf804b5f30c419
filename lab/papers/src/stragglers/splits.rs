//! Figure 6-8: all splits against the numerical optimum, for jobs bound by memory and by processors;
//! section 6.4: averages above M-EP; Lemma 9: its bounds.
//!
//! Not here: the splits in simulated queues.

use super::WORDS;
use super::common::{SLOW, curve, mean, placed};
use crate::prelude::*;
use gristmill_scheduler::placement::Placed;

/// Name in legends, and split. D is added.
const SPLITS: [(&str, &str); 8] = [
    ("fair", "fair-split:"),
    ("pure-deterministic", "pure-deterministic:"),
    ("pure-stochastic (printed)", "pure-stochastic:rates=raw,"),
    ("pure-stochastic (nonneg)", "pure-stochastic:"),
    ("M-EP (printed)", "m-ep:rates=raw,"),
    ("M-EP (nonneg)", "m-ep:"),
    ("DM-EP (printed)", "dm-ep:rates=raw,"),
    ("optimal", "optimal:"),
];

fn call(split: &str, delay: f64) -> String {
    format!("{split}d={delay}")
}

pub(super) fn sections(context: &Context<'_>) -> anyhow::Result<Vec<Section>> {
    let mut blocks = panels(context, ["a", "c"], 0.0, 10.0)?.to_vec();
    blocks.extend(panels(context, ["b", "d"], 100.0, 20.0)?);
    blocks.push(Block::Claims(claims(context)?));
    let figure = WORDS.section("figure-6-8", holes![], blocks);
    Ok(vec![figure, section_6_4()?, lemma_9()?])
}

/// Charts of the MST of 40 workers by rate, and at this rate by the number of workers.
fn panels(
    context: &Context<'_>,
    [one, other]: [&str; 2],
    delay: f64,
    lambda: f64,
) -> anyhow::Result<[Block; 2]> {
    const COUNT: u32 = 40;
    let steps = context.scaled(12, 32, 32);
    let (rate_curves, number_curves) = curves(delay, COUNT, lambda, steps)?;
    let of_rate = holes![panel = one, delay, count = COUNT];
    Ok([
        WORDS.chart("all-by-rate", of_rate, rate_curves),
        WORDS.chart("all-by-number", holes![panel = other, delay, lambda], number_curves),
    ])
}

type Curves = (Vec<Series>, Vec<Series>);

fn curves(delay: f64, count: u32, lambda: f64, steps: u32) -> anyhow::Result<Curves> {
    let both = each(&SPLITS, |(name, split)| -> anyhow::Result<_> {
        let split = call(split, delay);
        let rates = (1..=steps).map(|i| 31.5 * f64::from(i) / f64::from(steps));
        let counts = (0..=steps).map(|i| 40.0 + 2.0 * (80.0 * f64::from(i) / f64::from(steps)).round());
        let by_rate = curve(rates, |lambda| mean(&split, count, lambda))?;
        let by_number = curve(counts, |count| mean(&split, count as u32, lambda))?;
        Ok((Series::new(*name, by_rate), Series::new(*name, by_number)))
    });
    Ok(both.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().unzip())
}

/// Returns the smallest and largest ratio of the mean of each split to the optimum over a grid, without
/// infinite values.
fn excesses(context: &Context<'_>, delay: f64) -> anyhow::Result<Vec<Range>> {
    let rates = context.scaled(
        vec![2.0, 10.0, 30.0],
        vec![1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 31.0],
        vec![1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 31.0],
    );
    let counts = context.scaled(vec![40, 200], vec![40, 80, 120, 200], vec![40, 80, 120, 200]);
    let settings: Vec<(u32, f64)> =
        counts.iter().flat_map(|count| rates.iter().map(|rate| (*count, *rate))).collect();
    let found = each(&settings, |(count, lambda)| -> anyhow::Result<Vec<f64>> {
        let best = placed(&call("optimal:", delay), *count, *lambda)?.mean;
        SPLITS
            .iter()
            .map(|(_, split)| Ok(placed(&call(split, delay), *count, *lambda)?.mean / best - 1.0))
            .collect()
    });
    let mut range = vec![(f64::INFINITY, f64::NEG_INFINITY); SPLITS.len()];
    for found in found {
        for (range, excess) in range.iter_mut().zip(found?) {
            if excess.is_finite() {
                *range = (range.0.min(excess), range.1.max(excess));
            }
        }
    }
    Ok(range)
}

fn claims(context: &Context<'_>) -> anyhow::Result<Vec<Claim>> {
    let mut claims = bound_by_memory(&excesses(context, 0.0)?)?.to_vec();
    claims.extend(bound_by_processors(&excesses(context, 100.0)?));
    Ok(claims)
}

/// Smallest and largest excess of a split over the optimum.
pub(super) type Range = (f64, f64);

fn percent((least, most): Range) -> String {
    format!("{:+.2} to {:+.2} %", 100.0 * least, 100.0 * most)
}

pub(super) fn bound_by_memory(excesses: &[Range]) -> anyhow::Result<[Claim; 2]> {
    let [_, det, stochastic, filled, mep, mep_filled, dmep, _] = excesses[..] else {
        anyhow::bail!("{} splits were compared", excesses.len())
    };
    let same = [filled, mep_filled].iter().all(|range| range.0.abs().max(range.1.abs()) < 1e-9);
    let printed = [stochastic, mep, dmep].iter().all(|range| range.1 < 1e-9);
    let beat = stochastic.0 < -1e-6;
    let [det, stochastic, filled, mep_filled, dmep] =
        [det, stochastic, filled, mep_filled, dmep].map(percent);
    Ok([
        WORDS.claim("by-memory", same && printed, holes![filled, mep_filled, dmep, det]),
        WORDS.claim("beat-the-optimum", beat, holes![stochastic]),
    ])
}

pub(super) fn bound_by_processors(excesses: &[Range]) -> [Claim; 2] {
    let nearly = excesses[1].1 < 0.06 && excesses[5].1 < 0.06;
    let [det, stochastic, mep, dmep] = [1, 2, 5, 6].map(|place| percent(excesses[place]));
    [
        WORDS.claim("by-processors", nearly, holes![det, mep]),
        WORDS.claim("cannot-follow", 0.15 < excesses[2].1, holes![stochastic, dmep]),
    ]
}

/// Returns the average advantage of M-EP in percent, over ten arrival rates up to a fraction of the
/// saturation rate.
fn average_above_m_ep(other: &str, delay: f64, end: f64) -> anyhow::Result<f64> {
    let steps = 10;
    let mut total = 0.0;
    for step in 0..steps {
        let lambda = end * 40.0 * SLOW * f64::from(step + 1) / f64::from(steps);
        let ours = placed(&call("m-ep:", delay), 40, lambda)?.mean;
        total += placed(&call(other, delay), 40, lambda)?.mean / ours - 1.0;
    }
    Ok(100.0 * total / f64::from(steps))
}

/// Printed averages, whole numbers of percent.
const ABOVE_FAIR: &str = "129";
const ABOVE_DETERMINISTIC: &str = "51";

/// Compares the averages. `ends` holds those with the grid up to 0.95 and up to 0.999 of saturation.
fn fair(end: f64, ends: [f64; 2]) -> anyhow::Result<Compared> {
    let ours = average_above_m_ep("fair-split:", 0.0, end)?;
    let why = WORDS.note("saturation", holes![near = ends[0], end = ends[1]]);
    let grid = Model { gap: [ours - ends[1], ours - ends[0]], why };
    let what = format!("fair above M-EP, D = 0, 40 workers, lambda up to {end} of N mu_min, average in %");
    let beside = KnownNumber::exact(what, ours, Known::text(ABOVE_FAIR).printed());
    Ok(beside.model(Some(&grid)).note(WORDS.note("fair", holes![])).judged())
}

fn pure_deterministic(delay: f64) -> anyhow::Result<Compared> {
    let ours = average_above_m_ep("pure-deterministic:", delay, 0.99)?;
    let what = format!("pure-deterministic above M-EP, D = {delay} s, 40 workers, average in %");
    let beside = KnownNumber::exact(what, ours, Known::text(ABOVE_DETERMINISTIC).printed());
    Ok(beside.note(WORDS.note("deterministic", holes![])).judged())
}

/// Returns the largest ratio of pure-deterministic to the optimum at D = 0.
fn most_over_optimum() -> anyhow::Result<f64> {
    let mut most = 0.0_f64;
    for step in 1..100 {
        let lambda = 36.0 * f64::from(step) / 100.0;
        let ratio = placed("pure-deterministic", 40, lambda)?.mean / placed("optimal", 40, lambda)?.mean;
        most = most.max(ratio);
    }
    Ok(most)
}

/// Section on the averages of section 6-4.
fn section_6_4() -> anyhow::Result<Section> {
    let ends =
        [average_above_m_ep("fair-split:", 0.0, 0.95)?, average_above_m_ep("fair-split:", 0.0, 0.999)?];
    let compared =
        vec![fair(0.95, ends)?, fair(0.99, ends)?, pure_deterministic(0.0)?, pure_deterministic(100.0)?];
    let averages = [0.0, 100.0].map(|delay| average_above_m_ep("pure-deterministic:", delay, 0.99));
    let [by_memory, by_processors] = averages;
    let claim = half_as_good_again([by_memory?, by_processors?], most_over_optimum()?);
    let blocks = vec![Block::Comparison(compared), Block::Claims(vec![claim])];
    Ok(WORDS.section("section-6-4", holes![], blocks))
}

/// Judges the averages of section 6-4, in percent, bound by memory and by processors, and the largest
/// ratio of pure-deterministic to the optimum.
pub(super) fn half_as_good_again(averages: [f64; 2], most: f64) -> Claim {
    /// 51 %, rounded to a whole number.
    const PRINTED: [f64; 2] = [50.5, 51.5];
    let printed = averages.iter().any(|average| (PRINTED[0]..=PRINTED[1]).contains(average));
    let [by_memory, by_processors] = averages;
    WORDS.claim("half-as-good-again", printed, holes![by_memory, by_processors, most])
}

/// Returns a number of 40 workers at each rate.
fn at_each_rate(pick: fn(&Placed) -> f64) -> anyhow::Result<Vec<(f64, f64)>> {
    let rates = (1..=63).map(|i| 0.5 * f64::from(i));
    curve(rates, |lambda| Ok(Some(pick(&placed("m-ep:d=3.5", 40, lambda)?))))
}

fn lemma_9() -> anyhow::Result<Section> {
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
