//! Runs each distinct job alone on the cluster, and measures the time of the job and of each of its tasks.
//!
//! Not here: the use of the times (`summary`), and estimators.

use super::CompareError;
use super::comparison::Options;
use super::gather::exact;
use super::record::Alone;
use super::run::Runner;
use super::store::ComparisonStore;
use super::workload::{DrawnJob, Workload};
use gristmill_runtime::api::{ExactWork, JobTrace};
use std::collections::BTreeSet;

/// Runs of each job alone: the smallest number with a median that differs from the first run, which pays
/// for cold caches, and from a run that another program has disturbed.
pub const RUNS: usize = 3;

/// File of the store with the jobs that ran alone.
pub(super) const FILE: &str = "isolated.json";

/// Returns the properties that make two jobs the same work.
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

/// Returns the work of a job, from the workload or from a measurement.
pub(super) fn known(workload: &Workload, job: &DrawnJob, alone: &[Alone]) -> Option<ExactWork> {
    let told = workload.kinds[job.kind].exact.clone();
    told.or_else(|| {
        let key = key(workload, job);
        alone.iter().find(|one| one.key == key).map(|one| one.exact.clone())
    })
}

/// Runs each distinct job alone, [`RUNS`] times, in turn on one cluster: each job once before any runs
/// again. Returns `None` if interrupted. Measurements of an earlier call are read from the directory, and
/// missing ones are run.
pub(super) fn measure(
    runner: &Runner<'_>,
    options: &Options,
    store: &ComparisonStore,
) -> Result<Option<Vec<Alone>>, CompareError> {
    let mut alone: Vec<Alone> = store.read_json(FILE)?.unwrap_or_default();
    let (keys, jobs) = lacking(runner.workload, options, &alone)?;
    if jobs.is_empty() {
        return Ok(Some(alone));
    }
    let runs = (0..RUNS).flat_map(|_| &jobs).cloned().enumerate();
    let runs: Vec<DrawnJob> = runs.map(|(index, job)| DrawnJob { index, arrival: 0.0, ..job }).collect();
    let Some(traces) = runner.run_apart(store, "isolated", &runs, &[], |ran, _| Ok(ran.traces))? else {
        return Ok(None);
    };
    if let Some(index) = traces.iter().position(|trace| 0 < trace.omitted) {
        return Err(CompareError::Forgotten { index });
    }
    let traces_of = |place: usize| traces.iter().skip(place).step_by(jobs.len());
    alone.extend(
        keys.into_iter()
            .enumerate()
            .filter_map(|(place, key)| of_runs(key, &traces_of(place).collect::<Vec<_>>())),
    );
    store.write_json(FILE, &alone)?;
    Ok(Some(alone))
}

/// Returns the distinct jobs of all repetitions that are not measured yet, with their keys.
fn lacking(
    workload: &Workload,
    options: &Options,
    alone: &[Alone],
) -> Result<(Vec<String>, Vec<DrawnJob>), CompareError> {
    let mut seen: BTreeSet<String> = alone.iter().map(|one| one.key.clone()).collect();
    let (mut keys, mut jobs) = (Vec::new(), Vec::new());
    for repetition in 0..options.repetitions {
        for job in workload.draw(repetition)? {
            let key = key(workload, &job);
            if seen.insert(key.clone()) {
                jobs.push(job);
                keys.push(key);
            }
        }
    }
    Ok((keys, jobs))
}

/// Combines runs of one job; `None` without runs.
fn of_runs(key: String, traces: &[&JobTrace]) -> Option<Alone> {
    let flow = |trace: &JobTrace| trace.status.flow_ns() as f64 / 1e9;
    let flows: Vec<f64> = traces.iter().map(|trace| flow(trace)).collect();
    let median = median(&flows)?;
    Some(Alone { key, flow: flows[median], exact: exact(traces[median]), flows })
}

/// Returns the index of the median, the smaller one of two; `None` without values.
fn median(values: &[f64]) -> Option<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]).then(one.cmp(&other)));
    order.get(order.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_alone_is_the_median_so_that_one_disturbed_run_does_not_count() {
        assert_eq!(median(&[0.9, 7.0, 1.1]), Some(2));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2));
        assert_eq!(median(&[2.0, 1.0]), Some(1), "the smaller of two");
        assert_eq!(median(&[]), None);
    }
}
