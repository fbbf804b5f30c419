//! The stragglers thesis on real execution: half of the workers slower, and its splits of the maps over them.
//!
//! Not here: the splits' queues and the exact sojourn times (`paper::stragglers`).

use super::RealContext;
use super::common::{cluster, conditions};
use crate::compare::statistics::mean;
use crate::compare::workload::{Amount, Arrivals, DataSet, Kind, Order};
use crate::compare::{Comparison, Contender, RunRecord, Workload};
use crate::paper::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Paper, Section, Series, Table, Verdict,
};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::generate;
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::units::Bytes;
use std::collections::BTreeMap;

/// Workers of one slot each; every second one is slower.
const WORKERS: u32 = 10;

/// Speed of the fast and of the slow workers of real work: 3.0 and 2.4 GHz as in chapter 6, and slow enough that all
/// slots together need less than the processors of this machine.
const SPEEDS: [f64; 2] = [0.1, 0.08];

/// The same for slots that sleep.
const SLEEPING_SPEEDS: [f64; 2] = [1.0, 0.8];

/// Share of the cluster's rate at which tasks arrive.
const LOAD: f64 = 0.6;

/// What the runs are compared with, the thesis' splits, and idle slots that pull.
const PLACEMENTS: [&str; 5] = ["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "pull"];

/// One of the thesis' applications.
struct Application {
    name: &'static str,
    title: &'static str,
    kind: Kind,
    data: Vec<DataSet>,
    speeds: [f64; 2],
}

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let applications = applications(context);
    let mut sections = Vec::new();
    for application in &applications {
        sections.push(section(context, application)?);
    }
    Ok(Paper {
        name: "stragglers",
        title: "Stochastic Modeling and Optimization of Stragglers in MapReduce Framework (F. Farhat, 2015)",
        about: vec![format!(
            "{WORKERS} workers of one slot, every second one at 0.8 times the speed of the others, as chapter 6 has them. \
             Grep, WordCount and Sort read real data; their slots are paced to a tenth of this machine's speed, so that \
             ten of them together need less than its processors. A fourth job sleeps delayed exponential times. Jobs \
             arrive at random at {:.0} % of the cluster's rate; a placement deals the maps of each to the workers by \
             their measured rates. The thesis judges by the mean sojourn time, MST: from a job's first launch until its \
             last map is in.",
            100.0 * LOAD
        )],
        sections,
    })
}

fn applications(context: &RealContext<'_>) -> Vec<Application> {
    let mib = 1 << 20;
    let bytes = context.scaled(16, 32, 128) * mib;
    let text =
        || vec![DataSet { name: "text".to_owned(), kind: generate::Kind::Text, bytes, seed: context.seed }];
    let records = || {
        vec![DataSet { name: "records".to_owned(), kind: generate::Kind::Records, bytes, seed: context.seed }]
    };
    let kind = |job: &str, arguments: &[&str]| Kind {
        split_bytes: Some(2 * mib),
        reduces: Some(2),
        ..Kind::new(job, arguments)
    };
    let mut all = vec![
        Application {
            name: "grep",
            title: "Grep",
            kind: Kind { reduces: None, ..kind("grep", &["-c", "(a[a-z]+|o[a-z]+)e\\b", "{data}/text"]) },
            data: text(),
            speeds: SPEEDS,
        },
        Application {
            name: "wordcount",
            title: "WordCount",
            kind: kind("wordcount", &["{data}/text"]),
            data: text(),
            speeds: SPEEDS,
        },
        Application {
            name: "sort",
            title: "Sort",
            kind: kind("sort", &["{data}/records"]),
            data: records(),
            speeds: SPEEDS,
        },
        Application {
            name: "delayed",
            title: "A job that sleeps delayed exponential times",
            kind: Kind {
                reduces: Some(1),
                ..Kind::new(
                    "synthetic",
                    &[
                        "--maps",
                        "20",
                        "--map-time",
                        "delayed:40ms,40ms",
                        "--reduce-time",
                        "1ms",
                        "--seed",
                        "{seed}",
                    ],
                )
            },
            data: Vec::new(),
            speeds: SLEEPING_SPEEDS,
        },
    ];
    if context.scaled(true, false, false) {
        all.retain(|application| ["wordcount", "delayed"].contains(&application.name));
    }
    all
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
    let alone = workload(application, context.seed, 3, 1.0);
    let pull = contenders().split_off(PLACEMENTS.len() - 1);
    let alone = context.compare(&format!("{}-alone", application.name), &alone, &config, pull, 1)?;
    let of_phase = |phase: usize| {
        mean(alone.runs.iter().flat_map(|run| &run.jobs).map(|job| job.work_seconds[phase])).unwrap_or(0.0)
    };
    let [maps, reduces] = [of_phase(0), of_phase(1)];
    let rate: f64 = f64::from(WORKERS / 2) * application.speeds.iter().sum::<f64>();
    let interval = (maps + reduces).max(1e-3) / (LOAD * rate);
    let seconds = context.scaled(3.0, 6.0, 60.0);
    let jobs = (seconds / interval).ceil().clamp(4.0, 400.0) as u32;
    let repetitions = context.scaled(1, 3, 5);
    let workload = workload(application, context.seed, jobs, interval);
    let comparison = context.compare(application.name, &workload, &config, contenders(), repetitions)?;
    let mut section = Section {
        id: format!("chapter-6-{}", application.name),
        title: format!("Chapter 6: {}", application.title),
        text: vec![format!(
            "{jobs} jobs, one every {interval:.2} s in the mean, each with {maps:.2} s of map and {reduces:.2} s of reduce \
             work at full speed; seed {}, arrivals drawn anew for each of {repetitions} repetitions.",
            context.seed
        )],
        blocks: vec![
            Block::Table(table(application, &comparison)),
            Block::Chart(by_worker(application, &comparison)),
        ],
    };
    section.text.extend(conditions(&comparison));
    section.blocks.push(Block::Claims(claims(&comparison)));
    Ok(section)
}

/// Mean seconds from a job's first launch until its last map is in.
fn sojourn(run: &RunRecord) -> f64 {
    mean(run.jobs.iter().map(|job| job.maps_done - job.started)).unwrap_or(0.0)
}

/// MST of each repetition.
fn sojourns(comparison: &Comparison, name: &str) -> Vec<f64> {
    let contender = comparison.contenders.iter().find(|contender| contender.name == name);
    contender.map_or_else(Vec::new, |one| comparison.runs_of(one).into_iter().map(sojourn).collect())
}

/// Speeds of the workers by rank, the fastest first, as summaries count them from 1.
fn speeds(comparison: &Comparison) -> Vec<(u32, f64)> {
    let workers = comparison.runs.first().map(|run| &run.workers[..]).unwrap_or_default();
    let mut speeds: Vec<f64> = workers.iter().map(|worker| worker.speed).collect();
    speeds.sort_by(|one, other| other.total_cmp(one));
    (1..).zip(speeds).collect()
}

/// Mean over workers of one speed of the time until a job's last map there is done.
fn by_speed(comparison: &Comparison, sojourns: &BTreeMap<u32, f64>, slow: bool) -> Option<f64> {
    let speeds = speeds(comparison);
    let fastest = speeds.first()?.1;
    let chosen = speeds.iter().filter(|(_, speed)| (*speed < fastest) == slow);
    mean(chosen.filter_map(|(rank, _)| sojourns.get(rank).copied()))
}

/// For each repetition how much later slow workers end a job's last map there than fast ones, both from its first
/// launch: 1 if together.
fn gaps(comparison: &Comparison, name: &str) -> Vec<f64> {
    let mut alone = comparison.clone();
    let gap = |repetition: u32| {
        alone.runs = comparison
            .runs
            .iter()
            .filter(|run| run.contender.name == name && run.repetition == repetition)
            .cloned()
            .collect();
        let summary = alone.summaries().into_iter().find(|summary| summary.contender.name == name)?;
        let fast = by_speed(comparison, &summary.map_sojourn, false)?;
        Some(by_speed(comparison, &summary.map_sojourn, true)? / fast)
    };
    let last = comparison.runs.iter().map(|run| run.repetition).max().unwrap_or(0);
    (0..=last).filter_map(gap).collect()
}

fn table(application: &Application, comparison: &Comparison) -> Table {
    let columns = [
        ("placement", ""),
        ("MST", "s"),
        ("MST on fast workers", "s"),
        ("MST on slow workers", "s"),
        ("slow over fast", ""),
        ("mean flow", "s"),
    ];
    let rows = comparison.summaries().into_iter().map(|summary| {
        let whole = Interval::of(&sojourns(comparison, &summary.contender.name));
        let [fast, slow] = [false, true].map(|slow| by_speed(comparison, &summary.map_sojourn, slow));
        let number = |value: Option<f64>| value.map_or(Cell::Empty, Cell::number);
        let spread = |value: Option<Interval>| {
            value.map_or(Cell::Empty, |one| Cell::Number { value: one.mean, half_width: one.half_width })
        };
        vec![
            Cell::text(format!("`{}`", summary.contender.name)),
            spread(whole),
            number(fast),
            number(slow),
            number(fast.zip(slow).map(|(fast, slow)| slow / fast)),
            spread(summary.metrics.get("flow_mean").copied()),
        ]
    });
    Table {
        id: format!("mst-{}", application.name),
        caption: format!("Mean sojourn time of maps, {}", application.title),
        columns: columns.map(|(name, unit)| Column::new(name, unit)).to_vec(),
        rows: rows.collect(),
    }
}

fn by_worker(application: &Application, comparison: &Comparison) -> Chart {
    let workers = speeds(comparison);
    let names = workers.iter().map(|(rank, speed)| format!("{rank} ({speed})"));
    let series = comparison.summaries().into_iter().map(|summary| Series {
        name: summary.contender.name.clone(),
        points: workers
            .iter()
            .enumerate()
            .filter_map(|(place, (rank, _))| Some((place as f64, *summary.map_sojourn.get(rank)?)))
            .collect(),
        ..Series::default()
    });
    Chart {
        id: format!("mst-by-worker-{}", application.name),
        caption: "Mean sojourn time at each worker; in brackets its speed".to_owned(),
        x: Axis::names("worker", names),
        y: Axis::linear("until a job's last map there is done, s"),
        kind: ChartKind::Bars,
        series: series.filter(|series| !series.points.is_empty()).collect(),
    }
}

/// Judges "the one's MST is smaller than the other's" by paired differences over repetitions.
fn smaller(one: &[f64], other: &[f64]) -> (Verdict, String) {
    let shares: Vec<f64> = one
        .iter()
        .zip(other)
        .filter(|(_, other)| 0.0 < **other)
        .map(|(one, other)| one / other - 1.0)
        .collect();
    let Some(Interval { mean, half_width: Some(half), .. }) = Interval::of(&shares) else {
        return (Verdict::Open, "too few repetitions for an interval".to_owned());
    };
    let words = format!("{:+.1} % (± {:.1})", 100.0 * mean, 100.0 * half);
    let verdict = if mean + half < 0.0 {
        Verdict::Holds
    } else if 0.0 < mean - half {
        Verdict::Fails
    } else {
        Verdict::Open
    };
    (verdict, words)
}

/// Judges by the slow workers' time over that of the fast ones, in each repetition: the fair split's is above 1, and that
/// of the equilibrium at least twice as near to 1.
fn together(fair: &[f64], even: &[f64]) -> (Verdict, String) {
    let (Some(fair), Some(even)) = (Interval::of(fair), Interval::of(even)) else {
        return (Verdict::Open, "not run".to_owned());
    };
    let Some(half) = fair.half_width else {
        return (Verdict::Open, "too few repetitions for an interval".to_owned());
    };
    let [off, even_off] = [&fair, &even].map(|spread| (spread.mean - 1.0).abs());
    let verdict = if fair.mean + half < 1.0 {
        Verdict::Fails
    } else if fair.mean - half <= 1.0 {
        Verdict::Open
    } else if even_off < 0.5 * off {
        Verdict::Holds
    } else if even_off < off {
        Verdict::Partly
    } else {
        Verdict::Fails
    };
    let words = format!(
        "MST on slow over MST on fast workers: fair-split {:.2} (± {half:.2}), m-ep {:.2} (holds if the first is above 1 \
         and the second at least twice as near to 1).",
        fair.mean, even.mean
    );
    (verdict, words)
}

fn claims(comparison: &Comparison) -> Vec<Claim> {
    let against_fair = |name: &str, place: &str, statement: &str| {
        let (verdict, words) = smaller(&sojourns(comparison, name), &sojourns(comparison, "fair-split"));
        Claim {
            place: place.to_owned(),
            statement: statement.to_owned(),
            verdict,
            evidence: format!("MST of {name} against fair-split: {words}."),
        }
    };
    let mut claims = vec![
        against_fair(
            "pure-deterministic",
            "Section 6-2",
            "Where workers differ, the pure-deterministic split has a smaller MST than the fair one.",
        ),
        against_fair(
            "pure-stochastic",
            "Section 6-3",
            "The pure-stochastic split has a smaller MST than the fair one.",
        ),
        against_fair(
            "m-ep",
            "Section 6-4",
            "The split of the mixed equilibrium property has a smaller MST than the fair one.",
        ),
    ];
    let (verdict, words) = smaller(&sojourns(comparison, "m-ep"), &sojourns(comparison, "pull"));
    claims.push(Claim {
        place: "Not in the thesis".to_owned(),
        statement: "A split in advance has a smaller MST than idle slots that pull the next map.".to_owned(),
        verdict,
        evidence: format!("MST of m-ep against pull: {words}."),
    });
    let (verdict, evidence) = together(&gaps(comparison, "fair-split"), &gaps(comparison, "m-ep"));
    claims.push(Claim {
        place: "Definition 4".to_owned(),
        statement:
            "Under the fair split the slow workers end later; under the equilibrium property both kinds end \
                    together."
                .to_owned(),
        verdict,
        evidence,
    });
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_together_is_judged_by_the_interval_and_by_the_side() {
        let judge = |fair: &[f64], even: &[f64]| together(fair, even).0;
        assert_eq!(judge(&[1.2, 1.21, 1.19], &[1.05, 1.06, 1.04]), Verdict::Holds);
        assert_eq!(judge(&[1.2, 1.21, 1.19], &[1.15, 1.16, 1.14]), Verdict::Partly);
        assert_eq!(judge(&[1.2, 1.21, 1.19], &[0.7, 0.71, 0.69]), Verdict::Fails);
        assert_eq!(judge(&[0.8, 0.81, 0.79], &[1.0, 1.0, 1.0]), Verdict::Fails, "the slow ones end earlier");
        assert_eq!(judge(&[0.9, 1.3, 1.1], &[1.0, 1.0, 1.0]), Verdict::Open);
        assert_eq!(judge(&[1.2], &[1.0]), Verdict::Open, "one repetition has no interval");
    }

    #[test]
    fn a_smaller_sojourn_time_is_judged_by_the_interval_of_paired_differences() {
        let judge = |one: &[f64], other: &[f64]| smaller(one, other).0;
        assert_eq!(judge(&[8.0, 8.1, 7.9], &[10.0, 10.0, 10.0]), Verdict::Holds);
        assert_eq!(judge(&[12.0, 12.1, 11.9], &[10.0, 10.0, 10.0]), Verdict::Fails);
        assert_eq!(judge(&[9.0, 11.0, 10.0], &[10.0, 10.0, 10.0]), Verdict::Open);
        assert_eq!(judge(&[8.0], &[10.0]), Verdict::Open, "one repetition has no interval");
    }
}
