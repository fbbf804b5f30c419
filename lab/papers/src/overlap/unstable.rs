//! The literal readings of MaxSRPT and SplitSRPT, under which queues grow without bound.
//!
//! Not here: the readings that give the printed numbers (`table`).

use super::WORDS;
use super::common::simulate;
use crate::prelude::*;
use gristmill_scheduler::workload::overlap::Poisson;

const LOAD: f64 = 0.75;

/// Lengths of the runs, as fractions of the longest. A queue without a steady state keeps its largest
/// jobs until the end of the run, so the mean grows with the length.
const LENGTHS: [f64; 4] = [1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0, 1.0];

/// Name, call, and true if it should be stable.
pub(super) const READINGS: [(&str, &str, bool); 5] = [
    ("MaxSRPT", "max-srpt", true),
    ("SplitSRPT", "split-srpt", true),
    ("MaxSRPT, shuffle serves the head only", "max-srpt:shuffle=head", false),
    ("SplitSRPT, unused shares lost (as printed)", "split-srpt:idle=lost", false),
    ("SplitSRPT, shares handed over only by an empty class", "split-srpt:idle=empty", false),
];

/// Smallest ratio of means that counts as unstable: the longest run's mean to that of a run of an eighth
/// of its length. The mean must also still grow at this rate when the length doubles for the last time.
const GROWTH: f64 = 2.0;

/// Number of doublings of the length from the shortest run to the longest.
const DOUBLINGS: f64 = (LENGTHS.len() - 1) as f64;

/// Result of a reading at one length of the runs.
pub(super) struct AtLength {
    pub(super) jobs: usize,
    /// Mean response of each run. The same index has the same seed at every length.
    pub(super) means: Vec<f64>,
    /// Largest number of jobs present at once in any run.
    pub(super) most: f64,
}

/// Results of a reading over the lengths of the runs.
pub(super) struct LiteralReading {
    pub(super) name: &'static str,
    /// True if it should be stable.
    pub(super) stable: bool,
    /// Results by length, shortest runs first.
    pub(super) lengths: [AtLength; LENGTHS.len()],
}

impl LiteralReading {
    fn intervals(&self) -> impl Iterator<Item = (f64, Interval)> {
        self.lengths.iter().map(|length| (length.jobs as f64, mean_of(&length.means)))
    }

    /// Judges the growth of the mean response, seed by seed: from the shortest runs to the longest, and
    /// over the last doubling. A queue that only fills slowly grows at first. One that is about to burst
    /// may grow only at the end.
    pub(super) fn claim(&self) -> Claim {
        let [shortest, .., half, longest] = &self.lengths;
        let whole = log_ratio(&longest.means, &shortest.means);
        let last = log_ratio(&longest.means, &half.means);
        let conditions = [(whole, GROWTH.ln()), (last, GROWTH.ln() / DOUBLINGS)];
        let grows = conditions.map(|(growth, limit)| match self.stable {
            true => CaseVerdict::below(&growth, limit),
            false => CaseVerdict::above(&growth, limit),
        });
        let holes = holes![
            name = self.name,
            stable = if self.stable { "stable" } else { "unstable" },
            load = LOAD,
            first = mean_of(&shortest.means).mean,
            few = shortest.jobs,
            last = mean_of(&longest.means).mean,
            many = longest.jobs,
            whole = percent(&whole),
            grows = grows[0].word(),
            doubling = percent(&last),
            still_grows = grows[1].word(),
            seeds = longest.means.len(),
            growth = GROWTH,
            each = 100.0 * (GROWTH.powf(1.0 / DOUBLINGS) - 1.0),
            most = longest.most,
        ];
        WORDS.claim("reading", every(grows), holes)
    }
}

/// Runs every reading at every length with every seed. The longest runs come first, so that no thread
/// runs one of them alone at the end.
fn run_all(
    context: &Context<'_>,
    jobs: usize,
    seeds: &[u64],
) -> anyhow::Result<[LiteralReading; READINGS.len()]> {
    let lengths = LENGTHS.map(|part| (jobs as f64 * part) as usize);
    let at_length = |jobs: usize| READINGS.into_iter().map(move |(_, call, _)| (call, jobs));
    let cells: Vec<(&str, usize)> = lengths.into_iter().rev().flat_map(at_length).collect();
    let runs = each_cell(&cells, seeds, |&(call, jobs), &seed| {
        (context.progress)(&format!("overlap: {call}, {jobs} jobs, seed {seed}"));
        mean_and_most(call, jobs, seed)
    })?;
    let reading = |(name, call, stable)| {
        let at = |jobs: usize| {
            let same = cells.iter().zip(&runs).filter(|(cell, _)| **cell == (call, jobs));
            let (means, mosts): (Vec<f64>, Vec<f64>) =
                same.flat_map(|(_, runs)| runs).map(|&[mean, most]| (mean, most)).unzip();
            AtLength { jobs, means, most: mosts.into_iter().fold(0.0, f64::max) }
        };
        LiteralReading { name, stable, lengths: lengths.map(at) }
    };
    Ok(READINGS.map(reading))
}

pub(super) fn section(context: &Context<'_>, jobs: usize, seeds: u64) -> anyhow::Result<Section> {
    let seeds = context.seeds(seeds);
    let readings = run_all(context, jobs, &seeds)?;
    let series = readings.iter().map(|reading| Series::means(reading.name, reading.intervals()));
    let chart = WORDS.chart("literal-readings", holes![load = LOAD], series.collect());
    let claims = Block::Claims(readings.iter().map(LiteralReading::claim).collect());
    let holes = holes![jobs, seeds = seeds.len(), seed = context.first_seed];
    Ok(WORDS.section("literal-readings", holes, vec![chart, claims]))
}

/// Returns the mean response, and the largest number of jobs present.
fn mean_and_most(call: &str, jobs: usize, seed: u64) -> anyhow::Result<[f64; 2]> {
    let mut flow = 0.0;
    let summary = simulate(call, Poisson::new(LOAD, seed)?.take(jobs), |record| flow += record.flow())?;
    Ok([flow / jobs as f64, summary.jobs_max as f64])
}
