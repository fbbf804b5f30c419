//! What the paper claims of each scheduler, judged by the intervals of means over runs.

use super::{above, below, claim, percent_points};
use crate::compare::RunRecord;
use crate::paper::Claim;
use crate::paper::judge::{log_ratio, mean_of, percent};
use gristmill_scheduler::metrics::Interval;

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
    let parts = [2, 3].map(|job| mean_of(&runs.iter().map(|run| part(run, job)).collect::<Vec<f64>>()));
    let evidence = format!(
        "J3 holds {} % of the map slots while it maps, J4 {} % (more than half is most)",
        percent_points(&parts[0]),
        percent_points(&parts[1])
    );
    let most = parts.map(|part| (part, above(0.5)));
    claim(place, "The Joins are given most of the slots until they end.", runs, &most, &evidence)
}

/// Whether a job meets its goal in the mean, or does not, as wanted.
fn meets(runs: &[RunRecord], place: &str, statement: &str, (job, wanted): (usize, bool)) -> Claim {
    let late = runs.iter().filter_map(|run| {
        let one = run.jobs.get(job)?;
        Some((one.flow() / (one.deadline? - one.arrived)).ln())
    });
    let late = mean_of(&late.collect::<Vec<f64>>());
    let limits = if wanted { below(0.0) } else { above(0.0) };
    let evidence = format!("J{} ends off its goal by {}", job + 1, percent(&late));
    claim(place, statement, runs, &[(late, limits)], &evidence)
}

/// A scheduler leaves slots free if more than this part of them is idle.
const FREE: f64 = 0.1;

fn min_claims(runs: &[RunRecord]) -> Vec<Claim> {
    let idle = mean_of(&runs.iter().map(idle_at_first).collect::<Vec<f64>>());
    let words = format!(
        "{} % of the map slots are idle while J1 is alone, after its first wave (more than a tenth counts)",
        percent_points(&idle)
    );
    let place = "Section V-C";
    let leaves = [(idle, above(FREE))];
    vec![
        claim(place, "The min-scheduler leaves slots free that nobody needs.", runs, &leaves, &words),
        joins_get_most(place, runs),
        meets(runs, place, "J1 misses its goal: its long tasks come last.", (0, false)),
    ]
}

/// The logarithm of how much longer a job takes than under another scheduler, over the repetitions that both have.
fn against(runs: &[RunRecord], (plain, scheduler): (&[RunRecord], &str), job: usize) -> Interval {
    let others: Vec<&RunRecord> = plain.iter().filter(|run| run.contender.name == scheduler).collect();
    let pair = |run: &RunRecord| {
        let other = others.iter().find(|other| other.repetition == run.repetition)?;
        Some((run.jobs.get(job)?.flow(), other.jobs.get(job)?.flow()))
    };
    let (ours, theirs): (Vec<f64>, Vec<f64>) = runs.iter().filter_map(pair).unzip();
    log_ratio(&ours, &theirs)
}

fn max_claims(runs: &[RunRecord], plain: &[RunRecord]) -> Vec<Claim> {
    let place = "Section V-D";
    let longer = against(runs, (plain, "min"), 0);
    vec![
        meets(runs, place, "J1 meets its goal, since it has had more at the beginning.", (0, true)),
        claim(
            place,
            "J1 ends sooner than under the min-scheduler.",
            runs,
            &[(longer, below(0.0))],
            &format!("on the same jobs its time is off that under the min-scheduler by {}", percent(&longer)),
        ),
        joins_get_most(place, runs),
    ]
}

/// Responses that differ by less than this part mimic each other.
const ALIKE: f64 = 0.15;

fn mimics_max(runs: &[RunRecord], plain: &[RunRecord]) -> Claim {
    let gaps = [0, 1, 2, 3].map(|job| against(runs, (plain, "max"), job));
    let words: Vec<String> =
        gaps.iter().zip(1..).map(|(gap, job)| format!("J{job} {}", percent(gap))).collect();
    claim(
        "Section V-E",
        "Fair sharing with the paper's weights mimics the max-scheduler.",
        runs,
        &gaps.map(|gap| (gap, [(1.0 - ALIKE).ln(), ALIKE.ln_1p()])),
        &format!(
            "responses off those under the max-scheduler on the same jobs: {} (less than {:.0} % counts as alike)",
            words.join(", "),
            100.0 * ALIKE
        ),
    )
}
