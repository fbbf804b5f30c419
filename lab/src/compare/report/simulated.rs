//! Simulated compared with real: replays and predictions, each with its errors.
//!
//! Not here: the simulations (`compare::simulated`) and their errors (`compare::simulation_error`).

use super::charts;
use super::text::SIMULATIONS;
use crate::compare::comparison::Comparison;
use crate::compare::record::{RunRecord, SimulatedRun};
use crate::compare::simulation_error::SimulationError;
use crate::compare::summary::Summary;
use crate::report::{Block, Cell, Column, ReportTable, Section};

pub(super) fn section(comparison: &Comparison, summaries: &[Summary]) -> Section {
    let mut text = vec![
        "Two simulations of each run, by the cluster simulator. Replayed: arrivals, times of tasks and overheads \
         as measured in that run; the error says how good the simulator is. Predicted: planned arrivals, sizes and costs \
         of the system as known before the run; the error says how well one knows beforehand."
            .to_owned(),
        knowledge(comparison),
    ];
    text.extend(missing(comparison, "replayed", |run| &run.replayed));
    text.extend(missing(comparison, "predicted", |run| &run.predicted));
    let blocks = vec![Block::Chart(charts::phases(summaries)), Block::Table(errors(summaries))];
    Section::new("simulated", "Simulated beside real", text, blocks)
}

/// Describes the knowledge that a prediction uses.
fn knowledge(comparison: &Comparison) -> String {
    let alone = match comparison.alone.is_empty() {
        true => "",
        false => "; a job whose size the workload does not tell has the times of its tasks in its run alone",
    };
    format!(
        "A prediction uses the workload (arrivals, times and bytes of jobs that only take time, deadlines, weights), the \
         shape of the cluster, who decides, and what the system took for tasks that do nothing in a run of their own \
         before the first{alone}. It knows nothing of: other programs, processors that user code competes for, requests \
         that wait for a network held to a rate, what a suspension costs."
    )
}

/// Describes why runs lack a simulation.
fn missing(comparison: &Comparison, what: &str, of: fn(&RunRecord) -> &SimulatedRun) -> Option<String> {
    let mut reasons: Vec<&String> =
        comparison.runs.iter().filter_map(|run| of(run).missing.as_ref()).collect();
    let runs = reasons.len();
    reasons.dedup();
    let reason = reasons.first()?;
    Some(format!("{runs} of {} runs could not be {what}: {reason}.", comparison.runs.len()))
}

/// Table of errors with one row for each policy and simulation.
fn errors(summaries: &[Summary]) -> ReportTable {
    let columns = [
        ("policy", ""),
        ("simulation", ""),
        ("measured mean flow", "s"),
        ("simulated", "s"),
        ("error of the mean", "%"),
        ("least of a run", "%"),
        ("largest of a run", "%"),
        ("mean absolute error of a job", "% of the mean"),
    ];
    let row = |summary: &Summary, what: &str, error: &SimulationError| {
        let runs = || error.mean_flow_by_run.iter().copied();
        let percent = |share: f64| Cell::number(100.0 * share);
        vec![
            Cell::text(format!("`{}`", summary.contender.name)),
            Cell::text(what),
            Cell::number(summary.phases.iter().sum()),
            Cell::number(error.phases.iter().sum()),
            percent(error.mean_flow),
            runs().reduce(f64::min).map(percent).into(),
            runs().reduce(f64::max).map(percent).into(),
            percent(error.per_job),
        ]
    };
    let rows = summaries.iter().flat_map(|summary| {
        let known = SIMULATIONS.iter().filter_map(|(what, of)| Some((*what, of(summary)?)));
        known.map(|(what, error)| row(summary, what, error)).collect::<Vec<_>>()
    });
    let caption = "Errors of the simulations: simulated minus measured";
    ReportTable::new("simulation-errors", caption, Column::list(&columns), rows.collect())
}
