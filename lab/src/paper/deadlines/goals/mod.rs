//! Experiments two to four, figures 4 to 7: who holds the slots over time, and who meets the goal.
//!
//! Not here: how that depends on the lengths of tasks (`sensitivity`).

pub(super) mod claims;

use super::super::{Axis, Block, Cell, Chart, Column, Compared, Section, Series, Table};
use super::trial::WIDTH;
use super::{Scheduler, Trial, Trials, reference, section};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::deadlines::{ARRIVALS, DEADLINES, Joins, NAMES, SLOTS, WEIGHTS};

/// The kind whose early estimates are as the paper's figure 2 shows them.
pub(super) const LIKE_THE_PAPER: Joins = Joins::SlowFirstHalf;

pub(super) fn sections(trials: &Trials) -> Vec<Section> {
    let figures = [
        (Scheduler::Min, "figure-4", "Figure 4: slots over time under the min-scheduler (experiment two)"),
        (Scheduler::Max, "figure-5", "Figure 5: slots over time under the max-scheduler (experiment three)"),
        (Scheduler::Fair, "figure-6", "Figure 6: slots over time under fair sharing (experiment four)"),
        (
            Scheduler::Weighted,
            "figure-7",
            "Figure 7: slots over time under weighted fair sharing (experiment four)",
        ),
        (
            Scheduler::Fifo,
            "section-5-fifo",
            "Section V: slots over time under FIFO, which the paper does not show",
        ),
    ];
    figures.map(|(scheduler, id, title)| figure(trials, scheduler, id, title)).to_vec()
}

fn figure(trials: &Trials, scheduler: Scheduler, id: &str, title: &str) -> Section {
    let runs = trials.of(LIKE_THE_PAPER, scheduler);
    let mut blocks = vec![
        Block::Chart(slots_over_time(id, scheduler, &runs[0])),
        Block::Table(table(id, scheduler, runs)),
        Block::Comparison(responses(trials, scheduler)),
    ];
    let claims = claims::of(trials, scheduler, runs);
    if !claims.is_empty() {
        blocks.push(Block::Claims(claims));
    }
    section(id, title, &text(trials, scheduler), blocks)
}

fn text(trials: &Trials, scheduler: Scheduler) -> Vec<String> {
    let first = trials.seeds[0];
    let weights = match scheduler {
        Scheduler::Weighted => format!(" Weights {WEIGHTS:?}, as printed (V-E)."),
        _ => String::new(),
    };
    vec![format!(
        "J1 Simulator, J2 WordCount, J3 and J4 Join (slow-first-half) arrive at {} s and should end by {} \
         s. Seeds {first} to {}; the figure shows the first, averaged over {WIDTH} s.{weights}",
        ARRIVALS.map(|at| at.to_string()).join(", "),
        std::array::from_fn::<_, 4, _>(|job| (ARRIVALS[job] + DEADLINES[job]).to_string()).join(", "),
        trials.seeds[trials.seeds.len() - 1],
    )]
}

fn slots_over_time(id: &str, scheduler: Scheduler, trial: &Trial) -> Chart {
    let series = (0..4).map(|job| {
        let point = |(interval, held): (usize, &[f64; 4])| (interval as f64 * WIDTH, held[job]);
        let end = (trial.held.len() as f64 * WIDTH, 0.0);
        let points = trial.held.iter().enumerate().map(point).chain([end]).collect();
        Series::new(job_name(job), points)
    });
    Chart::steps(
        format!("{id}-slots"),
        format!("{}: map slots held by each job, of {SLOTS}", scheduler.name()),
        [Axis::linear("time, s"), Axis::linear("map slots")],
        series.collect(),
    )
}

pub(super) fn job_name(job: usize) -> String {
    format!("J{} {}", job + 1, NAMES[job])
}

pub(super) fn mean(runs: &[Trial], value: impl Fn(&Trial) -> f64) -> Interval {
    let values: Vec<f64> = runs.iter().map(value).collect();
    Interval::of(&values).unwrap_or(Interval { mean: 0.0, half_width: None, samples: 0 })
}

/// Part of the runs in which the job met its goal.
pub(super) fn met(runs: &[Trial], job: usize) -> f64 {
    let met = runs.iter().filter(|trial| meets(trial, job)).count();
    met as f64 / runs.len().max(1) as f64
}

pub(super) fn meets(trial: &Trial, job: usize) -> bool {
    trial.responses[job] <= DEADLINES[job]
}

fn table(id: &str, scheduler: Scheduler, runs: &[Trial]) -> Table {
    let known = reference::of(LIKE_THE_PAPER, scheduler);
    let row = |job: usize| {
        let response = mean(runs, |trial| trial.responses[job]);
        vec![
            Cell::text(job_name(job)),
            Cell::number(DEADLINES[job]),
            response.into(),
            Cell::number(response.mean / DEADLINES[job]),
            Cell::number(met(runs, job)),
            Cell::number(known.met[job]),
        ]
    };
    let columns = Column::list(&[
        ("job", ""),
        ("goal", "s"),
        ("mean response", "s"),
        ("response / goal", ""),
        ("seeds that meet it", ""),
        ("in the reference", ""),
    ]);
    Table::new(
        format!("{id}-goals"),
        format!("{}: who meets the goal, {} seeds", scheduler.name(), runs.len()),
        columns,
        (0..4).map(row).collect(),
    )
}

fn responses(trials: &Trials, scheduler: Scheduler) -> Vec<Compared> {
    let what = |job: usize| format!("{}, {}, mean response, s", scheduler.name(), job_name(job));
    (0..4).map(|job| reference::beside(trials, (LIKE_THE_PAPER, scheduler), what(job), job)).collect()
}
