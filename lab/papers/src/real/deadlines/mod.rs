//! The deadlines paper on real execution: its four experiments with sleeping twins of its jobs on twenty
//! workers.
//!
//! Not here: the same scenario in the cluster simulator (`crate::deadlines`).

pub(super) mod estimates;
pub(super) mod goals;
mod twin_jobs;
mod twins;

use super::RealContext;
use super::common::cluster;
use crate::prelude::*;
use crate::workload::deadlines::SLOTS;
use gristmill_lab::compare::RunRecord;
use gristmill_lab::report::number::with_interval;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::plural::counted;
use gristmill_worker::protocol::Slots;

pub(super) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Number of workers, with a map slot and a reduce slot each: a third of the paper's, with a third of its
/// maps.
const WORKERS: u32 = 20;

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    // One second of the paper, in seconds of this run.
    let second = context.scaled(1.0 / 800.0, 1.0 / 200.0, 1.0 / 100.0);
    let sections = twins::sections(context, second)?;
    let holes = holes![nodes = SLOTS, workers = WORKERS, shorter = 1.0 / second];
    Ok(WORDS.paper("deadlines", holes, sections))
}

/// Returns a cluster of this many workers with one map slot and one reduce slot each.
fn pooled(workers: u32) -> ClusterConfig {
    let mut config = cluster(workers, 2);
    config.workers.each.slots = Slots::Pools { map: 1, reduce: 1 };
    config.deciders.estimator = "tasks".to_owned();
    config
}

/// Judges a claim that each of these means over runs is between its limits.
fn claim(key: &str, runs: &[RunRecord], conditions: &[(Interval, [f64; 2])], holes: Holes<'_>) -> Claim {
    let seen = Seen::all(conditions.iter().map(|(mean, limits)| Seen::between(mean, *limits)));
    let of_runs = holes![runs = counted(runs.len() as u64, "run", "runs")];
    WORDS.claim(key, every([seen]), &[holes, of_runs].concat())
}

/// Returns the limits for a value above a number.
fn above(limit: f64) -> [f64; 2] {
    [limit, f64::INFINITY]
}

fn below(limit: f64) -> [f64; 2] {
    [f64::NEG_INFINITY, limit]
}

/// Formats a mean of fractions in percent, with its interval if there is one.
fn percent_points(part: &Interval) -> String {
    with_interval(100.0 * part.mean, part.half_width.map(|half_width| 100.0 * half_width))
}
