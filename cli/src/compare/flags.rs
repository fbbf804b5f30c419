//! Flags of `lab compare`: the workload's file, repetitions, verdicts, and the directory of the pages.

use clap::Args;
use std::path::PathBuf;

/// Flags of `lab compare` besides those of clusters and masters.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareFlags {
    /// Jobs and how they arrive, as TOML
    #[arg(value_name = "WORKLOAD")]
    pub(super) workload: PathBuf,
    /// Runs of each policy
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(super) repeat: u32,
    /// Plan one comparison before anything runs: the first of the other policies against this one
    ///
    /// The planned pair is judged at 4 % (at 5 % if there are only two policies) and named first. All other
    /// pairs are corrected for their number (Holm). They share 1 %, and 5 % once the planned one shows a
    /// difference. Without this flag all pairs are corrected and share 5 %. Either way, if the policies are
    /// equal, at most 5 % of the pages show a false "faster" or "slower". Only mean flow times are judged so.
    #[arg(long, value_name = "POLICY")]
    pub(super) against: Option<String>,
    /// Directory for the page, the numbers and all runs [default: compare-NAME]
    #[arg(short, long, alias = "output", value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Continue an interrupted comparison with the runs in the directory
    #[arg(long)]
    pub(super) resume: bool,
    /// Seed for arrivals, order and jobs [default: that of the workload]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(super) seed: Option<u64>,
    /// Check everything and print the arrivals, but run nothing
    #[arg(long)]
    pub(super) check: bool,
    /// Also run each kind of job alone three times, for slowdown (the median counts); `--estimator oracle` does so if
    /// the workload has no sizes
    #[arg(long, hide_short_help = true)]
    pub(super) isolated: bool,
    /// Skip the short run at the start that is discarded
    #[arg(long, hide_short_help = true)]
    pub(super) no_warm_up: bool,
    /// Skip the jobs at the start that measure the system's overheads (seconds); runs are then replayed, not
    /// predicted
    #[arg(long, hide_short_help = true)]
    pub(super) no_calibration: bool,
    /// Enable speculative execution, as `run` does; the models of the papers and the simulations have none
    #[arg(long, conflicts_with = "no_backup", hide_short_help = true)]
    pub(super) backup: bool,
    /// Wait until outputs are on disk; they are discarded, so this only adds the noise of the disk
    #[arg(long, hide_short_help = true)]
    pub(super) sync: bool,
    /// Maximum time of one run; a longer one ends the comparison, and --resume continues
    #[arg(long, value_name = "TIME", default_value = "30min", hide_short_help = true)]
    pub(super) limit: String,
    /// Print summaries and differences as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print nothing on stderr but errors
    #[arg(long)]
    pub(super) quiet: bool,
}

const EXAMPLES: &str = "\
Examples, with the file examples/workloads/mixed.toml:
  gristmill lab compare mixed.toml --policy fifo,fair,max-srpt
  gristmill lab compare mixed.toml --policy max-srpt,fair,fifo --against fair
  gristmill lab compare mixed.toml --policy fifo,fair --out night --resume

The table [cluster] of the workload can have the flags under \"Cluster\"; flags that are typed override it.";
