//! Section 5.3: mean response under the log-normal workload.
//!
//! Not here: the workload (`gristmill_scheduler::workload::overlap`).

use super::cells::{BOUND, LOADS, PolicyAtLoad, RUNS, find, run_all};
use super::{WORDS, sizes, slowdown};
use crate::judge::{Beside, Known, Seen, every, log_ratio, mean_of, percent};
use crate::words::holes;
use crate::{Block, Claim, Compared, Context, Section};

/// Cell of the printed table: the policy or the bound, the printed number, the reference's with its half
/// width.
struct KnownMean {
    load: f64,
    name: &'static str,
    printed: Option<&'static str>,
    reference: (f64, f64),
}

/// Printed table, with the reference of 20 runs of 2.5 million jobs.
const KNOWN: [KnownMean; 8] = [
    KnownMean { load: 0.75, name: "k-LPS", printed: Some("6.50"), reference: (6.557, 0.047) },
    KnownMean { load: 0.75, name: "MaxSRPT", printed: Some("3.32"), reference: (3.326, 0.012) },
    KnownMean { load: 0.75, name: "SplitSRPT", printed: Some("3.55"), reference: (3.583, 0.013) },
    KnownMean { load: 0.75, name: BOUND, printed: None, reference: (2.361, 0.009) },
    KnownMean { load: 0.9, name: "k-LPS", printed: Some("16.28"), reference: (16.80, 0.33) },
    KnownMean { load: 0.9, name: "MaxSRPT", printed: Some("5.58"), reference: (5.550, 0.049) },
    KnownMean { load: 0.9, name: "SplitSRPT", printed: Some("5.66"), reference: (5.681, 0.038) },
    KnownMean { load: 0.9, name: BOUND, printed: None, reference: (3.280, 0.026) },
];

/// Number of runs of the reference.
const REFERENCE_RUNS: u64 = 20;

pub(super) fn sections(context: &Context<'_>, jobs: usize) -> anyhow::Result<Vec<Section>> {
    let cells = run_all(context, jobs)?;
    let slowdowns = slowdown::figure_9(context, jobs, &cells);
    Ok(vec![means(context, jobs, &cells), sizes::figure_8(context), slowdowns])
}

fn means(context: &Context<'_>, jobs: usize, cells: &[PolicyAtLoad]) -> Section {
    let beside_reference = KNOWN.iter().filter_map(|known| beside_reference(known, cells));
    let beside_printed = KNOWN.iter().filter_map(|known| beside_printed(known, cells));
    let compared = beside_reference.chain(beside_printed).collect();
    let claims = LOADS.iter().filter_map(|&load| order_of_means(load, cells)).collect();
    let holes = holes![runs = RUNS, jobs, seed = context.first_seed];
    WORDS.section("section-5-3-means", holes, vec![Block::Comparison(compared), Block::Claims(claims)])
}

fn beside_reference(known: &KnownMean, cells: &[PolicyAtLoad]) -> Option<Compared> {
    let ours = find(cells, known.load, known.name)?.interval()?;
    let what = format!("load {}, {}, mean response", known.load, known.name);
    Some(Beside::mean(what, ours, Known::mean(known.reference, REFERENCE_RUNS)).judged())
}

/// Compares a mean with the printed number, for which the paper gives no interval.
fn beside_printed(known: &KnownMean, cells: &[PolicyAtLoad]) -> Option<Compared> {
    let ours = find(cells, known.load, known.name)?.interval()?;
    let printed = Known::text(known.printed?).printed();
    let what = format!("load {}, {}, mean response as printed", known.load, known.name);
    Some(Beside::mean(what, ours, printed).note(WORDS.note("as-printed", holes![])).judged())
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
        Seen::above(&log_ratio(&max, &bound), 0.0),
        Seen::above(&over_max, MUCH.ln()),
        Seen::above(&over_split, MUCH.ln()),
        Seen::between(&apart, [0.0, LITTLE.ln()]),
    ];
    let [lps, max, split, bound] = [lps, max, split, bound].map(|means| mean_of(&means).mean);
    let [over_max, over_split, apart] = [over_max, over_split, apart].map(|ratio| percent(&ratio));
    let holes = holes![load, lps, max, split, bound, over_max, over_split, apart];
    Some(WORDS.claim("order-of-means", every(seen), holes))
}
