//! Pieces of all experiments on real processes: clusters, jobs that sleep, and blocks of a comparison.
//!
//! Not here: the papers, and the judgement of claims (`judging`).

use crate::prelude::*;
use gristmill_lab::compare::workload::{Arrivals, DataSet, JobKind, Order};
use gristmill_lab::compare::{Comparison, Contender, Workload, report};
use gristmill_runtime::api::ExactWork;
use gristmill_runtime::cluster::{ClusterConfig, WorkerProcesses};
use gristmill_runtime::deciders::DeciderNames;
use gristmill_scheduler::metrics::Metric;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::protocol::Slots;
use gristmill_worker::settings::{Shuffle, WorkerSettings};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// Memory of a worker whose tasks hold almost nothing.
const WORKER_MEMORY: Bytes = Bytes::mib(32);

/// Returns a cluster of this machine with this many worker processes, each with this many slots.
pub(super) fn cluster(workers: u32, slots: u32) -> ClusterConfig {
    ClusterConfig {
        workers: WorkerProcesses {
            count: workers,
            each: WorkerSettings::new(Slots::Unified(slots), WORKER_MEMORY),
            speeds: Vec::new(),
            spill_dirs: Vec::new(),
        },
        deciders: DeciderNames {
            policy: "fair".to_owned(),
            placement: "pull".to_owned(),
            estimator: "oracle".to_owned(),
        },
        pools: BTreeMap::new(),
        journal: None,
        // The papers' models have one attempt of a task at a time.
        backups: false,
        divides: false,
    }
}

/// Returns policies by text with names for legends, all with the placement in which idle slots pull.
pub(super) fn policies(names: &[(&str, &str)]) -> Vec<Contender> {
    names.iter().map(|&(name, policy)| Contender::new(name, policy, "pull")).collect()
}

/// Returns, for each repetition, its drawn jobs of the scheduler's workloads as sleeping jobs with their
/// arrival times. A unit of work takes `unit_seconds`.
pub(super) fn sleeping(name: &str, seed: u64, draws: &[Vec<Job>], unit_seconds: f64) -> Workload {
    let mut kinds = Vec::new();
    let mut placed = Vec::new();
    for jobs in draws {
        let first = kinds.len();
        kinds.extend(jobs.iter().enumerate().map(|(place, job)| sleeping_kind(place, job, unit_seconds)));
        let times = jobs.iter().map(|job| job.arrival * unit_seconds);
        placed.push((first..).zip(times).collect());
    }
    workload(name, seed, Arrivals::Draws(placed), kinds, Vec::new())
}

/// Returns a workload of kinds in the order of their list. Each repetition has its own draws.
pub(super) fn workload(
    name: &str,
    seed: u64,
    arrivals: Arrivals,
    kinds: Vec<JobKind>,
    data: Vec<DataSet>,
) -> Workload {
    let name = name.to_owned();
    Workload { name, seed, arrivals, order: Order::Listed, redraw: true, kinds, data }
}

fn sleeping_kind(place: usize, job: &Job, unit_seconds: f64) -> JobKind {
    let seconds = |units: &[f64]| units.iter().map(|units| units * unit_seconds).collect();
    let exact = ExactWork {
        map_seconds: seconds(&job.maps),
        shuffle_bytes: job.shuffle_bytes,
        reduce_seconds: seconds(&job.reduces),
    };
    JobKind {
        label: job.name.clone().unwrap_or_else(|| format!("job {}", place + 1)),
        reduces: Some(job.reduces.len() as u32),
        deadline: job.deadline.map(|deadline| (deadline - job.arrival) * unit_seconds),
        weight: if 0.0 < job.weight { job.weight } else { 1.0 },
        exact: Some(exact),
        plays_exact: true,
        ..JobKind::new("synthetic", &[])
    }
}

/// Returns charts and tables of some sections of a comparison's own report. The prefix makes their names
/// unique on a page of several comparisons.
pub(super) fn blocks(prefix: &str, comparison: &Comparison, sections: &[&str]) -> Vec<Block> {
    let all = report::sections(comparison);
    let named = sections.iter().filter_map(|id| all.iter().find(|section| section.id == *id));
    let blocks = named.flat_map(|section| section.blocks.iter().cloned());
    blocks
        .map(|mut block| {
            match &mut block {
                Block::Chart(chart) => chart.id = format!("{prefix}-{}", chart.id),
                Block::Table(table) => table.id = format!("{prefix}-{}", table.id),
                Block::Comparison(_) | Block::Claims(_) => {}
            }
            block
        })
        .collect()
}

/// Returns a cluster with this rate limit on the shuffle of each worker. Every segment passes the
/// limiter, including a worker's own.
pub(super) fn networked(workers: u32, slots: u32, nic: NonZeroU64) -> ClusterConfig {
    let mut config = cluster(workers, slots);
    config.workers.each.nic_bytes_per_second = Some(nic);
    config.workers.each.shuffle = Shuffle::Http;
    config
}

/// Returns a job that keeps all map slots busy for `map` seconds, with tasks of this length, and the
/// whole network for `shuffle` seconds. Its reduces take no time.
pub(super) fn two_stations(
    arrival: f64,
    [map, shuffle]: [f64; 2],
    workers: &WorkerProcesses,
    task: f64,
) -> Job {
    let slots = f64::from(workers.count * workers.each.slots.total());
    let tasks = (map * slots / task).round().max(1.0);
    let maps = vec![map * slots / tasks; tasks as usize];
    let nic = workers.each.nic_bytes_per_second.map_or(0.0, |rate| rate.get() as f64);
    Job {
        arrival,
        work: PerStation::new(maps.iter().sum(), shuffle, 0.0),
        maps,
        reduces: vec![0.0; workers.count as usize],
        shuffle_bytes: (shuffle * nic * f64::from(workers.count)).round(),
        ..Job::default()
    }
}

/// Returns the section of a comparison: its blocks and claims, with the conditions after the words.
pub(super) fn section(
    (words, key, holes): (&PaperWords, &str, Holes<'_>),
    comparison: &Comparison,
    mut blocks: Vec<Block>,
    claims: Vec<Claim>,
) -> Section {
    blocks.push(Block::Claims(claims));
    let mut section = words.section(key, holes, blocks);
    section.text.extend(conditions(comparison));
    section
}

/// Describes the conditions of a comparison, and the reasons not to trust it.
fn conditions(comparison: &Comparison) -> Vec<String> {
    let runs = comparison.runs.len();
    let Some(first) = comparison.runs.first() else { return vec!["Nothing was run.".to_owned()] };
    let slots: u32 = first.workers.iter().map(|worker| worker.slots).sum();
    let slow = first.workers.iter().filter(|worker| worker.speed < 1.0).count();
    let nic = first.workers.iter().find_map(|worker| worker.nic_bytes_per_second);
    let share = |metric: Metric| {
        let summaries = comparison.summaries();
        let shares: Vec<f64> = summaries.iter().filter_map(|summary| summary.mean(metric)).collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    };
    let mut words = vec![format!(
        "{runs} runs of {} jobs, {} workers with {slots} slots in all{}{}. Of the time in slots {:.0} % was on a \
         processor, {:.0} % paced, the rest asleep or waiting.",
        first.jobs.len(),
        first.workers.len(),
        if 0 < slow { format!(", {slow} of them with slower slots") } else { String::new() },
        nic.map_or_else(String::new, |rate| format!(", each shuffle held to {:.1} MB/s", rate as f64 / 1e6)),
        share(Metric::SlotCpu),
        share(Metric::SlotPaced),
    )];
    words.extend(comparison.reservations());
    words
}
