//! Flags of `lab sim`: model, policies, seeds, jobs, machines, and the form of the results.

use super::{machines, source};
use clap::{Args, ValueEnum, value_parser};
use gristmill_scheduler::metrics::{Metric, System};
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
    pub(super) model: SimModel,
    /// List of policies: NAME or NAME:PARAMETER=VALUE,...; with the cluster model followed by `+divide` to divide running
    /// tasks for idle slots and more urgent jobs, `+backup` for a second attempt of slow tasks, or `+clone` for one of each
    /// task of small jobs too
    #[arg(long, value_name = "LIST", default_value = "fifo")]
    pub(super) policy: String,
    /// Jobs: a generator or a file (.csv, .toml, SWIM .tsv, Rumen .json, .sls.json, .swf, .coflows, batch_task.csv,
    /// instance_events*.json, cluster_job_log, each also .gz)
    #[arg(long, value_name = "FILE|NAME", required_unless_present = "list")]
    pub(super) workload: Option<String>,
    /// Runs of each policy, each with other jobs and service times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=SEEDS_MAX))]
    pub(super) seeds: u32,
    /// The first seed; the others follow
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// List policies, placements, estimators, workloads and metrics
    #[arg(long)]
    pub(super) list: bool,
    #[command(flatten)]
    pub(super) jobs: source::JobsFlags,
    #[command(flatten)]
    pub(super) machines: machines::MachineFlags,
    #[command(flatten)]
    pub(super) output: OutputFlags,
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
pub(super) enum SimModel {
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
    pub(super) fn system(self) -> System {
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
pub(super) struct OutputFlags {
    /// List of metrics of the table [default: the most important]; for slowdown, slowdown-p99, slowdown-max and
    /// fairness the cluster model also simulates each job alone
    #[arg(long, value_name = "LIST")]
    pub(super) metrics: Option<String>,
    /// Compare the total flow time with a lower bound
    #[arg(long)]
    pub(super) bound: bool,
    /// Print all metrics of all runs as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write a line for each job
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
}

impl SimCommand {
    /// True if the output contains times of jobs alone.
    pub(super) fn needs_alone(&self, metrics: Option<&[Metric]>) -> bool {
        let shown = metrics.is_none_or(|metrics| metrics.iter().any(|metric| metric.needs_alone()));
        shown || self.output.json || self.output.csv.is_some()
    }
}

/// Runs of one policy.
const SEEDS_MAX: i64 = 10_000;
