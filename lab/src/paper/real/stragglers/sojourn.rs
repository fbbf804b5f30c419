//! The mean sojourn time of maps, MST: by placement, by worker, and what the thesis claims of it.

use super::super::judging::{Claimed, judged, would_tell};
use super::Application;
use crate::compare::statistics::mean;
use crate::compare::{Comparison, RunRecord};
use crate::paper::judge::{Seen, every, mean_of, paired, percent};
use crate::paper::{Axis, Cell, Chart, Claim, Column, Series, Table, Verdict};
use gristmill_scheduler::metrics::{Interval, Metric};
use std::collections::BTreeMap;

/// Mean seconds from a job's first launch until its last map is in.
fn sojourn(run: &RunRecord) -> Option<f64> {
    mean(run.jobs.iter().map(|job| job.maps_done - job.started))
}

/// MST of each repetition.
fn sojourns(comparison: &Comparison, name: &str) -> Vec<f64> {
    let contender = comparison.contenders.iter().find(|contender| contender.name == name);
    contender.map_or_else(Vec::new, |one| comparison.runs_of(one).into_iter().filter_map(sojourn).collect())
}

/// Speeds of the workers by rank, the fastest first, as summaries count them from 1.
fn speeds(comparison: &Comparison) -> Vec<(u32, f64)> {
    let workers = comparison.runs.first().map(|run| &run.workers[..]).unwrap_or_default();
    let mut speeds: Vec<f64> = workers.iter().map(|worker| worker.speed).collect();
    speeds.sort_by(|one, other| other.total_cmp(one));
    (1..).zip(speeds).collect()
}

/// Mean over workers of one speed of the time until a job's last map there is done.
fn by_speed(comparison: &Comparison, sojourns: &BTreeMap<u32, f64>, slow: bool) -> Option<f64> {
    let speeds = speeds(comparison);
    let fastest = speeds.first()?.1;
    let chosen = speeds.iter().filter(|(_, speed)| (*speed < fastest) == slow);
    mean(chosen.filter_map(|(rank, _)| sojourns.get(rank).copied()))
}

/// For each repetition how much later slow workers end a job's last map there than fast ones, both from its first
/// launch: 1 if together.
fn gaps(comparison: &Comparison, name: &str) -> Vec<f64> {
    let mut alone = comparison.clone();
    let gap = |repetition: u32| {
        alone.runs = comparison
            .runs
            .iter()
            .filter(|run| run.contender.name == name && run.repetition == repetition)
            .cloned()
            .collect();
        let summary = alone.summaries().into_iter().find(|summary| summary.contender.name == name)?;
        let fast = by_speed(comparison, &summary.map_sojourn, false)?;
        Some(by_speed(comparison, &summary.map_sojourn, true)? / fast)
    };
    let last = comparison.runs.iter().map(|run| run.repetition).max().unwrap_or(0);
    (0..=last).filter_map(gap).collect()
}

pub(super) fn table(application: &Application, comparison: &Comparison) -> Table {
    let columns = Column::list(&[
        ("placement", ""),
        ("MST", "s"),
        ("MST on fast workers", "s"),
        ("MST on slow workers", "s"),
        ("slow over fast", ""),
        ("mean flow", "s"),
    ]);
    let rows = comparison.summaries().into_iter().map(|summary| {
        let whole = Interval::of(&sojourns(comparison, &summary.contender.name));
        let [fast, slow] = [false, true].map(|slow| by_speed(comparison, &summary.map_sojourn, slow));
        vec![
            Cell::text(format!("`{}`", summary.contender.name)),
            whole.into(),
            fast.into(),
            slow.into(),
            fast.zip(slow).map(|(fast, slow)| slow / fast).into(),
            summary.metrics.get(&Metric::Flow).copied().into(),
        ]
    });
    Table::new(
        format!("mst-{}", application.name),
        format!("Mean sojourn time of maps, {}", application.title),
        columns,
        rows.collect(),
    )
}

pub(super) fn by_worker(application: &Application, comparison: &Comparison) -> Chart {
    let workers = speeds(comparison);
    let names = workers.iter().map(|(rank, speed)| format!("{rank} ({speed})"));
    let series = comparison.summaries().into_iter().map(|summary| {
        Series::new(
            summary.contender.name.clone(),
            workers
                .iter()
                .enumerate()
                .filter_map(|(place, (rank, _))| Some((place as f64, *summary.map_sojourn.get(rank)?)))
                .collect(),
        )
    });
    Chart::bars(
        format!("mst-by-worker-{}", application.name),
        "Mean sojourn time at each worker; in brackets its speed",
        [Axis::names("worker", names), Axis::linear("until a job's last map there is done, s")],
        series.filter(|series| !series.points.is_empty()).collect(),
    )
}

/// Judges by the slow workers' time over that of the fast ones, in each repetition: the fair split's is above 1, and that
/// of the equilibrium at least twice as near to 1. Logarithms, so that both sides of 1 count alike.
pub(in crate::paper::real) fn together(fair: &[f64], even: &[f64]) -> (Verdict, String, [Interval; 3]) {
    let [fair, even] = [fair, even].map(|gaps| gaps.iter().map(|gap| gap.ln()).collect::<Vec<f64>>());
    let (ours, theirs) = (mean_of(&fair), mean_of(&even));
    let half: Vec<f64> = fair.iter().map(|fair| 0.5 * fair).collect();
    let negative: Vec<f64> = even.iter().map(|even| -even).collect();
    // Both ends of the equilibrium's gap are within half of the fair split's.
    let near = [paired(&half, &even), paired(&half, &negative)];
    let seen = [Seen::above(&ours, 0.0), Seen::all(near.map(|room| Seen::above(&room, 0.0)))];
    let words = format!(
        "MST on slow workers off that on fast ones: fair-split {}, m-ep {} (holds if the first is later and the second at \
         least twice as near)",
        percent(&ours),
        percent(&theirs)
    );
    let [one, other] = near;
    (every(seen), words, [ours, one, other])
}

pub(in crate::paper::real) fn claims(comparison: &Comparison) -> Vec<Claim> {
    let against_fair = |name: &str, place: &str, statement: &str| {
        let (verdict, words) = judged(comparison, Claimed::Smaller, (name, &["fair-split"]), sojourn);
        Claim::new(place, statement, verdict, format!("MST: {words}"))
    };
    let mut claims = vec![
        against_fair(
            "pure-deterministic",
            "Section 6-2",
            "Where workers differ, the pure-deterministic split has a smaller MST than the fair one.",
        ),
        against_fair(
            "pure-stochastic",
            "Section 6-3",
            "The pure-stochastic split has a smaller MST than the fair one.",
        ),
        against_fair(
            "m-ep",
            "Section 6-4",
            "The split of the mixed equilibrium property has a smaller MST than the fair one.",
        ),
    ];
    let (verdict, words) = judged(comparison, Claimed::Smaller, ("m-ep", &["pull"]), sojourn);
    claims.push(Claim::new(
        "Not in the thesis",
        "A split in advance has a smaller MST than idle slots that pull the next map.",
        verdict,
        format!("MST: {words}"),
    ));
    let (verdict, words, conditions) = together(&gaps(comparison, "fair-split"), &gaps(comparison, "m-ep"));
    // Where it is decided nobody needs more.
    let open = [Verdict::Open, Verdict::Partly].contains(&verdict);
    let needed =
        if open { would_tell(&comparison.runs, &conditions.map(|mean| (mean, 0.0))) } else { String::new() };
    claims.push(Claim::new(
        "Definition 4",
        "Under the fair split the slow workers end later; under the equilibrium property both kinds end \
                    together.",
        verdict,
        format!("{words}{needed}."),
    ));
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_together_is_judged_by_the_interval_and_by_the_side() {
        let judge = |fair: &[f64], even: &[f64]| together(fair, even).0;
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
