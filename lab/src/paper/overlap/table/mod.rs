//! Section 5.3: mean response and slowdown by size under the log-normal workload.
//!
//! Not here: the workload (`scheduler::workload::overlap`).

mod cells;
mod sizes;
mod slowdown;

use super::{judged, section};
use crate::paper::{Block, Claim, Compared, Context, Section};
use cells::{PolicyAtLoad, find};

const LOADS: [f64; 2] = [0.75, 0.9];
/// Runs of each cell, with seeds of their own.
const RUNS: u64 = 10;

/// Stands for a policy where the lower bound is meant.
const BOUND: &str = "lower bound";

/// Of a cell: the policy or the bound, the printed number, the reference's with its half width.
struct KnownMean {
    load: f64,
    name: &'static str,
    printed: Option<f64>,
    reference: (f64, f64),
}

/// The printed table, beside the reference of 20 runs of 2.5 million jobs.
const KNOWN: [KnownMean; 8] = [
    KnownMean { load: 0.75, name: "k-LPS", printed: Some(6.50), reference: (6.557, 0.047) },
    KnownMean { load: 0.75, name: "MaxSRPT", printed: Some(3.32), reference: (3.326, 0.012) },
    KnownMean { load: 0.75, name: "SplitSRPT", printed: Some(3.55), reference: (3.583, 0.013) },
    KnownMean { load: 0.75, name: BOUND, printed: None, reference: (2.361, 0.009) },
    KnownMean { load: 0.9, name: "k-LPS", printed: Some(16.28), reference: (16.80, 0.33) },
    KnownMean { load: 0.9, name: "MaxSRPT", printed: Some(5.58), reference: (5.550, 0.049) },
    KnownMean { load: 0.9, name: "SplitSRPT", printed: Some(5.66), reference: (5.681, 0.038) },
    KnownMean { load: 0.9, name: BOUND, printed: None, reference: (3.280, 0.026) },
];

pub(super) fn sections(context: &Context<'_>) -> anyhow::Result<Vec<Section>> {
    let jobs = context.scaled(20_000, 500_000, 5_000_000);
    let cells = cells::run_all(context, jobs)?;
    Ok(vec![
        means(context, jobs, &cells),
        sizes::figure_8(context),
        slowdown::figure_9(context, jobs, &cells),
    ])
}

fn means(context: &Context<'_>, jobs: usize, cells: &[PolicyAtLoad]) -> Section {
    let compared: Vec<Compared> = KNOWN.iter().filter_map(|known| compare(context, known, cells)).collect();
    let claims = LOADS.iter().filter_map(|&load| order_of_means(context, load, cells)).collect();
    let seeds = format!(
        "{RUNS} runs of {jobs} jobs for each cell, seeds from {}, the same jobs for every policy; intervals \
         are 95 % (Student's t over the runs). Reference: an independent implementation, 20 runs of 2.5 \
         million jobs.",
        context.seed
    );
    section(
        "section-5-3-means",
        "Section 5.3: mean response time of the synthetic workload",
        &[
            "Map sizes log-normal with mean 1 and standard deviation 3.65; the ratio of shuffle to map size \
             log-normal with mean 1 and standard deviation 3.28; Poisson arrivals. Load is the rate of \
             arrivals.",
            &seeds,
        ],
        vec![Block::Comparison(compared), Block::Claims(claims)],
    )
}

fn compare(context: &Context<'_>, known: &KnownMean, cells: &[PolicyAtLoad]) -> Option<Compared> {
    let ours = find(cells, known.load, known.name)?.interval()?;
    let half_width = ours.half_width.unwrap_or(0.0);
    let (reference, reference_half_width) = known.reference;
    let overlaps = (ours.mean - reference).abs() <= half_width + reference_half_width;
    let gap = known.printed.map(|printed| 100.0 * (ours.mean - printed) / printed);
    let note = match gap {
        Some(gap) => format!("{gap:+.1} % of the printed number"),
        None => "printed only as a curve".to_owned(),
    };
    Some(Compared {
        printed: known.printed,
        reference: Some(known.reference),
        half_width: ours.half_width,
        note,
        ..Compared::new(
            format!("load {}, {}, mean response", known.load, known.name),
            ours.mean,
            judged(context, overlaps),
        )
    })
}

/// What the paper says of the means at a load; `None` without all of them.
fn order_of_means(context: &Context<'_>, load: f64, cells: &[PolicyAtLoad]) -> Option<Claim> {
    let mean = |name: &str| Some(find(cells, load, name)?.interval()?.mean);
    let (lps, max, split, bound) = (mean("k-LPS")?, mean("MaxSRPT")?, mean("SplitSRPT")?, mean(BOUND)?);
    Some(Claim::new(
        format!("section 5.3, load {load}"),
        "Both algorithms are much better than k-LPS, MaxSRPT a little better than SplitSRPT.",
        judged(context, bound < max && max < split && split < lps),
        format!(
            "k-LPS {lps:.2}, SplitSRPT {split:.3}, MaxSRPT {max:.3}, lower bound {bound:.3}: {:.2}, {:.2} \
             and {:.2} times the bound",
            lps / bound,
            split / bound,
            max / bound
        ),
    ))
}
