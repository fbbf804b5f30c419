//! What came out, as a table, as JSON, and as lines of jobs.

use super::model::System;
use super::{PolicyRuns, SimCommand, SimModel};
use crate::text_table::aligned;
use gristmill_lab::report::number;
use gristmill_scheduler::metrics::{Bucket, Interval, JobRecord, Metric, SKETCH_ERROR, Sketch};
use gristmill_scheduler::station::PerStation;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Columns of the lines of jobs. Times in seconds since the start (slots, in the slotted model).
pub const CSV_HEADER: &str =
    "policy,seed,job,arrival,start,maps_done,completion,flow,map,shuffle,reduce,goal,weight";

/// Writes the line of a job.
pub fn csv_line(file: &mut dyn Write, policy: &str, seed: u64, record: &JobRecord) -> std::io::Result<()> {
    // A policy with parameters has commas.
    let quoted = if policy.contains(',') { format!("\"{policy}\"") } else { policy.to_owned() };
    let goal = record.deadline.map_or(String::new(), |deadline| deadline.seconds().to_string());
    let PerStation([map, shuffle, reduce]) = record.work;
    writeln!(
        file,
        "{quoted},{seed},{},{},{},{},{},{},{map},{shuffle},{reduce},{goal},{}",
        record.seq,
        record.arrival,
        record.start,
        record.maps_done,
        record.completion,
        record.flow(),
        record.weight
    )
}

/// The mean over the seeds; `None` where the metric means nothing in one of them.
pub fn interval(runs: &PolicyRuns, metric: Metric) -> Option<Interval> {
    let values: Option<Vec<f64>> = runs.outcomes.iter().map(|outcome| outcome.value(metric)).collect();
    Interval::of(&values?)
}

/// Metrics of the table unless told otherwise, if they mean anything.
const COLUMNS: [Metric; 9] = [
    Metric::Flow,
    Metric::FlowMedian,
    Metric::FlowP99,
    Metric::Slowdown,
    Metric::Waiting,
    Metric::Makespan,
    Metric::Efficiency,
    Metric::DeadlinesMet,
    Metric::Tardiness,
];

/// A row for each policy and a column for each metric.
pub fn table(metrics: Option<&[Metric]>, runs: &[PolicyRuns]) -> String {
    let known = |metric: &Metric| runs.iter().any(|runs| interval(runs, *metric).is_some());
    let default = || COLUMNS.into_iter().filter(known).collect();
    let metrics: Vec<Metric> = metrics.map_or_else(default, <[Metric]>::to_vec);
    let header = metrics.iter().map(|metric| {
        let declaration = metric.declaration();
        let unit =
            if declaration.unit.is_empty() { String::new() } else { format!(", {}", declaration.unit) };
        format!("{}{unit}", declaration.name)
    });
    let header: Vec<String> = std::iter::once("policy".to_owned()).chain(header).collect();
    let rows = runs.iter().map(|runs| {
        let cells = metrics.iter().map(|&metric| match interval(runs, metric) {
            Some(interval) => number::with_interval(interval.mean, interval.half_width),
            None => number::NOTHING.to_owned(),
        });
        std::iter::once(runs.policy.clone()).chain(cells).collect()
    });
    aligned(&header, rows)
}

/// All metrics of all runs, their distributions, and what was simulated.
pub fn json(
    flags: &SimCommand,
    system: &System<'_>,
    seeds: &[u64],
    runs: &[PolicyRuns],
) -> anyhow::Result<String> {
    let declared: Map<String, Value> = Metric::ALL
        .iter()
        .map(|metric| {
            let declaration = metric.declaration();
            (declaration.name.to_owned(), json!({"unit": declaration.unit, "meaning": declaration.meaning}))
        })
        .collect();
    let policies: Vec<Value> = runs.iter().map(|runs| policy_json(runs, seeds)).collect();
    let capacity: Vec<Option<f64>> =
        system.capacity().map(|value| value.is_finite().then_some(value)).0.to_vec();
    let all = json!({
        "model": model_name(flags.model),
        "workload": flags.workload,
        "capacity": capacity,
        "seeds": seeds,
        "percentile_error": SKETCH_ERROR,
        "metrics": declared,
        "policies": policies,
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&all)?))
}

/// As on the command line.
pub fn model_name(model: SimModel) -> &'static str {
    match model {
        SimModel::Fluid => "fluid",
        SimModel::Slotted => "slotted",
        SimModel::Cluster => "cluster",
    }
}

fn policy_json(runs: &PolicyRuns, seeds: &[u64]) -> Value {
    let means: Map<String, Value> = Metric::ALL
        .iter()
        .filter_map(|&metric| {
            let interval = interval(runs, metric)?;
            let value = json!({"mean": interval.mean, "half_width_95": interval.half_width});
            Some((metric.name().to_owned(), value))
        })
        .collect();
    let by_seed: Vec<Value> = runs
        .outcomes
        .iter()
        .zip(seeds)
        .map(|(outcome, seed)| {
            let values: Map<String, Value> = Metric::ALL
                .iter()
                .filter_map(|&metric| Some((metric.name().to_owned(), json!(outcome.value(metric)?))))
                .collect();
            json!({"seed": seed, "values": values})
        })
        .collect();
    let buckets: Vec<Value> = slowdowns(runs)
        .into_iter()
        .map(|bucket| {
            let to = bucket.to.is_finite().then_some(bucket.to);
            json!({"from": bucket.from, "to": to, "jobs": bucket.jobs, "mean": bucket.mean})
        })
        .collect();
    let flow = flow_times(runs);
    let quantiles: Vec<Value> =
        (1..=100).map(|percent| json!([percent, flow.quantile(f64::from(percent) / 100.0)])).collect();
    json!({
        "policy": runs.policy,
        "metrics": means,
        "runs": by_seed,
        "flow_percentiles": quantiles,
        "slowdown_by_size": buckets,
    })
}

/// Flow times over all seeds together.
pub fn flow_times(runs: &PolicyRuns) -> Sketch {
    let mut all = Sketch::new();
    for outcome in &runs.outcomes {
        all.merge(&outcome.flow);
    }
    all
}

/// Slowdown by size over all seeds together.
pub fn slowdowns(runs: &PolicyRuns) -> Vec<Bucket> {
    let Some(first) = runs.outcomes.first() else { return Vec::new() };
    let mut buckets = first.slowdown.clone();
    for (place, bucket) in buckets.iter_mut().enumerate() {
        let of_seeds = || runs.outcomes.iter().map(|outcome| outcome.slowdown[place]);
        bucket.jobs = of_seeds().map(|bucket| bucket.jobs).sum();
        let sum: f64 = of_seeds().filter_map(|bucket| Some(bucket.mean? * bucket.jobs as f64)).sum();
        bucket.mean = (0 < bucket.jobs).then(|| sum / bucket.jobs as f64);
    }
    buckets
}
