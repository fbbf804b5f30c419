//! Section 5.3: means of each policy at each load beside the paper's, and the claims about them.

use super::WORDS;
use super::cells::{BOUND, LOADS, PolicyAtLoad, RUNS, find, run_all};
use super::{sizes, slowdown};
use crate::prelude::*;

/// Load, policy, and its printed mean.
const PRINTED: [(f64, &str, &str); 6] = [
    (0.75, "k-LPS", "6.50"),
    (0.75, "MaxSRPT", "3.32"),
    (0.75, "SplitSRPT", "3.55"),
    (0.9, "k-LPS", "16.28"),
    (0.9, "MaxSRPT", "5.58"),
    (0.9, "SplitSRPT", "5.66"),
];

pub(super) fn sections(context: &Context<'_>, jobs: usize) -> anyhow::Result<Vec<Section>> {
    let cells = run_all(context, jobs)?;
    let slowdowns = slowdown::figure_9(context, jobs, &cells);
    Ok(vec![means(context, jobs, &cells), sizes::figure_8(context), slowdowns])
}

fn means(context: &Context<'_>, jobs: usize, cells: &[PolicyAtLoad]) -> Section {
    let compared = PRINTED.iter().filter_map(|known| beside_printed(known, cells)).collect();
    let claims = LOADS.iter().filter_map(|&load| order_of_means(load, cells)).collect();
    let holes = holes![runs = RUNS, jobs, seed = context.first_seed];
    WORDS.section("section-5-3-means", holes, vec![Block::Comparison(compared), Block::Claims(claims)])
}

/// Compares a mean with the printed number, for which the paper gives no interval.
fn beside_printed((load, name, printed): &(f64, &str, &str), cells: &[PolicyAtLoad]) -> Option<Compared> {
    let ours = Interval::from_samples(&find(cells, *load, name)?.means())?;
    let printed = Known::text(printed).printed();
    let what = format!("load {load}, {name}, mean response as printed");
    Some(KnownNumber::mean(what, ours, printed).note(WORDS.note("as-printed", holes![])).judged())
}

/// Smallest ratio that counts as "much better". "A little better" is a ratio of at most a tenth above 1.
const MUCH: f64 = 1.5;
const LITTLE: f64 = 1.1;

/// Returns the paper's claim about the means at a load; `None` without all of them.
pub(super) fn order_of_means(load: f64, cells: &[PolicyAtLoad]) -> Option<Claim> {
    let means = |name: &str| Some(find(cells, load, name)?.means());
    let (lps, max, split, bound) = (means("k-LPS")?, means("MaxSRPT")?, means("SplitSRPT")?, means(BOUND)?);
    let (over_max, over_split) = (log_ratio(&lps, &max), log_ratio(&lps, &split));
    let apart = log_ratio(&split, &max);
    let seen = [
        CaseVerdict::above(&log_ratio(&max, &bound), 0.0),
        CaseVerdict::above(&over_max, MUCH.ln()),
        CaseVerdict::above(&over_split, MUCH.ln()),
        CaseVerdict::between(&apart, [0.0, LITTLE.ln()]),
    ];
    let [lps, max, split, bound] = [lps, max, split, bound].map(|means| mean_of(&means).mean);
    let [over_max, over_split, apart] = [over_max, over_split, apart].map(|ratio| percent(&ratio));
    let holes = holes![load, lps, max, split, bound, over_max, over_split, apart];
    Some(WORDS.claim("order-of-means", every(seen), holes))
}
