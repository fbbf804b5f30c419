//! A stream of jobs on a simulated cluster, with the placements that a live master runs.
//!
//! Maps are assigned to workers' queues when their job arrives, by rates that are measured while the
//! cluster runs. Not here: the thesis' own queues, where tasks arrive one by one (`simulated`).

use super::{SLOW, WORDS, halves};
use crate::judge::{Seen, every, mean_of, paired, percent};
use crate::words::holes;
use crate::{Block, Claim, Context, Section, Series, each_cell};
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::queueing::Dtd;
use gristmill_scheduler::sim::cluster::{self, Config, Deciders};
use gristmill_scheduler::workload::by_name as workload;
use gristmill_scheduler::{placement, policy};

const COUNT: u32 = 40;
/// Number of maps of a job: five for each worker, so that fractions of a map matter little.
const TASKS: u32 = 5 * COUNT;
const PLACEMENTS: [&str; 6] =
    ["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "optimal", "pull"];

pub(super) fn section(context: &Context<'_>) -> anyhow::Result<Section> {
    let jobs = context.scaled(30, 200, 1_000);
    let seeds = context.seeds(context.scaled(2, 4, 10));
    let measured = measured(context, jobs, &seeds)?;
    let curves = measured.iter().map(|one| {
        let means = one.by_rate.iter().map(|(lambda, samples)| (*lambda, mean_of(samples)));
        Series::means(one.placement, means)
    });
    let chart = WORDS.chart("stream", holes![], curves.collect());
    let holes = holes![count = COUNT, tasks = TASKS, jobs, seeds = seeds.len()];
    Ok(WORDS.section("stream", holes, vec![chart, Block::Claims(claims(&measured))]))
}

/// Mean times of one placement by rate and seed.
pub(super) struct Measured {
    pub(super) placement: &'static str,
    pub(super) by_rate: Vec<(f64, Vec<f64>)>,
}

fn measured(context: &Context<'_>, jobs: u64, seeds: &[u64]) -> anyhow::Result<Vec<Measured>> {
    let lambdas: Vec<f64> = context.scaled(
        vec![10.0, 25.0],
        vec![5.0, 10.0, 15.0, 20.0, 25.0, 28.0],
        vec![5.0, 10.0, 15.0, 20.0, 25.0, 28.0, 30.0],
    );
    let of_placement = |placement| lambdas.iter().map(move |&lambda| (placement, lambda));
    let cells: Vec<(&str, f64)> = PLACEMENTS.into_iter().flat_map(of_placement).collect();
    let mut means =
        each_cell(&cells, seeds, |&(placement, lambda), &seed| simulate(placement, lambda, jobs, seed))?
            .into_iter();
    let by_rate =
        |placement| Measured { placement, by_rate: lambdas.iter().copied().zip(means.by_ref()).collect() };
    Ok(PLACEMENTS.map(by_rate).into())
}

/// Returns the mean time from arrival to the end of the maps.
fn simulate(placement: &str, lambda: f64, jobs: u64, seed: u64) -> anyhow::Result<f64> {
    let mut config = Config { seed, ..Config::uniform(COUNT, Slots::Unified(1)) };
    for (worker, server) in config.workers.iter_mut().zip(halves(COUNT)) {
        worker.speed = server.mu;
        worker.service = Some(Dtd { a: 1.0, b: 0.0, offset: 0.0 });
    }
    // Tasks have length 1: the workers draw their times.
    let call = format!("stragglers:rate={lambda},tasks={TASKS},jobs={jobs},a=1e12,offset=1");
    let workload = workload(&call)?;
    let (mut total, mut count) = (0.0, 0.0);
    cluster::run(
        &config,
        Deciders { placement: placement::by_name(placement)?, ..Deciders::of(policy::by_name("fifo")?) },
        workload.jobs(seed),
        &mut (),
        &mut |record| {
            total += record.maps_done - record.arrival;
            count += 1.0;
        },
    )?;
    Ok(total / count)
}

/// Judges the ratio of two placements' times: for each seed the geometric mean over the rates.
pub(super) fn claims(measured: &[Measured]) -> Vec<Claim> {
    let logarithms = |name: &str| -> Vec<f64> {
        let Some(one) = measured.iter().find(|one| one.placement == name) else { return Vec::new() };
        let seeds = one.by_rate.iter().map(|(_, samples)| samples.len()).min().unwrap_or(0);
        let of_seed = |seed: usize| {
            let sum: f64 = one.by_rate.iter().map(|(_, samples)| samples[seed].ln()).sum();
            sum / one.by_rate.len() as f64
        };
        (0..seeds).map(of_seed).collect()
    };
    let above = |name: &str| paired(&logarithms("fair-split"), &logarithms(name));
    let [det, stochastic, mep, pull] = ["pure-deterministic", "pure-stochastic", "m-ep", "pull"].map(above);
    let beat = every([&det, &stochastic, &mep].map(|ratio| Seen::above(ratio, 0.0)));
    let [det, stochastic, mep, pull] = [det, stochastic, mep, pull].map(|ratio| percent(&ratio));
    vec![WORDS.claim("stream", beat, holes![slow = SLOW, det, stochastic, mep, pull])]
}
