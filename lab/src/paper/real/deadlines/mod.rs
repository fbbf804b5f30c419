//! The deadlines paper on real execution: its four experiments with sleeping twins of its jobs on twenty workers, and
//! with WordCount and Join that really count and join.
//!
//! Not here: the same scenario in the cluster simulator (`paper::deadlines`).

pub(super) mod claims;
pub(super) mod estimates;
pub(super) mod real_jobs;
mod twins;

use super::RealContext;
use super::common::cluster;
use super::judging::would_tell;
use crate::compare::RunRecord;
use crate::paper::judge::{Seen, every};
use crate::paper::{Claim, Paper, Verdict};
use crate::report::number::with_interval;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::deadlines::SLOTS;
use gristmill_worker::protocol::SlotCounts;

/// Workers with a map slot and a reduce slot each: a third of the paper's, with a third of its maps.
const WORKERS: u32 = 20;

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    // A second of the paper, in seconds here.
    let second = context.scaled(1.0 / 800.0, 1.0 / 200.0, 1.0 / 100.0);
    let mut sections = twins::sections(context, second)?;
    sections.push(real_jobs::section(context)?);
    Ok(Paper {
        name: "deadlines",
        title: "J. Polo, D. Carrera, Y. Becerra, J. Torres, E. Ayguadé, M. Steinder, I. Whalley: \
                Performance-Driven Task Co-Scheduling for MapReduce Environments (NOMS 2010)",
        about: vec![
            format!(
                "The paper ran Simulator, WordCount and two Joins on {SLOTS} nodes for hours. Here \
                 {WORKERS} worker processes with a map slot and a reduce slot each run their twins: tasks \
                 sleep for the paper's times, {:.0} times shorter, and there is a third of the maps for a \
                 third of the slots. Everything else is real: launches, shuffle, commits, estimates from \
                 finished maps.",
                1.0 / second
            ),
            "The last section runs WordCount and Join on data, with slots paced so that this machine's \
             processors suffice, and a sleeping Simulator beside them; goals are the paper's multiples of \
             each job's time alone."
                .to_owned(),
        ],
        sections,
    })
}

/// So many workers with a slot for maps and one for reduces.
fn pooled(workers: u32) -> ClusterConfig {
    let mut config = cluster(workers, 2);
    config.workers.each.slots = SlotCounts::Pools { map: 1, reduce: 1 };
    config.deciders.estimator = "tasks".to_owned();
    config
}

/// A claim that each of these means over runs is between its limits: by what their intervals say, and what would tell
/// where they say nothing.
fn claim(
    place: &str,
    statement: &str,
    runs: &[RunRecord],
    conditions: &[(Interval, [f64; 2])],
    evidence: &str,
) -> Claim {
    let verdict = every([Seen::all(conditions.iter().map(|(mean, limits)| Seen::between(mean, *limits)))]);
    let nearest = |(mean, [low, high]): &(Interval, [f64; 2])| {
        (*mean, if (mean.mean - low).abs() < (mean.mean - high).abs() { *low } else { *high })
    };
    let needed = match verdict {
        Verdict::Open => would_tell(runs, &conditions.iter().map(nearest).collect::<Vec<_>>()),
        _ => String::new(),
    };
    Claim::new(place, statement, verdict, format!("{evidence}; {} run(s){needed}", runs.len()))
}

/// Limits of what is above or below a number.
fn above(limit: f64) -> [f64; 2] {
    [limit, f64::INFINITY]
}

fn below(limit: f64) -> [f64; 2] {
    [f64::NEG_INFINITY, limit]
}

/// A mean of parts in percent, with its interval if there is one.
fn percent_points(part: &Interval) -> String {
    with_interval(100.0 * part.mean, part.half_width.map(|half_width| 100.0 * half_width))
}
