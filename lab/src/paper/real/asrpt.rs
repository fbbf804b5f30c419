//! The ASRPT paper on real execution: its workload on sleeping slots of real processes, and a long reduce that only
//! preemption gets out of the way.
//!
//! Not here: the same workload in the paper's slotted model (`paper::asrpt`).

use super::RealContext;
use super::common::{blocks, cluster, conditions, faster_than, policies, sleeping, slower_than};
use crate::compare::{Comparison, Contender};
use crate::paper::{Block, Cell, Claim, Column, Paper, Section, Table, Verdict};
use gristmill_scheduler::metrics::Metric;
use gristmill_scheduler::sim::slotted;
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::asrpt::{Arrivals, Cut, MACHINES, RATE, SETTINGS};
use gristmill_scheduler::workload::{Generator, Job};

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
    let slots = context.scaled(60, 150, 1000);
    let rate = RATE * f64::from(WORKERS) / f64::from(MACHINES);
    let arrivals = Arrivals { rate, slots, ..Arrivals::of(SETTINGS[SETTING], Cut::Even) };
    let jobs: Vec<Job> = arrivals.jobs(context.seed).collect();
    let workload = sleeping("ASRPT, section VII", context.seed, &jobs, UNIT_SECONDS);
    let repetitions = context.scaled(1, 3, 5);
    let comparison =
        context.compare("asrpt-figure-9", &workload, &cluster(WORKERS, 1), contenders(), repetitions)?;
    let mut section = Section::new(
        "figure-9",
        "Section VII: efficiency ratios and flow times",
        [format!(
            "{}: {} jobs, Poisson arrivals of {rate} in a unit of time over {slots} units, load {:.2}, \
             reduces cut evenly, seed {}; {repetitions} repetitions with the same jobs.",
            SETTINGS[SETTING].title,
            jobs.len(),
            arrivals.load(WORKERS),
            context.seed
        )],
        blocks("vii", &comparison, &["result", "flow-time", "simulated"]),
    );
    section.text.extend(conditions(&comparison));
    section.blocks.push(Block::Table(beside_the_model(&comparison, &jobs)?));
    section.blocks.push(Block::Claims(claims(&comparison)));
    Ok(section)
}

/// Ratios to the bound, real and in the paper's model.
fn beside_the_model(comparison: &Comparison, jobs: &[Job]) -> anyhow::Result<Table> {
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
        let model = ratio_in_model(&summary.contender.policy, jobs)?;
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

fn claims(comparison: &Comparison) -> Vec<Claim> {
    let rivals: Vec<&str> = KEEPING[1..].iter().map(|(name, _)| *name).collect();
    let (verdict, evidence) = faster_than(comparison, "asrpt", &rivals);
    let (preemptive, preemptive_evidence) = faster_than(comparison, INTERRUPTING.0, &rivals);
    let (worst, worst_evidence) = slower_than(comparison, "lrpt", &["asrpt", "fifo", "fair"]);
    let ratio = |name: &str| {
        let summary = comparison.summaries().into_iter().find(|summary| summary.contender.name == name);
        summary.and_then(|summary| summary.mean(Metric::EfficiencyRatio))
    };
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
    if let Some(ratio) = ratio(INTERRUPTING.0) {
        claims.push(Claim::new(
            "Corollary 2",
            "ASRPT has an efficiency ratio of 2 in the preemptive scenario.",
            if ratio <= 2.0 { Verdict::Holds } else { Verdict::Open },
            format!(
                "Its total flow time is {ratio:.2} times the bound here; the bound is below the optimum, so \
                 only a ratio up to 2 decides."
            ),
        ));
    }
    claims
}

/// A unit of work where a long reduce stands in the way, seconds: suspending must be short beside it.
const LONG_UNIT_SECONDS: f64 = 0.2;

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
    let mut jobs = vec![job(0.0, 2, vec![long_units; workers as usize])];
    jobs.extend((0..short).map(|place| job(f64::from(8 + 5 * place), 4, vec![2.0])));
    let workload = sleeping("a long reduce", context.seed, &jobs, LONG_UNIT_SECONDS);
    let pairs = [
        ("asrpt", "asrpt:slot=200ms", "asrpt preemptive", "asrpt:slot=200ms,preemptive=yes"),
        ("gristmill", "gristmill:preemptive=no", "gristmill preemptive", "gristmill:preemptive=yes"),
    ];
    let names: Vec<(&str, &str)> = pairs
        .iter()
        .flat_map(|(keeping, one, interrupting, other)| [(*keeping, *one), (*interrupting, *other)])
        .collect();
    let repetitions = context.scaled(1, 3, 8);
    let comparison = context.compare(
        "asrpt-long-reduce",
        &workload,
        &cluster(workers, 1),
        policies(&names),
        repetitions,
    )?;
    let claim = |(keeping, _, interrupting, _): &(&str, &str, &str, &str), statement: &str| {
        let (mut verdict, mut evidence) = faster_than(&comparison, interrupting, &[keeping]);
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
    let mut section = Section::new(
        "long-reduce",
        "Preemption: short jobs behind a long reduce",
        [format!(
            "Not from the paper, which cuts time into slots: {workers} workers, a job with {workers} \
             reduces of {:.1} s, and {short} jobs of 4 maps and a reduce that arrive every {:.2} s. Without \
             preemption a policy has to wait until the long reduces have ended; with it they are suspended \
             at a border between groups of keys and resumed later. {repetitions} repetitions.",
            long_units * LONG_UNIT_SECONDS,
            5.0 * LONG_UNIT_SECONDS
        )],
        blocks("long", &comparison, &["result", "slots-and-lanes"]),
    );
    section.text.extend(conditions(&comparison));
    section.blocks.push(Block::Claims(vec![
        claim(&pairs[0], "Where reduces can be interrupted, ASRPT's flow times are smaller."),
        claim(&pairs[1], "Not in the paper: the same of the policy `gristmill`."),
    ]));
    Ok(section)
}
