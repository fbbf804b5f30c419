//! Dependence of the goals of the Joins on the order of their tasks' lengths.
//!
//! Not here: the figures of the paper (`goals`).

use super::goals::{job_name, mean, meets, met};
use super::{Scheduler, Trial, Trials, WORDS, reference};
use crate::judge::{Seen, by_case, every};
use crate::words::holes;
use crate::workload::deadlines::{DEADLINES, Joins};
use crate::{Block, Cell, Claim, Column, Compared, Section, Series};

pub(super) fn whole(trials: &Trials) -> Section {
    let tables = Joins::ALL.map(|joins| table(trials, joins));
    let claims = of_kinds(Joins::ALL.map(|joins| trials.of(joins, Scheduler::Max)));
    let judged = [Block::Comparison(comparisons(trials)), Block::Claims(claims)];
    let blocks = [chart(trials)].into_iter().chain(tables).chain(judged).collect();
    WORDS.section("sensitivity", holes![], blocks)
}

/// Returns J3's response divided by its goal.
fn late(runs: &[Trial]) -> gristmill_scheduler::metrics::Interval {
    mean(runs, |trial| trial.responses[2] / DEADLINES[2])
}

fn chart(trials: &Trials) -> Block {
    let series = [Scheduler::Fair, Scheduler::Weighted, Scheduler::Min, Scheduler::Max].map(|scheduler| {
        let responses = Joins::ALL.iter().enumerate();
        let means = responses.map(|(kind, joins)| (kind as f64, late(trials.of(*joins, scheduler))));
        Series::means(scheduler.name(), means)
    });
    WORDS.chart_by_name("sensitivity-j3", holes![], Joins::ALL.map(Joins::name), series.to_vec())
}

fn table(trials: &Trials, joins: Joins) -> Block {
    let row = |scheduler: Scheduler| {
        let runs = trials.of(joins, scheduler);
        let responses = (0..4).map(|job| mean(runs, |trial| trial.responses[job]).into());
        let fractions = (0..4).map(|job| Cell::number(met(runs, job)));
        [Cell::text(scheduler.name())].into_iter().chain(responses).chain(fractions).collect()
    };
    let responses = (0..4).map(|job| Column::new(&format!("{}, mean response", job_name(job)), "s"));
    let fractions = (0..4).map(|job| Column::new(&format!("J{} meets its goal", job + 1), "part of seeds"));
    let holes = holes![joins = joins.name(), seeds = trials.seeds.len()];
    let rows = Scheduler::ALL.map(row).to_vec();
    WORDS.table_with("sensitivity-{joins}", holes, responses.chain(fractions), rows)
}

/// Compares the Joins under the schedulers that use goals, for the kinds that the figures do not show.
fn comparisons(trials: &Trials) -> Vec<Compared> {
    let mut comparisons = Vec::new();
    for joins in [Joins::SlowFirst120, Joins::Stationary] {
        for scheduler in [Scheduler::Weighted, Scheduler::Min, Scheduler::Max] {
            for job in [2, 3] {
                let names = [joins.name(), scheduler.name(), &job_name(job)].join(", ");
                let what = format!("{names}, mean response, s");
                comparisons.push(reference::beside(trials, (joins, scheduler), what, job));
            }
        }
    }
    comparisons
}

/// Returns the claims about the max-scheduler's runs on each kind of Joins.
pub(super) fn of_kinds(max: [&[Trial]; 3]) -> Vec<Claim> {
    let all_met = |runs: &[Trial]| {
        let met = runs.iter().filter(|trial| (0..4).all(|job| meets(trial, job))).count();
        met as f64 / runs.len().max(1) as f64
    };
    let by_kind = |value: &dyn Fn(&[Trial]) -> f64| {
        let kinds = Joins::ALL.iter().zip(max);
        let words = kinds.map(|(joins, runs)| format!("{:.2} with {}", value(runs), joins.name()));
        words.collect::<Vec<_>>().join(", ")
    };
    let met = every(max.map(|runs| Seen::from(1.0 <= all_met(runs))));
    let in_time = by_case(max.map(|runs| Seen::below(&late(runs), 1.0)));
    vec![
        WORDS.claim("all-meet", met, holes![found = by_kind(&all_met)]),
        WORDS.claim("equation-3", in_time, holes![found = by_kind(&|runs| late(runs).mean)]),
    ]
}
