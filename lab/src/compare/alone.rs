//! Each different job alone on the cluster: how long it takes then, and how long each of its tasks.
//!
//! Not here: what is made of it (`summary`), and estimators.

use super::gather::exact;
use super::record::{Alone, Contender};
use super::run::{Order, Runner};
use super::store::Store;
use super::workload::{DrawnJob, Workload};
use super::{CompareError, Options, store};
use gristmill_runtime::api::ExactWork;
use std::collections::BTreeSet;

/// What makes two jobs the same work.
pub(super) fn key(workload: &Workload, job: &DrawnJob) -> String {
    let kind = &workload.kinds[job.kind];
    let mut key = vec![kind.job.clone()];
    key.extend(job.arguments.iter().cloned());
    key.push(format!("reduces={:?} split={:?}", kind.reduces, kind.split_bytes));
    if kind.plays_exact {
        key.push(format!("times={}", job.kind));
    }
    key.join(" ")
}

/// The work of a job, as the workload or a measurement tells it.
pub(super) fn known(workload: &Workload, job: &DrawnJob, alone: &[Alone]) -> Option<ExactWork> {
    let told = workload.kinds[job.kind].exact.clone();
    told.or_else(|| {
        let key = key(workload, job);
        alone.iter().find(|one| one.key == key).map(|one| one.exact.clone())
    })
}

/// Runs each different job alone, one after the other on one cluster; `None` if somebody interrupted. What was measured
/// in an earlier call is taken from the folder, and what it lacks is run.
pub(super) fn measure(
    runner: &Runner<'_>,
    options: &Options,
    store: &Store,
) -> Result<Option<Vec<Alone>>, CompareError> {
    let mut alone = store.alone()?.unwrap_or_default();
    let mut seen: BTreeSet<String> = alone.iter().map(|one| one.key.clone()).collect();
    let (mut keys, mut jobs) = (Vec::new(), Vec::new());
    for repetition in 0..options.repetitions {
        for job in runner.workload.draw(repetition)? {
            let key = key(runner.workload, &job);
            if seen.insert(key.clone()) {
                jobs.push(DrawnJob { index: jobs.len(), arrival: 0.0, ..job });
                keys.push(key);
            }
        }
    }
    if jobs.is_empty() {
        return Ok(Some(alone));
    }
    let name = "isolated".to_owned();
    let contender = Contender { name, policy: "fifo".to_owned(), placement: "pull".to_owned() };
    let folder = store.path().join("isolated");
    store::remove_tree(&folder)?;
    // An oracle wants to know every job; nothing depends on what it is told while there is only one.
    let exact_of: Vec<Option<ExactWork>> =
        jobs.iter().map(|job| runner.workload.kinds[job.kind].exact.clone()).collect();
    let order =
        Order { contender: &contender, jobs: &jobs, exact: &exact_of, folder: &folder, one_by_one: true };
    let ran = runner.run(&order);
    store::remove_tree(&folder)?;
    let Some(ran) = ran? else { return Ok(None) };
    if let Some(index) = ran.traces.iter().position(|trace| 0 < trace.omitted) {
        return Err(CompareError::Forgotten { index });
    }
    let measured = keys.into_iter().zip(&ran.traces);
    alone.extend(measured.map(|(key, trace)| Alone {
        key,
        flow: trace.status.flow_ns() as f64 / 1e9,
        exact: exact(trace),
    }));
    store.keep_alone(&alone)?;
    Ok(Some(alone))
}
