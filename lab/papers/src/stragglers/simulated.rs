//! Figures 6-2, 6-4, 6-6 and 6-9: workers' completion times under the splits, from queues simulated task by task; and a
//! stream of jobs on a simulated cluster.
//!
//! The thesis shows runs on a simulated cluster of its own. Here tasks arrive at random at every worker with its rate and
//! wait in its queue (Lindley's recursion); a job that needs one task of every worker waits for the slowest. No split of
//! the thesis is made for jobs whose tasks arrive together; the stream has such jobs.

use super::WORDS;
use super::common::{SLOW, halves};
use crate::prelude::*;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::placement::{self, Placed, place};
use gristmill_scheduler::policy;
use gristmill_scheduler::queueing::{Dtd, Server};
use gristmill_scheduler::sim::cluster::{self, Config, Deciders};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const COUNT: u32 = 40;
const SPLITS: [(&str, &str); 4] = [
    ("fair", "fair-split"),
    ("pure-deterministic", "pure-deterministic"),
    ("pure-stochastic (nonneg)", "pure-stochastic"),
    ("M-EP with D = 3.5 s", "m-ep:d=3.5"),
];
const LAMBDAS: [f64; 6] = [8.0, 14.0, 20.0, 25.0, 28.0, 30.0];

/// Results of one seed: mean times at slow workers, at fast workers, and of the largest.
type MeanTimes = [f64; 3];

pub(super) fn section(context: &Context<'_>) -> anyhow::Result<Section> {
    let tasks = context.scaled(1_000, 20_000, 100_000);
    let seeds = context.seeds(context.scaled(4, 10, 20));
    let (mut blocks, mut spread) = (Vec::new(), Vec::new());
    for (figure, (name, split)) in ["6-2", "6-4", "6-6", "6-9"].into_iter().zip(SPLITS) {
        let (curves, of_split) = simulate_split(split, tasks, &seeds)?;
        blocks.push(WORDS.chart("simulated", holes![figure, name, seeds = seeds.len()], curves.to_vec()));
        spread.push(of_split);
    }
    blocks.push(Block::Claims(of_splits(&spread)));
    Ok(WORDS.section("figure-6-9", holes![count = COUNT, tasks], blocks))
}

/// Returns the curves of slow workers, fast workers, and the largest, and the largest ratio of the mean times
/// of slow and fast workers over all rates, by seed.
fn simulate_split(split: &str, tasks: usize, seeds: &[u64]) -> anyhow::Result<([Series; 3], Vec<f64>)> {
    let mut curves = ["slow workers", "fast workers", "largest"].map(|name| Series::new(name, Vec::new()));
    let mut spread = vec![1.0_f64; seeds.len()];
    let servers = halves(COUNT);
    for lambda in LAMBDAS {
        let placed = place(split, &servers, lambda)?;
        let runs: Vec<MeanTimes> = each(seeds, |seed| simulate(&servers, &placed, tasks, *seed));
        let times = [0, 1, 2].map(|i| mean_by(&runs, |run| run[i]));
        for (curve, time) in curves.iter_mut().zip(times) {
            curve.points.push((lambda, time.mean));
            curve.half_widths.push(time.half_width.unwrap_or_default());
        }
        for (spread, [slow, fast, _]) in spread.iter_mut().zip(&runs) {
            *spread = spread.max(slow.max(*fast) / slow.min(*fast));
        }
    }
    Ok((curves, spread))
}

/// Runs Lindley's recursion at every worker.
fn simulate(servers: &[Server], placed: &Placed, tasks: usize, seed: u64) -> MeanTimes {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut largest = vec![0.0_f64; tasks];
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    for (server, rate) in servers.iter().zip(&placed.rates) {
        let between = Dtd { a: rate.max(f64::MIN_POSITIVE), b: 0.0, offset: 0.0 };
        let service = Dtd { a: server.mu, b: 0.0, offset: 0.0 };
        let (mut wait, mut sum) = (0.0_f64, 0.0);
        for task in 0..tasks + tasks / 10 {
            let time = wait + service.sample(&mut random);
            wait = (time - between.sample(&mut random)).max(0.0);
            if let Some(counted) = task.checked_sub(tasks / 10) {
                sum += time;
                largest[counted] = largest[counted].max(time);
            }
        }
        let kind = usize::from(server.mu != SLOW);
        sums[kind] += sum / tasks as f64;
        counts[kind] += 1.0;
    }
    [sums[0] / counts[0], sums[1] / counts[1], largest.iter().sum::<f64>() / tasks as f64]
}

/// Relative difference below which values are nearly equal, and the one below which they are near.
const NEARLY: f64 = 0.1;
const NEAR: f64 = 0.25;

/// Judges the largest ratio of slow and fast workers' times under each split, seed by seed.
pub(super) fn of_splits(spread: &[Vec<f64>]) -> Vec<Claim> {
    let [fair, det, stochastic, mep] = spread else { return Vec::new() };
    let below = |one: &[f64], other: &[f64]| CaseVerdict::below(&log_ratio(one, other), 0.0);
    let equal = vec![1.0; stochastic.len()];
    let nearly = CaseVerdict::below(&log_ratio(stochastic, &equal), NEARLY.ln_1p());
    let apart = log_ratio(mep, stochastic);
    let (in_order, near) = (
        CaseVerdict::all([below(stochastic, det), below(det, fair), nearly]),
        CaseVerdict::alike(&apart, NEAR),
    );
    let seeds = fair.len();
    let [fair, det, stochastic, mep] = [fair, det, stochastic, mep].map(|samples| mean_of(samples).mean);
    let of_order = holes![seeds, fair, det, stochastic, nearly = 1.0 + NEARLY];
    vec![
        WORDS.claim("slow-and-fast", every([in_order]), of_order),
        WORDS.claim("m-ep-is-near", every([near]), holes![mep, stochastic, apart = percent(&apart)]),
    ]
}

/// Number of maps of a job: five for each worker, so that fractions of a map matter little.
const TASKS: u32 = 5 * COUNT;
const PLACEMENTS: [&str; 6] =
    ["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "optimal", "pull"];

pub(super) fn stream(context: &Context<'_>) -> anyhow::Result<Section> {
    let jobs = context.scaled(30, 200, 1_000);
    let seeds = context.seeds(context.scaled(2, 4, 10));
    let measured = measured(context, jobs, &seeds)?;
    let curves = measured.iter().map(|one| {
        let means = one.by_rate.iter().map(|(lambda, samples)| (*lambda, mean_of(samples)));
        Series::means(one.placement, means)
    });
    let chart = WORDS.chart("stream", holes![], curves.collect());
    let holes = holes![count = COUNT, tasks = TASKS, jobs, seeds = seeds.len()];
    Ok(WORDS.section("stream", holes, vec![chart, Block::Claims(of_placements(&measured))]))
}

/// Mean times of one placement by rate and seed.
pub(super) struct SimulatedPlacement {
    pub(super) placement: &'static str,
    pub(super) by_rate: Vec<(f64, Vec<f64>)>,
}

fn measured(context: &Context<'_>, jobs: u64, seeds: &[u64]) -> anyhow::Result<Vec<SimulatedPlacement>> {
    let lambdas: Vec<f64> = context.scaled(
        vec![10.0, 25.0],
        vec![5.0, 10.0, 15.0, 20.0, 25.0, 28.0],
        vec![5.0, 10.0, 15.0, 20.0, 25.0, 28.0, 30.0],
    );
    let of_placement = |placement| lambdas.iter().map(move |&lambda| (placement, lambda));
    let cells: Vec<(&str, f64)> = PLACEMENTS.into_iter().flat_map(of_placement).collect();
    let mut means = each_cell(&cells, seeds, |&(placement, lambda), &seed| {
        simulate_stream(placement, lambda, jobs, seed)
    })?
    .into_iter();
    let by_rate = |placement| SimulatedPlacement {
        placement,
        by_rate: lambdas.iter().copied().zip(means.by_ref()).collect(),
    };
    Ok(PLACEMENTS.map(by_rate).into())
}

/// Returns the mean time from arrival to the end of the maps.
fn simulate_stream(placement: &str, lambda: f64, jobs: u64, seed: u64) -> anyhow::Result<f64> {
    let mut config = Config { seed, ..Config::uniform(COUNT, Slots::Unified(1)) };
    for (worker, server) in config.workers.iter_mut().zip(halves(COUNT)) {
        worker.speed = server.mu;
        worker.service = Some(Dtd { a: 1.0, b: 0.0, offset: 0.0 });
    }
    let (mut total, mut count) = (0.0, 0.0);
    cluster::run(
        &config,
        Deciders {
            placement: placement::by_name(placement)?,
            ..Deciders::with_policy(policy::by_name("fifo")?)
        },
        jobs_at(lambda, jobs, seed),
        &mut (),
        &mut |record| {
            total += record.maps_done - record.arrival;
            count += 1.0;
        },
    )?;
    Ok(total / count)
}

/// Returns jobs in a Poisson stream, whose maps arrive at this rate. Tasks have length 1: the workers draw
/// their times.
fn jobs_at(lambda: f64, jobs: u64, seed: u64) -> impl Iterator<Item = Job> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let between = Dtd { a: lambda / f64::from(TASKS), b: 0.0, offset: 0.0 };
    let length = Dtd { a: 1e12, b: 0.0, offset: 1.0 };
    let mut arrival = 0.0;
    (0..jobs).map(move |_| {
        arrival += between.sample(&mut random);
        let maps: Vec<f64> = (0..TASKS).map(|_| length.sample(&mut random)).collect();
        Job { arrival, work: PerStation::new(maps.iter().sum(), 0.0, 0.0), maps, ..Job::default() }
    })
}

/// Judges the ratio of two placements' times: for each seed the geometric mean over the rates.
pub(super) fn of_placements(measured: &[SimulatedPlacement]) -> Vec<Claim> {
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
    let beat = every([&det, &stochastic, &mep].map(|ratio| CaseVerdict::above(ratio, 0.0)));
    let [det, stochastic, mep, pull] = [det, stochastic, mep, pull].map(|ratio| percent(&ratio));
    vec![WORDS.claim("stream", beat, holes![slow = SLOW, det, stochastic, mep, pull])]
}
