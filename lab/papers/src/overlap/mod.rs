//! The overlap paper: the overlapping tandem queue, MaxSRPT and SplitSRPT.
//!
//! Not here: the model and the policies (`gristmill_scheduler::sim::fluid`,
//! `gristmill_scheduler::policy`). This module computes only what the paper compares them with.

mod cells;
mod means;
mod progress;
mod random;
mod sizes;
mod slowdown;
#[cfg(test)]
pub(super) mod tests;
mod tight;
mod trace;
mod unstable;

pub(crate) use progress::{ModelProgress, overlapping, traditional};

use crate::prelude::*;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::fluid::{self, FluidSummary};

pub(super) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Largest relative excess that is rounding.
const ROUNDING: f64 = 1e-9;

/// Policies of the experiments by their names here, and in the paper.
const POLICIES: [(&str, &str); 3] =
    [("k-lps:k=100", "k-LPS"), ("max-srpt", "MaxSRPT"), ("split-srpt", "SplitSRPT")];

/// Runs all experiments.
///
/// # Errors
/// A simulation that fails, which is a bug.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    const LOADS: &[f64] = &[0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75];
    let amounts = Amounts {
        trace_loads: context.scaled(&[0.25, 0.75], LOADS, LOADS),
        traces: context.scaled(1, 12, 40),
        trace_jobs_max: usize::MAX,
        table_jobs: context.scaled(20_000, 500_000, 5_000_000),
        reading_jobs: context.scaled(5_000, 80_000, 200_000),
        reading_seeds: context.scaled(3, 10, 20),
    };
    page(context, &amounts)
}

/// Size of the long simulations.
struct Amounts {
    /// Loads of the trace.
    trace_loads: &'static [f64],
    traces: u64,
    /// Number of jobs of each trace, at most. The first ones are used.
    trace_jobs_max: usize,
    /// Number of jobs of each run of the log-normal workload.
    table_jobs: usize,
    /// Number of jobs of the longest runs of each literal reading.
    reading_jobs: usize,
    reading_seeds: u64,
}

fn page(context: &Context<'_>, amounts: &Amounts) -> anyhow::Result<Paper> {
    let mut sections = progress::sections()?;
    (context.progress)("overlap: tight examples and random instances");
    sections.extend([random::section(context)?, tight::corollary_4(context)?, tight::corollary_6(context)?]);
    sections.extend(trace::sections(context, amounts)?);
    sections.extend(means::sections(context, amounts.table_jobs)?);
    sections.push(unstable::section(context, amounts.reading_jobs, amounts.reading_seeds)?);
    Ok(WORDS.paper("overlap", holes![], sections))
}

/// Runs jobs under the policy of this name.
fn simulate(
    policy: &str,
    jobs: impl IntoIterator<Item = Job>,
    mut sink: impl FnMut(&JobRecord),
) -> anyhow::Result<FluidSummary> {
    let mut policy = policy::by_name(policy)?;
    Ok(fluid::run(&mut *policy, jobs, &mut sink)?)
}

/// Returns the total response time of a batch or stream, `[arrival, map, shuffle]`.
fn total(policy: &str, sizes: &[[f64; 3]]) -> anyhow::Result<f64> {
    let mut total = 0.0;
    simulate(policy, jobs_of(sizes), |record| total += record.flow())?;
    Ok(total)
}

fn jobs_of(sizes: &[[f64; 3]]) -> impl Iterator<Item = Job> {
    let job = |&[arrival, map, shuffle]: &[f64; 3]| Job {
        arrival,
        work: PerStation::new(map, shuffle, 0.0),
        ..Job::default()
    };
    sizes.iter().map(job)
}

/// Returns a batch: all jobs arrive at 0.
fn batch(sizes: &[[f64; 2]]) -> Vec<[f64; 3]> {
    sizes.iter().map(|&[map, shuffle]| [0.0, map, shuffle]).collect()
}

/// Returns the arrival, the map and the shuffle work of a job.
fn work(job: &Job) -> [f64; 3] {
    [job.arrival, job.work[Station::Map], job.work[Station::Shuffle]]
}

/// Returns these values in ascending order.
fn in_order(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Returns the distribution of values in ascending order.
fn distribution(name: &str, sorted: &[f64]) -> Series {
    let places = (0..=200).map(|step| (step * (sorted.len() - 1)) / 200);
    let points = places.map(|place| (sorted[place], (place + 1) as f64 / sorted.len() as f64)).collect();
    Series::new(name, points)
}
