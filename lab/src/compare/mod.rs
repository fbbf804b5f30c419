//! Policies compared on real execution: the same jobs, at the same times, on fresh clusters of the same shape, one run
//! after the other in balanced orders, so that drift of the machine hits all policies alike.
//!
//! [`run`] gives plain data; `summary` and `statistics` say what they show, `report` makes sections and pages of them.
//! Every run is kept on disk as soon as it has ended, so that an interrupted comparison can go on. Not here: the command
//! line, and decisions of policies.

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
pub mod redraw;
pub mod report;
mod rounds;
mod run;
pub mod series;
mod simulated;
pub mod simulation_error;
pub mod statistics;
pub mod store;
pub mod summary;
pub mod workload;

pub use error::CompareError;
pub use record::{Alone, Contender, JobRun, RunRecord};
pub use store::{MARK, Store, StoreError};
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

/// Repetitions at most.
pub const REPETITIONS_MAX: u32 = 1000;

/// Where the workload runs.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has one")]
pub enum Site {
    /// On a fresh cluster of local processes for each run; its policy and placement are the contender's.
    Embedded(ClusterConfig),
    /// On the cluster of this master, whose policy is changed between runs and restored at the end.
    Given(JoinLine),
}

/// How a comparison is done.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is compared.
    pub contenders: Vec<Contender>,
    /// The contender against which the first of the others is compared as planned; `None`: nothing was planned.
    pub against: Option<String>,
    /// Runs of each.
    pub repetitions: u32,
    /// Where.
    pub site: Site,
    /// The folder for runs and data; see [`Store`].
    pub folder: PathBuf,
    /// Go on with the runs in the folder.
    pub resume: bool,
    /// A short run is discarded before all others, so that the first policy does not pay for cold caches.
    pub warm_up: bool,
    /// A few jobs are run before all others that show what the system takes for tasks, so that runs can be predicted.
    pub calibrate: bool,
    /// Each different job is also run alone, [`alone::RUNS`] times, for slowdown and for what an oracle tells.
    pub isolated: bool,
    /// Parts are synced to disk.
    pub sync: bool,
    /// Longest time of one run.
    pub run_limit: Duration,
}

/// What one hears of a comparison while it is done.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress<'a> {
    /// Inputs are made.
    Data,
    /// What the system takes for tasks is measured.
    Calibration,
    /// Something is run that will be discarded.
    WarmUp,
    /// Jobs run alone.
    Isolated,
    /// A run begins; its place among all.
    Begins(&'a Contender, u32, u32),
    /// A run has ended.
    Ended(&'a RunRecord, u32),
    /// A run was done in an earlier call.
    Kept(&'a RunRecord, u32),
}

/// What came out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// What was run.
    pub workload: Workload,
    /// All that two comparisons must share for their runs to stand side by side.
    pub setting: Value,
    /// Who was compared.
    pub contenders: Vec<Contender>,
    /// As [`Options::against`].
    pub against: Option<String>,
    /// Runs of each that were asked for.
    pub repetitions: u32,
    /// How many repetitions were asked for when earlier calls wrote a page: their verdicts were seen.
    pub looks: BTreeSet<u32>,
    /// Runs that ended, in the order in which they were done.
    pub runs: Vec<RunRecord>,
    /// Jobs alone; empty if they were not run.
    pub alone: Vec<Alone>,
    /// What the system takes for tasks, as measured before the first run; `None` if it was not.
    pub costs: Option<SystemCosts>,
    /// Whether somebody interrupted it.
    pub interrupted: bool,
}

/// Refuses everything that can be refused before anything starts.
///
/// # Errors
/// Unknown jobs and policies, policies that cannot run on a cluster, arguments that a job does not take, options that
/// make no sense.
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
        registry.make_policy(&contender.policy).map_err(|reason| CompareError::Name { reason })?;
        registry.make_placement(&contender.placement).map_err(|reason| CompareError::Name { reason })?;
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

/// Runs the workload under every policy, as often as asked for.
///
/// Comes back early, with what has been done, once `interrupted` is above 0.
///
/// # Errors
/// Whatever [`check`] refuses, and everything that keeps a job from succeeding. Runs that ended before stay in the
/// folder.
pub fn run(
    registry: &Registry,
    workload: &Workload,
    options: &Options,
    interrupted: Option<watch::Receiver<u32>>,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Comparison, CompareError> {
    check(registry, workload, options)?;
    let setting = prepare::setting(workload, options);
    let store = Store::open(&options.folder, &setting, options.resume)?;
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
    told(Progress::Data);
    prepare::make_data(workload, &store)?;
    let result = rounds::run_all(&runner, options, &store, &mut comparison, told);
    if let Some((line, before)) = before {
        // What went wrong in a run tells more than what went wrong after it.
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
