//! Mean sojourn time of maps (MST) by placement and by worker, and the thesis' claims about it.

use super::super::control::Control;
use super::super::judging::{PredictedNumber, adjusted_claim, claim};
use super::WARM_UP_JOBS;
use super::WORDS;
use super::application::Application;
use crate::prelude::*;
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::{Comparison, JobRun, RunRecord};
use gristmill_scheduler::metrics::Metric;
use std::collections::BTreeMap;

/// Returns the jobs of a run that are judged: those after the warm-up.
fn judged(run: &RunRecord) -> impl Iterator<Item = &JobRun> {
    run.jobs.iter().skip(WARM_UP_JOBS)
}

/// Returns the mean seconds from a job's first launch until its last map is done.
fn sojourn(run: &RunRecord) -> Option<f64> {
    mean(judged(run).map(|job| job.maps_done - job.started))
}

/// Mean sojourn time of maps.
pub(super) const MST: PredictedNumber =
    PredictedNumber { name: "mean sojourn times of maps", measured: sojourn, predicted: |means| means.maps };

/// Returns the MST of each repetition.
fn sojourns(comparison: &Comparison, name: &str) -> Vec<f64> {
    let contender = comparison.contenders.iter().find(|contender| contender.name == name);
    contender.map_or_else(Vec::new, |one| comparison.runs_of(one).into_iter().filter_map(sojourn).collect())
}

/// Returns the speeds of the workers by rank, fastest first. Summaries count ranks from 1.
fn speeds(comparison: &Comparison) -> Vec<(u32, f64)> {
    let workers = comparison.runs.first().map(|run| &run.workers[..]).unwrap_or_default();
    let mut speeds: Vec<f64> = workers.iter().map(|worker| worker.speed).collect();
    speeds.sort_by(|one, other| other.total_cmp(one));
    (1..).zip(speeds).collect()
}

/// Returns the mean time until a job's last map is done on a worker, over workers of one speed.
fn by_speed(comparison: &Comparison, sojourns: &BTreeMap<u32, f64>, slow: bool) -> Option<f64> {
    let speeds = speeds(comparison);
    let fastest = speeds.first()?.1;
    let chosen = speeds.iter().filter(|(_, speed)| (*speed < fastest) == slow);
    mean(chosen.filter_map(|(rank, _)| sojourns.get(rank).copied()))
}

/// Returns, for each repetition, the ratio of the end of a job's last map on slow workers to that on fast
/// ones, both from its first launch. It is 1 if they end together.
fn gaps(comparison: &Comparison, name: &str) -> Vec<f64> {
    let gap = |repetition: u32| {
        let runs = comparison.runs.iter();
        let runs: Vec<&RunRecord> =
            runs.filter(|run| run.contender.name == name && run.repetition == repetition).collect();
        let sojourns = map_sojourn(&runs);
        Some(by_speed(comparison, &sojourns, true)? / by_speed(comparison, &sojourns, false)?)
    };
    let last = comparison.runs.iter().map(|run| run.repetition).max().unwrap_or(0);
    (0..=last).filter_map(gap).collect()
}

/// Returns, for each worker, the mean seconds from a job's first launch until its last map there is done.
/// The order in which workers join differs from run to run, so they are identified by speed, and equal
/// ones by number.
fn map_sojourn(runs: &[&RunRecord]) -> BTreeMap<u32, f64> {
    let mut found: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for run in runs {
        let mut order: Vec<(f64, u32)> = run.workers.iter().map(|one| (-one.speed, one.worker)).collect();
        order.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let rank = |worker: u32| order.iter().position(|one| one.1 == worker).map(|place| place as u32 + 1);
        let mut last: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for span in run.spans.iter().filter(|span| span.map) {
            let end = last.entry((span.worker, span.job)).or_insert(span.to);
            *end = end.max(span.to);
        }
        for ((worker, job), end) in last {
            // A worker that joined while the jobs ran has no rank.
            let job = run.jobs.get(job as usize).filter(|job| WARM_UP_JOBS <= job.index);
            if let (Some(job), Some(worker)) = (job, rank(worker)) {
                found.entry(worker).or_default().push(end - job.started);
            }
        }
    }
    found.into_iter().filter_map(|(worker, all)| Some((worker, mean(all)?))).collect()
}

pub(super) fn table(application: &Application, comparison: &Comparison) -> Block {
    let rows = comparison.summaries().into_iter().map(|summary| {
        let whole = Interval::from_samples(&sojourns(comparison, &summary.contender.name));
        let sojourns = map_sojourn(&comparison.runs_of(&summary.contender));
        let [fast, slow] = [false, true].map(|slow| by_speed(comparison, &sojourns, slow));
        vec![
            Cell::text(format!("`{}`", summary.contender.name)),
            whole.into(),
            fast.into(),
            slow.into(),
            fast.zip(slow).map(|(fast, slow)| slow / fast).into(),
            summary.metrics.get(&Metric::Flow).copied().into(),
        ]
    });
    let holes = holes![name = application.name, title = application.title];
    WORDS.table("mst-{name}", holes, rows.collect())
}

/// Judges the ratio of the slow workers' time to that of the fast ones, in each repetition. The fair
/// split's must be above 1, and that of the equilibrium at least twice as near to 1. Logarithms make both
/// sides of 1 count alike.
fn together(fair: &[f64], even: &[f64]) -> Claim {
    let [fair, even] = [fair, even].map(|gaps| gaps.iter().map(|gap| gap.ln()).collect::<Vec<f64>>());
    let (ours, theirs) = (mean_of(&fair), mean_of(&even));
    let half: Vec<f64> = fair.iter().map(|fair| 0.5 * fair).collect();
    let negative: Vec<f64> = even.iter().map(|even| -even).collect();
    // Both ends of the equilibrium's gap are within half of the fair split's.
    let near = [paired(&half, &even), paired(&half, &negative)];
    let seen =
        [CaseVerdict::above(&ours, 0.0), CaseVerdict::all(near.map(|room| CaseVerdict::above(&room, 0.0)))];
    let [ours, theirs] = [ours, theirs].map(|gap| percent(&gap));
    WORDS.claim("together", every(seen), holes![ours, theirs])
}

pub(crate) fn claims(comparison: &Comparison, control: &Control) -> Vec<Claim> {
    if comparison.contenders.iter().any(|contender| contender.divides) {
        return vec![claim(&WORDS, "divided", comparison, sojourn)];
    }
    let splits = ["pure-deterministic", "pure-stochastic", "m-ep", "pull"];
    let [fair, even] = ["fair-split", "m-ep"].map(|name| gaps(comparison, name));
    let claims = splits.map(|key| adjusted_claim((&WORDS, key), comparison, control, &MST));
    claims.into_iter().chain([together(&fair, &even)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use gristmill_lab::compare::testing::{job, run, span};

    #[test]
    fn map_sojourn_ends_with_the_last_map_of_a_job_on_the_worker() {
        let mut one = run("fifo", 0, vec![job(0, 0.0, 10.0), job(1, 0.0, 10.0), job(2, 0.0, 10.0)]);
        one.spans = vec![span(2, 1, 1.0, 3.0), span(2, 1, 3.0, 4.0), span(2, 2, 1.0, 8.0)];
        assert_eq!(map_sojourn(&[&one]), BTreeMap::from([(1, 3.0), (2, 7.0)]), "the job was launched at 1 s");
        one.workers[0].speed = 0.5;
        assert_eq!(map_sojourn(&[&one]), BTreeMap::from([(1, 7.0), (2, 3.0)]), "the fastest comes first");
    }

    #[test]
    fn jobs_from_which_placements_learn_are_not_judged() {
        let late = JobRun { started: 1.0, maps_done: 9.0, ..job(2, 0.0, 10.0) };
        let mut one = run("fifo", 0, vec![job(0, 0.0, 50.0), job(1, 0.0, 50.0), late]);
        one.spans = vec![span(0, 1, 1.0, 40.0), span(1, 1, 1.0, 50.0)];
        assert_eq!((sojourn(&one), map_sojourn(&[&one])), (Some(8.0), BTreeMap::new()));
    }

    #[test]
    fn ending_together_is_judged_by_the_interval_and_by_the_side() {
        let judge = |fair: &[f64], even: &[f64]| together(fair, even).verdict;
        assert_eq!(judge(&[1.2, 1.21, 1.19], &[1.05, 1.06, 1.04]), Verdict::Holds);
        assert_eq!(
            judge(&[1.2, 1.21, 1.19], &[1.15, 1.16, 1.14]),
            Verdict::Fails,
            "nearer, not twice as near"
        );
        assert_eq!(judge(&[1.2, 1.21, 1.19], &[0.7, 0.71, 0.69]), Verdict::Fails);
        assert_eq!(judge(&[0.8, 0.81, 0.79], &[1.0, 1.0, 1.0]), Verdict::Fails, "the slow ones end earlier");
        assert_eq!(judge(&[0.9, 1.3, 1.1], &[1.0, 1.0, 1.0]), Verdict::Open);
        assert_eq!(judge(&[1.2], &[1.0]), Verdict::Open, "one repetition has no interval");
    }
}
