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
mod comparison;
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

pub use comparison::{CompareProgress, Comparison, Options, Site};
pub use error::CompareError;
pub use record::{Alone, Contender, JobRun, RunRecord};
pub use store::{ComparisonStore, MARK, StoreError};
pub use workload::Workload;

use crate::report::names::slug;
use gristmill_runtime::registry::Registry;
use run::Runner;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Maximum number of repetitions.
pub(crate) const REPETITIONS_MAX: u32 = 1000;

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
    if matches!(options.site, Site::Given(_)) && options.at_once != NonZeroU32::MIN {
        return refuse("runs at the same time need clusters of their own, not a given one".to_owned());
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
