//! Pieces of the experiments: the cluster, and claims about means.

use super::super::common::cluster;
use super::WORDS;
use crate::prelude::*;
use gristmill_lab::compare::RunRecord;
use gristmill_lab::report::number::with_interval;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::plural::counted;
use gristmill_worker::protocol::Slots;

/// Number of workers, with a map slot and a reduce slot each: a third of the paper's, with a third of its
/// maps.
pub(super) const WORKERS: u32 = 20;

/// Returns a cluster of this many workers with one map slot and one reduce slot each.
pub(super) fn pooled(workers: u32) -> ClusterConfig {
    let mut config = cluster(workers, 2);
    config.workers.each.slots = Slots::Pools { map: 1, reduce: 1 };
    config.deciders.estimator = "tasks".to_owned();
    config
}

/// Judges a claim that each of these means over runs is between its limits.
pub(super) fn claim(
    key: &str,
    runs: &[RunRecord],
    conditions: &[(Interval, [f64; 2])],
    holes: Holes<'_>,
) -> Claim {
    let seen = CaseVerdict::all(conditions.iter().map(|(mean, limits)| CaseVerdict::between(mean, *limits)));
    let of_runs = holes![runs = counted(runs.len() as u64, "run", "runs")];
    WORDS.claim(key, every([seen]), &[holes, of_runs].concat())
}

/// Returns the limits for a value above a number.
pub(super) fn above(limit: f64) -> [f64; 2] {
    [limit, f64::INFINITY]
}

pub(super) fn below(limit: f64) -> [f64; 2] {
    [f64::NEG_INFINITY, limit]
}

/// Formats a mean of fractions in percent, with its interval if there is one.
pub(super) fn percent_points(part: &Interval) -> String {
    with_interval(100.0 * part.mean, part.half_width.map(|half_width| 100.0 * half_width))
}
