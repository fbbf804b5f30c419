//! What the literal readings of MaxSRPT and SplitSRPT give: queues that grow without end.
//!
//! Not here: the readings that give the printed numbers (`table`).

use super::super::{Axis, Block, Cell, Chart, Claim, Column, Context, Section, Series, Table, each};
use super::simulate;
use crate::paper::judge::{Seen, every, log_ratio, mean_of, percent};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::overlap::Poisson;

const LOAD: f64 = 0.75;

/// Lengths of the runs, as parts of the longest: a queue without a steady state keeps its largest jobs for as long as the
/// run lasts, so that the mean grows with the length.
const LENGTHS: [f64; 4] = [1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0, 1.0];

/// Name, call, whether it should be stable.
pub(super) const READINGS: [(&str, &str, bool); 5] = [
    ("MaxSRPT", "max-srpt", true),
    ("SplitSRPT", "split-srpt", true),
    ("MaxSRPT, shuffle serves the head only", "max-srpt:shuffle=head", false),
    ("SplitSRPT, unused shares lost (as printed)", "split-srpt:idle=lost", false),
    ("SplitSRPT, shares handed over only by an empty class", "split-srpt:idle=empty", false),
];

/// A reading counts as unstable if the longest run's mean is this many times that of the one of an eighth of it, and still
/// grows as fast when the length doubles for the last time.
const GROWTH: f64 = 2.0;

/// From the shortest run to the longest the length doubles so often.
const DOUBLINGS: f64 = (LENGTHS.len() - 1) as f64;

/// How a reading does at one length of the runs.
pub(super) struct AtLength {
    pub(super) jobs: usize,
    /// The mean response of each run; the same place is the same seed at every length.
    pub(super) means: Vec<f64>,
    /// The most jobs that were there at once in any run.
    pub(super) most: f64,
}

/// How a reading does over the lengths of the runs.
pub(super) struct Reading {
    pub(super) name: &'static str,
    /// Whether it should be stable.
    pub(super) stable: bool,
    /// The shortest runs first.
    pub(super) lengths: [AtLength; LENGTHS.len()],
}

impl Reading {
    fn intervals(&self) -> impl Iterator<Item = (f64, Interval)> {
        self.lengths.iter().map(|length| (length.jobs as f64, mean_of(&length.means)))
    }

    fn series(&self) -> Series {
        Series::new(self.name, self.intervals().map(|(jobs, mean)| (jobs, mean.mean)).collect())
            .with_half_widths(self.intervals().map(|(_, mean)| mean.half_width.unwrap_or(0.0)).collect())
    }

    fn row(&self) -> Vec<Cell> {
        [Cell::text(self.name)].into_iter().chain(self.intervals().map(|(_, mean)| mean.into())).collect()
    }

    /// By how much the mean response grows, seed by seed: from the shortest runs to the longest, and over the last
    /// doubling. A queue that only fills slowly grows at first, one that is about to burst may at last.
    pub(super) fn claim(&self) -> Claim {
        let [shortest, .., half, longest] = &self.lengths;
        let whole = log_ratio(&longest.means, &shortest.means);
        let last = log_ratio(&longest.means, &half.means);
        let conditions = [(whole, GROWTH.ln()), (last, GROWTH.ln() / DOUBLINGS)];
        let grows = conditions.map(|(growth, limit)| match self.stable {
            true => Seen::below(&growth, limit),
            false => Seen::above(&growth, limit),
        });
        Claim::new(
            "sections 4 and 5",
            format!("{}: {} at load {LOAD}.", self.name, if self.stable { "stable" } else { "unstable" }),
            every(grows),
            format!(
                "mean response {:.1} after {} jobs, {:.1} after {}: {} ({}), over the last doubling {} ({}), by {} seeds \
                 (unstable is more than {GROWTH} times, and {:.0} % over the last doubling); at most {} jobs at once",
                mean_of(&shortest.means).mean,
                shortest.jobs,
                mean_of(&longest.means).mean,
                longest.jobs,
                percent(&whole),
                grows[0].word(),
                percent(&last),
                grows[1].word(),
                longest.means.len(),
                100.0 * (GROWTH.powf(1.0 / DOUBLINGS) - 1.0),
                longest.most
            ),
        )
    }
}

/// Every reading at every length with every seed; the longest runs first, so that no thread is left with one of them at the
/// end.
fn run_all(context: &Context<'_>, jobs: usize, seeds: &[u64]) -> anyhow::Result<[Reading; READINGS.len()]> {
    let lengths = LENGTHS.map(|part| (jobs as f64 * part) as usize);
    let at_length = |jobs: usize| READINGS.into_iter().map(move |(_, call, _)| (call, jobs));
    let cells = lengths.into_iter().rev().flat_map(at_length);
    let items: Vec<(&str, usize, u64)> =
        cells.flat_map(|(call, jobs)| seeds.iter().map(move |&seed| (call, jobs, seed))).collect();
    let results = each(&items, |&(call, jobs, seed)| {
        (context.progress)(&format!("overlap: {call}, {jobs} jobs, seed {seed}"));
        mean_and_most(call, jobs, seed)
    });
    let results = results.into_iter().collect::<anyhow::Result<Vec<[f64; 2]>>>()?;
    let reading = |(name, call, stable)| {
        let at = |jobs: usize| {
            let runs = items
                .iter()
                .zip(&results)
                .filter(|((other, length, _), _)| (*other, *length) == (call, jobs));
            let (means, mosts): (Vec<f64>, Vec<f64>) = runs.map(|(_, &[mean, most])| (mean, most)).unzip();
            AtLength { jobs, means, most: mosts.into_iter().fold(0.0, f64::max) }
        };
        Reading { name, stable, lengths: lengths.map(at) }
    };
    Ok(READINGS.map(reading))
}

pub(super) fn section(context: &Context<'_>, jobs: usize, seeds: u64) -> anyhow::Result<Section> {
    let seeds = context.seeds(seeds);
    let readings = run_all(context, jobs, &seeds)?;
    let chart = Chart::lines(
        "literal-readings",
        format!("mean response against the length of the run, load {LOAD}"),
        [Axis::logarithmic("jobs"), Axis::logarithmic("mean response")],
        readings.iter().map(Reading::series).collect(),
    );
    let [first, ..] = &readings;
    let lengths = first.lengths.iter().map(|length| Column::new(&format!("{} jobs", length.jobs), ""));
    let table = Table::new(
        "literal-readings-table",
        "mean response by length of the run",
        [Column::new("reading", "")].into_iter().chain(lengths).collect(),
        readings.iter().map(Reading::row).collect(),
    );
    let text = format!(
        "Runs of up to {jobs} jobs for each reading, the first jobs of each of {} seeds from {} on; all jobs are waited \
         for.",
        seeds.len(),
        context.first_seed
    );
    Ok(super::section(
        "literal-readings",
        "The literal readings of Algorithms 1 and 2 do not carry the paper's loads",
        &[WHY, &text],
        vec![
            Block::Chart(chart),
            Block::Table(table),
            Block::Claims(readings.iter().map(Reading::claim).collect()),
        ],
    ))
}

const WHY: &str = "Section 4.1 asks of MaxSRPT's shuffle only that it serves the head of the order; while \
                   the head is map-heavy the rest of the network idles. Algorithm 2 gives SplitSRPT's \
                   classes fixed shares; each class brings 0.784 of the load to its heavy station, but gets \
                   b/(1+b) of it, and b, the least imbalance of any job present, tends to 1 as the system \
                   fills. Neither can be what section 5 ran: these queues grow without end; the mean \
                   response then depends on how long one looks.";

/// Mean response, and most jobs present.
fn mean_and_most(call: &str, jobs: usize, seed: u64) -> anyhow::Result<[f64; 2]> {
    let mut flow = 0.0;
    let summary = simulate(call, Poisson::new(LOAD, seed)?.take(jobs), |record| flow += record.flow())?;
    Ok([flow / jobs as f64, summary.jobs_max as f64])
}
