//! The pairs paper on real execution: its policies order jobs that need the slots and jobs that need the network.
//!
//! Not here: the same policies in closed form and in the fluid model (`paper::pairs`).

use super::RealContext;
use super::common::{blocks, conditions, draws, networked, policies, sleeping, two_stations};
use super::judging::{Claimed, faster_than, flow, judged, pairs, would_tell};
use crate::compare::statistics::{mean, sorted};
use crate::compare::{Comparison, Contender, JobRun};
use crate::paper::judge::{Seen, every, paired};
use crate::paper::{Block, Cell, Claim, Column, Paper, Section, Table};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_scheduler::job::Size;
use gristmill_scheduler::metrics::{Interval, quantile};
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::pairs::{Sizes, Stream};
use std::num::NonZeroU64;

/// Workers, and slots of each.
const WORKERS: u32 = 4;
const SLOTS: u32 = 2;

/// What each worker's shuffle is held to, bytes in a second.
const NIC: NonZeroU64 = NonZeroU64::new(8_000_000).expect("above 0");

/// A map task sleeps for about so long, seconds.
const TASK_SECONDS: f64 = 0.1;

/// Mean time for which a job keeps all slots busy, seconds.
const MEAN_SECONDS: f64 = 0.8;

/// Policies of Table 2 and 3 by their live names; the paper's order, worst first as it has them.
const BATCH: [(&str, &str); 9] = [
    ("max-diff", "max-diff"),
    ("pairwise", "pairwise"),
    ("max-shuffle", "max-shuffle"),
    ("max-srpt", "max-srpt"),
    ("pair", "pair"),
    ("couple", "couple"),
    ("generalized", "generalized"),
    ("group", "group"),
    ("match", "match"),
];
const ONLINE: [(&str, &str); 6] = [
    ("fifo", "fifo"),
    ("pairwise", "pairwise"),
    ("max-srpt", "max-srpt"),
    ("couple", "couple"),
    ("o-group", "o-group"),
    ("o-match", "o-match"),
];

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    Ok(Paper {
        name: "pairs",
        title: "H. Zheng, J. Wu: Joint Scheduling of Overlapping MapReduce Phases: Pair Jobs for \
                Optimization (2017)",
        about: vec![format!(
            "Two stations for real: {WORKERS} workers with {SLOTS} slots each, whose shuffle is held to \
             {:.0} MB/s in each direction. A job's maps sleep; what they put out is real bytes, fetched, \
             merged and reduced; reduces take next to no time. Map slots and lanes follow the policy's one \
             order of jobs. Sizes are known to the policies (the oracle estimator), as in the paper. The \
             paper's makespan of a job is its flow time.",
            NIC.get() as f64 / 1e6
        )],
        sections: vec![batch(context)?, strong_pairs(context)?, online(context)?],
    })
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

fn compare(
    context: &RealContext<'_>,
    name: &str,
    jobs: &[Vec<Job>],
    contenders: Vec<Contender>,
    repetitions: u32,
) -> anyhow::Result<Comparison> {
    let workload = sleeping(name, context.first_seed, jobs, 1.0);
    context.compare(name, &workload, &setting(), contenders, repetitions)
}

/// Jobs that are all there at the start, as for Table 2.
fn batch(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let count = context.scaled(4, 8, 20);
    let repetitions = context.scaled(1, 4, 8);
    let jobs = draws(context.first_seed, repetitions, |seed| {
        jobs_at(Sizes::Exponential.draw(count, MEAN_SECONDS, seed).into_iter().map(|size| (0.0, size)))
    });
    let contenders = policies(if count < 8 { &BATCH[3..6] } else { &BATCH });
    let comparison = compare(context, "pairs-batch", &jobs, contenders, repetitions)?;
    let mut section = Section::new(
        "table-2",
        "Table 2 on real execution: jobs that are all there",
        [format!(
            "{count} jobs in one batch; map and shuffle times exponential with mean {MEAN_SECONDS} s, \
             independent, seeds from {}; {repetitions} repetitions, each with jobs of its own.",
            context.first_seed
        )],
        vec![Block::Table(table("table-2", &comparison))],
    );
    section.text.extend(conditions(&comparison));
    section.blocks.extend(blocks("batch", &comparison, &["result", "simulated"]));
    section.blocks.push(Block::Claims(of_batch(&comparison)));
    Ok(section)
}

pub(super) fn of_batch(comparison: &Comparison) -> Vec<Claim> {
    vec![
        claim(
            comparison,
            "Section 6.2",
            "Match-based has smaller average makespans than Pairwise, MaxDiff and MaxShuffle.",
            "match",
            &["pairwise", "max-diff", "max-shuffle"],
        ),
        claim(
            comparison,
            "Section 6.2",
            "Pair-based and Couple-based beat Pairwise, which pairs without looking at size: Couple-based \
             against Pairwise.",
            "couple",
            &["pairwise"],
        ),
        claim(comparison, "Section 6.2", "Match-based beats MaxSRPT.", "match", &["max-srpt"]),
    ]
}

/// Jobs that come with their mirror images: the case in which the paper proves pairing optimal.
fn strong_pairs(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let count = context.scaled(4, 8, 16);
    let repetitions = context.scaled(1, 4, 8);
    let jobs = draws(context.first_seed, repetitions, |seed| {
        let mut sizes = Sizes::StrongPairs.draw(count, MEAN_SECONDS, seed);
        // In the order of arrival map-heavy jobs first, so that no policy is helped by the list.
        sizes.sort_by(|one, other| (other.map - other.shuffle).total_cmp(&(one.map - one.shuffle)));
        jobs_at(sizes.into_iter().map(|size| (0.0, size)))
    });
    let names =
        [("fifo", "fifo"), ("max-shuffle", "max-shuffle"), ("pair", "pair"), ("pairwise", "pairwise")];
    let comparison = compare(context, "pairs-strong", &jobs, policies(&names), repetitions)?;
    let mut section = Section::new(
        "theorem-1",
        "Theorem 1 on real execution: jobs in strong pairs",
        [format!(
            "{count} jobs in one batch, each with its mirror image; uniform sizes with mean {MEAN_SECONDS} \
             s, seeds from {}; {repetitions} repetitions, each with jobs of its own.",
            context.first_seed
        )],
        blocks("strong", &comparison, &["result", "stations"]),
    );
    section.text.extend(conditions(&comparison));
    section.blocks.push(Block::Claims(vec![of_strong_pairs(&comparison)]));
    Ok(section)
}

/// What is as small as the others' is smallest too.
pub(super) fn of_strong_pairs(comparison: &Comparison) -> Claim {
    let others = ["fifo", "max-shuffle"];
    let (verdict, evidence) = judged(comparison, Claimed::NotLarger, ("pair", &others), flow);
    Claim::new(
        "Theorem 1",
        "Where jobs form strong pairs, running them pair by pair has the smallest average makespan: against \
         FIFO and MaxShuffle.",
        verdict,
        evidence,
    )
}

/// Jobs that come over time, as for Table 3.
fn online(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let stream = Stream {
        sizes: Sizes::Exponential,
        jobs: context.scaled(5, 14, 60),
        mean: MEAN_SECONDS,
        load: 0.8,
        swing: 0.0,
    };
    let repetitions = context.scaled(1, 4, 8);
    let jobs = draws(context.first_seed, repetitions, |seed| {
        let size = |job: &Job| Size { map: job.work[Station::Map], shuffle: job.work[Station::Shuffle] };
        jobs_at(stream.draw(seed).iter().map(|job| (job.arrival, size(job))))
    });
    let contenders = policies(if stream.jobs < 10 { &ONLINE[2..4] } else { &ONLINE });
    let comparison = compare(context, "pairs-online", &jobs, contenders, repetitions)?;
    let mut section = Section::new(
        "table-3",
        "Table 3 on real execution: jobs that come over time",
        [format!(
            "{} jobs, Poisson arrivals at load {}, sizes exponential with mean {MEAN_SECONDS} s, seeds from {}; \
             {repetitions} repetitions, each with jobs of its own.",
            stream.jobs, stream.load, context.first_seed
        )],
        vec![Block::Table(table("table-3", &comparison))],
    );
    section.text.extend(conditions(&comparison));
    section.blocks.extend(blocks("online", &comparison, &["result", "simulated"]));
    section.blocks.push(Block::Claims(of_stream(&comparison)));
    Ok(section)
}

pub(super) fn of_stream(comparison: &Comparison) -> Vec<Claim> {
    vec![
        claim(
            comparison,
            "Table 3",
            "OMatch-based has smaller average makespans than Pairwise.",
            "o-match",
            &["pairwise"],
        ),
        claim(
            comparison,
            "Table 3",
            "OMatch-based and OGroup-based have smaller average makespans than MaxSRPT: OMatch-based.",
            "o-match",
            &["max-srpt"],
        ),
        execution_claim(comparison),
    ]
}

/// A claim that one policy's average makespan is smaller than those of others.
fn claim(comparison: &Comparison, place: &str, statement: &str, one: &str, others: &[&str]) -> Claim {
    let (verdict, evidence) = faster_than(comparison, one, others);
    Claim::new(place, statement, verdict, evidence)
}

/// Pairwise executes fast and waits long: seconds, as waiting may be none.
fn execution_claim(comparison: &Comparison) -> Claim {
    let of = |value: fn(&JobRun) -> f64| {
        pairs(comparison, ["pairwise", "max-srpt"], |run| mean(run.jobs.iter().map(value)))
    };
    let [[execution, short], [waiting, long]] = [of(JobRun::execution), of(JobRun::waiting)];
    let (less, more) = (paired(&short, &execution), paired(&waiting, &long));
    let seen = [Seen::above(&less, 0.0), Seen::above(&more, 0.0)];
    let words = |apart: &Interval| match apart.half_width {
        Some(half_width) => format!("{:+.2} ± {half_width:.2} s", apart.mean),
        None => "not known from a single repetition".to_owned(),
    };
    Claim::new(
        "Section 6.3",
        "Pairwise has smaller execution times than MaxSRPT and larger waiting times.",
        every(seen),
        format!(
            "By repetition: MaxSRPT executes longer than Pairwise by {} ({}), Pairwise waits longer by {} ({}){}.",
            words(&less),
            seen[0].word(),
            words(&more),
            seen[1].word(),
            would_tell(&comparison.runs, &[(less, 0.0), (more, 0.0)])
        ),
    )
}

/// Waiting, execution and makespan as in Table 3.
fn table(id: &str, comparison: &Comparison) -> Table {
    let number = |value: Option<f64>| value.map_or(Cell::Empty, Cell::number);
    let rows = comparison.contenders.iter().map(|contender| {
        let runs = comparison.runs_of(contender);
        let all = |of: fn(&JobRun) -> f64| sorted(runs.iter().flat_map(|run| &run.jobs).map(of));
        let mut row = vec![Cell::text(format!("`{}`", contender.name))];
        for values in [all(JobRun::waiting), all(JobRun::execution), all(JobRun::flow)] {
            row.push(number(mean(values.iter().copied())));
            row.push(number(quantile(&values, 0.1)));
            row.push(number(quantile(&values, 0.9)));
            row.push(number(values.last().copied()));
        }
        row
    });
    let rows = rows.collect();
    let mut columns = vec![Column::new("policy", "")];
    for what in ["waiting", "execution", "makespan"] {
        for part in ["average", "10 %", "90 %", "largest"] {
            columns.push(Column::new(&format!("{what}, {part}"), "s"));
        }
    }
    let caption =
        "Waiting, execution and makespan of jobs, with the ends of the paper's 80 % interval".to_owned();
    Table::new(id, caption, columns, rows)
}
