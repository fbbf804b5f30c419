//! How the goals of the Joins depend on the order of their tasks' lengths.
//!
//! Not here: the figures of the paper (`goals`).

use super::super::{Axis, Block, Cell, Chart, Claim, Column, Compared, Section, Series, Table};
use super::goals::{job_name, mean, meets, met};
use super::{Scheduler, Trial, Trials, reference, section};
use crate::paper::judge::{Seen, by_case, every};
use gristmill_scheduler::workload::deadlines::{DEADLINES, Joins};

fn text() -> [String; 2] {
    [
        "The three kinds of Joins have about the same work. With slow-first-half the mean of the finished \
         tasks is above that of the rest for as long as the job runs, so its need is overestimated; with \
         slow-first-120 soon no more; with stationary lengths the estimate is right from the start."
            .to_owned(),
        "Equation 3 aims at the goal exactly. With a right estimate the last wave of tasks, about half a \
         task's length, and the reduces come after it: the goal is missed by a little, by both schedulers. \
         What saves the goals in the paper's experiment three is the pessimism of its figure 2."
            .to_owned(),
    ]
}

pub(super) fn whole(trials: &Trials) -> Section {
    let mut blocks = vec![Block::Chart(chart(trials))];
    blocks.extend(Joins::ALL.map(|joins| Block::Table(table(trials, joins))));
    blocks.push(Block::Comparison(comparisons(trials)));
    blocks.push(Block::Claims(claims(trials)));
    let title = "Section V, checked: how the Joins' goals depend on the lengths of their tasks";
    section("sensitivity", title, &text(), blocks)
}

fn chart(trials: &Trials) -> Chart {
    let series = [Scheduler::Fair, Scheduler::Weighted, Scheduler::Min, Scheduler::Max].map(|scheduler| {
        let responses = Joins::ALL
            .map(|joins| mean(trials.of(joins, scheduler), |trial| trial.responses[2] / DEADLINES[2]));
        Series::new(
            scheduler.name().to_owned(),
            responses.iter().enumerate().map(|(kind, response)| (kind as f64, response.mean)).collect(),
        )
        .with_half_widths(responses.iter().map(|response| response.half_width.unwrap_or(0.0)).collect())
    });
    Chart::bars(
        "sensitivity-j3",
        "J3 Join: mean response relative to the goal of 150 s; above 1 it is missed",
        [
            Axis::names("lengths of the Join's maps", Joins::ALL.map(|joins| joins.name().to_owned())),
            Axis::linear("response / goal"),
        ],
        series.to_vec(),
    )
}

fn table(trials: &Trials, joins: Joins) -> Table {
    let row = |scheduler: Scheduler| {
        let runs = trials.of(joins, scheduler);
        let responses = (0..4).map(|job| mean(runs, |trial| trial.responses[job]).into());
        let fractions = (0..4).map(|job| Cell::number(met(runs, job)));
        [Cell::text(scheduler.name())].into_iter().chain(responses).chain(fractions).collect()
    };
    let responses = (0..4).map(|job| Column::new(&format!("{}, mean response", job_name(job)), "s"));
    let fractions = (0..4).map(|job| Column::new(&format!("J{} meets its goal", job + 1), "part of seeds"));
    Table::new(
        format!("sensitivity-{}", joins.name()),
        format!("Joins with {} lengths, {} seeds", joins.name(), trials.seeds.len()),
        [Column::new("scheduler", "")].into_iter().chain(responses).chain(fractions).collect(),
        Scheduler::ALL.map(row).to_vec(),
    )
}

/// The Joins under the schedulers that look at goals, for the kinds that the figures do not show.
fn comparisons(trials: &Trials) -> Vec<Compared> {
    let mut comparisons = Vec::new();
    for joins in [Joins::SlowFirst120, Joins::Stationary] {
        for scheduler in [Scheduler::Weighted, Scheduler::Min, Scheduler::Max] {
            for job in [2, 3] {
                let what =
                    format!("{}, {}, {}, mean response, s", joins.name(), scheduler.name(), job_name(job));
                comparisons.push(reference::beside(trials, (joins, scheduler), what, job));
            }
        }
    }
    comparisons
}

fn claims(trials: &Trials) -> Vec<Claim> {
    of_kinds(Joins::ALL.map(|joins| trials.of(joins, Scheduler::Max)))
}

/// By the max-scheduler's runs on each kind of Joins.
pub(super) fn of_kinds(max: [&[Trial]; 3]) -> Vec<Claim> {
    let all_met = |runs: &[Trial]| {
        let met = runs.iter().filter(|trial| (0..4).all(|job| meets(trial, job))).count();
        met as f64 / runs.len().max(1) as f64
    };
    let late = |runs: &[Trial]| mean(runs, |trial| trial.responses[2] / DEADLINES[2]);
    let by_kind = |value: &dyn Fn(&[Trial]) -> f64| {
        let words = Joins::ALL
            .iter()
            .zip(max)
            .map(|(joins, runs)| format!("{:.2} with {}", value(runs), joins.name()));
        words.collect::<Vec<_>>().join(", ")
    };
    vec![
        Claim::new(
            "Section V-D",
            "Under the max-scheduler all jobs meet their goals, whatever the lengths of tasks.",
            every(max.map(|runs| Seen::from(1.0 <= all_met(runs)))),
            format!("part of the seeds in which all four do: {}", by_kind(&all_met)),
        ),
        Claim::new(
            "Section III-C, equation 3",
            "With the slots that equation 3 asks for, a job can make its goal.",
            by_case(max.map(|runs| Seen::below(&late(runs), 1.0))),
            format!("J3's mean response over its goal, max-scheduler: {}", by_kind(&|runs| late(runs).mean)),
        ),
    ]
}
