//! Experiments two to four, figures 4 to 7: slots held over time, and goals met.
//!
//! Not here: the dependence on the lengths of tasks (`sensitivity`).

use super::trial::WIDTH;
use super::{Scheduler, Trial, Trials, WORDS, goals_claims, reference};
use crate::judge::mean_of;
use crate::words::holes;
use crate::{Block, Cell, Compared, Section, Series};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::deadlines::{ARRIVALS, DEADLINES, Joins, NAMES, SLOTS, WEIGHTS};

/// Kind of Joins whose early estimates match the paper's figure 2.
pub(super) const LIKE_THE_PAPER: Joins = Joins::SlowFirstHalf;

const FIGURES: [(Scheduler, &str); 5] = [
    (Scheduler::Min, "figure-4"),
    (Scheduler::Max, "figure-5"),
    (Scheduler::Fair, "figure-6"),
    (Scheduler::Weighted, "figure-7"),
    (Scheduler::Fifo, "section-5-fifo"),
];

pub(super) fn sections(trials: &Trials) -> Vec<Section> {
    FIGURES.map(|(scheduler, figure)| section(trials, scheduler, figure)).to_vec()
}

fn section(trials: &Trials, scheduler: Scheduler, figure: &str) -> Section {
    let runs = trials.of(LIKE_THE_PAPER, scheduler);
    let mut blocks = vec![
        slots_over_time(figure, scheduler, &runs[0]),
        table(figure, scheduler, runs),
        Block::Comparison(responses(trials, scheduler)),
    ];
    let claims = goals_claims::of(scheduler, runs, trials.of(LIKE_THE_PAPER, Scheduler::Max));
    if !claims.is_empty() {
        blocks.push(Block::Claims(claims));
    }
    WORDS.section(figure, holes![text = text(trials, scheduler)], blocks)
}

fn text(trials: &Trials, scheduler: Scheduler) -> String {
    let weights = match scheduler {
        Scheduler::Weighted => format!(" Weights {WEIGHTS:?}, as printed (V-E)."),
        _ => String::new(),
    };
    let arrivals = ARRIVALS.map(|at| at.to_string()).join(", ");
    let ends = [0, 1, 2, 3].map(|job| (ARRIVALS[job] + DEADLINES[job]).to_string()).join(", ");
    let (first, last) = (trials.seeds[0], trials.seeds[trials.seeds.len() - 1]);
    WORDS.note("goals", holes![arrivals, ends, first, last, width = WIDTH, weights])
}

fn slots_over_time(figure: &str, scheduler: Scheduler, trial: &Trial) -> Block {
    let series = (0..4).map(|job| {
        let point = |(interval, held): (usize, &[f64; 4])| (interval as f64 * WIDTH, held[job]);
        let end = (trial.held.len() as f64 * WIDTH, 0.0);
        let points = trial.held.iter().enumerate().map(point).chain([end]).collect();
        Series::new(job_name(job), points)
    });
    let holes = holes![figure, scheduler = scheduler.name(), slots = SLOTS];
    WORDS.chart("{figure}-slots", holes, series.collect())
}

pub(super) fn job_name(job: usize) -> String {
    format!("J{} {}", job + 1, NAMES[job])
}

pub(super) fn mean(runs: &[Trial], value: impl Fn(&Trial) -> f64) -> Interval {
    mean_of(&runs.iter().map(value).collect::<Vec<f64>>())
}

/// Returns the fraction of the runs in which the job met its goal.
pub(super) fn met(runs: &[Trial], job: usize) -> f64 {
    let met = runs.iter().filter(|trial| meets(trial, job)).count();
    met as f64 / runs.len().max(1) as f64
}

pub(super) fn meets(trial: &Trial, job: usize) -> bool {
    trial.responses[job] <= DEADLINES[job]
}

fn table(figure: &str, scheduler: Scheduler, runs: &[Trial]) -> Block {
    let known = reference::of(LIKE_THE_PAPER, scheduler);
    let row = |job: usize| {
        let response = mean(runs, |trial| trial.responses[job]);
        let parts = [response.mean / DEADLINES[job], met(runs, job), known.met[job]].map(Cell::number);
        let cells = [Cell::text(job_name(job)), DEADLINES[job].into(), response.into()];
        cells.into_iter().chain(parts).collect()
    };
    let holes = holes![figure, scheduler = scheduler.name(), seeds = runs.len()];
    WORDS.table("{figure}-goals", holes, (0..4).map(row).collect())
}

fn responses(trials: &Trials, scheduler: Scheduler) -> Vec<Compared> {
    let what = |job: usize| format!("{}, {}, mean response, s", scheduler.name(), job_name(job));
    (0..4).map(|job| reference::beside(trials, (LIKE_THE_PAPER, scheduler), what(job), job)).collect()
}
