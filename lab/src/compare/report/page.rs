//! Sections of the page of a comparison, with their texts and tables: the verdicts, the measurements, the workload, and
//! the meaning of each metric. Pages of papers reuse some of them.
//!
//! Not here: charts, and the page around the sections.

use super::charts;
use super::metric_table::metric_table;
use super::text::{columns, correction, findings};
use crate::compare::comparison::Comparison;
use crate::compare::record::RunRecord;
use crate::compare::statistics::{Difference, Shown};
use crate::compare::summary::Summary;
use crate::report::{Block, Cell, Column, ReportTable, Section};
use gristmill_scheduler::metrics::Metric;

/// Metrics of the first table.
const RESULT: [Metric; 14] = [
    Metric::Flow,
    Metric::FlowP50,
    Metric::FlowP95,
    Metric::FlowP99,
    Metric::FlowMax,
    Metric::Slowdown,
    Metric::SlowdownP99,
    Metric::SlowdownMax,
    Metric::Makespan,
    Metric::Waiting,
    Metric::Execution,
    Metric::DeadlinesMet,
    Metric::Tardiness,
    Metric::EfficiencyRatio,
];

/// Returns all results, section by section.
#[must_use]
pub fn sections(comparison: &Comparison) -> Vec<Section> {
    let summaries = comparison.summaries();
    // Curves over time show the first repetition.
    let first: Vec<&RunRecord> = comparison
        .contenders
        .iter()
        .filter_map(|contender| comparison.runs_of(contender).first().copied())
        .collect();
    let mut sections = vec![
        result(comparison, &summaries),
        flow(comparison),
        super::simulated::section(comparison, &summaries),
        stations(&first),
        section(
            "slots-per-job",
            "Slots of each job over time",
            &["In the first repetition. Jobs have a curve each while there are at most eight, else each \
                 kind has one."],
            first.iter().map(|run| Block::Chart(charts::slots_per_job(run))).collect(),
        ),
        section(
            "slots-and-lanes",
            "Who sat in which slot",
            &["In the first repetition. Which slot of a worker an attempt took is not written down: each \
                 is drawn in the lowest that was free."],
            first.iter().map(|run| Block::Chart(charts::slots_and_lanes(run))).collect(),
        ),
    ];
    sections.extend(deadlines(comparison));
    sections.push(super::workload::section(comparison));
    sections.extend(judged(comparison));
    sections.push(Section { folded: true, ..meanings(&summaries) });
    sections
}

fn section(id: &str, title: &str, text: &[&str], blocks: Vec<Block>) -> Section {
    Section::new(id, title, text.iter().copied(), blocks)
}

/// Section with the meaning of each metric of the page.
fn meanings(summaries: &[Summary]) -> Section {
    let metrics = columns(Metric::ALL, summaries);
    let rows = metrics.iter().map(|metric| {
        let declaration = metric.declaration();
        [declaration.name, declaration.unit, declaration.meaning].map(Cell::text).to_vec()
    });
    let columns = Column::list(&[("metric", ""), ("unit", ""), ("meaning", "")]);
    let table = ReportTable::new("metrics", "Metrics of this page", columns, rows.collect());
    let text = "Of one run each; tables show means over repetitions. The time alone is what the same job took on \
                the same cluster when no other was there, the median of several runs.";
    section("metrics", "What the metrics mean", &[text], vec![Block::Table(table)])
}

fn result(comparison: &Comparison, summaries: &[Summary]) -> Section {
    let mut text: Vec<String> =
        comparison.differences().first().map(|one| one.scope.sentence().to_owned()).into_iter().collect();
    text.extend(comparison.reservations().iter().map(|words| sentence(words)));
    if comparison.interrupted {
        text.push("The comparison was interrupted: this is what was done until then.".to_owned());
    }
    let blocks = vec![
        Block::Chart(charts::flow_times(summaries)),
        metric_table(
            "result",
            "Means over repetitions, ± half the width of their intervals of 95 %",
            &RESULT,
            summaries,
        ),
    ];
    Section { findings: findings(comparison), ..Section::new("result", "Result", text, blocks) }
}

/// Section with the differences of all pairs of policies, and the rules by which they are judged.
fn judged(comparison: &Comparison) -> Option<Section> {
    let differences = comparison.differences();
    if differences.is_empty() {
        return None;
    }
    let mut text: Vec<String> = correction(comparison).map(|words| sentence(&words)).into_iter().collect();
    text.push(
        "Intervals are Student's t over repetitions, because jobs of one run depend on each other. Differences are of the \
         same jobs of the same repetition, as a share of the other policy's mean flow time; ratios are averaged as \
         logarithms. An interval is as wide as its verdict is strict: a comparison judged at 1 % has one of 99 %."
            .to_owned(),
    );
    let blocks = vec![difference_table(&differences)];
    Some(Section { folded: true, ..Section::new("judged", "Method and all pairs", text, blocks) })
}

/// Capitalizes the text and adds a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn difference_table(differences: &[Difference]) -> Block {
    let percent = |share: f64| Cell::number(100.0 * share);
    let row = |one: &Difference| {
        let shown = match one.shown {
            Shown::Faster => "faster",
            Shown::Slower => "slower",
            Shown::Nothing => "not shown",
            Shown::TooFew => "too few",
        };
        vec![
            Cell::text(format!("`{}`", one.one)),
            Cell::text(format!("`{}`", one.other)),
            Cell::text(if one.planned { format!("{shown}, planned") } else { shown.to_owned() }),
            one.share.map(percent).into(),
            one.interval.map(|interval| percent(interval[0])).into(),
            one.interval.map(|interval| percent(interval[1])).into(),
            percent(one.level),
            one.chance.map(percent).into(),
            Cell::number(one.repetitions as f64),
            one.needed.map(|needed| needed as f64).into(),
        ]
    };
    Block::Table(ReportTable::new(
        "differences",
        "Differences of the mean flow time",
        Column::list(&[
            ("policy", ""),
            ("against", ""),
            ("verdict", ""),
            ("by", "%"),
            ("from", "%"),
            ("to", "%"),
            ("level", "%"),
            ("chance", "%"),
            ("runs", ""),
            ("needed", ""),
        ]),
        differences.iter().map(row).collect(),
    ))
}

fn flow(comparison: &Comparison) -> Section {
    let mut blocks = vec![Block::Chart(charts::distribution(comparison))];
    blocks.extend(charts::by_size(comparison).map(Block::Chart));
    section("flow-time", "Flow time", &["All jobs of all repetitions."], blocks)
}

fn stations(first: &[&RunRecord]) -> Section {
    let blocks = first.iter().map(|run| Block::Chart(charts::utilisation(run))).collect();
    section(
        "stations",
        "How busy the stations are",
        &["Curves are those of the first repetition. The network counts as busy by the bytes that it \
             carries where `--nic-rate` paces it, else by the workers to which anything comes over HTTP."],
        blocks,
    )
}

fn deadlines(comparison: &Comparison) -> Option<Section> {
    let jobs = || comparison.runs.iter().flat_map(|run| run.jobs.iter().map(move |job| (run, job)));
    jobs().find(|(_, job)| job.deadline.is_some())?;
    let mut table = ReportTable::new(
        "deadlines",
        "Jobs with a deadline, first repetition",
        Column::list(&[
            ("policy", ""),
            ("job", ""),
            ("flow time", "s"),
            ("allowed", "s"),
            ("late by", "s"),
            ("as it looked at arrival", ""),
        ]),
        Vec::new(),
    );
    for (run, job) in jobs().filter(|(run, _)| run.repetition == 0) {
        let Some(deadline) = job.deadline else { continue };
        table.rows.push(vec![
            Cell::text(format!("`{}`", run.contender.name)),
            Cell::text(format!("{} {}", job.index + 1, job.label)),
            Cell::number(job.flow()),
            Cell::number(deadline - job.arrived),
            Cell::number(job.tardiness().unwrap_or(0.0)),
            job.outlook.clone().map(Cell::text).into(),
        ]);
    }
    Some(section("deadlines", "Deadlines", &[], vec![Block::Table(table)]))
}
