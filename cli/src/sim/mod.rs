//! `lab sim`: policies on simulated jobs and machines.
//!
//! Flags are here; `source` reads jobs, `machines` makes the simulated cluster, `model` does one run, `output` prints. Not
//! here: simulators and policies, which are in the scheduler.

mod alone;
mod ended;
mod flags;
mod list;
mod machines;
mod model;
mod output;
mod runs;
mod source;

use crate::files::write_whole;
use crate::terminal::{stdout_columns, stdout_result, stdout_text};
use crate::text_table::wrapped;
use crate::usage::usage;
use ended::{AloneTimes, EndedJob};
pub use flags::SimCommand;
use gristmill_lab::parallel;
use gristmill_runtime::exit;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::catalogue::split_list;
use gristmill_scheduler::metrics::{Metric, System};
use model::SimulatedSystem;
use runs::PolicyRuns;
use source::SimulatedJobs;

/// `gristmill lab sim`.
pub fn sim(registry: &Registry, flags: &SimCommand) -> anyhow::Result<u8> {
    if flags.list {
        let list = list::text(registry);
        match stdout_columns() {
            Some(width) => stdout_text(&wrapped(&list, width))?,
            None => stdout_text(&list)?,
        }
        return Ok(exit::OK);
    }
    let policies = split_list(&flags.policy);
    if policies.is_empty() {
        return Err(usage("--policy names no policy".to_owned()));
    }
    let metrics = metrics(flags.output.metrics.as_deref(), flags.model.system())?;
    // Clap requires it unless `--list` was given.
    let workload = flags.workload.as_deref().unwrap_or_default();
    let source = SimulatedJobs::open(workload, &flags.jobs, &flags.machines)?;
    let system = SimulatedSystem::new(registry, flags, &source)?;
    for policy in &policies {
        system.policy(policy)?;
    }
    let seeds: Vec<u64> = (0..u64::from(flags.seeds)).map(|place| flags.seed.saturating_add(place)).collect();
    system.check_fetches(flags.seed)?;
    let metrics = metrics.as_deref();
    let alone = alone_times(&system, flags.needs_alone(metrics), &seeds)?;
    let runs = run_all(&system, flags, &policies, &seeds.iter().copied().zip(&alone).collect::<Vec<_>>())?;
    system.end_progress();
    stdout_result(
        flags.output.json,
        || output::json(flags, &system, &seeds, &runs),
        || output::table(metrics, &runs),
    )
}

/// Parses a list of metrics, which this system must have.
fn metrics(list: Option<&str>, system: System) -> anyhow::Result<Option<Vec<Metric>>> {
    let Some(list) = list else { return Ok(None) };
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let metrics: Result<Vec<Metric>, _> = names.map(|name| Metric::named(name, system)).collect();
    Ok(Some(metrics.map_err(|error| usage(error.to_string()))?))
}

/// Computes the times of jobs alone for each seed, if the output contains them.
fn alone_times(system: &SimulatedSystem<'_>, needed: bool, seeds: &[u64]) -> anyhow::Result<Vec<AloneTimes>> {
    if !needed {
        return Ok(seeds.iter().map(|_| AloneTimes::Unknown).collect());
    }
    parallel::each(seeds, |&seed| system.alone(seed)).into_iter().collect()
}

/// Runs every policy with every seed, on all processors. Runs are sequential if a line is written for each
/// job, so that the order of lines is fixed.
fn run_all(
    system: &SimulatedSystem<'_>,
    flags: &SimCommand,
    policies: &[String],
    seeds: &[(u64, &AloneTimes)],
) -> anyhow::Result<Vec<PolicyRuns>> {
    let tasks: Vec<(&String, u64, &AloneTimes)> = policies
        .iter()
        .flat_map(|policy| seeds.iter().map(move |&(seed, alone)| (policy, seed, alone)))
        .collect();
    let mut outcomes = Vec::new();
    match &flags.output.csv {
        None => {
            for outcome in
                parallel::each(&tasks, |&(policy, seed, alone)| system.run(policy, seed, alone, &mut |_| {}))
            {
                outcomes.push(outcome?);
            }
        }
        Some(path) => write_whole(path, |file| {
            writeln!(file, "{}", output::csv_header())?;
            for &(policy, seed, alone) in &tasks {
                let mut written = Ok(());
                let outcome = system.run(policy, seed, alone, &mut |job: &EndedJob| {
                    if written.is_ok() {
                        written = output::csv_line(file, policy, seed, job);
                    }
                });
                written?;
                outcomes.push(outcome?);
            }
            Ok(())
        })?,
    }
    let mut outcomes = outcomes.into_iter();
    let runs = policies.iter().map(|policy| PolicyRuns {
        policy: policy.clone(),
        outcomes: outcomes.by_ref().take(seeds.len()).collect(),
    });
    Ok(runs.collect())
}
