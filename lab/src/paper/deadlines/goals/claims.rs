//! What the paper claims of each scheduler, judged seed by seed.

use super::super::trial::WIDTH;
use super::super::{Scheduler, Trial, Trials};
use super::{LIKE_THE_PAPER, mean, meets};
use crate::paper::Claim;
use crate::paper::judge::{Seen, by_case, every, in_runs, log_ratio, percent};
use gristmill_scheduler::workload::deadlines::{ARRIVALS, DEADLINES, SLOTS, WEIGHTS};

pub(super) fn of(trials: &Trials, scheduler: Scheduler, runs: &[Trial]) -> Vec<Claim> {
    of_runs(scheduler, runs, trials.of(LIKE_THE_PAPER, Scheduler::Max))
}

/// By its own runs and those of the max-scheduler.
pub(in crate::paper::deadlines) fn of_runs(
    scheduler: Scheduler,
    runs: &[Trial],
    max: &[Trial],
) -> Vec<Claim> {
    match scheduler {
        Scheduler::Min => min_claims(runs),
        Scheduler::Max => max_claims(runs),
        Scheduler::Fair => fair_claims(runs),
        Scheduler::Weighted => weighted_claims(runs, max),
        Scheduler::Fifo => Vec::new(),
    }
}

/// A claim, with whether it holds in each run.
fn claim(place: &str, statement: &str, holds: &[bool], evidence: &str) -> Claim {
    let of = holds.iter().filter(|&&one| one).count();
    let evidence = format!("{evidence}; so in {of} of {} seeds", holds.len());
    Claim::new(place, statement, in_runs(holds), evidence)
}

fn each_run(runs: &[Trial], holds: impl Fn(&Trial) -> bool) -> Vec<bool> {
    runs.iter().map(holds).collect()
}

/// Mean part of all slots that a Join holds while it is there.
fn join_part(trial: &Trial, job: usize) -> f64 {
    let from = ARRIVALS[job];
    trial.mean_held(job, from, from + trial.responses[job]) / f64::from(SLOTS)
}

fn joins_get_most(place: &str, runs: &[Trial]) -> Claim {
    let most = |trial: &Trial| 0.5 < join_part(trial, 2) && 0.5 < join_part(trial, 3);
    let parts = [2, 3].map(|job| 100.0 * mean(runs, |trial| join_part(trial, job)).mean);
    claim(
        place,
        "The Joins are given most of the slots until they end.",
        &each_run(runs, most),
        &format!(
            "J3 holds {:.0} % of the slots while it is there, J4 {:.0} %, on average",
            parts[0], parts[1]
        ),
    )
}

fn close_to_goal(place: &str, runs: &[Trial]) -> Claim {
    let part = |trial: &Trial| trial.responses[1] / DEADLINES[1];
    claim(
        place,
        "J2 ends close to its goal.",
        &each_run(runs, |trial| (part(trial) - 1.0).abs() <= 0.1),
        &format!(
            "it takes {:.2} of the time aimed at; within a tenth counts as close",
            mean(runs, part).mean
        ),
    )
}

fn min_claims(runs: &[Trial]) -> Vec<Claim> {
    let place = "Section V-C";
    let mut claims = min_over_time(place, runs).to_vec();
    claims.extend([
        joins_get_most(place, runs),
        close_to_goal(place, runs),
        claim(
            place,
            "J1 misses its goal, since its last tasks are long.",
            &each_run(runs, |trial| !meets(trial, 0)),
            &format!(
                "it takes {:.0} s instead of {}",
                mean(runs, |trial| trial.responses[0]).mean,
                DEADLINES[0]
            ),
        ),
    ]);
    claims
}

/// How many slots J1 and J2 get while they run under the min-scheduler.
fn min_over_time(place: &str, runs: &[Trial]) -> [Claim; 4] {
    let all = f64::from(SLOTS);
    let burst = |trial: &Trial| trial.peak(0, 0.0, WIDTH);
    let early = |trial: &Trial| trial.mean_held(0, 200.0, 1000.0);
    let second = |trial: &Trial| trial.peak(1, 1000.0, 1200.0);
    let last = |trial: &Trial| trial.peak(0, 5000.0, f64::INFINITY);
    [
        claim(
            place,
            "J1 starts with a burst of up to 60 slots, while nothing is known of it.",
            &each_run(runs, |trial| 0.95 * all <= burst(trial)),
            &format!("{:.1} slots in the first {WIDTH} s", mean(runs, burst).mean),
        ),
        claim(
            place,
            "Then J1 gets only about 20 slots, since its first tasks are short and the estimate is optimistic.",
            &each_run(runs, |trial| (10.0..=30.0).contains(&early(trial))),
            &format!("{:.1} slots on average from 200 to 1000 s", mean(runs, early).mean),
        ),
        claim(
            place,
            "J2 too starts with a burst of all slots.",
            &each_run(runs, |trial| 0.9 * all <= second(trial)),
            &format!("{:.1} slots at most in its first 200 s", mean(runs, second).mean),
        ),
        claim(
            place,
            "J1 gets more slots as its estimate becomes realistic.",
            &each_run(runs, |trial| early(trial) < last(trial)),
            &format!("{:.1} slots at most after 5000 s", mean(runs, last).mean),
        ),
    ]
}

fn max_claims(runs: &[Trial]) -> Vec<Claim> {
    let place = "Section V-D";
    let all = f64::from(SLOTS);
    let alone = |trial: &Trial| trial.mean_held(0, 0.0, 1000.0);
    let together = |trial: &Trial| trial.mean_held(0, 1000.0, 2000.0) + trial.mean_held(1, 1000.0, 2000.0);
    vec![
        claim(
            place,
            "At first every slot goes to J1, as there is nothing else.",
            &each_run(runs, |trial| 0.999 * all <= alone(trial)),
            &format!("{:.2} slots on average in the first 1000 s", mean(runs, alone).mean),
        ),
        claim(
            place,
            "J1 and J2 together use every slot.",
            &each_run(runs, |trial| 0.999 * all <= together(trial)),
            &format!("{:.2} slots on average from 1000 to 2000 s", mean(runs, together).mean),
        ),
        joins_get_most(place, runs),
        close_to_goal(place, runs),
        claim(
            place,
            "J1 meets its goal, having made more progress at the beginning.",
            &each_run(runs, |trial| meets(trial, 0)),
            &format!("it takes {:.0} s of {}", mean(runs, |trial| trial.responses[0]).mean, DEADLINES[0]),
        ),
        claim(
            place,
            "All jobs meet their goals.",
            &each_run(runs, |trial| (0..4).all(|job| meets(trial, job))),
            "with Joins whose first tasks are the longest; see the last section for others",
        ),
    ]
}

fn fair_claims(runs: &[Trial]) -> Vec<Claim> {
    let takes = [2, 3].map(|job| mean(runs, |trial| trial.responses[job]).mean);
    vec![claim(
        "Section V-E",
        "Without weights the Joins miss their goals.",
        &each_run(runs, |trial| !meets(trial, 2) && !meets(trial, 3)),
        &format!("J3 takes {:.0} s and J4 {:.0} s instead of {}", takes[0], takes[1], DEADLINES[2]),
    )]
}

fn weighted_claims(runs: &[Trial], max: &[Trial]) -> Vec<Claim> {
    let place = "Section V-E";
    let gap = |job: usize| {
        let responses = |runs: &[Trial]| runs.iter().map(|trial| trial.responses[job]).collect::<Vec<f64>>();
        log_ratio(&responses(runs), &responses(max))
    };
    let gaps: Vec<String> = (0..4).map(|job| format!("J{} {}", job + 1, percent(&gap(job)))).collect();
    let same = |(weighted, max): (&Trial, &Trial)| (0..4).all(|job| meets(weighted, job) == meets(max, job));
    let alike = [(1.0 - ALIKE).ln(), (1.0 + ALIKE).ln()];
    vec![
        claim(
            place,
            "With weights 1, 1.4 and 122 the same jobs meet their goals as under the max-scheduler.",
            &runs.iter().zip(max).map(same).collect::<Vec<_>>(),
            "compared seed by seed",
        ),
        Claim::new(
            place,
            "Fair sharing with these weights mimics the max-scheduler.",
            every((0..4).map(|job| Seen::between(&gap(job), alike))),
            format!(
                "response against the max-scheduler, seed by seed: {}; {:.0} % counts as alike",
                gaps.join(", "),
                100.0 * ALIKE
            ),
        ),
        weights_follow([6000.0 - 3549.0, 3000.0 - 1264.0, 150.0 - 101.0]),
    ]
}

/// Mean responses that differ by less than this part mimic each other.
const ALIKE: f64 = 0.15;

/// Whether each printed weight, to its last digit, is the slack of J1 over that of the job.
pub(in crate::paper::deadlines) fn weights_follow(slack: [f64; 3]) -> Claim {
    let decimals = [1, 0];
    let follows = |(place, decimals): (usize, i32)| {
        let weight = slack[0] / slack[place];
        Seen::from((weight - WEIGHTS[place]).abs() <= 0.5 * 0.1_f64.powi(decimals))
    };
    Claim::new(
        "Section V-E",
        "The weights follow from goals and isolated times.",
        by_case((1..3).zip(decimals).map(follows)),
        format!(
            "the slack of a job is its goal less its isolated time: J1's over those of J2 and the Joins is {:.2} and \
             {:.1}, printed 1.4 and 122. A slack of 20.1 s would give 122, which is for a goal of 1.2 times 101 s, \
             while the text sets 150 s",
            slack[0] / slack[1],
            slack[0] / slack[2]
        ),
    )
}
