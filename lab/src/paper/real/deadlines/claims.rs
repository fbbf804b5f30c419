//! What the paper claims of each scheduler, judged run by run.

use super::claim;
use crate::compare::statistics::mean;
use crate::compare::{JobRun, RunRecord};
use crate::paper::Claim;

/// Share of the map slots that a job holds while it is there.
fn part(run: &RunRecord, job: usize) -> f64 {
    let Some(record) = run.jobs.get(job) else { return 0.0 };
    let slots: u32 = run.workers.iter().map(|worker| worker.map_slots).sum();
    let spans = run.spans.iter().filter(|span| span.map && span.job as usize == job);
    let held: f64 = spans.map(|span| span.to - span.from).sum();
    held / (record.maps_done - record.arrived).max(1e-9) / f64::from(slots.max(1))
}

/// Share of the map slots that are idle while the first job is there and alone.
fn idle_at_first(run: &RunRecord) -> f64 {
    let (Some(first), Some(second)) = (run.jobs.first(), run.jobs.get(1)) else { return 0.0 };
    // The first wave fills all slots whatever the policy; what comes after it is judged.
    let from = first.arrived + 0.2 * (second.arrived - first.arrived);
    let slots: u32 = run.workers.iter().map(|worker| worker.map_slots).sum();
    let spans = run.spans.iter().filter(|span| span.map);
    let busy: f64 = spans.map(|span| (span.to.min(second.arrived) - span.from.max(from)).max(0.0)).sum();
    1.0 - busy / (second.arrived - from).max(1e-9) / f64::from(slots.max(1))
}

fn met(runs: &[RunRecord], job: usize) -> Vec<bool> {
    runs.iter().filter_map(|run| Some(run.jobs.get(job)?.tardiness()? <= 0.0)).collect()
}

/// The claims of a contender, by its runs; `plain` are those of all schedulers on the jobs without weights.
pub(in crate::paper::real) fn of(name: &str, runs: &[RunRecord], plain: &[RunRecord]) -> Vec<Claim> {
    match name {
        "min" => min_claims(runs),
        "max" => max_claims(runs, plain),
        "fair" => vec![
            meets(runs, "Section V-E", "Without weights the first Join misses its goal.", (2, false)),
            meets(runs, "Section V-E", "Without weights the second Join misses its goal.", (3, false)),
        ],
        _ => vec![mimics_max(runs, plain)],
    }
}

fn joins_get_most(place: &str, runs: &[RunRecord]) -> Claim {
    let holds: Vec<bool> = runs.iter().map(|run| 0.5 < part(run, 2) && 0.5 < part(run, 3)).collect();
    let parts = [2, 3].map(|job| 100.0 * mean(runs.iter().map(|run| part(run, job))).unwrap_or(0.0));
    let evidence = format!("J3 holds {:.0} % of the map slots while it maps, J4 {:.0} %", parts[0], parts[1]);
    claim(place, "The Joins are given most of the slots until they end.", &holds, &evidence)
}

/// Whether a job meets its goal, or does not, as wanted.
fn meets(runs: &[RunRecord], place: &str, statement: &str, (job, wanted): (usize, bool)) -> Claim {
    let responses = runs.iter().filter_map(|run| {
        let one = run.jobs.get(job)?;
        Some(one.flow() / (one.deadline? - one.arrived))
    });
    let response = mean(responses).unwrap_or(f64::NAN);
    let holds: Vec<bool> = met(runs, job).into_iter().map(|met| met == wanted).collect();
    let evidence = format!("J{} takes {response:.2} of the time aimed at", job + 1);
    claim(place, statement, &holds, &evidence)
}

fn min_claims(runs: &[RunRecord]) -> Vec<Claim> {
    let idle: Vec<f64> = runs.iter().map(idle_at_first).collect();
    let holds: Vec<bool> = idle.iter().map(|idle| 0.1 < *idle).collect();
    let words = format!(
        "{:.0} % of the map slots are idle while J1 is alone, after its first wave (a tenth counts)",
        100.0 * mean(idle).unwrap_or(0.0)
    );
    let place = "Section V-C";
    vec![
        claim(place, "The min-scheduler leaves slots free that nobody needs.", &holds, &words),
        joins_get_most(place, runs),
        meets(runs, place, "J1 misses its goal: its long tasks come last.", (0, false)),
    ]
}

/// What holds of each run beside the run of another scheduler in the same repetition.
fn paired(
    runs: &[RunRecord],
    (plain, scheduler): (&[RunRecord], &str),
    holds: impl Fn(&RunRecord, &RunRecord) -> Option<bool>,
) -> Vec<bool> {
    let others: Vec<&RunRecord> = plain.iter().filter(|run| run.contender.name == scheduler).collect();
    let pair = |run: &RunRecord| {
        let other = others.iter().find(|other| other.repetition == run.repetition)?;
        holds(run, other)
    };
    runs.iter().filter_map(pair).collect()
}

fn max_claims(runs: &[RunRecord], plain: &[RunRecord]) -> Vec<Claim> {
    let place = "Section V-D";
    let sooner = paired(runs, (plain, "min"), |run, other| {
        Some(run.jobs.first()?.flow() < other.jobs.first()?.flow())
    });
    vec![
        meets(runs, place, "J1 meets its goal, since it has had more at the beginning.", (0, true)),
        claim(place, "J1 ends sooner than under the min-scheduler.", &sooner, "paired runs"),
        joins_get_most(place, runs),
    ]
}

fn mimics_max(runs: &[RunRecord], plain: &[RunRecord]) -> Claim {
    let near = |(one, other): (&JobRun, &JobRun)| (one.flow() / other.flow() - 1.0).abs() < 0.15;
    let alike = paired(runs, (plain, "max"), |run, other| Some(run.jobs.iter().zip(&other.jobs).all(near)));
    claim(
        "Section V-E",
        "Fair sharing with the paper's weights mimics the max-scheduler.",
        &alike,
        "every job's response within 15 % counts as alike",
    )
}
