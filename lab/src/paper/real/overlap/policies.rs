//! Section 5: k-LPS, MaxSRPT and SplitSRPT where map-heavy and shuffle-heavy jobs mix.

use super::super::RealContext;
use super::super::common::{blocks, conditions, draws, networked, policies, sleeping, two_stations};
use super::super::judging::{Claimed, flow, judged};
use crate::compare::Comparison;
use crate::paper::{Block, Claim, Section};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::pairs::{Sizes, Stream};
use std::num::NonZeroU64;

/// What each worker's shuffle is held to where policies are compared, bytes in a second.
const NIC: NonZeroU64 = NonZeroU64::new(8_000_000).expect("above 0");

/// Mean time for which a job keeps all map slots busy where policies are compared, seconds.
const MEAN_SECONDS: f64 = 0.6;

/// Sizes are cut at this multiple of the mean, so that one job does not fill the whole run.
const LARGEST: f64 = 8.0;

/// Names for legends, and policies.
const POLICIES: [(&str, &str); 4] = [
    ("k-lps", "k-lps"),
    ("max-srpt", "max-srpt"),
    ("split-srpt", "split-srpt"),
    ("max-srpt head only", "max-srpt:shuffle=head"),
];

/// A stream whose busier station has this load until the last arrival.
fn jobs_at(jobs: usize, load: f64, config: &ClusterConfig, seed: u64) -> Vec<Job> {
    let stream = Stream { sizes: Sizes::Balanced, jobs, mean: MEAN_SECONDS, load, swing: 0.0 };
    let mut drawn = stream.draw(seed);
    for job in &mut drawn {
        job.work = job.work.map(|seconds| seconds.min(LARGEST * MEAN_SECONDS));
    }
    // What was drawn and cut is less than what the load was for: arrivals are moved so that it holds.
    let work = |station: Station| drawn.iter().map(|job| job.work[station]).sum::<f64>();
    let offered =
        work(Station::Map).max(work(Station::Shuffle)) / drawn.last().map_or(1.0, |job| job.arrival);
    let moved = drawn.iter().map(|job| {
        let work = [job.work[Station::Map], job.work[Station::Shuffle]];
        two_stations(job.arrival * offered / load, work, &config.workers, 0.1)
    });
    moved.collect()
}

pub(super) fn at(context: &RealContext<'_>, load: f64) -> anyhow::Result<Section> {
    let config = networked(4, 2, NIC);
    let (count, repetitions) = (context.scaled(6, 15, 80), context.scaled(1, 4, 8));
    let jobs = draws(context.first_seed, repetitions, |seed| jobs_at(count, load, &config, seed));
    let percent = (100.0 * load).round() as u32;
    let name = format!("overlap-load-{percent}");
    let workload = sleeping(&name, context.first_seed, &jobs, 1.0);
    let comparison = context.compare(&name, &workload, &config, policies(&POLICIES), repetitions)?;
    let mut section = Section::new(
        format!("section-5-load-{percent}"),
        format!("Section 5: k-LPS, MaxSRPT and SplitSRPT at load {load}"),
        [format!(
            "{} jobs, Poisson arrivals; map times log-normal with standard deviation 3.65 times the mean of \
             {MEAN_SECONDS} s, shuffle times those times the cube root of a log-normal ratio (the paper's \
             balanced variant), cut at {LARGEST} means; times between arrivals are such that the busier \
             station has this load until the last arrival; maps sleep, segments are real bytes over {:.0} \
             MB/s at each of 4 workers; sizes known, seeds from {}, {repetitions} repetitions, each with jobs of its own.",
            count,
            NIC.get() as f64 / 1e6,
            context.first_seed
        )],
        blocks(&format!("load-{percent}"), &comparison, &["result", "flow-time", "simulated", "stations"]),
    );
    section.text.extend(conditions(&comparison));
    section.blocks.push(Block::Claims(claims(&comparison)));
    Ok(section)
}

pub(in crate::paper::real) fn claims(comparison: &Comparison) -> Vec<Claim> {
    let claim = |statement: &str, claimed: Claimed, one: &str, other: &str| {
        let (verdict, evidence) = judged(comparison, claimed, (one, &[other]), flow);
        Claim::new("Section 5.2", statement, verdict, evidence)
    };
    use Claimed::{MuchSmaller, Smaller};
    vec![
        claim("MaxSRPT has much smaller response times than k-LPS.", MuchSmaller, "max-srpt", "k-lps"),
        claim("SplitSRPT has much smaller response times than k-LPS.", MuchSmaller, "split-srpt", "k-lps"),
        claim(
            "Where sizes are balanced, MaxSRPT is better than SplitSRPT.",
            Smaller,
            "max-srpt",
            "split-srpt",
        ),
        claim(
            "Not in the paper: serving only the first job at the shuffle, as its text can be read, is worse \
             than going on to the next when the first has nothing to fetch.",
            Smaller,
            "max-srpt",
            "max-srpt head only",
        ),
    ]
}
