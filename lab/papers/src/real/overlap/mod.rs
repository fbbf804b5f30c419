//! The overlap paper on real execution: progress of three jobs through map and shuffle compared with both
//! of its models, and its policies where both slots and network are scarce.
//!
//! Not here: the models themselves and the same policies in them (`crate::overlap`).

pub(super) mod beside_models;
mod figure_4;

use super::common::{blocks, networked, section, two_stations};
use super::context::RealContext;
use super::control::Control;
use super::judging::{FLOW, flow_claim, predictions};
use crate::prelude::*;
use crate::workload::pairs::{JobStream, SizeLaw};
use gristmill_lab::compare::Comparison;
use gristmill_runtime::cluster::ClusterConfig;
use std::num::NonZeroU64;

/// Text of the page: titles, captions and claims. Its holes, `{name}`, are filled with results by the sections.
pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("../overlap.toml"));

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let mut sections = vec![figure_4::section(context)?];
    for load in context.scaled(vec![0.8], vec![0.7, 0.85], vec![0.5, 0.7, 0.85]) {
        sections.push(policies_at(context, load, &BALANCED)?);
    }
    sections.push(policies_at(context, 0.85, &UNBALANCED)?);
    Ok(WORDS.paper("overlap", holes![draws = context.simulated_draws()], sections))
}

/// Rate limit of each worker's shuffle where policies are compared, in bytes per second.
const NIC: NonZeroU64 = NonZeroU64::new(1_000_000).expect("above 0");

/// Mean time for which a job keeps all map slots busy where policies are compared, seconds.
const MEAN_SECONDS: f64 = 0.6;

/// Multiple of the mean at which sizes are cut, so that one job does not fill the whole run.
const LARGEST: f64 = 8.0;

/// Names for legends, and policies.
const POLICIES: [(&str, &str); 4] = [
    ("k-lps", "k-lps"),
    ("max-srpt", "max-srpt"),
    ("split-srpt", "split-srpt"),
    ("max-srpt head only", "max-srpt:shuffle=head"),
];

/// Variant of the paper's sizes, with the policies that run on it and the claims about them.
struct Variant {
    prefix: &'static str,
    section: &'static str,
    sizes: SizeLaw,
    policies: &'static [(&'static str, &'static str)],
    claims: &'static [&'static str],
}

pub(crate) const BALANCED_CLAIMS: [&str; 4] = ["max-srpt", "split-srpt", "balanced", "head-only"];
pub(crate) const UNBALANCED_CLAIMS: [&str; 1] = ["unbalanced"];

const BALANCED: Variant = Variant {
    prefix: "load",
    section: "section-5-load-{percent}",
    sizes: SizeLaw::Balanced,
    policies: &POLICIES,
    claims: &BALANCED_CLAIMS,
};

const UNBALANCED: Variant = Variant {
    prefix: "unbalanced",
    section: "section-5-unbalanced-{percent}",
    sizes: SizeLaw::Google,
    policies: &[POLICIES[1], POLICIES[2]],
    claims: &UNBALANCED_CLAIMS,
};

/// Returns a stream whose busier station has this load until the last arrival.
fn jobs_at(jobs: usize, load: f64, sizes: SizeLaw, config: &ClusterConfig, seed: u64) -> Vec<Job> {
    let stream = JobStream { sizes, jobs, mean: MEAN_SECONDS, load, swing: 0.0 };
    let mut drawn = stream.draw(seed);
    for job in &mut drawn {
        job.work = job.work.map(|seconds| seconds.min(LARGEST * MEAN_SECONDS));
    }
    // The drawn and cut work is less than the load requires, so arrivals are scaled to reach it.
    let work = |station: Station| drawn.iter().map(|job| job.work[station]).sum::<f64>();
    let offered =
        work(Station::Map).max(work(Station::Shuffle)) / drawn.last().map_or(1.0, |job| job.arrival);
    let moved = drawn.iter().map(|job| {
        let work = [job.work[Station::Map], job.work[Station::Shuffle]];
        two_stations(job.arrival * offered / load, work, &config.workers, 0.1)
    });
    moved.collect()
}

fn policies_at(context: &RealContext<'_>, load: f64, variant: &Variant) -> anyhow::Result<Section> {
    let config = networked(4, 2, NIC);
    let (count, repetitions) = (context.scaled(6, 15, 80), context.scaled(1, 8, 8));
    let draw = |seed| jobs_at(count, load, variant.sizes, &config, seed);
    let percent = (100.0 * load).round() as u32;
    let prefix = format!("{}-{percent}", variant.prefix);
    let name = format!("overlap-{prefix}");
    let (comparison, control) =
        context.sleep_and_simulate(&name, draw, repetitions, &config, variant.policies)?;
    let holes = holes![
        percent,
        load,
        jobs = count,
        mean = MEAN_SECONDS,
        largest = LARGEST,
        nic = NIC.get() as f64 / 1e6,
        seed = context.first_seed,
        repetitions,
    ];
    let shown = ["result", "flow-time", "simulated", "stations"];
    let mut blocks = blocks(&prefix, &comparison, &shown);
    blocks.extend(predictions(&prefix, &comparison, &control, &FLOW));
    let claims = of_policies(variant.claims, &comparison, &control);
    Ok(section((&WORDS, variant.section, holes), &comparison, blocks, claims))
}

pub(crate) fn of_policies(claims: &[&str], comparison: &Comparison, control: &Control) -> Vec<Claim> {
    claims.iter().map(|key| flow_claim(&WORDS, key, comparison, control)).collect()
}
