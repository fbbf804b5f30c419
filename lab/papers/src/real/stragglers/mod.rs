//! The stragglers thesis on real execution: half of the workers are slower, and maps are split by its
//! placements.
//!
//! Not here: the splits' queues and the exact sojourn times (`crate::stragglers`).

mod application;
pub(super) mod sojourn;
mod words;

use super::common::{cluster, section as section_of, workload as workload_of};
use super::context::RealContext;
use crate::prelude::*;
use application::Application;
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::workload::{Arrivals, DataSet, JobKind};
use gristmill_lab::compare::{Contender, Workload};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::generate;
use gristmill_scheduler::units::Bytes;
pub(super) use words::WORDS;

/// Number of workers, with one slot each. Every second one is slower.
const WORKERS: u32 = 10;

/// Share of the cluster's rate at which tasks arrive.
const LOAD: f64 = 0.6;

/// Placements: the baseline, the thesis' splits, and idle slots that pull.
const PLACEMENTS: [&str; 5] = ["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "pull"];

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let applications = all(context);
    let sections = applications.iter().map(|application| section(context, application));
    let sections = sections.collect::<anyhow::Result<_>>()?;
    Ok(WORDS.paper("stragglers", holes![workers = WORKERS, load = 100.0 * LOAD], sections))
}

fn config(application: &Application) -> ClusterConfig {
    let mut config = cluster(WORKERS, 1);
    config.workers.speeds = application.speeds.to_vec();
    config.workers.each.memory = Bytes::mib(64);
    config.deciders.estimator = "history".to_owned();
    config
}

fn contenders() -> Vec<Contender> {
    PLACEMENTS.iter().map(|&placement| Contender::new(placement, "fifo", placement)).collect()
}

fn workload(application: &Application, seed: u64, jobs: u32, interval: f64) -> Workload {
    let kinds = vec![JobKind { count: jobs, ..application.kind.clone() }];
    let arrivals = Arrivals::Poisson(interval);
    workload_of(application.title, seed, arrivals, kinds, application.data.clone())
}

fn section(context: &RealContext<'_>, application: &Application) -> anyhow::Result<Section> {
    let config = config(application);
    // The work of a job decides the rate at which jobs may arrive. Its reduces take slots too.
    let alone = workload(application, context.first_seed, 3, 1.0);
    let pull = contenders().split_off(PLACEMENTS.len() - 1);
    let alone = context.compare(&format!("{}-alone", application.name), &alone, &config, pull, 1)?;
    let of_phase = |phase: usize| {
        mean(alone.runs.iter().flat_map(|run| &run.jobs).map(|job| job.usage.work_seconds[phase]))
            .unwrap_or(0.0)
    };
    let [maps, reduces] = [of_phase(0), of_phase(1)];
    let rate: f64 = f64::from(WORKERS / 2) * application.speeds.iter().sum::<f64>();
    let interval = (maps + reduces).max(1e-3) / (LOAD * rate);
    let seconds = context.scaled(3.0, 6.0, 60.0);
    let jobs = (seconds / interval).ceil().clamp(4.0, 400.0) as u32;
    let repetitions = context.scaled(1, 8, 20);
    let workload = workload(application, context.first_seed, jobs, interval);
    let comparison = context.compare(application.name, &workload, &config, contenders(), repetitions)?;
    let holes = holes![
        name = application.name,
        title = application.title,
        jobs,
        interval,
        maps,
        reduces,
        seed = context.first_seed,
        repetitions,
    ];
    let blocks = vec![sojourn::table(application, &comparison)];
    let claims = sojourn::claims(&comparison);
    Ok(section_of((&WORDS, "chapter-6-{name}", holes), &comparison, blocks, claims))
}

/// Speed of the fast and of the slow workers of real work: 3.0 and 2.4 GHz as in chapter 6, scaled so
/// that all slots together need less than the processors of this machine.
const SPEEDS: [f64; 2] = [0.1, 0.08];

/// Speeds of slots that sleep, in the same ratio.
const SLEEPING_SPEEDS: [f64; 2] = [1.0, 0.8];

const MIB: u64 = 1 << 20;

fn kind(job: &str, arguments: &[&str]) -> JobKind {
    JobKind { split_bytes: Some(2 * MIB), reduces: Some(2), ..JobKind::new(job, arguments) }
}

/// Returns all applications; in a quick run one of each kind.
fn all(context: &RealContext<'_>) -> Vec<Application> {
    let bytes = context.scaled(16, 32, 128) * MIB;
    let seed = context.first_seed;
    let data = |name: &str, kind| vec![DataSet { name: name.to_owned(), kind, bytes, seed }];
    let text = || data("text", generate::Kind::Text);
    let real = |name, title, kind, data| Application { name, title, kind, data, speeds: SPEEDS };
    let grep = JobKind { reduces: None, ..kind("grep", &["-c", "(a[a-z]+|o[a-z]+)e\\b", "{data}/text"]) };
    let sort = kind("sort", &["{data}/records"]);
    let mut all = vec![
        real("grep", "Grep", grep, text()),
        real("wordcount", "WordCount", kind("wordcount", &["{data}/text"]), text()),
        real("sort", "Sort", sort, data("records", generate::Kind::Records)),
        sleeping(),
    ];
    if context.scaled(true, false, false) {
        all.retain(|application| ["wordcount", "delayed"].contains(&application.name));
    }
    all
}

fn sleeping() -> Application {
    let arguments =
        ["--maps", "20", "--map-time", "delayed:40ms,40ms", "--reduce-time", "1ms", "--seed", "{seed}"];
    Application {
        name: "delayed",
        title: "A job that sleeps delayed exponential times",
        kind: JobKind { reduces: Some(1), ..JobKind::new("synthetic", &arguments) },
        data: Vec::new(),
        speeds: SLEEPING_SPEEDS,
    }
}
