//! Figure 8 and the percentiles of the text: the sizes that are drawn.

use super::super::section;
use super::LOADS;
use crate::paper::judge::{Beside, Known, mean_of};
use crate::paper::{Axis, Block, Chart, Compared, Context, Section, Series};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::overlap::Poisson;

/// Sizes of jobs, map and shuffle.
struct Drawn(Vec<[f64; 2]>);

impl Drawn {
    fn new(context: &Context<'_>) -> Self {
        let jobs = context.scaled(20_000, 1_000_000, 1_000_000);
        let generated =
            Poisson::new(LOADS[0], context.first_seed).into_iter().flat_map(|generator| generator.take(jobs));
        Self(generated.map(|job| [job.work[Station::Map], job.work[Station::Shuffle]]).collect())
    }

    fn sorted(&self, value: impl Fn(&[f64; 2]) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.0.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }
}

/// The distribution of values in rising order.
fn distribution(name: &str, sorted: &[f64]) -> Series {
    let places = (0..=200).map(|step| (step * (sorted.len() - 1)) / 200);
    let points = places.map(|place| (sorted[place], (place + 1) as f64 / sorted.len() as f64)).collect();
    Series::new(name, points)
}

pub(super) fn figure_8(context: &Context<'_>) -> Section {
    let drawn = Drawn::new(context);
    let largest = drawn.sorted(|sizes| sizes[0].max(sizes[1]));
    let chart = Chart::lines(
        "figure-8",
        "distribution of the sizes",
        [Axis::logarithmic("size"), Axis::linear("part of the jobs that are no larger")],
        vec![
            distribution("map", &drawn.sorted(|sizes| sizes[0])),
            distribution("shuffle", &drawn.sorted(|sizes| sizes[1])),
            distribution("max(x, y)", &largest),
        ],
    );
    section(
        "figure-8",
        "Figure 8: sizes in the unfairness experiments",
        &["A job's shuffle size is its map size times the ratio, so both are log-normal and correlated."],
        vec![Block::Chart(chart), Block::Comparison(printed_numbers(&drawn))],
    )
}

/// Parts of the draws that are taken as samples of a quantile.
const BATCHES: usize = 20;

/// A quantile of max(x, y), with the interval of those of the batches.
fn quantile(drawn: &Drawn, part: f64) -> Interval {
    let of_batch = |batch: &[[f64; 2]]| {
        let mut largest: Vec<f64> = batch.iter().map(|sizes| sizes[0].max(sizes[1])).collect();
        largest.sort_unstable_by(f64::total_cmp);
        largest[((largest.len() - 1) as f64 * part) as usize]
    };
    let length = (drawn.0.len() / BATCHES).max(1);
    mean_of(&drawn.0.chunks_exact(length).map(of_batch).collect::<Vec<f64>>())
}

/// The deviation of the product of two independent factors of mean 1: by the moments, (1 + sd²) multiplies.
fn deviation([map, ratio]: [f64; 2]) -> f64 {
    ((1.0 + map.powi(2)) * (1.0 + ratio.powi(2)) - 1.0).sqrt()
}

fn printed_numbers(drawn: &Drawn) -> Vec<Compared> {
    let drawn_with = [3.65, 3.28];
    let ours = deviation(drawn_with);
    // Both of the deviations that are drawn with are printed with two decimals.
    let rounding = deviation(drawn_with.map(|printed| printed + 0.005)) - ours;
    let [ninety, ninety_nine] = [0.9, 0.99].map(|part| quantile(drawn, part));
    vec![
        Beside::exact(
            "standard deviation of the shuffle size",
            ours,
            Known::text("12.95").printed().with_rounding_before(rounding),
        )
        .note("from the two that are drawn, which are rounded too")
        .judged(),
        Beside::mean("90th percentile of max(x, y)", ninety, Known::text("2.86")).judged(),
        Beside::mean("90th percentile of max(x, y) as printed", ninety, Known::text("3").printed()).judged(),
        Beside::mean("99th percentile of max(x, y)", ninety_nine, Known::text("19.7")).judged(),
        Beside::mean("99th percentile of max(x, y) as printed", ninety_nine, Known::text("19").printed())
            .judged(),
    ]
}
