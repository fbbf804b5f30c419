//! Figure 8 and the percentiles of the text: the distribution of drawn sizes.

use super::WORDS;
use super::cells::LOADS;
use super::common::{distribution, in_order, work};
use crate::prelude::*;
use gristmill_scheduler::workload::overlap::Poisson;

/// Sizes of a job, map and shuffle.
type MapShuffleSizes = [f64; 2];

fn largest(sizes: &MapShuffleSizes) -> f64 {
    sizes[0].max(sizes[1])
}

fn draw(context: &Context<'_>) -> Vec<MapShuffleSizes> {
    let jobs = context.scaled(20_000, 1_000_000, 1_000_000);
    let generators = Poisson::new(LOADS[0], context.first_seed).into_iter();
    let sizes = |[_, map, shuffle]: [f64; 3]| [map, shuffle];
    generators.flat_map(|generator| generator.take(jobs)).map(|job| sizes(work(&job))).collect()
}

pub(super) fn figure_8(context: &Context<'_>) -> Section {
    let drawn = draw(context);
    let of = |name: &str, value: fn(&MapShuffleSizes) -> f64| {
        distribution(name, &in_order(drawn.iter().map(value)))
    };
    let curves = vec![of("map", |sizes| sizes[0]), of("shuffle", |sizes| sizes[1]), of("max(x, y)", largest)];
    let chart = WORDS.chart("figure-8", holes![], curves);
    WORDS.section("figure-8", holes![], vec![chart, Block::Comparison(printed_numbers(&drawn))])
}

/// Number of parts of the draws, each a sample of a quantile.
const BATCHES: usize = 20;

/// Returns a quantile of max(x, y), with the interval over the batches.
fn quantile(drawn: &[MapShuffleSizes], part: f64) -> Interval {
    let of_batch = |batch: &[MapShuffleSizes]| {
        let largest = in_order(batch.iter().map(largest));
        largest[((largest.len() - 1) as f64 * part) as usize]
    };
    let length = (drawn.len() / BATCHES).max(1);
    mean_of(&drawn.chunks_exact(length).map(of_batch).collect::<Vec<f64>>())
}

/// Returns the deviation of the product of two independent factors of mean 1. By the moments, (1 + sd²)
/// multiplies.
fn deviation([map, ratio]: [f64; 2]) -> f64 {
    ((1.0 + map.powi(2)) * (1.0 + ratio.powi(2)) - 1.0).sqrt()
}

fn printed_numbers(drawn: &[MapShuffleSizes]) -> Vec<Compared> {
    let drawn_with = [3.65, 3.28];
    let ours = deviation(drawn_with);
    // Both deviations used for the draws are printed with two decimals.
    let rounding = deviation(drawn_with.map(|printed| printed + 0.005)) - ours;
    let printed = Known::text("12.95").printed().with_rounding_before(rounding);
    let shuffle = KnownNumber::exact("standard deviation of the shuffle size", ours, printed);
    let [ninety, ninety_nine] = [0.9, 0.99].map(|part| quantile(drawn, part));
    let beside = |what: &str, ours, known| KnownNumber::mean(what, ours, known).judged();
    vec![
        shuffle.note(WORDS.note("rounded-too", holes![])).judged(),
        beside("90th percentile of max(x, y) as printed", ninety, Known::text("3").printed()),
        beside("99th percentile of max(x, y) as printed", ninety_nine, Known::text("19").printed()),
    ]
}
