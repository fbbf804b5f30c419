//! The stragglers thesis on real execution: half of the workers slower, and its splits of the maps over them.
//!
//! Not here: the splits' queues and the exact sojourn times (`paper::stragglers`).

mod applications;
pub(super) mod sojourn;

use super::RealContext;
use super::common::{cluster, conditions};
use crate::compare::statistics::mean;
use crate::compare::workload::{Amount, Arrivals, Kind, Order};
use crate::compare::{Contender, Workload};
use crate::paper::{Block, Paper, Section};
use applications::Application;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_scheduler::units::Bytes;

/// Workers of one slot each; every second one is slower.
const WORKERS: u32 = 10;

/// Share of the cluster's rate at which tasks arrive.
const LOAD: f64 = 0.6;

/// What the runs are compared with, the thesis' splits, and idle slots that pull.
const PLACEMENTS: [&str; 5] = ["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "pull"];

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let applications = applications::all(context);
    let mut sections = Vec::new();
    for application in &applications {
        sections.push(section(context, application)?);
    }
    Ok(Paper {
        name: "stragglers",
        title: "Stochastic Modeling and Optimization of Stragglers in MapReduce Framework (F. Farhat, 2015)",
        about: vec![format!(
            "{WORKERS} workers of one slot, every second one at 0.8 times the speed of the others, as \
             chapter 6 has them. Grep, WordCount and Sort read real data; their slots are paced to a tenth \
             of this machine's speed, so that ten of them together need less than its processors. A fourth \
             job sleeps delayed exponential times. Jobs arrive at random at {:.0} % of the cluster's rate; \
             a placement deals the maps of each to the workers by their measured rates. The thesis judges \
             by the mean sojourn time, MST: from a job's first launch until its last map is in.",
            100.0 * LOAD
        )],
        sections,
    })
}

fn config(application: &Application) -> ClusterConfig {
    let mut config = cluster(WORKERS, 1);
    config.workers.speeds = application.speeds.to_vec();
    config.workers.each.memory = Bytes::mib(64);
    config.deciders.estimator = "history".to_owned();
    config
}

fn contenders() -> Vec<Contender> {
    let contender = |&placement: &&str| Contender {
        name: placement.to_owned(),
        policy: "fifo".to_owned(),
        placement: placement.to_owned(),
    };
    PLACEMENTS.iter().map(contender).collect()
}

fn workload(application: &Application, seed: u64, jobs: u32, interval: f64) -> Workload {
    Workload {
        name: application.title.to_owned(),
        seed,
        arrivals: Arrivals::Poisson(interval),
        order: Order::Listed,
        total: None,
        redraw: true,
        kinds: vec![Kind { amount: Amount::Count(jobs), ..application.kind.clone() }],
        data: application.data.clone(),
    }
}

fn section(context: &RealContext<'_>, application: &Application) -> anyhow::Result<Section> {
    let config = config(application);
    // How much work a job is decides how often jobs may come; its reduces take slots too.
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
    let mut section = Section::new(
        format!("chapter-6-{}", application.name),
        format!("Chapter 6: {}", application.title),
        [format!(
            "{jobs} jobs, one every {interval:.2} s in the mean, each with {maps:.2} s of map and \
             {reduces:.2} s of reduce work at full speed; seed {}, arrivals drawn anew for each of \
             {repetitions} repetitions.",
            context.first_seed
        )],
        vec![
            Block::Table(sojourn::table(application, &comparison)),
            Block::Chart(sojourn::by_worker(application, &comparison)),
        ],
    );
    section.text.extend(conditions(&comparison));
    section.blocks.push(Block::Claims(sojourn::claims(&comparison)));
    Ok(section)
}
