//! The deadlines paper on real execution: its four experiments with sleeping twins of its jobs on twenty workers, and
//! with WordCount and Join that really count and join.
//!
//! Not here: the same scenario in the cluster simulator (`paper::deadlines`).

use super::RealContext;
use super::common::{blocks, cluster, conditions, policies, sleeping};
use crate::compare::statistics::mean;
use crate::compare::workload::{Arrivals, DataSet, Kind, Order};
use crate::compare::{Comparison, Contender, JobRun, RunRecord, Workload};
use crate::paper::{Block, Cell, Claim, Column, Paper, Section, Table, Verdict};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::generate;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::units::Bytes;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::deadlines::{DEADLINES, Joins, NAMES, SLOTS, WEIGHTS, scenario};
use gristmill_worker::protocol::SlotCounts;

/// Workers with a map slot and a reduce slot each: a third of the paper's, with a third of its maps.
const WORKERS: u32 = 20;

/// Policies of the experiments with real jobs, by name and text.
const POLICIES: [(&str, &str); 3] =
    [("min", "min-scheduler:tick=5ms"), ("max", "max-scheduler:tick=5ms"), ("fair", "fair")];

/// Fair sharing by the paper's weights.
const WEIGHTED: &str = "fair weighted";

/// Workers of the real jobs and the speed of their slots: together less than two processors.
const REAL_WORKERS: u32 = 10;
const REAL_SPEED: f64 = 0.06;

/// How much longer than alone the paper's jobs may take: Simulator, WordCount and both Joins.
const FACTORS: [f64; 4] = [1.69, 2.37, 1.18, 1.18];

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    // A second of the paper, in seconds here.
    let second = context.scaled(1.0 / 800.0, 1.0 / 200.0, 1.0 / 100.0);
    let mut sections = experiments(context, second)?;
    sections.push(real_jobs(context)?);
    Ok(Paper {
        name: "deadlines",
        title: "J. Polo, D. Carrera, Y. Becerra, J. Torres, E. Ayguadé, M. Steinder, I. Whalley: Performance-Driven \
                Task Co-Scheduling for MapReduce Environments (NOMS 2010)",
        about: vec![
            format!(
                "The paper ran Simulator, WordCount and two Joins on {SLOTS} nodes for hours. Here {WORKERS} worker \
                 processes with a map slot and a reduce slot each run their twins: tasks sleep for the paper's times, \
                 {:.0} times shorter, and there is a third of the maps for a third of the slots. Everything else is \
                 real: launches, shuffle, commits, estimates from finished maps.",
                1.0 / second
            ),
            "The last section runs WordCount and Join on data, with slots paced so that this machine's processors \
             suffice, and a sleeping Simulator beside them; goals are the paper's multiples of each job's time alone."
                .to_owned(),
        ],
        sections,
    })
}

/// The paper's scenario at laptop scale.
fn twins(weights: [f64; 4], seed: u64) -> Vec<Job> {
    let mut jobs = scenario(Joins::SlowFirstHalf, weights, seed);
    for job in &mut jobs {
        // Every third, so that phases and heads keep their shape.
        job.maps = job.maps.iter().copied().step_by((SLOTS / WORKERS) as usize).collect();
        job.work[Station::Map] = job.maps.iter().sum();
    }
    jobs
}

fn setting(estimator: &str) -> ClusterConfig {
    let mut config = cluster(WORKERS, 2);
    config.workers.each.slots = SlotCounts::Pools { map: 1, reduce: 1 };
    config.deciders.estimator = estimator.to_owned();
    config
}

/// Experiments one to four with sleeping twins.
fn experiments(context: &RealContext<'_>, second: f64) -> anyhow::Result<Vec<Section>> {
    let repetitions = context.scaled(1, 2, 4);
    let plain = sleeping("deadlines, section V", context.seed, &twins([1.0; 4], context.seed), second);
    // The schedulers look again every second of the paper.
    let tick = (1e6 * second).round();
    let [min, max] = ["min", "max"].map(|name| format!("{name}-scheduler:tick={tick}us"));
    let contenders = policies(&[("min", &min), ("max", &max), ("fair", "fair")]);
    let comparison =
        context.compare("deadlines-goals", &plain, &setting("tasks"), contenders, repetitions)?;
    let weighted = sleeping("deadlines, weights", context.seed, &twins(WEIGHTS, context.seed), second);
    let contenders = policies(&[(WEIGHTED, "fair")]);
    let weighted =
        context.compare("deadlines-weights", &weighted, &setting("tasks"), contenders, repetitions)?;
    let mut sections = vec![experiment_one(context, second)?];
    let figures = [
        (&comparison, "min", "figure-4", "Figure 4: the min-scheduler (experiment two)"),
        (&comparison, "max", "figure-5", "Figure 5: the max-scheduler (experiment three)"),
        (&comparison, "fair", "figure-6", "Figure 6: fair sharing (experiment four)"),
        (&weighted, WEIGHTED, "figure-7", "Figure 7: weighted fair sharing (experiment four)"),
    ];
    for (of, name, id, title) in figures {
        let only = only(of, name);
        let mut section = Section {
            id: id.to_owned(),
            title: title.to_owned(),
            text: vec![format!(
                "Simulator, WordCount and two Joins arrive at 0, {:.1}, {:.1} and {:.1} s; seed {}, {repetitions} \
                 repetitions. Curves are of the first.",
                1000.0 * second,
                2000.0 * second,
                3000.0 * second,
                context.seed
            )],
            blocks: vec![Block::Table(goals(id, &only, second))],
        };
        section.text.extend(conditions(&only));
        section.blocks.extend(blocks(id, &only, &["slots-per-job"]));
        section.blocks.push(Block::Claims(claims_of(name, &only, &comparison.runs, &weighted.runs)));
        sections.push(section);
    }
    Ok(sections)
}

/// The runs of one contender.
fn only(comparison: &Comparison, name: &str) -> Comparison {
    let mut only = comparison.clone();
    only.contenders.retain(|contender: &Contender| contender.name == name);
    only.runs.retain(|run| run.contender.name == name);
    only
}

/// Completion estimates of each application alone.
fn experiment_one(context: &RealContext<'_>, second: f64) -> anyhow::Result<Section> {
    let mut section = Section {
        id: "figures-1-to-3".to_owned(),
        title: "Figures 1 to 3: how well sizes are estimated (experiment one)".to_owned(),
        text: vec![
            "Each application alone. The estimate is the paper's: what the finished maps took, in the mean, holds for \
             the rest. Its error falls as maps finish; how fast depends on whether the first maps are like the last."
                .to_owned(),
        ],
        blocks: Vec::new(),
    };
    let mut errors = Vec::new();
    for job in twins([1.0; 4], context.seed).into_iter().take(3) {
        let name = job.name.clone().unwrap_or_default();
        let alone = Job { arrival: 0.0, deadline: None, ..job };
        let workload = sleeping(&name, context.seed, &[alone], second);
        let folder = format!("deadlines-{}", name.to_lowercase());
        let comparison =
            context.compare(&folder, &workload, &setting("tasks"), policies(&[(&name, "fifo")]), 1)?;
        section.blocks.extend(blocks(&name.to_lowercase(), &comparison, &["estimation"]));
        if let Some(job) = comparison.runs.first().and_then(|run| run.jobs.first()) {
            errors.push((name, error_after(job, 0.5)));
        }
    }
    let error = |wanted: &str| errors.iter().find(|(name, _)| name == wanted).and_then(|(_, error)| *error);
    let words: Vec<String> = errors
        .iter()
        .filter_map(|(name, error)| Some(format!("{name} {:.1} %", 100.0 * (*error)?)))
        .collect();
    let evidence = format!("Mean error over the second half of the maps: {}.", words.join(", "));
    section.blocks.push(Block::Claims(vec![
        Claim {
            place: "Section V-B".to_owned(),
            statement: "WordCount, whose tasks are alike, is estimated within 5 % for most of its time."
                .to_owned(),
            verdict: judged(error(NAMES[1]).map(|error| error < 0.05)),
            evidence: evidence.clone(),
        },
        Claim {
            place: "Section V-B".to_owned(),
            statement: "Simulator, whose tasks grow longer, is estimated worse than WordCount.".to_owned(),
            verdict: judged(error(NAMES[0]).zip(error(NAMES[1])).map(|(one, other)| other < one)),
            evidence,
        },
    ]));
    Ok(section)
}

fn judged(holds: Option<bool>) -> Verdict {
    match holds {
        Some(true) => Verdict::Holds,
        Some(false) => Verdict::Fails,
        None => Verdict::Open,
    }
}

/// Mean error of the estimated work of maps and reduces, relative to what they took, once this share of the maps is
/// done.
fn error_after(job: &JobRun, share: f64) -> Option<f64> {
    let truth: f64 = job.slot_seconds.iter().sum();
    let last = job.estimates.iter().map(|one| one.1).max().filter(|last| 0 < *last)?;
    let late = job.estimates.iter().filter(|one| share * f64::from(last) <= f64::from(one.1));
    mean(late.map(|(_, _, whole)| ((whole[0] + whole[2]) / truth - 1.0).abs()))
}

/// Who meets the goal.
fn goals(id: &str, comparison: &Comparison, second: f64) -> Table {
    let columns = [
        ("job", ""),
        ("goal", "s"),
        ("mean response", "s"),
        ("response / goal", ""),
        ("runs that meet it", ""),
    ];
    let row = |job: usize| {
        let runs: Vec<&JobRun> = comparison.runs.iter().filter_map(|run| run.jobs.get(job)).collect();
        let response = mean(runs.iter().map(|job| job.flow()));
        let met = runs.iter().filter(|job| job.tardiness() == Some(0.0)).count();
        let goal = DEADLINES[job] * second;
        vec![
            Cell::text(format!("J{} {}", job + 1, NAMES[job])),
            Cell::number(goal),
            response.map_or(Cell::Empty, Cell::number),
            response.map_or(Cell::Empty, |response| Cell::number(response / goal)),
            Cell::text(format!("{met} of {}", runs.len())),
        ]
    };
    Table {
        id: format!("{id}-goals"),
        caption: "Who meets the goal".to_owned(),
        columns: columns.map(|(name, unit)| Column::new(name, unit)).to_vec(),
        rows: (0..NAMES.len()).map(row).collect(),
    }
}

/// Share of the map slots that a job holds while it is there.
fn part(run: &RunRecord, job: usize) -> f64 {
    let Some(record) = run.jobs.get(job) else { return 0.0 };
    let slots: u32 = run.workers.iter().map(|worker| worker.map_slots).sum();
    let spans = run.spans.iter().filter(|span| span.map && span.job as usize == job);
    let held: f64 = spans.map(|span| span.to - span.from).sum();
    held / (record.maps_done - record.arrived).max(1e-9) / f64::from(slots.max(1))
}

/// Share of the map slots that are idle while the first job is there and alone.
fn idle_at_first(run: &RunRecord) -> f64 {
    let (Some(first), Some(second)) = (run.jobs.first(), run.jobs.get(1)) else { return 0.0 };
    // The first wave fills all slots whatever the policy; what comes after it is judged.
    let from = first.arrived + 0.2 * (second.arrived - first.arrived);
    let slots: u32 = run.workers.iter().map(|worker| worker.map_slots).sum();
    let spans = run.spans.iter().filter(|span| span.map);
    let busy: f64 = spans.map(|span| (span.to.min(second.arrived) - span.from.max(from)).max(0.0)).sum();
    1.0 - busy / (second.arrived - from).max(1e-9) / f64::from(slots.max(1))
}

fn met(runs: &[RunRecord], job: usize) -> Vec<bool> {
    runs.iter().filter_map(|run| Some(run.jobs.get(job)?.tardiness()? <= 0.0)).collect()
}

/// A claim that holds, partly holds or fails by how many runs it is true in.
fn claim(place: &str, statement: &str, holds: &[bool], evidence: &str) -> Claim {
    let of = holds.iter().filter(|&&one| one).count();
    let verdict = match of {
        _ if holds.is_empty() => Verdict::Open,
        of if of == holds.len() => Verdict::Holds,
        0 => Verdict::Fails,
        _ => Verdict::Partly,
    };
    let evidence = format!("{evidence}; so in {of} of {} runs", holds.len());
    Claim { place: place.to_owned(), statement: statement.to_owned(), verdict, evidence }
}

fn claims_of(name: &str, only: &Comparison, plain: &[RunRecord], weighted: &[RunRecord]) -> Vec<Claim> {
    let runs = &only.runs;
    let joins: Vec<bool> = runs.iter().map(|run| 0.5 < part(run, 2) && 0.5 < part(run, 3)).collect();
    let parts = [2, 3].map(|job| 100.0 * mean(runs.iter().map(|run| part(run, job))).unwrap_or(0.0));
    let most = |place: &str| {
        let evidence =
            format!("J3 holds {:.0} % of the map slots while it maps, J4 {:.0} %", parts[0], parts[1]);
        claim(place, "The Joins are given most of the slots until they end.", &joins, &evidence)
    };
    let response = |job: usize| {
        let responses = runs.iter().filter_map(|run| {
            Some(run.jobs.get(job)?.flow() / (run.jobs[job].goal? - run.jobs[job].arrived))
        });
        mean(responses).unwrap_or(f64::NAN)
    };
    let meets = |place: &str, statement: &str, job: usize, wanted: bool| {
        let holds: Vec<bool> = met(runs, job).into_iter().map(|met| met == wanted).collect();
        let evidence = format!("J{} takes {:.2} of the time aimed at", job + 1, response(job));
        claim(place, statement, &holds, &evidence)
    };
    match name {
        "min" => {
            let idle: Vec<f64> = runs.iter().map(idle_at_first).collect();
            let holds: Vec<bool> = idle.iter().map(|idle| 0.1 < *idle).collect();
            let words = format!(
                "{:.0} % of the map slots are idle while J1 is alone, after its first wave (a tenth counts)",
                100.0 * mean(idle).unwrap_or(0.0)
            );
            vec![
                claim(
                    "Section V-C",
                    "The min-scheduler leaves slots free that nobody needs.",
                    &holds,
                    &words,
                ),
                most("Section V-C"),
                meets("Section V-C", "J1 misses its goal: its long tasks come last.", 0, false),
            ]
        }
        "max" => {
            let of_min: Vec<&RunRecord> = plain.iter().filter(|run| run.contender.name == "min").collect();
            let sooner: Vec<bool> = runs
                .iter()
                .filter_map(|run| {
                    let other = of_min.iter().find(|other| other.repetition == run.repetition)?;
                    Some(run.jobs.first()?.flow() < other.jobs.first()?.flow())
                })
                .collect();
            vec![
                meets("Section V-D", "J1 meets its goal, since it has had more at the beginning.", 0, true),
                claim("Section V-D", "J1 ends sooner than under the min-scheduler.", &sooner, "paired runs"),
                most("Section V-D"),
            ]
        }
        "fair" => vec![
            meets("Section V-E", "Without weights the first Join misses its goal.", 2, false),
            meets("Section V-E", "Without weights the second Join misses its goal.", 3, false),
        ],
        _ => {
            let of_max: Vec<&RunRecord> = plain.iter().filter(|run| run.contender.name == "max").collect();
            let alike: Vec<bool> = weighted
                .iter()
                .filter_map(|run| {
                    let other = of_max.iter().find(|other| other.repetition == run.repetition)?;
                    let near =
                        |(one, other): (&JobRun, &JobRun)| (one.flow() / other.flow() - 1.0).abs() < 0.15;
                    Some(run.jobs.iter().zip(&other.jobs).all(near))
                })
                .collect();
            vec![claim(
                "Section V-E",
                "Fair sharing with the paper's weights mimics the max-scheduler.",
                &alike,
                "every job's response within 15 % counts as alike",
            )]
        }
    }
}

/// WordCount and Join that really work, a sleeping Simulator beside them.
fn real_jobs(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let mib: u64 = 1 << 20;
    let scale = context.scaled(1, 3, 8);
    let data = |name: &str, kind: generate::Kind, bytes: u64| DataSet {
        name: name.to_owned(),
        kind,
        bytes,
        seed: context.seed,
    };
    let word_count = Kind {
        label: NAMES[1].to_owned(),
        split_bytes: Some(mib),
        reduces: Some(1),
        ..Kind::new("wordcount", &["{data}/text"])
    };
    let join = || Kind {
        label: NAMES[2].to_owned(),
        split_bytes: Some(mib),
        reduces: Some(4),
        ..Kind::new(
            "join",
            &["--left", "{data}/tables/visits.csv", "--right", "{data}/tables/users.csv", "--on", "user"],
        )
    };
    // Its sleeps are paced like work.
    let maps = (200 * scale).to_string();
    let simulator = Kind {
        label: NAMES[0].to_owned(),
        reduces: Some(1),
        ..Kind::new(
            "synthetic",
            &["--maps", &maps, "--map-time", "lognormal:4ms,0.7", "--reduce-time", "2ms"],
        )
    };
    let workload = |kinds: Vec<Kind>, arrivals: Arrivals| Workload {
        name: "Simulator, WordCount, two Joins".to_owned(),
        seed: context.seed,
        arrivals,
        order: Order::Listed,
        total: None,
        redraw: false,
        kinds,
        data: vec![
            data("text", generate::Kind::Text, 16 * scale * mib),
            data("tables", generate::Kind::Tables, 16 * scale * mib),
        ],
    };
    let mut config = cluster(REAL_WORKERS, 2);
    config.workers.each.slots = SlotCounts::Pools { map: 1, reduce: 1 };
    config.workers.each.memory = Bytes::mib(64);
    config.workers.speeds = vec![REAL_SPEED];
    config.deciders.estimator = "tasks".to_owned();
    let kinds = vec![simulator, word_count, join(), join()];
    let mut alone = Vec::new();
    for (place, kind) in kinds.iter().enumerate() {
        // The second Join is as the first.
        if place == 3 {
            alone.push(alone[2]);
            continue;
        }
        let single = workload(vec![kind.clone()], Arrivals::Batch);
        let comparison = context.compare(
            &format!("deadlines-alone-{place}"),
            &single,
            &config,
            policies(&[("fifo", "fifo")]),
            1,
        )?;
        alone.push(mean(comparison.runs.iter().flat_map(|run| &run.jobs).map(JobRun::flow)).unwrap_or(1.0));
    }
    let deadlined: Vec<Kind> = kinds
        .into_iter()
        .zip(alone.iter().zip(FACTORS))
        .map(|(kind, (alone, factor))| Kind { deadline: Some(alone * factor), ..kind })
        .collect();
    // As in the scenario: each comes while those before it run.
    let step = alone[0] * FACTORS[0] / 6.0;
    let arrivals = Arrivals::Times(vec![0.0, step, 2.0 * step, 3.0 * step]);
    let repetitions = context.scaled(1, 2, 5);
    let comparison = context.compare(
        "deadlines-real",
        &workload(deadlined, arrivals),
        &config,
        policies(&POLICIES),
        repetitions,
    )?;
    let alone_words: Vec<String> = alone.iter().map(|seconds| format!("{seconds:.2}")).collect();
    let mut section = Section {
        id: "real-jobs".to_owned(),
        title: "The same with WordCount and Join that really work".to_owned(),
        text: vec![format!(
            "{REAL_WORKERS} workers with a map slot and a reduce slot at {REAL_SPEED} of this machine's speed; {} MiB of \
             text, {} MiB of tables; Simulator sleeps log-normal times. Alone the jobs take {} s; goals are {FACTORS:?} \
             times that, as in the paper. Jobs come {step:.2} s apart; {repetitions} repetitions.",
            16 * scale,
            16 * scale,
            alone_words.join(", ")
        )],
        blocks: blocks("real-jobs", &comparison, &["result", "slots-per-job", "deadlines"]),
    };
    section.text.extend(conditions(&comparison));
    let late = |name: &str| {
        let runs = comparison.runs.iter().filter(|run| run.contender.name == name);
        mean(runs.flat_map(|run| &run.jobs).filter_map(JobRun::tardiness)).unwrap_or(f64::NAN)
    };
    let holds: Vec<bool> = (0..repetitions)
        .filter_map(|repetition| {
            let tardiness = |name: &str| {
                let run = comparison
                    .runs
                    .iter()
                    .find(|run| run.contender.name == name && run.repetition == repetition)?;
                mean(run.jobs.iter().filter_map(JobRun::tardiness))
            };
            Some(tardiness("max")? < tardiness("fair")?)
        })
        .collect();
    section.blocks.push(Block::Claims(vec![claim(
        "Section V-E",
        "The max-scheduler misses goals by less than fair sharing without weights does.",
        &holds,
        &format!(
            "mean tardiness: min {:.2} s, max {:.2} s, fair {:.2} s",
            late("min"),
            late("max"),
            late("fair")
        ),
    )]));
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_a_third_of_the_papers_jobs_with_their_goals_and_weights() {
        let jobs = twins(WEIGHTS, 1);
        let maps: Vec<usize> = jobs.iter().map(|job| job.maps.len()).collect();
        assert_eq!(maps, [2134, 246, 334, 334]);
        assert!(
            jobs.iter().zip(DEADLINES).all(|(job, deadline)| job.deadline == Some(job.arrival + deadline))
        );
        assert_eq!(jobs.iter().map(|job| job.weight).collect::<Vec<_>>(), WEIGHTS);
    }

    #[test]
    fn a_claim_holds_partly_when_some_runs_say_otherwise_and_is_open_without_runs() {
        let verdict = |holds: &[bool]| claim("", "", holds, "").verdict;
        assert_eq!(verdict(&[true, true]), Verdict::Holds);
        assert_eq!(verdict(&[true, false]), Verdict::Partly);
        assert_eq!(verdict(&[false, false]), Verdict::Fails);
        assert_eq!(verdict(&[]), Verdict::Open);
    }
}
