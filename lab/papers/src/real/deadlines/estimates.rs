//! Experiment one: accuracy of the size estimates of the paper's applications while they run alone.

use super::super::common::blocks;
use super::super::context::RealContext;
use super::WORDS;
use super::common::{WORKERS, above, claim, percent_points, pooled};
use super::twin_jobs::twins;
use crate::prelude::*;
use crate::workload::deadlines::NAMES;
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::{JobRun, RunRecord};

/// Results of each run of an application alone: the mean error of its estimates over the second half of
/// its maps, and the fraction of its time with a small error.
pub(crate) struct Estimated {
    pub(crate) name: String,
    pub(crate) errors: Vec<f64>,
    pub(crate) within: Vec<f64>,
}

/// Completion estimates of each application alone.
pub(super) fn section(context: &RealContext<'_>, second: f64) -> anyhow::Result<Section> {
    let (mut shown, mut estimated, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    let repetitions = context.scaled(1, 8, 8);
    let all = context.draws(repetitions, |seed| twins([1.0; 4], seed));
    for place in 0..3 {
        let alone = |jobs: &Vec<Job>| vec![Job { arrival: 0.0, deadline: None, ..jobs[place].clone() }];
        let alone: Vec<Vec<Job>> = all.iter().map(alone).collect();
        let name = NAMES[place].to_owned();
        let directory = format!("deadlines-{}", name.to_lowercase());
        let comparison = context.sleep(&directory, &alone, second, &pooled(WORKERS), &[(&name, "fifo")])?;
        shown.extend(blocks(&name.to_lowercase(), &comparison, &["estimation"]));
        let jobs = || comparison.runs.iter().filter_map(|run| run.jobs.first());
        estimated.push(Estimated {
            name,
            errors: jobs().filter_map(|job| error_after(job, 0.5)).collect(),
            within: jobs().filter_map(|job| part_within(job, SMALL)).collect(),
        });
        runs.extend(comparison.runs);
    }
    shown.push(Block::Claims(claims(&runs, &estimated)));
    Ok(WORDS.section("figures-1-to-3", holes![], shown))
}

/// Error that the paper names.
const SMALL: f64 = 0.05;

pub(crate) fn claims(runs: &[RunRecord], estimated: &[Estimated]) -> Vec<Claim> {
    let of = |wanted: &str| estimated.iter().find(|one| one.name == wanted);
    let errors = |wanted: &str| of(wanted).map_or(&[][..], |one| &one.errors);
    let within = mean_of(of(NAMES[1]).map_or(&[][..], |one| &one.within));
    let worse = paired(errors(NAMES[0]), errors(NAMES[1]));
    let words: Vec<String> = estimated
        .iter()
        .map(|one| format!("{} {} %", one.name, percent_points(&mean_of(&one.errors))))
        .collect();
    let of_word_count = holes![within = percent_points(&within)];
    vec![
        claim("word-count", runs, &[(within, above(0.5))], of_word_count),
        claim("simulator", runs, &[(worse, above(0.0))], holes![errors = words.join(", ")]),
    ]
}

/// Returns the fraction of the job's time for which the error of the estimated work is below this. Each
/// estimate is valid until the next. There is none before the first.
fn part_within(job: &JobRun, limit: f64) -> Option<f64> {
    let truth: f64 = job.usage.slot_seconds.iter().sum();
    let ends = job.estimates.iter().skip(1).map(|one| one.0).chain([job.flow()]);
    let small = job.estimates.iter().zip(ends).filter(|((.., whole), _)| off(whole, truth) < limit);
    let seconds: f64 = small.map(|((from, ..), to)| (to - from).max(0.0)).sum();
    (!job.estimates.is_empty()).then(|| seconds / job.flow())
}

/// Returns the error of the estimated work of maps and reduces.
fn off(whole: &[f64; 3], truth: f64) -> f64 {
    ((whole[0] + whole[2]) / truth - 1.0).abs()
}

/// Returns the mean error of the estimated work of maps and reduces, relative to their actual work, once
/// this share of the maps is done.
fn error_after(job: &JobRun, share: f64) -> Option<f64> {
    let truth: f64 = job.usage.slot_seconds.iter().sum();
    let last = job.estimates.iter().map(|one| one.1).max().filter(|last| 0 < *last)?;
    let late = job.estimates.iter().filter(|one| share * f64::from(last) <= f64::from(one.1));
    mean(late.map(|(.., whole)| off(whole, truth)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_lab::compare::testing::job;

    #[test]
    fn time_within_a_limit_counts_each_estimate_until_the_next() {
        // 8 s of work. The estimate is right from 2 to 6 s, and twice as much from there to the end at 10 s.
        let mut one = job(0, 0.0, 10.0);
        one.estimates = vec![(2.0, 1, [5.0, 0.0, 3.0]), (6.0, 2, [10.0, 0.0, 6.0])];
        assert!((part_within(&one, 0.05).unwrap() - 0.4).abs() < 1e-12);
        one.estimates.clear();
        assert_eq!(part_within(&one, 0.05), None);
    }
}
