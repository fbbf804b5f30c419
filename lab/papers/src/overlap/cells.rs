//! Simulates each policy of the overlap paper at each load, and collects mean flow times, and slowdowns by size of the
//! job. Size is the larger of map and shuffle work, and slowdown is flow time divided by size.

use super::common::{POLICIES, simulate, work};
use crate::prelude::*;
use gristmill_scheduler::sim::fluid::lower_bound::lower_bound;
use gristmill_scheduler::workload::overlap::Poisson;

pub(super) const LOADS: [f64; 2] = [0.75, 0.9];

/// Number of runs of each cell, each with its own seed.
pub(super) const RUNS: u64 = 10;

/// Name of the lower bound, used in place of a policy.
pub(super) const BOUND: &str = "lower bound";

/// Upper ends of the classes of max(x, y). The last class has none.
pub(super) const CLASSES: [f64; 7] = [0.25, 1.0, 3.0, 10.0, 19.0, 50.0, 100.0];

/// Number of the paper's buckets: 400 up to 100.
pub(super) const BUCKETS: usize = 400;
pub(super) const BUCKET_WIDTH: f64 = 0.25;

/// Sum of slowdowns, and number of jobs.
#[derive(Clone, Copy, Default)]
pub(super) struct SlowdownShare {
    pub(super) slowdowns: f64,
    pub(super) jobs: f64,
}

impl SlowdownShare {
    pub(super) fn add(&mut self, other: SlowdownShare) {
        self.slowdowns += other.slowdowns;
        self.jobs += other.jobs;
    }

    pub(super) fn mean(self) -> Option<f64> {
        (0.0 < self.jobs).then(|| self.slowdowns / self.jobs)
    }
}

/// One run.
pub(super) struct CellRun {
    pub(super) mean: f64,
    pub(super) buckets: Vec<SlowdownShare>,
    pub(super) classes: [SlowdownShare; CLASSES.len() + 1],
}

/// All runs of a policy at a load.
pub(super) struct PolicyAtLoad {
    pub(super) load: f64,
    pub(super) name: &'static str,
    pub(super) runs: Vec<CellRun>,
}

impl PolicyAtLoad {
    /// Returns the mean of each run. The same index has the same jobs under every policy.
    pub(super) fn means(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.mean).collect()
    }

    /// Returns the mean slowdown of a class in each run, `None` where the run has no job of the class.
    pub(super) fn class_means(&self, class: usize) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| run.classes[class].mean()).collect()
    }
}

pub(super) fn run_all(context: &Context<'_>, jobs: usize) -> anyhow::Result<Vec<PolicyAtLoad>> {
    // The slowest first, so that no thread runs one of them alone at the end.
    let policies = POLICIES.iter().map(|&(call, name)| (Some(call), name)).chain([(None, BOUND)]);
    let cells: Vec<_> =
        policies.flat_map(|policy| LOADS.into_iter().rev().map(move |load| (policy, load))).collect();
    let runs = each_cell(&cells, &context.seeds(RUNS), |&((call, name), load), &seed| {
        (context.progress)(&format!("overlap: {name} at load {load}, seed {seed}"));
        one_run(call, load, seed, jobs)
    })?;
    Ok(cells
        .into_iter()
        .zip(runs)
        .map(|(((_, name), load), runs)| PolicyAtLoad { load, name, runs })
        .collect())
}

/// Runs a policy, or the bound for `None`.
fn one_run(call: Option<&str>, load: f64, seed: u64, jobs: usize) -> anyhow::Result<CellRun> {
    let generated = Poisson::new(load, seed)?.take(jobs);
    let mut run = CellRun { mean: 0.0, buckets: Vec::new(), classes: Default::default() };
    let Some(call) = call else {
        run.mean = lower_bound(generated.map(|job| work(&job))) / jobs as f64;
        return Ok(run);
    };
    run.buckets = vec![SlowdownShare::default(); BUCKETS];
    let mut flow = 0.0;
    simulate(call, generated, |record| {
        flow += record.flow();
        let size = record.work[Station::Map].max(record.work[Station::Shuffle]);
        let share = SlowdownShare { slowdowns: record.flow() / size, jobs: 1.0 };
        run.classes[CLASSES.partition_point(|&end| end <= size)].add(share);
        if let Some(bucket) = run.buckets.get_mut((size / BUCKET_WIDTH) as usize) {
            bucket.add(share);
        }
    })?;
    run.mean = flow / jobs as f64;
    Ok(run)
}

pub(super) fn find<'a>(cells: &'a [PolicyAtLoad], load: f64, name: &str) -> Option<&'a PolicyAtLoad> {
    cells.iter().find(|cell| cell.load == load && cell.name == name)
}
