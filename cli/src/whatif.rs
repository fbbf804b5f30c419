//! `lab whatif`: the jobs of a journal under other policies, by the cluster simulator.

use crate::files::InputFileError;
use crate::replay::say_torn;
use crate::terminal::stdout_result;
use crate::text_table::{aligned, plain};
use crate::usage::usage;
use anyhow::anyhow;
use clap::Args;
use gristmill_lab::report::number;
use gristmill_lab::simulate::{RunMeasurements, SimulateError, SimulatedJob, simulate};
use gristmill_runtime::journal::JournalReader;
use gristmill_runtime::plural::counted;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::catalogue::split_list;
use gristmill_scheduler::metrics::{Collector, JobTimes, Metric, RunMetrics};
use gristmill_scheduler::station::PerStation;
use gristmill_worker::settings::Shuffle;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Replay a journal under other policies
///
/// Keeps the arrivals of jobs and the durations of their tasks, and lets the cluster simulator decide again.
/// The first row is what was measured, the second the same policy replayed: their difference is the simulator's error.
#[derive(Args)]
#[command(after_help = "\
Example:
  gristmill lab whatif run.journal --policy fifo,max-srpt,k-lps:k=2")]
pub struct WhatifCommand {
    /// Journal that a master wrote
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
    /// Policies to try: a list of NAME or NAME:PARAMETER=VALUE,... [default: only the recorded one]
    #[arg(long, value_name = "LIST")]
    policy: Option<String>,
    /// Placements, each with every policy [default: the recorded one]
    #[arg(long, value_name = "LIST")]
    placement: Option<String>,
    /// Estimator of sizes [default: the recorded one]
    #[arg(long, value_name = "NAME")]
    estimator: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Columns of the table; those without a value are left out.
const COLUMNS: [Metric; 9] = [
    Metric::Flow,
    Metric::FlowP50,
    Metric::FlowP90,
    Metric::FlowP99,
    Metric::FlowMax,
    Metric::Waiting,
    Metric::Makespan,
    Metric::DeadlinesMet,
    Metric::Tardiness,
];

/// Row of the table: the recorded run, or a simulated one.
struct WhatifRow {
    policy: String,
    placement: String,
    estimator: String,
    replayed: bool,
    jobs: Vec<SimulatedJob>,
    outcome: RunMetrics,
}

/// `gristmill lab whatif`.
pub fn run(registry: &Registry, flags: &WhatifCommand) -> anyhow::Result<u8> {
    let unusable = |words: String| InputFileError::new(&flags.journal, words);
    let mut journal =
        JournalReader::open(&flags.journal).map_err(|error| unusable(gristmill_runtime::chain(&error)))?;
    // A journal does not hold how segments were sent.
    let measured = RunMeasurements::from_journal(&mut journal, Shuffle::Auto)
        .map_err(|error| unusable(gristmill_runtime::chain(&error)))?;
    say_torn(&flags.journal, journal.torn());
    let left_out = measured.jobs.iter().filter(|job| !job.succeeded).count();
    if 0 < left_out {
        let left_out =
            counted(left_out as u64, "job that did not end well is", "jobs that did not end well are");
        say!("{left_out} left out");
    }
    if measured.policy_changed {
        say!("the policy was changed after the first arrival: what was recorded is not of one policy");
    }
    let rows = rows(registry, flags, &measured)?;
    stdout_result(flags.json, || as_json(&measured, &rows), || as_text(&rows))
}

/// Returns the recorded run, its own policy in simulation, and all requested combinations.
fn rows(
    registry: &Registry,
    flags: &WhatifCommand,
    measured: &RunMeasurements,
) -> anyhow::Result<Vec<WhatifRow>> {
    let estimator = flags.estimator.as_deref().unwrap_or(&measured.estimator);
    let placements = flags.placement.as_deref().map_or_else(|| vec![measured.placement.clone()], split_list);
    let mut wanted = vec![(measured.policy.clone(), measured.placement.clone(), measured.estimator.as_str())];
    let policies = flags.policy.as_deref().map_or_else(|| vec![measured.policy.clone()], split_list);
    for policy in policies {
        for placement in &placements {
            let another = (policy.clone(), placement.clone(), estimator);
            if !wanted.contains(&another) {
                wanted.push(another);
            }
        }
    }
    let row = |[policy, placement, estimator]: [&str; 3], replayed, jobs: Vec<SimulatedJob>| WhatifRow {
        policy: policy.to_owned(),
        placement: placement.to_owned(),
        estimator: estimator.to_owned(),
        replayed,
        outcome: outcome(measured, &jobs),
        jobs,
    };
    let recorded = measured.recorded();
    let mut rows = vec![row([&measured.policy, &measured.placement, &measured.estimator], false, recorded)];
    let scenario = measured.replayed().map_err(|error| judge(&flags.journal, error))?;
    for (policy, placement, estimator) in wanted {
        let jobs = simulate(registry, &scenario, &policy, &placement, estimator);
        let jobs = jobs.map_err(|error| judge(&flags.journal, error))?;
        rows.push(row([&policy, &placement, estimator], true, jobs));
    }
    Ok(rows)
}

/// Attributes an error to the flags, the journal or the policy.
fn judge(path: &Path, error: SimulateError) -> anyhow::Error {
    match error {
        SimulateError::Name { reason } => usage(reason),
        SimulateError::NoWorkers | SimulateError::NoJobs => InputFileError::new(path, error).into(),
        other => anyhow!(other),
    }
}

fn outcome(measured: &RunMeasurements, jobs: &[SimulatedJob]) -> RunMetrics {
    let mut collector = Collector::new(PerStation::all(f64::INFINITY));
    let known = measured.jobs.iter().filter(|job| job.succeeded);
    for (job, known) in jobs.iter().zip(known) {
        collector.push(&times(job, known.terms.deadline), PerStation::all(0.0));
    }
    collector.outcome()
}

/// Times of a job. Its time alone is unknown.
fn times(job: &SimulatedJob, deadline: Option<f64>) -> JobTimes {
    let &SimulatedJob { arrived, started, maps_done, ended, .. } = job;
    JobTimes { arrival: arrived, start: started, maps_done, completion: ended, deadline, alone: None }
}

/// Relative difference of the mean flow time to that of another row.
fn against(row: &WhatifRow, other: &WhatifRow) -> Option<f64> {
    let (flow, base) = (row.outcome.value(Metric::Flow)?, other.outcome.value(Metric::Flow)?);
    (0.0 < base).then_some(flow / base - 1.0)
}

fn as_text(rows: &[WhatifRow]) -> String {
    let means_something = |metric: &Metric| rows.iter().any(|row| row.outcome.value(*metric).is_some());
    let metrics: Vec<Metric> = COLUMNS.into_iter().filter(means_something).collect();
    let titles = metrics.iter().map(|metric| metric.declaration().title());
    let mut header = ["policy", "placement", "estimator", "run"].map(str::to_owned).to_vec();
    header.extend(titles);
    header.push("flow vs replayed".to_owned());
    let lines = rows.iter().enumerate().map(|(place, row)| {
        let run = if row.replayed { "replayed" } else { "measured" };
        let mut cells =
            vec![row.policy.clone(), row.placement.clone(), row.estimator.clone(), run.to_owned()];
        let value = |&metric: &Metric| row.outcome.value(metric);
        cells.extend(metrics.iter().map(|metric| value(metric).map_or("-".to_owned(), number::number)));
        let change = if place < 2 { None } else { against(row, &rows[1]) };
        cells.push(change.map_or("-".to_owned(), |change| plain(&number::percent(change))));
        cells
    });
    let mut text = aligned(&header, lines);
    if let Some(error) = against(&rows[1], &rows[0]) {
        let error = plain(&number::percent(error));
        text.push_str(&format!("\nerror of the replayed mean flow time: {error} against the measured one\n"));
    }
    text
}

fn as_json(measured: &RunMeasurements, rows: &[WhatifRow]) -> Value {
    let metrics = |row: &WhatifRow| -> Map<String, Value> {
        row.outcome.known().map(|(metric, value)| (metric.name().to_owned(), json!(value))).collect()
    };
    let all = rows.iter().enumerate().map(|(place, row)| {
        json!({
            "policy": row.policy,
            "placement": row.placement,
            "estimator": row.estimator,
            "replayed": row.replayed,
            "metrics": metrics(row),
            "flow_against_replayed": if place < 2 { None } else { against(row, &rows[1]) },
        })
    });
    json!({
        "jobs": rows[0].jobs.len(),
        "workers": measured.workers.len(),
        "overheads_s": {
            "map": measured.overheads.map,
            "reduce": measured.overheads.reduce,
            "fetch": measured.overheads.fetch,
            "suspension": measured.overheads.suspension,
        },
        "replayed_flow_error": against(&rows[1], &rows[0]),
        "rows": all.collect::<Vec<_>>(),
    })
}
