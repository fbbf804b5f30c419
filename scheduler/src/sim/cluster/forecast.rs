//! Forecast of the time left of live jobs: what they have left runs under the same policy in the simulated cluster.
//!
//! All that a job has left counts as waiting, in equal tasks of its estimated work, and no further job arrives. The
//! policy starts without memory of the past.

use super::{Config, Deciders, NetworkConfig, SimWorker, run};
use crate::core::{Core, CoreConfig, JobSnapshot};
use crate::estimate::Oracle;
use crate::event::Slots;
use crate::ids::{JobId, TaskKind};
use crate::metrics::JobRecord;
use crate::station::Station;
use crate::units::Span;
use crate::workload::Job;
use std::collections::BTreeMap;

/// Maximum number of tasks of a forecast: their simulation takes about 10 ms.
pub const FORECAST_TASKS_MAX: usize = 5_000;

/// Part of its expected time that a task is expected to take when it has run for longer than that.
const OVERDUE: f64 = 0.1;

/// Returns the time until each live job ends. `None` without workers, for more than [`FORECAST_TASKS_MAX`] tasks, and if
/// the policy lets jobs wait forever. Sizes are those that the core has estimated; the estimator of `deciders` is
/// ignored.
#[must_use]
pub fn time_left(core: &Core, deciders: Deciders) -> Option<BTreeMap<JobId, Span>> {
    let live: Vec<JobSnapshot> = core.live_jobs().collect();
    let jobs: Vec<Job> = live.iter().map(|job| rest_of(core, job)).collect();
    if FORECAST_TASKS_MAX < jobs.iter().map(|job| job.maps.len() + job.reduces.len()).sum() {
        return None;
    }
    let workers = core.live_workers().map(|worker| SimWorker {
        speed: 1.0 / worker.slowness().max(1.0),
        ..SimWorker::new(worker.slots(), worker.host().0)
    });
    let rate = core.config().network.map_or(f64::INFINITY, |rate| rate.0.max(1) as f64);
    let config = Config {
        workers: workers.collect(),
        network: NetworkConfig { in_rate: rate, out_rate: rate, ..NetworkConfig::default() },
        // The simulator knows no speculative attempts.
        core: CoreConfig { backups: None, ..core.config().clone() },
        ..Config::uniform(0, Slots::Unified(1))
    };
    let deciders = Deciders { estimator: Some(Box::new(Oracle)), ..deciders };
    let mut left = BTreeMap::new();
    let mut sink = |record: &JobRecord| {
        if let Some(job) = live.get(record.seq as usize) {
            left.insert(job.id, Span((record.completion * 1e9) as u64));
        }
    };
    run(&config, deciders, jobs, &mut (), &mut sink).ok()?;
    Some(left)
}

/// Returns what a job has left as a job that arrives now.
fn rest_of(core: &Core, job: &JobSnapshot) -> Job {
    let maps = job.maps.pending + job.maps.running;
    let counts = job.reduces;
    let reduces = counts.pending + counts.gathering + counts.ready + counts.running + counts.suspended;
    let finite = |work: f64| if work.is_finite() { work.max(0.0) } else { 0.0 };
    let mut work = core.sizes(job.id).map(|sizes| sizes.left.map(finite)).unwrap_or_default();
    // Tasks are equal but for what the running ones have done.
    let tasks = |kind: TaskKind, station: Station, count: u32| {
        let mean = work[station] / f64::from(count.max(1));
        let running = core.running(job.id, kind).map(|ran| (mean - ran.seconds()).max(mean * OVERDUE));
        let mut tasks: Vec<f64> = running.take(count as usize).collect();
        tasks.resize(count as usize, mean);
        tasks
    };
    // A map that takes no time puts out what is left to fetch.
    let maps = if maps == 0 { vec![0.0] } else { tasks(TaskKind::Map, Station::Map, maps) };
    let reduces = tasks(TaskKind::Reduce, Station::Reduce, reduces);
    work[Station::Map] = maps.iter().sum();
    work[Station::Reduce] = reduces.iter().sum();
    let spec = core.spec(job.id);
    Job {
        work,
        maps,
        reduces,
        weight: job.weight,
        pool: job.pool,
        pool_weight: spec.and_then(|spec| spec.pool_weight),
        priority: spec.map_or(0, |spec| spec.priority),
        deadline: spec.and_then(|spec| spec.deadline).map(|at| at.since(core.now()).seconds()),
        name: spec.and_then(|spec| spec.name.clone()),
        ..Job::default()
    }
}
