//! Options, progress and result of a comparison.

use super::record::{Alone, Contender, RunRecord};
use super::workload::Workload;
use crate::simulate::SystemCosts;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_worker::http::JoinLine;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Cluster on which the workload runs.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has one")]
pub enum Site {
    /// Fresh cluster of local processes for each run. Its policy and placement are the contender's.
    Embedded(ClusterConfig),
    /// Cluster of this master, whose policy is changed between runs and restored at the end.
    Given(JoinLine),
}

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Contenders to compare.
    pub contenders: Vec<Contender>,
    /// Contender of the planned comparison, with the first of the others; `None` if no comparison is planned.
    pub against: Option<String>,
    /// Number of runs of each contender.
    pub repetitions: u32,
    /// Cluster of the runs.
    pub site: Site,
    /// Directory for runs and data; see [`ComparisonStore`](super::store::ComparisonStore).
    pub directory: PathBuf,
    /// True to resume with the runs in the directory.
    pub resume: bool,
    /// True to discard a short run before all others, so that the first policy does not pay for cold caches.
    pub warm_up: bool,
    /// True to run a few jobs before all others that measure the system's cost of tasks, so that runs can
    /// be predicted.
    pub calibrate: bool,
    /// True to also run each distinct job alone, [`alone::RUNS`](super::alone::RUNS) times, for slowdown and for the oracle.
    pub isolated: bool,
    /// True to sync parts to disk.
    pub sync: bool,
    /// Maximum time of one run.
    pub run_limit: Duration,
    /// Number of runs at the same time, each on its own cluster. More than one is for jobs that sleep.
    pub at_once: NonZeroU32,
    /// Largest share of the processors' time that other programs may use when runs start; `None` for any.
    pub others_max: Option<f64>,
}

/// Progress report of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub enum CompareProgress<'a> {
    /// A step before the runs starts, in words.
    Step(&'static str),
    /// A run starts; its number, and the number of all runs.
    Begins(&'a Contender, u32, u32),
    /// A run has ended.
    Ended(&'a RunRecord, u32),
    /// A run of an earlier call is reused.
    Kept(&'a RunRecord, u32),
}

/// Result of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Workload of the runs.
    pub workload: Workload,
    /// Properties that two comparisons must share for their runs to be comparable.
    pub setting: Value,
    /// Contenders of the comparison.
    pub contenders: Vec<Contender>,
    /// Contender of the planned comparison, as in [`Options::against`].
    pub against: Option<String>,
    /// Requested number of runs of each contender.
    pub repetitions: u32,
    /// Requested numbers of repetitions when earlier calls wrote a page, which showed their verdicts.
    pub looks: BTreeSet<u32>,
    /// Completed runs, in the order in which they ran.
    pub runs: Vec<RunRecord>,
    /// Jobs alone; empty if they did not run.
    pub alone: Vec<Alone>,
    /// System costs of tasks, as measured before the first run; `None` if not measured.
    pub costs: Option<SystemCosts>,
    /// True if the comparison was interrupted.
    pub interrupted: bool,
}
