//! Dependence of the goals of the Joins on the order of their tasks' lengths.
//!
//! Not here: the figures of the paper (`goals`).

use super::WORDS;
use super::goals::meets;
use super::trial::{DeadlineTrial, Scheduler};
use super::trials::Trials;
use crate::prelude::*;
use crate::workload::deadlines::{DEADLINES, Joins};

pub(super) fn whole(trials: &Trials) -> Section {
    let claims = of_kinds(Joins::ALL.map(|joins| trials.trials(joins, Scheduler::Max)));
    WORDS.section("sensitivity", holes![], vec![chart(trials), Block::Claims(claims)])
}

/// Returns J3's response divided by its goal.
fn late(runs: &[DeadlineTrial]) -> Interval {
    mean_by(runs, |trial| trial.responses[2] / DEADLINES[2])
}

fn chart(trials: &Trials) -> Block {
    let series = [Scheduler::Fair, Scheduler::Weighted, Scheduler::Min, Scheduler::Max].map(|scheduler| {
        let responses = Joins::ALL.iter().enumerate();
        let means = responses.map(|(kind, joins)| (kind as f64, late(trials.trials(*joins, scheduler))));
        Series::means(scheduler.name(), means)
    });
    WORDS.chart_by_name("sensitivity-j3", holes![], Joins::ALL.map(Joins::name), series.to_vec())
}

/// Returns the claims about the max-scheduler's runs on each kind of Joins.
pub(super) fn of_kinds(max: [&[DeadlineTrial]; 3]) -> Vec<Claim> {
    let all_met = |runs: &[DeadlineTrial]| {
        let met = runs.iter().filter(|trial| (0..4).all(|job| meets(trial, job))).count();
        met as f64 / runs.len().max(1) as f64
    };
    let by_kind = |value: &dyn Fn(&[DeadlineTrial]) -> f64| {
        let kinds = Joins::ALL.iter().zip(max);
        let words = kinds.map(|(joins, runs)| format!("{:.2} with {}", value(runs), joins.name()));
        words.collect::<Vec<_>>().join(", ")
    };
    let met = every(max.map(|runs| CaseVerdict::from(1.0 <= all_met(runs))));
    let in_time = by_case(max.map(|runs| CaseVerdict::below(&late(runs), 1.0)));
    vec![
        WORDS.claim("all-meet", met, holes![found = by_kind(&all_met)]),
        WORDS.claim("equation-3", in_time, holes![found = by_kind(&|runs| late(runs).mean)]),
    ]
}
