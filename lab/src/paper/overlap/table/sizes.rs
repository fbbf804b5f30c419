//! Figure 8 and the percentiles of the text: the sizes that are drawn.

use super::super::section;
use super::LOADS;
use crate::paper::{Axis, Block, Chart, Compared, Context, Section, Series};
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::overlap::Poisson;

/// Sizes of jobs, map and shuffle.
struct Drawn(Vec<[f64; 2]>);

impl Drawn {
    fn new(context: &Context<'_>) -> Self {
        let jobs = context.scaled(20_000, 1_000_000, 1_000_000);
        let generated =
            Poisson::new(LOADS[0], context.seed).into_iter().flat_map(|generator| generator.take(jobs));
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
        vec![Block::Chart(chart), Block::Comparison(printed_numbers(context, &largest))],
    )
}

fn printed_numbers(context: &Context<'_>, largest: &[f64]) -> Vec<Compared> {
    let near = |what: &str, [printed, reference]: [f64; 2], ours: f64, tolerance: f64, note: &str| Compared {
        printed: Some(printed),
        reference: Some((reference, 0.0)),
        note: note.to_owned(),
        ..Compared::new(what, ours, (ours - reference).abs() <= tolerance * reference)
    };
    let part = |part: f64| largest[((largest.len() - 1) as f64 * part) as usize];
    // Exactly, by the log-normal moments: (1 + sd²) multiplies.
    let deviation = ((1.0 + 3.65_f64.powi(2)) * (1.0 + 3.28_f64.powi(2)) - 1.0).sqrt();
    let from_moments = "from the two that are drawn";
    // A quantile of so many jobs is within a few percent.
    let tolerance = context.scaled(0.15, 0.03, 0.03);
    let rounded = "the text rounds";
    vec![
        near("standard deviation of the shuffle size", [12.95, 12.95], deviation, 0.005, from_moments),
        near("90th percentile of max(x, y)", [3.0, 2.86], part(0.9), tolerance, rounded),
        near("99th percentile of max(x, y)", [19.0, 19.7], part(0.99), tolerance, rounded),
    ]
}
