//! The ASRPT paper on real execution: its workload on sleeping slots of real processes, and a long reduce that only
//! preemption gets out of the way.
//!
//! Not here: the same workload in the paper's slotted model (`paper::asrpt`).

use super::RealContext;
use super::common::{blocks, cluster, conditions, draws, policies, sleeping};
use super::judging::{faster_than, flow, slower_than, would_tell};
use crate::compare::bound::efficiency;
use crate::compare::statistics::mean;
use crate::compare::{Comparison, Contender, RunRecord};
use crate::paper::judge::{Seen, every, mean_of};
use crate::paper::{Block, Cell, Claim, Column, Paper, Section, Table, Verdict};
use gristmill_scheduler::metrics::Metric;
use gristmill_scheduler::sim::slotted;
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::asrpt::{Arrivals, Cut, MACHINES, RATE, SETTINGS};
use gristmill_scheduler::workload::{Generator, Job};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// The setting of sizes: U[10,50] map, U[10,20] reduce, the one of the paper's figure 9.
const SETTING: usize = 3;

/// Workers of one slot each.
const WORKERS: u32 = 10;

/// A unit of work, seconds in a slot.
const UNIT_SECONDS: f64 = 0.1;

/// Those who do not interrupt reduces, then those who do. The first of each is the paper's own.
const KEEPING: [(&str, &str); 4] =
    [("asrpt", "asrpt:slot=100ms"), ("fifo", "fifo"), ("fair", "fair"), ("lrpt", "lrpt")];
const INTERRUPTING: (&str, &str) = ("asrpt preemptive", "asrpt:slot=100ms,preemptive=yes");

/// Runs the experiments.
///
/// # Errors
/// A run or a simulation that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    Ok(Paper {
        name: "asrpt",
        title: "Y. Zheng, N. B. Shroff, P. Sinha: A New Analytical Technique for Designing Provably \
                Efficient MapReduce Schedulers (INFOCOM 2013)",
        about: vec![format!(
            "The paper simulates {MACHINES} machines in slots of time. Here {WORKERS} worker processes with \
             one slot each run the paper's jobs for real: every task is launched, sleeps its time, is \
             fetched from and commits; a unit of the paper takes {:.0} ms. Sizes are known to all policies \
             (the oracle estimator), as in the paper. The bound is SRPT without precedence over the time \
             that tasks held their slots.",
            UNIT_SECONDS * 1e3
        )],
        sections: vec![figure_9(context)?, long_reduce(context)?],
    })
}

fn contenders() -> Vec<Contender> {
    let mut names = KEEPING.to_vec();
    names.insert(1, INTERRUPTING);
    policies(&names)
}

/// The paper's workload at its own load.
fn figure_9(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let slots = context.scaled(60, 120, 1000);
    let rate = RATE * f64::from(WORKERS) / f64::from(MACHINES);
    let arrivals = Arrivals { rate, slots, ..Arrivals::of(SETTINGS[SETTING], Cut::Even) };
    let repetitions = context.scaled(1, 4, 8);
    let jobs: Vec<Vec<Job>> = draws(context.first_seed, repetitions, |seed| arrivals.jobs(seed).collect());
    let workload = sleeping("ASRPT, section VII", context.first_seed, &jobs, UNIT_SECONDS);
    let comparison =
        context.compare("asrpt-figure-9", &workload, &cluster(WORKERS, 1), contenders(), repetitions)?;
    let mut section = Section::new(
        "figure-9",
        "Section VII: efficiency ratios and flow times",
        [format!(
            "{}: {} jobs, Poisson arrivals of {rate} in a unit of time over {slots} units, load {:.2}, \
             reduces cut evenly, seeds from {}; {repetitions} repetitions, each with jobs of its own.",
            SETTINGS[SETTING].title,
            jobs.first().map_or(0, Vec::len),
            arrivals.load(WORKERS),
            context.first_seed
        )],
        blocks("vii", &comparison, &["result", "flow-time", "simulated"]),
    );
    section.text.extend(conditions(&comparison));
    section.blocks.push(Block::Table(beside_the_model(&comparison, &jobs)?));
    section.blocks.push(Block::Claims(claims(&comparison)));
    Ok(section)
}

/// Ratios to the bound, real and in the paper's model.
fn beside_the_model(comparison: &Comparison, draws: &[Vec<Job>]) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "ratios",
        "Total flow time over the SRPT bound, real and in the slotted model with the same jobs",
        ["policy", "real", "slotted model"].map(|name| Column::new(name, "")).to_vec(),
        Vec::new(),
    );
    for summary in comparison.summaries() {
        let real = summary
            .metrics
            .get(&Metric::EfficiencyRatio)
            .map_or(Cell::Empty, |ratio| Cell::Number { value: ratio.mean, half_width: ratio.half_width });
        let ratios = draws.iter().map(|jobs| ratio_in_model(&summary.contender.policy, jobs));
        let model = mean(ratios.collect::<anyhow::Result<Vec<f64>>>()?).unwrap_or(f64::INFINITY);
        table.rows.push(vec![Cell::text(format!("`{}`", summary.contender.name)), real, Cell::number(model)]);
    }
    Ok(table)
}

fn ratio_in_model(policy: &str, jobs: &[Job]) -> anyhow::Result<f64> {
    let mut made = gristmill_scheduler::policy::by_name(policy)?;
    let config = slotted::Config { machines: WORKERS, preemptive: made.preempts(), precedence: true };
    let mut total = 0.0;
    slotted::run(&mut *made, &config, jobs, &mut |record| total += record.flow(), &mut |_, _| {})?;
    Ok(total / gristmill_scheduler::sim::slotted::lower_bound::total_flow(WORKERS, jobs)?)
}

pub(super) fn claims(comparison: &Comparison) -> Vec<Claim> {
    let rivals: Vec<&str> = KEEPING[1..].iter().map(|(name, _)| *name).collect();
    let (verdict, evidence) = faster_than(comparison, "asrpt", &rivals);
    let (preemptive, preemptive_evidence) = faster_than(comparison, INTERRUPTING.0, &rivals);
    let (worst, worst_evidence) = slower_than(comparison, "lrpt", &["asrpt", "fifo", "fair"]);
    let mut claims = vec![
        Claim::new(
            "Section VII B",
            "Without preemption the total flow time of ASRPT is smaller than that of FIFO, Fair and LRPT.",
            verdict,
            evidence,
        ),
        Claim::new("Section VII B", "The same with preemption.", preemptive, preemptive_evidence),
        Claim::new(
            "Section VII A",
            "LRPT shows how poorly work-conserving schedulers can do.",
            worst,
            worst_evidence,
        ),
    ];
    claims.push(ratio_of_two(comparison));
    claims
}

/// The ratio is to the optimum, which lies between the bound and the best schedule that was run.
fn ratio_of_two(comparison: &Comparison) -> Claim {
    let runs = || comparison.runs.iter().filter(|run| run.contender.name == INTERRUPTING.0);
    let over_bound: Vec<f64> = runs().filter_map(efficiency).collect();
    let least = |run: &RunRecord| {
        let same = comparison.runs.iter().filter(|other| other.repetition == run.repetition);
        same.filter_map(flow).fold(f64::INFINITY, f64::min)
    };
    let over_best: Vec<f64> = runs().filter_map(|run| Some(flow(run)? / least(run))).collect();
    let (at_most, at_least) = (mean_of(&over_bound), mean_of(&over_best));
    let seen = match (Seen::below(&at_most, 2.0), Seen::above(&at_least, 2.0)) {
        (Seen::Yes, _) => Seen::Yes,
        (_, Seen::Yes) => Seen::No,
        _ => Seen::Unclear,
    };
    // Where both ratios are clear more repetitions tell nothing: the optimum lies between.
    let needed =
        if seen == Seen::Unclear { would_tell(&comparison.runs, &[(at_most, 2.0)]) } else { String::new() };
    Claim::new(
        "Corollary 2",
        "ASRPT has an efficiency ratio of 2 in the preemptive scenario.",
        every([seen]),
        format!(
            "The optimum is at least the bound and at most the best schedule that was run: ASRPT takes between {:.2} and \
             {:.2} times the optimum, {}. Only a ratio to the bound below 2 bears it out, and one to the best schedule \
             above 2 refutes it{needed}.",
            at_least.mean,
            at_most.mean,
            at_most.half_width.map_or("without an interval".to_owned(), |half| format!("± {half:.2}")),
        ),
    )
}

/// A unit of work where a long reduce stands in the way, seconds: suspending must be short beside it.
const LONG_UNIT_SECONDS: f64 = 0.2;

/// Policies that keep reduces, each with its form that interrupts them.
const PAIRS: [(&str, &str, &str, &str); 2] = [
    ("asrpt", "asrpt:slot=200ms", "asrpt preemptive", "asrpt:slot=200ms,preemptive=yes"),
    ("gristmill", "gristmill:preemptive=no", "gristmill preemptive", "gristmill:preemptive=yes"),
];

/// When the first short job comes, and the mean pause between two, in units.
const LONG_HEAD_START: f64 = 8.0;
const PAUSE: f64 = 5.0;

/// Short jobs that meet a long reduce.
fn long_reduce(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let (workers, short) = (2, context.scaled(3, 6, 20));
    let long_units = f64::from(short) * 4.0;
    let job = |arrival: f64, maps: usize, reduces: Vec<f64>| Job {
        arrival,
        work: PerStation::new(maps as f64, 0.0, reduces.iter().sum()),
        maps: vec![1.0; maps],
        reduces,
        ..Job::default()
    };
    let repetitions = context.scaled(1, 4, 8);
    // The long job first, then short ones with exponential pauses, so that each repetition meets others.
    let draw = |seed: u64| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut at = LONG_HEAD_START;
        let mut jobs = vec![job(0.0, 2, vec![long_units; workers as usize])];
        jobs.extend((0..short).map(|_| {
            let now = at;
            at -= PAUSE * (1.0 - random.random::<f64>()).ln();
            job(now, 4, vec![2.0])
        }));
        jobs
    };
    let workload = sleeping(
        "a long reduce",
        context.first_seed,
        &draws(context.first_seed, repetitions, draw),
        LONG_UNIT_SECONDS,
    );
    let names: Vec<(&str, &str)> = PAIRS
        .iter()
        .flat_map(|(keeping, one, interrupting, other)| [(*keeping, *one), (*interrupting, *other)])
        .collect();
    let comparison = context.compare(
        "asrpt-long-reduce",
        &workload,
        &cluster(workers, 1),
        policies(&names),
        repetitions,
    )?;
    let mut section = Section::new(
        "long-reduce",
        "Preemption: short jobs behind a long reduce",
        [format!(
            "Not from the paper, which cuts time into slots: {workers} workers, a job with {workers} \
             reduces of {:.1} s, and {short} jobs of 4 maps and a reduce that arrive {:.2} s apart in the mean. Without \
             preemption a policy has to wait until the long reduces have ended; with it they are suspended \
             at a border between groups of keys and resumed later. {repetitions} repetitions.",
            long_units * LONG_UNIT_SECONDS,
            PAUSE * LONG_UNIT_SECONDS
        )],
        blocks("long", &comparison, &["result", "slots-and-lanes"]),
    );
    section.text.extend(conditions(&comparison));
    section.blocks.push(Block::Claims(of_preemption(&comparison)));
    Ok(section)
}

pub(super) fn of_preemption(comparison: &Comparison) -> Vec<Claim> {
    let claim = |(keeping, _, interrupting, _): &(&str, &str, &str, &str), statement: &str| {
        let (mut verdict, mut evidence) = faster_than(comparison, interrupting, &[keeping]);
        let runs = comparison.runs.iter().filter(|run| run.contender.name == *interrupting);
        let suspensions: u32 = runs.flat_map(|run| &run.jobs).map(|job| job.usage.suspensions).sum();
        if suspensions == 0 {
            verdict = Verdict::Open;
            evidence.push_str(" Nothing was suspended, so nothing is shown.");
        } else {
            evidence.push_str(&format!(
                " Reduces were suspended {suspensions} times; all outputs are the same bytes."
            ));
        }
        Claim::new("Section VI", statement, verdict, evidence)
    };
    vec![
        claim(&PAIRS[0], "Where reduces can be interrupted, ASRPT's flow times are smaller."),
        claim(&PAIRS[1], "Not in the paper: the same of the policy `gristmill`."),
    ]
}
