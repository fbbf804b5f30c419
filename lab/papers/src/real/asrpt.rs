//! The ASRPT paper on real execution: its workload on sleeping slots of real processes, and a long reduce
//! that only preemption can interrupt.
//!
//! Not here: the same workload in the paper's slotted model (`crate::asrpt`).

use super::common::{blocks, cluster, section};
use super::context::RealContext;
use super::control::Control;
use super::judging::{FLOW, claim, flow, flow_claim, judged, predictions};
use crate::prelude::*;
use crate::workload::asrpt::{AsrptArrivals, AsrptCut, MACHINES, RATE, SETTINGS};
use gristmill_lab::compare::bound::efficiency;
use gristmill_lab::compare::{Comparison, RunRecord};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

pub(super) static WORDS: PaperWords = PaperWords::new(include_str!("asrpt.toml"));

/// Index of the setting of sizes: Exp(5) map, Exp(40) reduce, in which rivals are furthest apart.
const SETTING: usize = 0;

/// Number of workers, with one slot each.
const WORKERS: u32 = 10;

/// Duration of a unit of work, in seconds in a slot.
const UNIT_SECONDS: f64 = 0.1;

/// The paper's own policy without and with preemption of reduces, and its rivals.
const POLICIES: [(&str, &str); 5] = [
    ("asrpt", "asrpt:slot=100ms"),
    (PREEMPTIVE, "asrpt:slot=100ms,preemptive=yes"),
    ("fifo", "fifo"),
    ("fair", "fair"),
    ("lrpt", "lrpt"),
];
const PREEMPTIVE: &str = "asrpt preemptive";

/// Runs the experiments.
///
/// # Errors
/// A run or a simulation that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let draws = context.simulated_draws();
    let holes = holes![machines = MACHINES, workers = WORKERS, unit = UNIT_SECONDS * 1e3, draws];
    Ok(WORDS.paper("asrpt", holes, vec![figure_9(context)?, long_reduce(context)?, long_map(context)?]))
}

/// Section on the paper's workload at its own load.
fn figure_9(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let slots = context.scaled(60, 120, 1000);
    let rate = RATE * f64::from(WORKERS) / f64::from(MACHINES);
    let arrivals = AsrptArrivals { rate, slots, ..AsrptArrivals::new(SETTINGS[SETTING], AsrptCut::Ten) };
    let repetitions = context.scaled(1, 8, 8);
    let draw = |seed| in_seconds(arrivals.jobs(seed), seed);
    let jobs = draw(context.first_seed).len();
    let cluster = cluster(WORKERS, 1);
    let (comparison, control) =
        context.sleep_and_simulate("asrpt-figure-9", draw, repetitions, &cluster, &POLICIES)?;
    let holes = holes![
        setting = SETTINGS[SETTING].title,
        jobs,
        rate,
        slots,
        load = arrivals.load(WORKERS),
        seed = context.first_seed,
        repetitions,
    ];
    let mut blocks = blocks("vii", &comparison, &["result", "flow-time", "simulated"]);
    blocks.extend(predictions("vii", &comparison, &control, &FLOW));
    Ok(section((&WORDS, "figure-9", holes), &comparison, blocks, claims(&comparison, &control)))
}

/// Returns jobs in seconds. Each arrives at a random time of its slot, as the slots of policies start at any time too.
fn in_seconds(jobs: impl Iterator<Item = Job>, seed: u64) -> Vec<Job> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(2);
    let seconds = |units: Vec<f64>| units.into_iter().map(|units| units * UNIT_SECONDS).collect();
    let mut jobs: Vec<Job> = jobs
        .map(|job| Job {
            arrival: (job.arrival + random.random::<f64>()) * UNIT_SECONDS,
            work: job.work.map(|units| units * UNIT_SECONDS),
            maps: seconds(job.maps),
            reduces: seconds(job.reduces),
            ..job
        })
        .collect();
    jobs.sort_by(|one, other| one.arrival.total_cmp(&other.arrival));
    jobs
}

pub(super) fn claims(comparison: &Comparison, control: &Control) -> Vec<Claim> {
    let claims = ["without-preemption", "with-preemption", "lrpt"];
    let claims = claims.map(|key| flow_claim(&WORDS, key, comparison, control));
    claims.into_iter().chain([ratio_of_two(comparison)]).collect()
}

/// Judges the ratio to the optimum, which is between the bound and the best schedule that was run.
fn ratio_of_two(comparison: &Comparison) -> Claim {
    let runs = || comparison.runs.iter().filter(|run| run.contender.name == PREEMPTIVE);
    let over_bound: Vec<f64> = runs().filter_map(efficiency).collect();
    let least = |run: &RunRecord| {
        let same = comparison.runs.iter().filter(|other| other.repetition == run.repetition);
        same.filter_map(flow).fold(f64::INFINITY, f64::min)
    };
    let over_best: Vec<f64> = runs().filter_map(|run| Some(flow(run)? / least(run))).collect();
    let (at_most, at_least) = (mean_of(&over_bound), mean_of(&over_best));
    let seen = CaseVerdict::at_most(&at_least, &at_most, 2.0);
    let interval = at_most.half_width.map_or("without an interval".to_owned(), |half| format!("± {half:.2}"));
    let holes = holes![least = at_least.mean, most = at_most.mean, interval];
    WORDS.claim("ratio-of-two", every([seen]), holes)
}

/// Duration of a unit of work in the runs with a long reduce, in seconds. It must be long compared with a
/// suspension.
const LONG_UNIT_SECONDS: f64 = 0.2;

/// Policies that keep maps, each after its form that divides them.
const DIVIDED: [(&str, &str); 4] = [
    ("asrpt preemptive", "asrpt:slot=200ms,preemptive=yes"),
    ("asrpt divided", "asrpt:slot=200ms,preemptive=yes+divide"),
    ("gristmill", "gristmill"),
    ("gristmill divided", "gristmill+divide"),
];

/// Policies that keep reduces, each after its form that interrupts them.
const PAIRS: [(&str, &str); 4] = [
    ("asrpt", "asrpt:slot=200ms"),
    ("asrpt preemptive", "asrpt:slot=200ms,preemptive=yes"),
    ("gristmill", "gristmill:preemptive=no"),
    ("gristmill preemptive", "gristmill:preemptive=yes"),
];

/// Arrival of the first short job, and mean pause between two, in units.
const LONG_HEAD_START: f64 = 8.0;
const PAUSE: f64 = 5.0;

/// Number of workers of the runs with a long job, with one slot each.
const LONG_WORKERS: u32 = 2;

/// Runs short jobs that meet a job of a long task for each worker, at map or at reduce. Returns the comparison, and the
/// words for the text.
fn behind_long(
    context: &RealContext<'_>,
    name: &str,
    long: impl Fn(f64) -> [Vec<f64>; 2],
    policies: &[(&str, &str)],
) -> anyhow::Result<(Comparison, [f64; 4])> {
    let short: u32 = context.scaled(3, 6, 20);
    let long_units = f64::from(short) * 4.0;
    let job = |arrival: f64, [maps, reduces]: [Vec<f64>; 2]| Job {
        arrival,
        work: PerStation::new(maps.iter().sum(), 0.0, reduces.iter().sum()),
        maps,
        reduces,
        ..Job::default()
    };
    let repetitions: u32 = context.scaled(1, 8, 8);
    // The long job first, then short ones with exponential pauses, so that each repetition meets others.
    let draw = |seed: u64| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut at = LONG_HEAD_START;
        let mut jobs = vec![job(0.0, long(long_units))];
        jobs.extend((0..short).map(|_| {
            let now = at;
            at -= PAUSE * (1.0 - random.random::<f64>()).ln();
            job(now, [vec![1.0; 4], vec![2.0]])
        }));
        jobs
    };
    let jobs = context.draws(repetitions, draw);
    let comparison = context.sleep(name, &jobs, LONG_UNIT_SECONDS, &cluster(LONG_WORKERS, 1), policies)?;
    let (long, pause) = (long_units * LONG_UNIT_SECONDS, PAUSE * LONG_UNIT_SECONDS);
    Ok((comparison, [long, pause, f64::from(short), f64::from(repetitions)]))
}

/// Section on short jobs that meet a long reduce.
fn long_reduce(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let long = |units: f64| [vec![1.0; 2], vec![units; LONG_WORKERS as usize]];
    let (comparison, [long, pause, short, repetitions]) =
        behind_long(context, "asrpt-long-reduce", long, &PAIRS)?;
    let holes = holes![workers = LONG_WORKERS, long, short, pause, repetitions];
    let blocks = blocks("long", &comparison, &["result", "slots-and-lanes"]);
    Ok(section((&WORDS, "long-reduce", holes), &comparison, blocks, of_preemption(&comparison)))
}

/// Section on short jobs that meet a long map.
fn long_map(context: &RealContext<'_>) -> anyhow::Result<Section> {
    // A short map first: one that has ended shows how long maps take.
    let long = |units: f64| [[vec![1.0], vec![units; LONG_WORKERS as usize]].concat(), vec![1.0]];
    let (comparison, [long, pause, short, repetitions]) =
        behind_long(context, "asrpt-long-map", long, &DIVIDED)?;
    let holes = holes![workers = LONG_WORKERS, long, short, pause, repetitions];
    let blocks = blocks("long-map", &comparison, &["result", "slots-and-lanes"]);
    Ok(section((&WORDS, "long-map", holes), &comparison, blocks, of_division(&comparison)))
}

pub(super) fn of_division(comparison: &Comparison) -> Vec<Claim> {
    ["division-asrpt", "division-gristmill"].map(|key| claim(&WORDS, key, comparison, flow)).to_vec()
}

pub(super) fn of_preemption(comparison: &Comparison) -> Vec<Claim> {
    let claim = |key: &str| {
        let rivals = WORDS.rivals(key);
        let (verdict, found) = judged(comparison, rivals, flow);
        let runs = comparison.runs.iter().filter(|run| run.contender.name == rivals.one);
        let suspensions: u32 = runs.flat_map(|run| &run.jobs).map(|job| job.usage.suspensions).sum();
        let (verdict, suspended) = match suspensions {
            0 => (Verdict::Open, "Nothing was suspended, so nothing is shown.".to_owned()),
            _ => (
                verdict,
                format!("Reduces were suspended {suspensions} times; all outputs are the same bytes."),
            ),
        };
        WORDS.claim(key, verdict, holes![found, suspended])
    };
    ["preemption-asrpt", "preemption-gristmill"].map(claim).to_vec()
}
