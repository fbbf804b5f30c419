//! Computes metrics of a stream of ended jobs, in memory that does not grow with their number.
//!
//! Simulators and comparisons of real runs share it. The time of a job alone is part of its record.

use super::outcome::use_of;
use super::statistics::jain_of_sums;
use super::{JobTimes, Metric, RunMetrics, Sketch};
use crate::station::{PerStation, Station};

/// Running mean. Plain sums suffice: there are six of them for each of 10^7 jobs, and times all have one sign.
#[derive(Clone, Copy, Debug, Default)]
struct RunningSum {
    count: u64,
    sum: f64,
}

impl RunningSum {
    fn push(&mut self, sample: f64) {
        self.count += 1;
        self.sum += sample;
    }

    fn mean(&self) -> Option<f64> {
        (0 < self.count).then(|| self.sum / self.count as f64)
    }
}

/// Collects ended jobs in any order.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    /// Units of work per second of each station: slots, and 1 at the shuffle. Infinite if the model lacks the station.
    capacity: PerStation<f64>,
    flow: Sketch,
    flow_total: f64,
    waiting: RunningSum,
    execution: RunningSum,
    map_sojourn: RunningSum,
    tardiness: RunningSum,
    tardiness_largest: f64,
    deadlines_met: u64,
    slowdown: RunningSum,
    slowdown_squares: f64,
    slowdowns: Sketch,
    work: PerStation<f64>,
    first_arrival: f64,
    last_end: f64,
}

impl Collector {
    /// Creates a collector without records.
    ///
    /// # Panics
    /// If a capacity is not above 0.
    #[must_use]
    pub fn new(capacity: PerStation<f64>) -> Self {
        assert!(capacity.iter().all(|&capacity| 0.0 < capacity), "capacity {capacity:?}");
        Self { capacity, first_arrival: f64::INFINITY, ..Self::default() }
    }

    /// Adds an ended job, with its whole work.
    pub fn push(&mut self, times: &JobTimes, work: PerStation<f64>) {
        let flow = times.flow();
        self.flow.push(flow);
        self.flow_total += flow;
        self.waiting.push(times.waiting());
        self.execution.push(times.execution());
        self.map_sojourn.push(times.maps_done - times.arrival);
        self.first_arrival = self.first_arrival.min(times.arrival);
        self.last_end = self.last_end.max(times.completion);
        for (sum, work) in self.work.iter_mut().zip(work) {
            *sum += work;
        }
        if let Some(tardiness) = times.tardiness() {
            self.deadlines_met += u64::from(tardiness == 0.0);
            self.tardiness.push(tardiness);
            self.tardiness_largest = self.tardiness_largest.max(tardiness);
        }
        if let Some(slowdown) = times.slowdown() {
            self.slowdown.push(slowdown);
            self.slowdown_squares += slowdown * slowdown;
            self.slowdowns.push(slowdown);
        }
    }

    /// Returns the metrics.
    #[must_use]
    pub fn outcome(&self) -> RunMetrics {
        let mut out = RunMetrics::new(self.flow.clone());
        let jobs = self.flow.count();
        let some = |value: f64| (0 < jobs).then_some(value);
        let span = self.last_end - self.first_arrival;
        let deadlines = self.tardiness.count;
        let met = 100.0 * self.deadlines_met as f64 / deadlines as f64;
        let fairness = jain_of_sums(self.slowdown.count, self.slowdown.sum, self.slowdown_squares);
        out.set(Metric::Jobs, Some(jobs as f64));
        out.set(Metric::Flow, some(self.flow_total / jobs as f64));
        out.set(Metric::FlowTotal, some(self.flow_total));
        out.set(Metric::FlowP50, self.flow.quantile(0.5));
        out.set(Metric::FlowP90, tail(&self.flow, 0.9));
        out.set(Metric::FlowP95, tail(&self.flow, 0.95));
        out.set(Metric::FlowP99, tail(&self.flow, 0.99));
        out.set(Metric::FlowMax, self.flow.largest());
        out.set(Metric::Waiting, self.waiting.mean());
        out.set(Metric::Execution, self.execution.mean());
        out.set(Metric::MapSojourn, self.map_sojourn.mean());
        out.set(Metric::Makespan, some(span));
        out.set(Metric::Slowdown, self.slowdown.mean());
        out.set(Metric::SlowdownP99, tail(&self.slowdowns, 0.99));
        out.set(Metric::SlowdownMax, self.slowdowns.largest());
        out.set(Metric::Fairness, fairness);
        out.set(Metric::DeadlinesMet, (0 < deadlines).then_some(met));
        out.set(Metric::Tardiness, self.tardiness.mean());
        out.set(Metric::TardinessMax, (0 < deadlines).then_some(self.tardiness_largest));
        for station in Station::ALL {
            let capacity = self.capacity[station];
            let used = (0.0 < span && capacity.is_finite()).then(|| self.work[station] / capacity / span);
            out.set(use_of(station), used.map(|used| 100.0 * used));
        }
        out
    }
}

/// Returns a percentile that some samples exceed; `None` if there are too few samples, so that it would be the maximum:
/// the 99th of fewer than 100.
fn tail(samples: &Sketch, part: f64) -> Option<f64> {
    let count = samples.count() as f64;
    ((part * count).ceil() < count).then(|| samples.quantile(part)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(capacity: [f64; 3], jobs: &[(JobTimes, [f64; 3])]) -> RunMetrics {
        let mut collector = Collector::new(capacity.into());
        jobs.iter().for_each(|(times, work)| collector.push(times, (*work).into()));
        collector.outcome()
    }

    fn times(arrival: f64, start: f64, completion: f64) -> JobTimes {
        JobTimes { arrival, start, maps_done: start + 1.0, completion, deadline: None, alone: None }
    }

    #[test]
    fn metrics_are_those_computed_by_hand() {
        let jobs = [
            // It takes 4 s, and 2 s alone: a slowdown of two.
            (JobTimes { deadline: Some(6.0), alone: Some(2.0), ..times(1.0, 2.0, 5.0) }, [4.0, 1.0, 0.0]),
            // It takes 6 s, and 1 s alone.
            (JobTimes { deadline: Some(7.0), alone: Some(1.0), ..times(3.0, 3.0, 9.0) }, [1.0, 0.0, 2.0]),
        ];
        let outcome = outcome([2.0, 1.0, 4.0], &jobs);
        let expected = [
            (Metric::Jobs, 2.0),
            (Metric::Flow, 5.0),
            (Metric::FlowTotal, 10.0),
            (Metric::FlowP50, 4.0),
            (Metric::FlowMax, 6.0),
            (Metric::Waiting, 0.5),
            (Metric::Execution, 4.5),
            (Metric::MapSojourn, 1.5),
            (Metric::Makespan, 8.0),
            (Metric::Slowdown, 4.0),
            (Metric::SlowdownMax, 6.0),
            (Metric::Fairness, 64.0 / (2.0 * 40.0)),
            (Metric::DeadlinesMet, 50.0),
            (Metric::Tardiness, 1.0),
            (Metric::TardinessMax, 2.0),
            (Metric::MapUse, 100.0 * 5.0 / 16.0),
            (Metric::ShuffleUse, 100.0 / 8.0),
            (Metric::ReduceUse, 100.0 * 2.0 / 32.0),
        ];
        let found: Vec<(Metric, f64)> = outcome.known().collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((metric, found), (expected, value)) in found.into_iter().zip(expected) {
            assert_eq!(metric, expected);
            assert!((found - value).abs() < 1e-12, "{metric} is {found}, not {value}");
        }
    }

    #[test]
    fn percentile_of_too_few_jobs_to_be_told_from_the_largest_has_no_value() {
        let of = |jobs: usize, metric: Metric| {
            let job = |place: usize| {
                let flow = (place + 1) as f64;
                (JobTimes { alone: Some(1.0), ..times(0.0, 0.0, flow) }, [1.0, 0.0, 0.0])
            };
            outcome([1.0, 1.0, 1.0], &(0..jobs).map(job).collect::<Vec<_>>()).value(metric)
        };
        for (metric, fewest) in
            [(Metric::FlowP90, 10), (Metric::FlowP95, 20), (Metric::FlowP99, 100), (Metric::SlowdownP99, 100)]
        {
            assert_eq!(of(fewest - 1, metric), None, "{metric} of {} jobs", fewest - 1);
            assert_eq!(of(fewest, metric), Some((fewest - 1) as f64), "{metric} of {fewest} jobs");
        }
        assert_eq!(of(40, Metric::FlowMax), Some(40.0));
        assert_eq!(of(40, Metric::SlowdownMax), Some(40.0));
        assert_eq!(of(1, Metric::FlowP50), Some(1.0), "the median of one job is that job");
    }

    #[test]
    fn what_means_nothing_has_no_value() {
        let nobody = outcome([1.0, 1.0, f64::INFINITY], &[]);
        assert_eq!(nobody.known().map(|(metric, _)| metric).collect::<Vec<_>>(), [Metric::Jobs]);
        let nothing = JobTimes { alone: Some(0.0), ..times(0.0, 0.0, 0.0) };
        let without_work = outcome([1.0, 1.0, f64::INFINITY], &[(nothing, [0.0; 3])]);
        for metric in [Metric::Slowdown, Metric::Fairness, Metric::DeadlinesMet, Metric::ReduceUse] {
            assert_eq!(without_work.value(metric), None, "{metric}");
        }
    }

    #[test]
    fn metrics_that_need_the_time_alone_are_those_that_are_lost_without_it() {
        let of = |alone: Option<f64>| {
            let jobs = vec![(JobTimes { deadline: Some(9.0), alone, ..times(0.0, 0.0, 6.0) }, [1.0; 3]); 100];
            outcome([1.0; 3], &jobs)
        };
        let (with, without) = (of(Some(2.0)), of(None));
        for (metric, _) in with.known() {
            assert_eq!(without.value(metric).is_none(), metric.needs_alone(), "{metric}");
        }
        assert_eq!(with.known().filter(|(metric, _)| metric.needs_alone()).count(), 4);
    }

    #[test]
    fn the_efficiency_ratio_is_the_total_over_the_bound() {
        let mut outcome = outcome([1.0; 3], &[(times(0.0, 0.0, 6.0), [1.0; 3])]);
        outcome.set_bound(4.0);
        assert_eq!(outcome.value(Metric::EfficiencyRatio), Some(1.5));
        outcome.set_bound(0.0);
        assert_eq!(outcome.value(Metric::EfficiencyRatio), None);
    }
}
