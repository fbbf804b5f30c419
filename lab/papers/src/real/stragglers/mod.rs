//! The stragglers thesis on real execution: half of the workers are slower, and maps are split by its
//! placements.
//!
//! Not here: the splits' queues and the exact sojourn times (`crate::stragglers`).

mod application;
pub(super) mod sojourn;

use super::common::{cluster, section as section_of};
use super::context::{AT_ONCE, RealContext};
use super::control::{Control, SimulatedDraws};
use super::judging::predictions;
use crate::prelude::*;
use application::{Application, ApplicationWork};
use gristmill_lab::compare::Contender;
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::workload::{DataSet, JobKind};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::generate;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::protocol::Slots;

/// Text of the page: titles, captions and claims. Its holes, `{name}`, are filled with results by the sections.
pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Number of workers, with a slot for maps and one for reduces. Every second one is slower.
const WORKERS: u32 = 10;

/// Share of the cluster's rate at which tasks arrive.
const LOAD: f64 = 0.6;

/// Placements: the baseline, the thesis' splits, and idle slots that pull.
const PLACEMENTS: [&str; 5] = ["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "pull"];

/// Maps of a job. With few of them a worker's share is rounded, and the placements hardly differ.
const MAPS: u32 = 200;

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

/// Returns the seconds of a job's maps and reduces at full speed. Those of a program are measured, in as many clusters at
/// once as later: caches that others use too make its maps longer.
fn seconds(context: &RealContext<'_>, application: &Application) -> anyhow::Result<[f64; 2]> {
    if let ApplicationWork::Sleep { maps, least } = application.work {
        return Ok([2.0 * least * f64::from(maps), 1e-3]);
    }
    let repetitions = AT_ONCE.get();
    let draws = context.draws(repetitions, |seed| application.work.draw(3, 1.0, [1.0, 0.0], seed));
    let alone = application.work.workload(application.title, context.first_seed, &draws);
    let (name, pull) = (format!("{}-alone", application.name), contenders(&["pull"]));
    let alone = context.compare(&name, &alone, &config(application), pull, repetitions)?;
    let speed = application.speeds.iter().sum::<f64>() / application.speeds.len() as f64;
    let of_phase = |phase: usize| {
        let seconds = alone.runs.iter().flat_map(|run| &run.jobs).map(|job| job.usage.slot_seconds[phase]);
        mean(seconds).unwrap_or(0.0) * speed
    };
    Ok([of_phase(0).max(1e-3), of_phase(1)])
}

fn section(context: &RealContext<'_>, application: &Application) -> anyhow::Result<Section> {
    let (config, work) = (config(application), &application.work);
    // The work of a job's maps decides the rate at which jobs may arrive.
    let [maps, reduces] = seconds(context, application)?;
    let rate: f64 = f64::from(WORKERS / 2) * application.speeds.iter().sum::<f64>();
    let interval = maps / (LOAD * rate);
    let duration = context.scaled(0.2, 1.0, 5.0) * RUN_SECONDS;
    let jobs = (duration / interval).ceil().clamp(4.0, 400.0) as u32;
    let repetitions = context.scaled(1, application.repetitions, 20);
    let draw = |seed| work.draw(jobs, interval, [maps, reduces], seed);
    let simulated = context.scaled(20, 300, 1000);
    let draws = SimulatedDraws {
        count: [repetitions, simulated],
        first_seed: context.first_seed,
        skipped: WARM_UP_JOBS,
    };
    let control = if application.name == FEW {
        Control::default()
    } else {
        (context.progress)(&format!("{}: simulating", application.name));
        Control::simulate(&config, &application.contenders, draws, draw)?
    };
    let runs = work.workload(application.title, context.first_seed, &context.draws(repetitions, draw));
    let comparison =
        context.compare(application.name, &runs, &config, application.contenders.clone(), repetitions)?;
    let holes = holes![
        name = application.name,
        title = application.title,
        jobs,
        interval,
        maps,
        reduces,
        seed = context.first_seed,
        repetitions,
        simulated,
    ];
    let mut blocks = vec![sojourn::table(application, &comparison)];
    if application.name != FEW {
        blocks.extend(predictions(application.name, &comparison, &control, &sojourn::MST));
    }
    let claims = sojourn::claims(&comparison, &control);
    Ok(section_of((&WORDS, "chapter-6-{name}", holes), &comparison, blocks, claims))
}

/// Speed of the fast and of the slow workers of real work: 3.0 and 2.4 GHz as in chapter 6, scaled so
/// that a map takes tens of milliseconds and all slots together little of a processor.
const SPEEDS: [f64; 2] = [0.03, 0.024];

/// Speeds of slots that sleep, in the same ratio.
const SLEEPING_SPEEDS: [f64; 2] = [1.0, 0.8];

const MIB: u64 = 1 << 20;

/// Returns all applications; in a quick run one of each kind. The thesis' Sort is not among them: as many clusters of it
/// as run at once need more than two processors for its reduces, and its maps then take twice as long at one time as at
/// another.
fn all(context: &RealContext<'_>) -> Vec<Application> {
    let bytes = context.scaled(8, 16, 128) * MIB;
    let kind = |job: &str, arguments: &[&str]| JobKind {
        split_bytes: Some(bytes / u64::from(MAPS)),
        reduces: Some(2),
        ..JobKind::new(job, arguments)
    };
    let text =
        DataSet { name: "text".to_owned(), kind: generate::Kind::Text, bytes, seed: context.first_seed };
    let contenders = contenders(&PLACEMENTS);
    let real = |name, title, kind| {
        let data = vec![text.clone()];
        let work = ApplicationWork::Program { kind: Box::new(kind), data, maps: MAPS };
        Application { name, title, work, speeds: SPEEDS, contenders: contenders.clone(), repetitions: 18 }
    };
    let grep = JobKind { reduces: None, ..kind("grep", &["-c", "(a[a-z]+|o[a-z]+)e\\b", "{data}/text"]) };
    let mut all = vec![
        real("grep", "Grep", grep),
        real("wordcount", "WordCount", kind("wordcount", &["{data}/text"])),
        sleeping("delayed", "A job that sleeps delayed exponential times", (MAPS, 0.02), contenders.clone()),
        sleeping(FEW, "A job of a few long maps", (2 * WORKERS, 0.4), of_few()),
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

fn sleeping(
    name: &'static str,
    title: &'static str,
    (maps, least): (u32, f64),
    contenders: Vec<Contender>,
) -> Application {
    let work = ApplicationWork::Sleep { maps, least };
    let repetitions = if name == FEW { 6 } else { 12 };
    Application { name, title, work, speeds: SLEEPING_SPEEDS, contenders, repetitions }
}
