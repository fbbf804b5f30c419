//! Pieces of the experiments: amounts, policies, runs of the fluid model, and distributions.

use crate::prelude::*;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::fluid::{self, FluidSummary};

/// Largest relative excess that is rounding.
pub(super) const ROUNDING: f64 = 1e-9;

/// Policies of the experiments by their names here, and in the paper.
pub(super) const POLICIES: [(&str, &str); 3] =
    [("k-lps:k=100", "k-LPS"), ("max-srpt", "MaxSRPT"), ("split-srpt", "SplitSRPT")];

/// Size of the long simulations.
pub(super) struct Amounts {
    /// Loads of the trace.
    pub(super) trace_loads: &'static [f64],
    pub(super) traces: u64,
    /// Number of jobs of each trace, at most. The first ones are used.
    pub(super) trace_jobs_max: usize,
    /// Number of jobs of each run of the log-normal workload.
    pub(super) table_jobs: usize,
    /// Number of jobs of the longest runs of each literal reading.
    pub(super) reading_jobs: usize,
    pub(super) reading_seeds: u64,
}

/// Runs jobs under the policy of this name.
pub(super) fn simulate(
    policy: &str,
    jobs: impl IntoIterator<Item = Job>,
    mut sink: impl FnMut(&JobRecord),
) -> anyhow::Result<FluidSummary> {
    let mut policy = policy::by_name(policy)?;
    Ok(fluid::run(&mut *policy, jobs, &mut sink)?)
}

/// Returns the total response time of a batch or stream, `[arrival, map, shuffle]`.
pub(super) fn total(policy: &str, sizes: &[[f64; 3]]) -> anyhow::Result<f64> {
    let mut total = 0.0;
    simulate(policy, jobs_of(sizes), |record| total += record.flow())?;
    Ok(total)
}

pub(super) fn jobs_of(sizes: &[[f64; 3]]) -> impl Iterator<Item = Job> {
    let job = |&[arrival, map, shuffle]: &[f64; 3]| Job {
        arrival,
        work: PerStation::new(map, shuffle, 0.0),
        ..Job::default()
    };
    sizes.iter().map(job)
}

/// Returns a batch: all jobs arrive at 0.
pub(super) fn batch(sizes: &[[f64; 2]]) -> Vec<[f64; 3]> {
    sizes.iter().map(|&[map, shuffle]| [0.0, map, shuffle]).collect()
}

/// Returns the arrival, the map and the shuffle work of a job.
pub(super) fn work(job: &Job) -> [f64; 3] {
    [job.arrival, job.work[Station::Map], job.work[Station::Shuffle]]
}

/// Returns these values in ascending order.
pub(super) fn in_order(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Returns the distribution of values in ascending order.
pub(super) fn distribution(name: &str, sorted: &[f64]) -> Series {
    let places = (0..=200).map(|step| (step * (sorted.len() - 1)) / 200);
    let points = places.map(|place| (sorted[place], (place + 1) as f64 / sorted.len() as f64)).collect();
    Series::new(name, points)
}
