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
use gristmill_worker::protocol::Slots;
pub(super) use words::WORDS;

/// Number of workers, with a slot for maps and one for reduces. Every second one is slower.
const WORKERS: u32 = 10;

/// Share of the cluster's rate at which tasks arrive.
const LOAD: f64 = 0.6;

/// Placements: the baseline, the thesis' splits, and idle slots that pull.
const PLACEMENTS: [&str; 5] = ["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "pull"];

/// Maps of a job. With few of them a worker's share is rounded, and the placements hardly differ.
const MAPS: u64 = 200;

/// Jobs at the start of a run that are not judged: placements learn the rates of workers from them.
const WARM_UP_JOBS: usize = 2;

/// Seconds that a run's jobs take to arrive.
const RUN_SECONDS: f64 = 25.0;

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let applications = all(context);
    let sections = applications.iter().map(|application| section(context, application));
    let sections = sections.collect::<anyhow::Result<_>>()?;
    Ok(WORDS.paper(
        "stragglers",
        holes![workers = WORKERS, load = 100.0 * LOAD, warm_up = WARM_UP_JOBS],
        sections,
    ))
}

fn config(application: &Application) -> ClusterConfig {
    let mut config = cluster(WORKERS, 1);
    config.workers.speeds = application.speeds.to_vec();
    // Reduces have slots of their own, as in Hadoop: the thesis is about maps.
    config.workers.each.slots = Slots::Pools { map: 1, reduce: 1 };
    config.workers.each.memory = Bytes::mib(64);
    config.deciders.estimator = "history".to_owned();
    config
}

fn contenders(placements: &[&str]) -> Vec<Contender> {
    placements.iter().map(|&placement| Contender::new(placement, "fifo", placement)).collect()
}

fn workload(application: &Application, seed: u64, jobs: u32, interval: f64) -> Workload {
    let kinds = vec![JobKind { count: jobs, ..application.kind.clone() }];
    let arrivals = Arrivals::Poisson(interval);
    workload_of(application.title, seed, arrivals, kinds, application.data.clone())
}

fn section(context: &RealContext<'_>, application: &Application) -> anyhow::Result<Section> {
    let config = config(application);
    // The work of a job's maps decides the rate at which jobs may arrive.
    let alone = workload(application, context.first_seed, 3, 1.0);
    let pull = contenders(&["pull"]);
    let alone = context.compare(&format!("{}-alone", application.name), &alone, &config, pull, 1)?;
    let of_phase = |phase: usize| {
        mean(alone.runs.iter().flat_map(|run| &run.jobs).map(|job| job.usage.work_seconds[phase]))
            .unwrap_or(0.0)
    };
    let [maps, reduces] = [of_phase(0), of_phase(1)];
    let rate: f64 = f64::from(WORKERS / 2) * application.speeds.iter().sum::<f64>();
    let interval = maps.max(1e-3) / (LOAD * rate);
    let seconds = context.scaled(0.2, 1.0, 5.0) * RUN_SECONDS;
    let jobs = (seconds / interval).ceil().clamp(4.0, 400.0) as u32;
    let repetitions = context.scaled(1, 6, 20);
    let workload = workload(application, context.first_seed, jobs, interval);
    let comparison =
        context.compare(application.name, &workload, &config, application.contenders.clone(), repetitions)?;
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
/// that a map takes tens of milliseconds and all slots together little of a processor.
const SPEEDS: [f64; 2] = [0.03, 0.024];

/// Speeds of slots that sleep, in the same ratio.
const SLEEPING_SPEEDS: [f64; 2] = [1.0, 0.8];

const MIB: u64 = 1 << 20;

/// Returns all applications; in a quick run one of each kind.
fn all(context: &RealContext<'_>) -> Vec<Application> {
    let bytes = context.scaled(16, 32, 128) * MIB;
    let seed = context.first_seed;
    let data = |name: &str, kind| vec![DataSet { name: name.to_owned(), kind, bytes, seed }];
    let kind = |job: &str, arguments: &[&str]| JobKind {
        split_bytes: Some(bytes / MAPS),
        reduces: Some(2),
        ..JobKind::new(job, arguments)
    };
    let text = || data("text", generate::Kind::Text);
    let contenders = contenders(&PLACEMENTS);
    let real = |name, title, kind, data| {
        let contenders = contenders.clone();
        Application { name, title, kind, data, speeds: SPEEDS, contenders }
    };
    let grep = JobKind { reduces: None, ..kind("grep", &["-c", "(a[a-z]+|o[a-z]+)e\\b", "{data}/text"]) };
    let sort = kind("sort", &["{data}/records"]);
    let mut all = vec![
        real("grep", "Grep", grep, text()),
        real("wordcount", "WordCount", kind("wordcount", &["{data}/text"]), text()),
        real("sort", "Sort", sort, data("records", generate::Kind::Records)),
        sleeping("delayed", "A job that sleeps delayed exponential times", [MAPS, 40], contenders.clone()),
        sleeping(FEW, "A job of a few long maps", [2 * u64::from(WORKERS), 400], of_few()),
    ];
    if context.scaled(true, false, false) {
        all.retain(|application| ["wordcount", "delayed"].contains(&application.name));
    }
    all
}

/// Name of the application whose maps are few and long enough to be divided.
const FEW: &str = "few-maps";

/// Returns the contenders on jobs of few maps.
fn of_few() -> Vec<Contender> {
    let mut all = contenders(&["fair-split", "m-ep", "pull"]);
    all.push(Contender::new("pull divided", "fifo+divide", "pull"));
    all
}

/// Returns an application whose maps take at least `least` milliseconds, and exponential ones of the same mean on top.
fn sleeping(
    name: &'static str,
    title: &'static str,
    [maps, least]: [u64; 2],
    contenders: Vec<Contender>,
) -> Application {
    let (maps, time) = (maps.to_string(), format!("delayed:{least}ms,{least}ms"));
    let arguments = ["--maps", &maps, "--map-time", &time, "--reduce-time", "1ms", "--seed", "{seed}"];
    let kind = JobKind { reduces: Some(1), ..JobKind::new("synthetic", &arguments) };
    Application { name, title, kind, data: Vec::new(), speeds: SLEEPING_SPEEDS, contenders }
}
