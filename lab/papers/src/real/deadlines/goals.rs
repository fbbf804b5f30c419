//! The paper's claims about each scheduler, judged by the intervals of means over runs.

use super::common::{above, below, claim, percent_points};
use crate::prelude::*;
use gristmill_lab::compare::RunRecord;

/// Returns the share of the map slots that a job holds while it is present.
fn part(run: &RunRecord, job: usize) -> f64 {
    let Some(record) = run.jobs.get(job) else { return 0.0 };
    let slots: u32 = run.workers.iter().map(|worker| worker.map_slots).sum();
    let spans = run.spans.iter().filter(|span| span.map && span.job as usize == job);
    let held: f64 = spans.map(|span| span.to - span.from).sum();
    held / (record.maps_done - record.arrived).max(1e-9) / f64::from(slots.max(1))
}

/// Returns the share of the map slots that are idle while the first job is alone.
fn idle_at_first(run: &RunRecord) -> f64 {
    let (Some(first), Some(second)) = (run.jobs.first(), run.jobs.get(1)) else { return 0.0 };
    // The first wave fills all slots under every policy. Only the time after it is judged.
    let from = first.arrived + 0.2 * (second.arrived - first.arrived);
    let slots: u32 = run.workers.iter().map(|worker| worker.map_slots).sum();
    let spans = run.spans.iter().filter(|span| span.map);
    let busy: f64 = spans.map(|span| (span.to.min(second.arrived) - span.from.max(from)).max(0.0)).sum();
    1.0 - busy / (second.arrived - from).max(1e-9) / f64::from(slots.max(1))
}

/// Returns the claims about a contender, from its runs. `plain` holds those of all schedulers on the jobs
/// without weights.
pub(crate) fn goal_claims(name: &str, runs: &[RunRecord], plain: &[RunRecord]) -> Vec<Claim> {
    match name {
        "min" => {
            vec![leaves_slots_free(runs), joins_get_most("min-joins", runs), meets("min-j1", runs, 0, false)]
        }
        "max" => {
            let longer = against(runs, (plain, "min"), 0);
            let words = holes![longer = percent(&longer)];
            vec![
                meets("max-j1", runs, 0, true),
                claim("max-sooner", runs, &[(longer, below(0.0))], words),
                joins_get_most("max-joins", runs),
            ]
        }
        "fair" => vec![meets("fair-j3", runs, 2, false), meets("fair-j4", runs, 3, false)],
        _ => vec![mimics_max(runs, plain)],
    }
}

fn joins_get_most(key: &str, runs: &[RunRecord]) -> Claim {
    let parts = [2, 3].map(|job| mean_by(runs, |run| part(run, job)));
    let [one, other] = parts.each_ref().map(percent_points);
    claim(key, runs, &parts.map(|part| (part, above(0.5))), holes![one, other])
}

/// Judges if a job meets its goal on average, or misses it, as wanted.
fn meets(key: &str, runs: &[RunRecord], job: usize, wanted: bool) -> Claim {
    let late = runs.iter().filter_map(|run| {
        let one = run.jobs.get(job)?;
        Some((one.flow() / (one.deadline? - one.arrived)).ln())
    });
    let late = mean_of(&late.collect::<Vec<f64>>());
    let limits = if wanted { below(0.0) } else { above(0.0) };
    claim(key, runs, &[(late, limits)], holes![late = percent(&late)])
}

/// Largest idle fraction of the slots for which a scheduler leaves none free.
const FREE: f64 = 0.1;

fn leaves_slots_free(runs: &[RunRecord]) -> Claim {
    let idle = mean_by(runs, idle_at_first);
    claim("min-idle", runs, &[(idle, above(FREE))], holes![idle = percent_points(&idle)])
}

/// Returns the logarithm of the ratio of a job's time to that under another scheduler, over the
/// repetitions that both have.
fn against(runs: &[RunRecord], (plain, scheduler): (&[RunRecord], &str), job: usize) -> Interval {
    let others: Vec<&RunRecord> = plain.iter().filter(|run| run.contender.name == scheduler).collect();
    let pair = |run: &RunRecord| {
        let other = others.iter().find(|other| other.repetition == run.repetition)?;
        Some((run.jobs.get(job)?.flow(), other.jobs.get(job)?.flow()))
    };
    let (ours, theirs): (Vec<f64>, Vec<f64>) = runs.iter().filter_map(pair).unzip();
    log_ratio(&ours, &theirs)
}

/// Relative difference below which two responses count as alike.
const ALIKE: f64 = 0.15;

fn mimics_max(runs: &[RunRecord], plain: &[RunRecord]) -> Claim {
    let gaps = [0, 1, 2, 3].map(|job| against(runs, (plain, "max"), job));
    let words: Vec<String> = (1..).zip(&gaps).map(|(job, gap)| format!("J{job} {}", percent(gap))).collect();
    let conditions = gaps.map(|gap| (gap, [(1.0 - ALIKE).ln(), ALIKE.ln_1p()]));
    claim("mimics", runs, &conditions, holes![gaps = words.join(", "), alike = 100.0 * ALIKE])
}
