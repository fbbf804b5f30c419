//! `lab sim`: policies on simulated jobs and machines.
//!
//! Flags are here; `source` reads jobs, `machines` makes the simulated cluster, `model` does one run, `output` prints. Not
//! here: simulators and policies, which are in the scheduler.

mod alone;
mod ended;
mod list;
mod machines;
mod model;
mod output;
mod source;

use crate::files::write_whole;
use crate::terminal::{stdout_result, stdout_text};
use crate::usage::usage;
use clap::{Args, ValueEnum, value_parser};
use ended::{AloneTimes, EndedJob};
use gristmill_lab::parallel;
use gristmill_runtime::exit;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::catalogue::split_list;
use gristmill_scheduler::metrics::{Metric, RunMetrics, System};
use model::SimulatedSystem;
use source::SimulatedJobs;

use std::path::PathBuf;

/// Simulate policies on jobs and machines
///
/// Runs every policy on the same jobs, once for each seed, and prints means over the seeds with the half width of their
/// 95 % interval. The policies are those of a live cluster.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SimCommand {
    /// Model of the system
    #[arg(long, value_enum, default_value_t)]
    model: SimModel,
    /// List of policies: NAME or NAME:PARAMETER=VALUE,...
    #[arg(long, value_name = "LIST", default_value = "fifo")]
    policy: String,
    /// Jobs: a file (.csv, .toml, SWIM .tsv, Rumen .json, each also .gz) or the name of a generator
    #[arg(long, value_name = "FILE|NAME", required_unless_present = "list")]
    workload: Option<String>,
    /// Runs of each policy, each with other jobs and service times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=SEEDS_MAX))]
    seeds: u32,
    /// The first seed; the others follow
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// List policies, placements, estimators, workloads and metrics
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    jobs: source::JobsFlags,
    #[command(flatten)]
    machines: machines::MachineFlags,
    #[command(flatten)]
    output: OutputFlags,
}

const EXAMPLES: &str = "\
Examples:
  gristmill lab sim --policy fifo,k-lps:k=100,max-srpt \\
      --workload overlap:load=0.9,jobs=100000 --seeds 5
  gristmill lab sim --model slotted --policy fifo,fair,asrpt --preemptive \\
      --workload mix --bound
  gristmill lab sim --model cluster --workers 100 --slots 2 --policy fifo,fair \\
      --workload day.tsv --scale-bytes 0.01 --jobs 500 --csv day.csv
  gristmill lab sim --list";

/// Model of the simulation.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum SimModel {
    /// Map and shuffle as fluids that overlap, one job after another or side by side; seconds are of whole stations:
    /// of all slots for maps and of the whole network
    #[default]
    Fluid,
    /// Machines that work off one unit in a slot; reduces follow the maps, no shuffle; seconds are of one machine
    Slotted,
    /// Workers with slots and a network, driven by the master's own core, task by task; seconds are of one slot
    Cluster,
}

impl SimModel {
    /// The system for which metrics are declared.
    fn system(self) -> System {
        match self {
            SimModel::Fluid => System::Fluid,
            SimModel::Slotted => System::Slotted,
            SimModel::Cluster => System::Cluster,
        }
    }
}

/// Output of the simulation.
#[derive(Args)]
#[command(next_help_heading = "Output")]
struct OutputFlags {
    /// List of metrics of the table [default: the most important]; for slowdown, slowdown-p99, slowdown-max and
    /// fairness the cluster model also simulates each job alone
    #[arg(long, value_name = "LIST")]
    metrics: Option<String>,
    /// Compare the total flow time with a lower bound (fluid and slotted models)
    #[arg(long)]
    bound: bool,
    /// Print all metrics of all runs as JSON
    #[arg(long)]
    json: bool,
    /// Write a line for each job
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl SimCommand {
    /// True if the output contains times of jobs alone.
    fn needs_alone(&self, metrics: Option<&[Metric]>) -> bool {
        let shown = metrics.is_none_or(|metrics| metrics.iter().any(|metric| metric.needs_alone()));
        shown || self.output.json || self.output.csv.is_some()
    }
}

/// All runs of one policy.
struct PolicyRuns {
    /// The policy on the command line.
    policy: String,
    /// Results by seed, starting with the first.
    outcomes: Vec<RunMetrics>,
}

/// `gristmill lab sim`.
pub fn sim(registry: &Registry, flags: &SimCommand) -> anyhow::Result<u8> {
    if flags.list {
        stdout_text(&list::text(registry))?;
        return Ok(exit::OK);
    }
    let policies = split_list(&flags.policy);
    if policies.is_empty() {
        return Err(usage("--policy names no policy".to_owned()));
    }
    if flags.output.bound && flags.model == SimModel::Cluster {
        let words = "--bound is for the fluid and slotted models; no bound is known for the cluster";
        return Err(usage(words.to_owned()));
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

/// Runs of one policy.
const SEEDS_MAX: i64 = 10_000;

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
