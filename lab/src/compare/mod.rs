//! Comparison of policies on real execution. The same jobs arrive at the same times on fresh clusters of
//! the same shape. Runs follow one another in balanced orders, so that drift of the machine affects all
//! policies alike.
//!
//! [`run`] returns plain data. `summary` and `statistics` evaluate it, `report` creates sections and
//! pages. Every run is stored on disk as soon as it has ended, so that an interrupted comparison can
//! resume. Not here: the command line, and decisions of policies.

pub mod alone;
pub mod bound;
mod calibrate;
mod error;
pub mod file;
mod follow;
mod gather;
pub mod metrics;
mod prepare;
pub mod record;
pub mod report;
mod rounds;
mod run;
pub mod series;
mod simulated;
pub(crate) mod simulation_error;
pub mod statistics;
pub mod store;
pub mod summary;
pub mod workload;

pub use error::CompareError;
pub use record::{Alone, Contender, JobRun, RunRecord};
pub use store::{ComparisonStore, MARK, StoreError};
pub use workload::Workload;

use crate::report::names::slug;
use crate::simulate::SystemCosts;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::registry::Registry;
use gristmill_worker::http::JoinLine;
use run::Runner;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of repetitions.
pub(crate) const REPETITIONS_MAX: u32 = 1000;

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
    /// Directory for runs and data; see [`ComparisonStore`].
    pub directory: PathBuf,
    /// True to resume with the runs in the directory.
    pub resume: bool,
    /// True to discard a short run before all others, so that the first policy does not pay for cold caches.
    pub warm_up: bool,
    /// True to run a few jobs before all others that measure the system's cost of tasks, so that runs can
    /// be predicted.
    pub calibrate: bool,
    /// True to also run each distinct job alone, [`alone::RUNS`] times, for slowdown and for the oracle.
    pub isolated: bool,
    /// True to sync parts to disk.
    pub sync: bool,
    /// Maximum time of one run.
    pub run_limit: Duration,
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

/// Checks everything that can be checked before the first run.
///
/// # Errors
/// Unknown jobs and policies, policies that cannot run on a cluster, arguments that a job does not
/// accept, invalid options.
pub fn check(registry: &Registry, workload: &Workload, options: &Options) -> Result<(), CompareError> {
    let refuse = |reason: String| Err(CompareError::Options { reason });
    if options.contenders.is_empty() {
        return refuse("there is no policy to run".to_owned());
    }
    if options.repetitions == 0 || REPETITIONS_MAX < options.repetitions {
        return refuse(format!("{} repetitions are not from 1 to {REPETITIONS_MAX}", options.repetitions));
    }
    let mut names = BTreeSet::new();
    for contender in &options.contenders {
        registry.make_policy(&contender.policy).map_err(|reason| CompareError::Options { reason })?;
        registry.make_placement(&contender.placement).map_err(|reason| CompareError::Options { reason })?;
        if !names.insert(slug(&contender.name)) {
            return refuse(format!("`{}` is there twice", contender.name));
        }
    }
    if let Some(against) = &options.against {
        if !options.contenders.iter().any(|contender| contender.name == *against) {
            let known: Vec<&str> =
                options.contenders.iter().map(|contender| contender.name.as_str()).collect();
            return refuse(format!(
                "nothing can be planned against `{against}`, which is not compared: name one of {}",
                known.join(", ")
            ));
        }
        if options.contenders.len() < 2 {
            return refuse(format!("`{against}` is alone: name a policy to compare it with"));
        }
    }
    for job in workload.draw(0)? {
        run::prepare(registry, workload, &job, Path::new("/data"))?;
    }
    Ok(())
}

/// Runs the workload under every policy, with the requested repetitions.
///
/// Returns early, with the completed runs, once `interrupted` is above 0.
///
/// # Errors
/// The errors of [`check`], and every failure of a job. Completed runs stay in the directory.
pub fn run(
    registry: &Registry,
    workload: &Workload,
    options: &Options,
    interrupted: Option<watch::Receiver<u32>>,
    told: &mut dyn FnMut(CompareProgress<'_>),
) -> Result<Comparison, CompareError> {
    check(registry, workload, options)?;
    let setting = prepare::setting(workload, options);
    let store = ComparisonStore::open(&options.directory, &setting, options.resume)?;
    let runtime = gristmill_worker::threads::runtime();
    let runtime = Arc::new(runtime.map_err(|source| CompareError::Start { source })?);
    let mut runner = Runner {
        registry,
        workload,
        site: &options.site,
        sync: options.sync,
        run_limit: options.run_limit,
        data: store.data(),
        interrupted,
        knowledge: None,
        runtime,
    };
    let before = match &options.site {
        Site::Given(line) => Some((line, runner.policy_of(line)?)),
        Site::Embedded(_) => None,
    };
    if let Some((_, before)) = &before {
        runner.knowledge = Some(store.knowledge(&before.memory)?);
    }
    let mut comparison = Comparison {
        workload: workload.clone(),
        setting,
        contenders: options.contenders.clone(),
        against: options.against.clone(),
        repetitions: options.repetitions,
        looks: store.looks()?,
        runs: Vec::new(),
        alone: Vec::new(),
        costs: None,
        interrupted: false,
    };
    if !workload.data.is_empty() {
        told(CompareProgress::Step("making inputs"));
    }
    prepare::make_data(workload, &store)?;
    let result = rounds::run_all(&runner, options, &store, &mut comparison, told);
    if let Some((line, before)) = before {
        // An error in a run is more informative than an error after it.
        let restored = runner.restore(line, &before);
        result.and(restored)?;
    } else {
        result?;
    }
    Ok(comparison)
}

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
