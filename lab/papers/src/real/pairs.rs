//! The pairs paper on real execution: its policies order jobs that need the slots and jobs that need the network.
//!
//! Not here: the same policies in closed form and in the fluid model (`crate::pairs`).

use super::common::{blocks, networked, section, two_stations};
use super::context::RealContext;
use super::control::{Control, PredictedMeans};
use super::judging::{FLOW, flow_claim, pairs, predictions};
use crate::prelude::*;
use crate::workload::pairs::{JobStream, SizeLaw};
use gristmill_lab::compare::statistics::{mean, sorted};
use gristmill_lab::compare::{Comparison, JobRun};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_scheduler::job::Size;
use gristmill_scheduler::metrics::quantile;
use std::num::NonZeroU64;

pub(super) static WORDS: PaperWords = PaperWords::new(include_str!("pairs.toml"));

/// Number of workers, and of slots of each.
const WORKERS: u32 = 4;
const SLOTS: u32 = 2;

/// Rate limit of each worker's shuffle, in bytes per second.
const NIC: NonZeroU64 = NonZeroU64::new(1_000_000).expect("above 0");

/// Approximate sleep of a map task, in seconds.
const TASK_SECONDS: f64 = 0.1;

/// Mean time for which a job keeps all slots busy, seconds.
const MEAN_SECONDS: f64 = 0.8;

/// Policies of Tables 2 and 3 by their live names, in the paper's order.
const BATCH: [&str; 10] = [
    "max-diff",
    "pairwise",
    "max-shuffle",
    "max-srpt",
    "pair",
    "couple",
    "generalized",
    "group",
    "n-couple",
    "match",
];
const ONLINE: [&str; 6] = ["fifo", "pairwise", "max-srpt", "couple", "o-group", "o-match"];

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let draws = context.simulated_draws();
    let holes = holes![workers = WORKERS, slots = SLOTS, nic = NIC.get() as f64 / 1e6, draws];
    Ok(WORDS.paper("pairs", holes, vec![batch(context)?, strong_pairs(context)?, online(context)?]))
}

fn setting() -> ClusterConfig {
    networked(WORKERS, SLOTS, NIC)
}

fn jobs_at(sizes: impl IntoIterator<Item = (f64, Size)>) -> Vec<Job> {
    let workers = setting().workers;
    let job = |(arrival, size): (f64, Size)| {
        two_stations(arrival, [size.map, size.shuffle], &workers, TASK_SECONDS)
    };
    sizes.into_iter().map(job).collect()
}

/// Runs drawn jobs under policies by their names, and simulates them.
fn compare(
    context: &RealContext<'_>,
    name: &str,
    draw: impl Fn(u64) -> Vec<Job> + Sync,
    repetitions: u32,
    policies: &[&str],
) -> anyhow::Result<(Comparison, Control)> {
    let named: Vec<(&str, &str)> = policies.iter().map(|&policy| (policy, policy)).collect();
    context.sleep_and_simulate(name, draw, repetitions, &setting(), &named)
}

/// Section on jobs that are all present at the start, as for Table 2.
fn batch(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let count = context.scaled(4, 8, 20);
    let repetitions = context.scaled(1, 8, 8);
    let draw = |seed| {
        jobs_at(SizeLaw::Exponential.draw(count, MEAN_SECONDS, seed).into_iter().map(|size| (0.0, size)))
    };
    let policies = if count < 8 { &BATCH[3..6] } else { &BATCH };
    let (comparison, control) = compare(context, "pairs-batch", draw, repetitions, policies)?;
    let mut shown = vec![table("table-2", &comparison)];
    shown.extend(blocks("batch", &comparison, &["result", "simulated"]));
    shown.extend(predictions("batch", &comparison, &control, &FLOW));
    let holes = holes![jobs = count, mean = MEAN_SECONDS, seed = context.first_seed, repetitions];
    Ok(section((&WORDS, "table-2", holes), &comparison, shown, of_batch(&comparison, &control)))
}

pub(super) fn of_batch(comparison: &Comparison, control: &Control) -> Vec<Claim> {
    let keys = ["match", "couple", "match-and-max-srpt", "n-couple"];
    keys.map(|key| flow_claim(&WORDS, key, comparison, control)).to_vec()
}

/// Section on jobs that arrive with their mirror images, the case in which the paper proves pairing optimal.
fn strong_pairs(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let count = context.scaled(4, 8, 16);
    let repetitions = context.scaled(1, 8, 8);
    let draw = |seed| {
        let mut sizes = SizeLaw::StrongPairs.draw(count, MEAN_SECONDS, seed);
        // In arrival order map-heavy jobs come first, so that the list favours no policy.
        sizes.sort_by(|one, other| (other.map - other.shuffle).total_cmp(&(one.map - one.shuffle)));
        jobs_at(sizes.into_iter().map(|size| (0.0, size)))
    };
    let policies = ["fifo", "max-shuffle", "pair", "pairwise"];
    let (comparison, control) = compare(context, "pairs-strong", draw, repetitions, &policies)?;
    let holes = holes![jobs = count, mean = MEAN_SECONDS, seed = context.first_seed, repetitions];
    let mut blocks = blocks("strong", &comparison, &["result", "stations"]);
    blocks.extend(predictions("strong", &comparison, &control, &FLOW));
    Ok(section(
        (&WORDS, "theorem-1", holes),
        &comparison,
        blocks,
        vec![of_strong_pairs(&comparison, &control)],
    ))
}

pub(super) fn of_strong_pairs(comparison: &Comparison, control: &Control) -> Claim {
    flow_claim(&WORDS, "theorem-1", comparison, control)
}

/// Section on jobs that arrive over time, as for Table 3.
fn online(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let stream = JobStream {
        sizes: SizeLaw::Exponential,
        jobs: context.scaled(5, 14, 60),
        mean: MEAN_SECONDS,
        load: 0.8,
        swing: 0.0,
    };
    let repetitions = context.scaled(1, 8, 8);
    let draw = |seed| {
        let size = |job: &Job| Size { map: job.work[Station::Map], shuffle: job.work[Station::Shuffle] };
        jobs_at(stream.draw(seed).iter().map(|job| (job.arrival, size(job))))
    };
    let policies = if stream.jobs < 10 { &ONLINE[2..4] } else { &ONLINE };
    let (comparison, control) = compare(context, "pairs-online", draw, repetitions, policies)?;
    let mut shown = vec![table("table-3", &comparison)];
    shown.extend(blocks("online", &comparison, &["result", "simulated"]));
    shown.extend(predictions("online", &comparison, &control, &FLOW));
    let holes = holes![
        jobs = stream.jobs,
        load = stream.load,
        mean = MEAN_SECONDS,
        seed = context.first_seed,
        repetitions,
    ];
    Ok(section((&WORDS, "table-3", holes), &comparison, shown, of_stream(&comparison, &control)))
}

pub(super) fn of_stream(comparison: &Comparison, control: &Control) -> Vec<Claim> {
    let claims = ["o-match", "o-match-and-max-srpt"].map(|key| flow_claim(&WORDS, key, comparison, control));
    claims.into_iter().chain([execution_claim(comparison, control)]).collect()
}

/// Judges that Pairwise executes fast and waits long. Differences are in seconds, as waiting may be zero.
fn execution_claim(comparison: &Comparison, control: &Control) -> Claim {
    let names = ["pairwise", "max-srpt"];
    let more = |value: fn(&JobRun) -> f64, predicted: fn(&PredictedMeans) -> f64| {
        let [ours, theirs] = pairs(comparison, names, |run| mean(run.jobs.iter().map(value)));
        let measured: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect();
        control.adjusted(names, &measured, |[one, other]| predicted(one) - predicted(other))
    };
    let executes = more(JobRun::execution, |means| means.flow - means.waiting);
    let (less, more) =
        (Interval { mean: -executes.mean, ..executes }, more(JobRun::waiting, |means| means.waiting));
    let seen = match comparison.moved_otherwise() {
        Some(_) => [CaseVerdict::Unclear; 2],
        None => [CaseVerdict::above(&less, 0.0), CaseVerdict::above(&more, 0.0)],
    };
    let words = |apart: &Interval| match apart.half_width {
        Some(half_width) => format!("{:+.2} ± {half_width:.2} s", apart.mean),
        None => "not known from a single repetition".to_owned(),
    };
    let [executes, waits] = seen.map(CaseVerdict::word);
    let holes = holes![less = words(&less), executes, more = words(&more), waits];
    WORDS.claim("pairwise-executes", every(seen), holes)
}

/// Table of waiting, execution and makespan as in Table 3.
fn table(table: &str, comparison: &Comparison) -> Block {
    let rows = comparison.contenders.iter().map(|contender| {
        let runs = comparison.runs_of(contender);
        let all = |of: fn(&JobRun) -> f64| sorted(runs.iter().flat_map(|run| &run.jobs).map(of));
        let values = [all(JobRun::waiting), all(JobRun::execution), all(JobRun::flow)];
        let parts = values.iter().flat_map(|values| {
            let [low, high] = [0.1, 0.9].map(|part| quantile(values, part));
            [mean(values.iter().copied()), low, high, values.last().copied()].map(Cell::from)
        });
        [Cell::text(format!("`{}`", contender.name))].into_iter().chain(parts).collect()
    });
    let columns = ["waiting", "execution", "makespan"].into_iter().flat_map(|what| {
        let parts = ["average", "10 %", "90 %", "largest"];
        parts.map(|part| Column::new(&format!("{what}, {part}"), "s"))
    });
    WORDS.table_with("{table}", holes![table], columns, rows.collect())
}
