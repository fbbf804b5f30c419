//! Figure 6-8: all splits against the numerical optimum, for jobs bound by memory and by processors; Lemma 9's bounds.
//!
//! Not here: the splits in simulated queues.

use super::{WORDS, against, bounds, curve, effectiveness, mean, placed};
use crate::words::holes;
use crate::{Block, Claim, Compared, Context, Section, Series, each};

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

/// D, workers, lambda, and the reference for fair, deterministic, stochastic, M-EP, DM-EP (printed) and the optimum.
type Reference = (f64, u32, f64, [&'static str; 6]);
const REFERENCE: [Reference; 8] = [
    (0.0, 40, 2.0, ["5.199", "5.181", "5.034", "5.034", "5.034", "5.0748"]),
    (0.0, 40, 10.0, ["6.953", "6.775", "6.582", "6.582", "6.582", "6.5824"]),
    (0.0, 40, 30.0, ["71.96", "29.36", "28.52", "28.52", "28.52", "28.5236"]),
    (0.0, 200, 10.0, ["7.207", "7.176", "6.915", "6.915", "6.915", "6.989"]),
    (100.0, 40, 10.0, ["37.80", "34.55", "40.54", "34.475", "98.6", "34.367"]),
    (100.0, 40, 30.0, ["165.7", "112.69", "111.92", "112.11", "115.3", "111.77"]),
    (100.0, 120, 20.0, ["28.23", "26.10", "33.05", "26.010", "103.9", "25.844"]),
    (100.0, 200, 30.0, ["26.74", "24.80", "31.92", "24.707", "106.5", "24.507"]),
];
const COMPARED: [usize; 6] = [0, 1, 2, 4, 6, 7];

pub(super) fn call(split: &str, delay: f64) -> String {
    format!("{split}d={delay}")
}

pub(super) fn sections(context: &Context<'_>) -> anyhow::Result<Vec<Section>> {
    let mut blocks = panels(context, ["a", "c"], 0.0, 10.0)?.to_vec();
    blocks.extend(panels(context, ["b", "d"], 100.0, 20.0)?);
    blocks.push(Block::Comparison(compared()?));
    blocks.push(Block::Claims(claims(context)?));
    let figure = WORDS.section("figure-6-8", holes![], blocks);
    Ok(vec![figure, effectiveness::section()?, bounds::section()?])
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

fn compared() -> anyhow::Result<Vec<Compared>> {
    let mut compared = Vec::new();
    for (delay, count, lambda, reference) in REFERENCE {
        for (place, reference) in COMPARED.into_iter().zip(reference) {
            let (name, split) = SPLITS[place];
            let ours = placed(&call(split, delay), count, lambda)?.mean;
            let what = format!("D {delay} s, {count} workers, lambda {lambda}, {name}: MST in s");
            compared.push(against(what, reference, ours));
        }
    }
    Ok(compared)
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
