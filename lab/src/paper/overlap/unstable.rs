//! What the literal readings of MaxSRPT and SplitSRPT give: queues that grow without end.
//!
//! Not here: the readings that give the printed numbers (`table`).

use super::super::{Axis, Block, Cell, Chart, Claim, Column, Context, Section, Series, Table, each};
use super::simulate;
use gristmill_scheduler::workload::overlap::Poisson;

const LOAD: f64 = 0.75;

/// Lengths of the runs, as parts of the longest: a queue without a steady state keeps its largest jobs for as long as the
/// run lasts, so that the mean grows with the length.
const LENGTHS: [f64; 5] = [1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0, 1.0];

/// Name, call, whether it should be stable.
pub(super) const READINGS: [(&str, &str, bool); 5] = [
    ("MaxSRPT", "max-srpt", true),
    ("SplitSRPT", "split-srpt", true),
    ("MaxSRPT, shuffle serves the head only", "max-srpt:shuffle=head", false),
    ("SplitSRPT, unused shares lost (as printed)", "split-srpt:idle=lost", false),
    ("SplitSRPT, shares handed over only by an empty class", "split-srpt:idle=empty", false),
];

/// A reading counts as unstable if the longest run's mean is this many times that of the one of an eighth of it.
const GROWTH: f64 = 2.0;

/// How a reading does over the lengths of the runs.
pub(super) struct Reading {
    pub(super) name: &'static str,
    /// Whether it should be stable.
    pub(super) stable: bool,
    /// Number of jobs, their mean response and the most that were there at once; the shortest run first.
    pub(super) runs: Vec<(f64, [f64; 2])>,
}

impl Reading {
    fn series(&self) -> Series {
        Series::new(self.name, self.runs.iter().map(|&(jobs, [mean, _])| (jobs, mean)).collect())
    }

    fn row(&self) -> Vec<Cell> {
        let means = self.runs.iter().map(|&(_, [mean, _])| Cell::number(mean));
        [Cell::text(self.name)].into_iter().chain(means).collect()
    }

    pub(super) fn claim(&self) -> anyhow::Result<Claim> {
        let [_, (short, [early, _]), .., (long, [late, most])] = self.runs[..] else {
            anyhow::bail!("`{}` has {} runs", self.name, self.runs.len());
        };
        let grows = GROWTH < late / early;
        Ok(Claim::new(
            "sections 4 and 5",
            format!("{}: {} at load {LOAD}.", self.name, if self.stable { "stable" } else { "unstable" }),
            grows != self.stable,
            format!(
                "mean response {early:.1} after {short} jobs, {late:.1} after {long} (more than {GROWTH} times counts \
                 as unstable); at most {most} jobs at once"
            ),
        ))
    }
}

fn length(jobs: usize, part: f64) -> usize {
    (jobs as f64 * part) as usize
}

/// Every reading at every length; the longest runs first, so that no thread is left with one of them at the end.
fn run_all(context: &Context<'_>, jobs: usize) -> anyhow::Result<Vec<Reading>> {
    let items: Vec<(&str, usize)> = LENGTHS
        .iter()
        .rev()
        .flat_map(|&part| READINGS.map(|(_, call, _)| (call, length(jobs, part))))
        .collect();
    let results = each(&items, |&(call, jobs)| {
        (context.progress)(&format!("overlap: {call}, {jobs} jobs"));
        mean_and_most(call, jobs, context.seed)
    });
    let results = results.into_iter().collect::<anyhow::Result<Vec<[f64; 2]>>>()?;
    let reading = |(name, call, stable)| {
        let runs = items.iter().zip(&results).rev().filter(|((other, _), _)| *other == call);
        Reading { name, stable, runs: runs.map(|(&(_, jobs), &result)| (jobs as f64, result)).collect() }
    };
    Ok(READINGS.map(reading).into())
}

pub(super) fn section(context: &Context<'_>) -> anyhow::Result<Section> {
    let jobs = context.scaled(100_000, 400_000, 1_000_000);
    let readings = run_all(context, jobs)?;
    let chart = Chart::lines(
        "literal-readings",
        format!("mean response against the length of the run, load {LOAD}"),
        [Axis::logarithmic("jobs"), Axis::logarithmic("mean response")],
        readings.iter().map(Reading::series).collect(),
    );
    let lengths = LENGTHS.map(|part| Column::new(&format!("{} jobs", length(jobs, part)), ""));
    let table = Table::new(
        "literal-readings-table",
        "mean response by length of the run",
        [Column::new("reading", "")].into_iter().chain(lengths).collect(),
        readings.iter().map(Reading::row).collect(),
    );
    let claims = readings.iter().map(Reading::claim).collect::<anyhow::Result<_>>()?;
    let seed = format!(
        "Runs of up to {jobs} jobs for each reading, the first jobs of seed {}; all jobs are waited for.",
        context.seed
    );
    Ok(super::section(
        "literal-readings",
        "The literal readings of Algorithms 1 and 2 do not carry the paper's loads",
        &[WHY, &seed],
        vec![Block::Chart(chart), Block::Table(table), Block::Claims(claims)],
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
