//! Experiments two to four, figures 4 to 7: slots held over time, goals met, and the claims
//! about them.
//!
//! Not here: the dependence on the lengths of tasks (`sensitivity`).

use super::WORDS;
use super::trial::WIDTH;
use super::trial::{DeadlineTrial, Scheduler};
use super::trials::Trials;
use crate::prelude::*;
use crate::workload::deadlines::{ARRIVALS, DEADLINES, Joins, NAMES, SLOTS, WEIGHTS};

/// Kind of Joins whose early estimates match the paper's figure 2.
const LIKE_THE_PAPER: Joins = Joins::SlowFirstHalf;

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
    let runs = trials.trials(LIKE_THE_PAPER, scheduler);
    let mut blocks = vec![slots_over_time(figure, scheduler, &runs[0]), table(figure, scheduler, runs)];
    let claims = claims(scheduler, runs, trials.trials(LIKE_THE_PAPER, Scheduler::Max));
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

fn slots_over_time(figure: &str, scheduler: Scheduler, trial: &DeadlineTrial) -> Block {
    let series = (0..4).map(|job| {
        let point = |(interval, held): (usize, &[f64; 4])| (interval as f64 * WIDTH, held[job]);
        let end = (trial.held.len() as f64 * WIDTH, 0.0);
        let points = trial.held.iter().enumerate().map(point).chain([end]).collect();
        Series::new(job_name(job), points)
    });
    let holes = holes![figure, scheduler = scheduler.name(), slots = SLOTS];
    WORDS.chart("{figure}-slots", holes, series.collect())
}

fn job_name(job: usize) -> String {
    format!("J{} {}", job + 1, NAMES[job])
}

/// Returns the fraction of the runs in which the job met its goal.
fn met(runs: &[DeadlineTrial], job: usize) -> f64 {
    let met = runs.iter().filter(|trial| meets(trial, job)).count();
    met as f64 / runs.len().max(1) as f64
}

pub(super) fn meets(trial: &DeadlineTrial, job: usize) -> bool {
    trial.responses[job] <= DEADLINES[job]
}

fn table(figure: &str, scheduler: Scheduler, runs: &[DeadlineTrial]) -> Block {
    let row = |job: usize| {
        let response = mean_by(runs, |trial| trial.responses[job]);
        let parts = [response.mean / DEADLINES[job], met(runs, job)].map(Cell::number);
        let cells = [Cell::text(job_name(job)), DEADLINES[job].into(), response.into()];
        cells.into_iter().chain(parts).collect()
    };
    let holes = holes![figure, scheduler = scheduler.name(), seeds = runs.len()];
    WORDS.table("{figure}-goals", holes, (0..4).map(row).collect())
}

/// Claim about single runs: its key, the numbers whose means its words show, and the condition on each run.
pub(super) type RunClaim<R> = (&'static str, &'static [fn(&R) -> f64], fn(&R) -> bool);

const ALL: f64 = SLOTS as f64;

const MIN: &[RunClaim<DeadlineTrial>] = &[
    ("min-burst", &[burst], |trial| 0.95 * ALL <= burst(trial)),
    ("min-early", &[early], |trial| (10.0..=30.0).contains(&early(trial))),
    ("min-second-burst", &[second_burst], |trial| 0.9 * ALL <= second_burst(trial)),
    ("min-late", &[late], |trial| early(trial) < late(trial)),
    ("min-joins", &[first_join, second_join], joins_get_most),
    ("min-j2", &[of_goal], close_to_goal),
    ("min-j1", &[|trial| trial.responses[0]], |trial| !meets(trial, 0)),
];

const MAX: &[RunClaim<DeadlineTrial>] = &[
    ("max-alone", &[alone], |trial| 0.999 * ALL <= alone(trial)),
    ("max-together", &[together], |trial| 0.999 * ALL <= together(trial)),
    ("max-joins", &[first_join, second_join], joins_get_most),
    ("max-j2", &[of_goal], close_to_goal),
    ("max-j1", &[|trial| trial.responses[0]], |trial| meets(trial, 0)),
    ("max-all", &[], |trial| (0..4).all(|job| meets(trial, job))),
];

const FAIR: &[RunClaim<DeadlineTrial>] =
    &[("fair", &[|trial| trial.responses[2], |trial| trial.responses[3]], |trial| {
        !meets(trial, 2) && !meets(trial, 3)
    })];

/// Returns the slots of J1 in its first interval.
fn burst(trial: &DeadlineTrial) -> f64 {
    trial.peak(0, 0.0, WIDTH)
}

/// Returns the slots of J1 after the burst, until J2 arrives.
fn early(trial: &DeadlineTrial) -> f64 {
    trial.mean_held(0, 200.0, 1000.0)
}

fn second_burst(trial: &DeadlineTrial) -> f64 {
    trial.peak(1, 1000.0, 1200.0)
}

/// Returns the slots of J1 near its goal.
fn late(trial: &DeadlineTrial) -> f64 {
    trial.peak(0, 5000.0, f64::INFINITY)
}

fn alone(trial: &DeadlineTrial) -> f64 {
    trial.mean_held(0, 0.0, 1000.0)
}

fn together(trial: &DeadlineTrial) -> f64 {
    trial.mean_held(0, 1000.0, 2000.0) + trial.mean_held(1, 1000.0, 2000.0)
}

/// Returns the mean share of all slots that a Join holds while it runs, in percent.
fn join_part(trial: &DeadlineTrial, job: usize) -> f64 {
    let from = ARRIVALS[job];
    100.0 * (trial.mean_held(job, from, from + trial.responses[job]) / ALL)
}

fn first_join(trial: &DeadlineTrial) -> f64 {
    join_part(trial, 2)
}

fn second_join(trial: &DeadlineTrial) -> f64 {
    join_part(trial, 3)
}

fn joins_get_most(trial: &DeadlineTrial) -> bool {
    50.0 < first_join(trial) && 50.0 < second_join(trial)
}

/// Returns the response of J2 divided by its goal.
fn of_goal(trial: &DeadlineTrial) -> f64 {
    trial.responses[1] / DEADLINES[1]
}

fn close_to_goal(trial: &DeadlineTrial) -> bool {
    (of_goal(trial) - 1.0).abs() <= 0.1
}

/// Returns the claims about a scheduler, from its runs and those of the max-scheduler.
pub(super) fn claims(scheduler: Scheduler, runs: &[DeadlineTrial], max: &[DeadlineTrial]) -> Vec<Claim> {
    let all = |claims: &[RunClaim<DeadlineTrial>]| claims.iter().map(|claim| judged(claim, runs)).collect();
    match scheduler {
        Scheduler::Min => all(MIN),
        Scheduler::Max => all(MAX),
        Scheduler::Fair => all(FAIR),
        Scheduler::Weighted => weighted_claims(runs, max),
        Scheduler::Fifo => Vec::new(),
    }
}

/// Judges a claim in every run.
pub(super) fn judged<R>(&(key, numbers, holds): &RunClaim<R>, runs: &[R]) -> Claim {
    let holds: Vec<bool> = runs.iter().map(holds).collect();
    let numbers = ["one", "other"].into_iter().zip(numbers);
    in_seeds(key, &holds, numbers.map(|(name, number)| (name, mean_by(runs, number).mean.into())))
}

fn in_seeds(key: &str, holds: &[bool], numbers: impl IntoIterator<Item = Filled>) -> Claim {
    let of = holds.iter().filter(|&&one| one).count();
    let mut holes: Vec<Filled> = holes![of, seeds = holds.len()].into();
    holes.extend(numbers);
    WORDS.claim(key, in_runs(holds), &holes)
}

/// Relative difference below which two mean responses count as alike.
const ALIKE: f64 = 0.15;

fn weighted_claims(runs: &[DeadlineTrial], max: &[DeadlineTrial]) -> Vec<Claim> {
    let gap = |job: usize| {
        let responses =
            |runs: &[DeadlineTrial]| runs.iter().map(|trial| trial.responses[job]).collect::<Vec<f64>>();
        log_ratio(&responses(runs), &responses(max))
    };
    let gaps = [0, 1, 2, 3].map(gap);
    let words: Vec<String> = (1..).zip(&gaps).map(|(job, gap)| format!("J{job} {}", percent(gap))).collect();
    let same = |(weighted, max): (&DeadlineTrial, &DeadlineTrial)| {
        (0..4).all(|job| meets(weighted, job) == meets(max, job))
    };
    let same: Vec<bool> = runs.iter().zip(max).map(same).collect();
    let mimics = every(gaps.iter().map(|gap| CaseVerdict::alike(gap, ALIKE)));
    vec![
        in_seeds("same-jobs", &same, []),
        WORDS.claim("mimics", mimics, holes![gaps = words.join(", "), alike = 100.0 * ALIKE]),
        weights_follow([6000.0 - 3549.0, 3000.0 - 1264.0, 150.0 - 101.0]),
    ]
}

/// Claim that each printed weight, to its last digit, is the slack of J1 divided by that of the job.
pub(super) fn weights_follow(slack: [f64; 3]) -> Claim {
    let [second, joins] = [1, 2].map(|place| slack[0] / slack[place]);
    let follows = [(second, WEIGHTS[1], 1), (joins, WEIGHTS[2], 0)].map(|(weight, printed, decimals)| {
        CaseVerdict::from((weight - printed).abs() <= 0.5 * 0.1_f64.powi(decimals))
    });
    WORDS.claim("weights", by_case(follows), holes![second, joins])
}
