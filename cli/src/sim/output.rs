//! Results as a table, as JSON, and as a line for each job.

use super::ended::EndedJob;
use super::flags::SimCommand;
use super::model::SimulatedSystem;
use super::runs::PolicyRuns;
use crate::text_table::aligned;
use gristmill_lab::report::number;
use gristmill_scheduler::metrics::{EXACT_MAX, Interval, JOB_COLUMNS, Metric, SKETCH_ERROR, Sketch};
use gristmill_scheduler::station::PerStation;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Columns of the lines of jobs, times in seconds since the start.
pub fn csv_header() -> String {
    let times: Vec<&str> = JOB_COLUMNS.iter().map(|(name, _)| *name).collect();
    format!("policy,seed,job,{},map,shuffle,reduce,weight", times.join(","))
}

/// Writes the line of a job.
pub fn csv_line(file: &mut dyn Write, policy: &str, seed: u64, job: &EndedJob) -> std::io::Result<()> {
    // A policy with parameters has commas.
    let quoted = if policy.contains(',') { format!("\"{policy}\"") } else { policy.to_owned() };
    write!(file, "{quoted},{seed},{}", job.seq)?;
    for (_, time) in JOB_COLUMNS {
        match time(&job.times) {
            Some(time) => write!(file, ",{time}")?,
            None => write!(file, ",")?,
        }
    }
    let PerStation([map, shuffle, reduce]) = job.work;
    writeln!(file, ",{map},{shuffle},{reduce},{}", job.weight)
}

/// The mean over the seeds; `None` where the metric means nothing in one of them.
fn interval(runs: &PolicyRuns, metric: Metric) -> Option<Interval> {
    let values: Option<Vec<f64>> = runs.outcomes.iter().map(|outcome| outcome.value(metric)).collect();
    Interval::from_samples(&values?)
}

/// Default metrics of the table; those without a value are left out.
const COLUMNS: [Metric; 9] = [
    Metric::Flow,
    Metric::FlowP50,
    Metric::FlowP99,
    Metric::Slowdown,
    Metric::Waiting,
    Metric::Makespan,
    Metric::EfficiencyRatio,
    Metric::DeadlinesMet,
    Metric::Tardiness,
];

/// A row for each policy and a column for each metric.
pub fn table(metrics: Option<&[Metric]>, runs: &[PolicyRuns]) -> String {
    let known = |metric: &Metric| runs.iter().any(|runs| interval(runs, *metric).is_some());
    let default = || COLUMNS.into_iter().filter(known).collect();
    let metrics: Vec<Metric> = metrics.map_or_else(default, <[Metric]>::to_vec);
    let header = metrics.iter().map(|metric| metric.declaration().title());
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
pub fn json(flags: &SimCommand, system: &SimulatedSystem<'_>, seeds: &[u64], runs: &[PolicyRuns]) -> Value {
    let of_system = Metric::ALL.iter().filter(|metric| metric.is_of(flags.model.system()));
    let declared: Map<String, Value> = of_system
        .map(|metric| {
            let declaration = metric.declaration();
            (declaration.name.to_owned(), json!({"unit": declaration.unit, "meaning": declaration.meaning}))
        })
        .collect();
    let policies: Vec<Value> = runs.iter().map(|runs| policy_json(runs, seeds)).collect();
    let capacity: Vec<Option<f64>> =
        system.capacity().map(|value| value.is_finite().then_some(value)).0.to_vec();
    let exact = runs.iter().all(|runs| flow_times(runs).count() <= EXACT_MAX as u64);
    json!({
        "model": flags.model.system().name(),
        "workload": flags.workload,
        "capacity": capacity,
        "cluster": system.described(),
        "seeds": seeds,
        "percentile_error": if exact { 0.0 } else { SKETCH_ERROR },
        "metrics": declared,
        "policies": policies,
    })
}

fn policy_json(runs: &PolicyRuns, seeds: &[u64]) -> Value {
    let means: Map<String, Value> = Metric::ALL
        .iter()
        .filter_map(|&metric| Some((metric.name().to_owned(), json!(interval(runs, metric)?))))
        .collect();
    let by_seed: Vec<Value> = runs
        .outcomes
        .iter()
        .zip(seeds)
        .map(|(outcome, seed)| {
            let values: Map<String, Value> =
                outcome.known().map(|(metric, value)| (metric.name().to_owned(), json!(value))).collect();
            json!({"seed": seed, "values": values})
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
    })
}

/// Flow times over all seeds together.
fn flow_times(runs: &PolicyRuns) -> Sketch {
    let mut all = Sketch::new();
    for outcome in &runs.outcomes {
        all.merge(&outcome.flow);
    }
    all
}
