//! How metrics of runs differ between two policies, repetition by repetition, with intervals of 95 % each.
//!
//! They describe and judge nothing: of twenty metrics of equal policies one leaves out 0 by chance. What is judged is
//! the mean flow time (`difference`).

use super::holm::FALSE_MAX;
use super::paired::{Contrast, Paired};
use crate::compare::metrics::metrics;
use crate::compare::{Comparison, RunRecord};
use gristmill_scheduler::metrics::Metric;
use serde::Serialize;
use std::collections::BTreeMap;

/// Metrics that are set against each other, and how.
const CONTRASTS: [(Metric, Contrast); 13] = [
    (Metric::Flow, Contrast::Ratio),
    (Metric::FlowP50, Contrast::Ratio),
    (Metric::FlowP95, Contrast::Ratio),
    (Metric::FlowP99, Contrast::Ratio),
    (Metric::FlowMax, Contrast::Ratio),
    (Metric::Slowdown, Contrast::Ratio),
    (Metric::SlowdownP99, Contrast::Ratio),
    (Metric::SlowdownMax, Contrast::Ratio),
    (Metric::Makespan, Contrast::Ratio),
    (Metric::Waiting, Contrast::More),
    (Metric::DeadlinesMet, Contrast::More),
    (Metric::Tardiness, Contrast::More),
    (Metric::TardinessMax, Contrast::More),
];

/// How a metric under one policy differs from that under another.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricDifference {
    /// One policy.
    pub one: String,
    /// The other.
    pub other: String,
    /// What is set against each other.
    pub metric: Metric,
    /// Unit of the numbers: `%` of the other's value; for what may be 0, how much more, in seconds or percentage points
    /// (`points`).
    pub unit: &'static str,
    /// The mean over repetitions; below 0 if the one has less.
    pub mean: f64,
    /// Its 95 % interval (Student's t); `None` of fewer than two repetitions, and where all agree to the last digit, as
    /// numbers of few values do by chance: nothing tells how far others might be off.
    pub interval: Option<[f64; 2]>,
    /// Repetitions in which both have a value.
    pub repetitions: u64,
}

impl MetricDifference {
    fn of(names: [&str; 2], (metric, contrast): (Metric, Contrast), pairs: &[(f64, f64)]) -> Option<Self> {
        let paired = Paired::of(contrast, pairs)?;
        let (unit, factor) = match (contrast, metric.declaration().unit) {
            (Contrast::Ratio, _) => ("%", 100.0),
            (Contrast::More, "%") => ("points", 1.0),
            (Contrast::More, unit) => (unit, 1.0),
        };
        Some(Self {
            one: names[0].to_owned(),
            other: names[1].to_owned(),
            metric,
            unit,
            mean: factor * paired.mean(),
            interval: paired
                .interval(FALSE_MAX)
                .filter(|[low, high]| low < high)
                .map(|ends| ends.map(|end| factor * end)),
            repetitions: paired.pairs(),
        })
    }
}

impl Comparison {
    /// Every metric that two policies have in a repetition that both have, for the pairs of policies in
    /// [`Comparison::differences`], in their order.
    #[must_use]
    pub fn metric_differences(&self) -> Vec<MetricDifference> {
        let alone: Vec<BTreeMap<usize, f64>> =
            (0..self.repetitions).map(|repetition| self.alone_of(repetition)).collect();
        let none = BTreeMap::new();
        let of_run = |run: &RunRecord| metrics(run, alone.get(run.repetition as usize).unwrap_or(&none));
        let found: BTreeMap<(&str, u32), BTreeMap<Metric, f64>> = self
            .runs
            .iter()
            .map(|run| ((run.contender.name.as_str(), run.repetition), of_run(run)))
            .collect();
        let value =
            |name: &str, repetition: u32, metric| found.get(&(name, repetition))?.get(&metric).copied();
        let mut all = Vec::new();
        for pair in self.differences() {
            let names = [pair.one.as_str(), pair.other.as_str()];
            for contrast in CONTRASTS {
                let both = |repetition| {
                    Some((value(names[0], repetition, contrast.0)?, value(names[1], repetition, contrast.0)?))
                };
                let pairs: Vec<(f64, f64)> = (0..self.repetitions).filter_map(both).collect();
                all.extend(MetricDifference::of(names, contrast, &pairs));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{comparison, job, run};

    /// Two policies, of which the second takes these shares of the first one's time, for jobs that may take 4 s.
    fn made(shares: &[f64]) -> Comparison {
        let runs = shares.iter().zip(0..).flat_map(|(&share, repetition)| {
            ["slow", "fast"].map(|name| {
                let share = if name == "fast" { share } else { 1.0 };
                let mut jobs = vec![job(0, 0.0, 4.0 * share), job(1, 1.0, 1.0 + 8.0 * share)];
                jobs.iter_mut().for_each(|job| job.deadline = Some(job.arrived + 4.0));
                run(name, repetition, jobs)
            })
        });
        comparison(runs.collect())
    }

    fn of(all: &[MetricDifference], metric: Metric) -> &MetricDifference {
        all.iter().find(|one| one.metric == metric).unwrap()
    }

    #[test]
    fn largest_makespan_and_deadlines_have_intervals_as_the_mean_has() {
        let all = made(&[0.50, 0.49, 0.48]).metric_differences();
        for metric in [Metric::Flow, Metric::FlowMax] {
            let found = of(&all, metric);
            assert_eq!((found.one.as_str(), found.other.as_str(), found.unit), ("fast", "slow", "%"));
            // The geometric mean of the three shares, and 4.302653 standard errors of their logarithms.
            assert!((found.mean + 51.007).abs() < 1e-3, "{metric} {}", found.mean);
            let [low, high] = found.interval.unwrap();
            assert!((low + 53.429).abs() < 1e-3 && (high + 48.459).abs() < 1e-3, "{metric} {low} {high}");
        }
        let makespan = of(&all, Metric::Makespan);
        assert!(makespan.interval.unwrap()[1] < 0.0 && makespan.repetitions == 3);
        // One of two jobs was in time, then both.
        let met = of(&all, Metric::DeadlinesMet);
        assert_eq!((met.unit, met.mean), ("points", 50.0));
        assert_eq!(met.interval, None, "three repetitions that agree are no certainty");
        assert_eq!(of(&all, Metric::Tardiness).unit, "s");
        assert!(all.iter().all(|one| one.metric != Metric::FlowP99), "two jobs have no 99th percentile");
    }

    #[test]
    fn metric_that_goes_up_and_down_has_an_interval_that_holds_zero() {
        let all = made(&[0.8, 1.25, 1.0, 1.02]).metric_differences();
        for one in &all {
            let Some([low, high]) = one.interval else {
                assert_eq!(one.unit, "points", "{one:?}");
                continue;
            };
            assert!(low <= 0.0 && 0.0 <= high, "{one:?}");
        }
        assert_eq!(of(&made(&[0.5]).metric_differences(), Metric::Flow).interval, None, "one repetition");
    }

    #[test]
    fn any_number_of_repetitions_has_an_interval() {
        let shares: Vec<f64> = (0..40).map(|place| 0.9 + 0.001 * f64::from(place % 7)).collect();
        let all = made(&shares).metric_differences();
        assert_eq!(of(&all, Metric::Flow).repetitions, 40);
        assert!(of(&all, Metric::Flow).interval.unwrap()[1] < -9.0);
    }
}
