//! Turns a stream of job records into metrics, in memory that does not grow with the number of jobs.
//!
//! What a job would take alone is `max(map, shuffle) + reduce`, each in seconds of the whole station: maps and shuffle
//! overlap, reduces follow.

use super::statistics::jain_of_sums;
use super::{JobRecord, Metric, Sketch};
use crate::station::{PerStation, Station};

/// Borders between the sizes by which slowdown is shown unless told otherwise: those of the overlap paper's figure 9,
/// where the mean size is about 2.
pub const SLOWDOWN_EDGES: [f64; 7] = [0.25, 1.0, 3.0, 10.0, 19.0, 50.0, 100.0];

/// What the records are measured against.
#[derive(Clone, PartialEq, Debug)]
pub struct CollectSettings {
    /// Capacity of each station in units of work per second: slots, and 1 at the shuffle. Infinite where the model
    /// has no such station.
    pub capacity: PerStation<f64>,
    /// Borders between classes of jobs by the time that they take alone, in seconds, rising.
    pub slowdown_edges: Vec<f64>,
}

impl Default for CollectSettings {
    /// The fluid model: map and shuffle of capacity 1.
    fn default() -> Self {
        Self { capacity: PerStation::new(1.0, 1.0, f64::INFINITY), slowdown_edges: SLOWDOWN_EDGES.to_vec() }
    }
}

/// The slowdown of jobs of about one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bucket {
    /// They take at least this long alone, in seconds.
    pub from: f64,
    /// And less than this; infinite for the last.
    pub to: f64,
    /// How many they are.
    pub jobs: u64,
    /// Mean of flow time / time alone; `None` without jobs.
    pub mean: Option<f64>,
}

/// What came out of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunMetrics {
    values: Vec<Option<f64>>,
    /// Flow times.
    pub flow: Sketch,
    /// Slowdown by size.
    pub slowdown: Vec<Bucket>,
}

impl RunMetrics {
    /// The value of a metric; `None` where it means nothing, such as tardiness where no job has a deadline.
    #[must_use]
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values[metric.index()]
    }

    /// Sets what the records do not tell: the efficiency ratio against a total flow time that no schedule can beat.
    pub fn set_bound(&mut self, total_flow: f64) {
        let total = self.value(Metric::FlowTotal).filter(|_| 0.0 < total_flow);
        self.values[Metric::Efficiency.index()] = total.map(|total| total / total_flow);
    }

    /// Sets what the simulator counted better than the records tell: the used part of each station's capacity.
    pub fn set_utilisation(&mut self, used: PerStation<f64>) {
        for (station, used) in Station::ALL.into_iter().zip(used) {
            self.values[utilisation(station).index()] = Some(used);
        }
    }
}

fn utilisation(station: Station) -> Metric {
    match station {
        Station::Map => Metric::MapUtilisation,
        Station::Shuffle => Metric::ShuffleUtilisation,
        Station::Reduce => Metric::ReduceUtilisation,
    }
}

/// A mean in the making. Plain sums: there are six of them for each of 10^7 jobs, whose times all have one sign.
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

/// Takes records in, in any order.
#[derive(Clone, Debug)]
pub struct Collector {
    settings: CollectSettings,
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
    by_size: Vec<RunningSum>,
    work: PerStation<f64>,
    first_arrival: f64,
    last_end: f64,
}

impl Collector {
    /// No records yet.
    ///
    /// # Panics
    /// If a capacity is not above 0, or the borders do not rise.
    #[must_use]
    pub fn new(settings: CollectSettings) -> Self {
        assert!(settings.capacity.iter().all(|&capacity| 0.0 < capacity), "capacity {:?}", settings.capacity);
        assert!(settings.slowdown_edges.is_sorted(), "borders {:?}", settings.slowdown_edges);
        let by_size = vec![RunningSum::default(); settings.slowdown_edges.len() + 1];
        Self {
            settings,
            flow: Sketch::new(),
            flow_total: 0.0,
            waiting: RunningSum::default(),
            execution: RunningSum::default(),
            map_sojourn: RunningSum::default(),
            tardiness: RunningSum::default(),
            tardiness_largest: 0.0,
            deadlines_met: 0,
            slowdown: RunningSum::default(),
            slowdown_squares: 0.0,
            by_size,
            work: PerStation::default(),
            first_arrival: f64::INFINITY,
            last_end: 0.0,
        }
    }

    /// Takes in the record of a job that ended.
    pub fn push(&mut self, record: &JobRecord) {
        let times = record.times();
        let flow = times.flow();
        self.flow.push(flow);
        self.flow_total += flow;
        self.waiting.push(times.waiting());
        self.execution.push(times.execution());
        self.map_sojourn.push(record.maps_done - record.arrival);
        self.first_arrival = self.first_arrival.min(record.arrival);
        self.last_end = self.last_end.max(record.completion);
        for (sum, work) in self.work.iter_mut().zip(record.work) {
            *sum += work;
        }
        if let Some(tardiness) = times.tardiness() {
            self.deadlines_met += u64::from(tardiness == 0.0);
            self.tardiness.push(tardiness);
            self.tardiness_largest = self.tardiness_largest.max(tardiness);
        }
        let alone = self.alone(record);
        if 0.0 < alone {
            let slowdown = flow / alone;
            self.slowdown.push(slowdown);
            self.slowdown_squares += slowdown * slowdown;
            let class = self.settings.slowdown_edges.partition_point(|&edge| edge <= alone);
            self.by_size[class].push(slowdown);
        }
    }

    fn alone(&self, record: &JobRecord) -> f64 {
        let time = |station: Station| record.work[station] / self.settings.capacity[station];
        time(Station::Map).max(time(Station::Shuffle)) + time(Station::Reduce)
    }

    /// What came out.
    #[must_use]
    pub fn outcome(&self) -> RunMetrics {
        let mut values = vec![None; Metric::ALL.len()];
        let mut set = |metric: Metric, value: Option<f64>| values[metric.index()] = value;
        let jobs = self.flow.count();
        let some = |value: f64| (0 < jobs).then_some(value);
        let span = self.last_end - self.first_arrival;
        set(Metric::Jobs, Some(jobs as f64));
        set(Metric::Flow, some(self.flow_total / jobs as f64));
        set(Metric::FlowTotal, some(self.flow_total));
        set(Metric::FlowMedian, self.flow.quantile(0.5));
        set(Metric::FlowP90, self.flow.quantile(0.9));
        set(Metric::FlowP99, self.flow.quantile(0.99));
        set(Metric::FlowLargest, self.flow.largest());
        set(Metric::Waiting, self.waiting.mean());
        set(Metric::Execution, self.execution.mean());
        set(Metric::MapSojourn, self.map_sojourn.mean());
        set(Metric::Makespan, some(span));
        set(Metric::Slowdown, self.slowdown.mean());
        set(Metric::Fairness, jain_of_sums(self.slowdown.count, self.slowdown.sum, self.slowdown_squares));
        let deadlines = self.tardiness.count;
        set(Metric::DeadlinesMet, (0 < deadlines).then(|| self.deadlines_met as f64 / deadlines as f64));
        set(Metric::Tardiness, self.tardiness.mean());
        set(Metric::TardinessLargest, (0 < deadlines).then_some(self.tardiness_largest));
        for station in Station::ALL {
            let capacity = self.settings.capacity[station];
            let used = (0.0 < span && capacity.is_finite()).then(|| self.work[station] / capacity / span);
            set(utilisation(station), used);
        }
        RunMetrics { values, flow: self.flow.clone(), slowdown: self.buckets() }
    }

    fn buckets(&self) -> Vec<Bucket> {
        let edges = &self.settings.slowdown_edges;
        let bucket = |(class, sum): (usize, &RunningSum)| Bucket {
            from: if class == 0 { 0.0 } else { edges[class - 1] },
            to: edges.get(class).copied().unwrap_or(f64::INFINITY),
            jobs: sum.count,
            mean: sum.mean(),
        };
        self.by_size.iter().enumerate().map(bucket).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn record(arrival: f64, start: f64, completion: f64, work: [f64; 3], deadline: Option<u64>) -> JobRecord {
        let deadline = deadline.map(|seconds| Time(seconds * 1_000_000_000));
        JobRecord {
            seq: 0,
            arrival,
            start,
            maps_done: start + 1.0,
            completion,
            work: work.into(),
            deadline,
            weight: 1.0,
        }
    }

    fn outcome(capacity: [f64; 3], records: &[JobRecord]) -> RunMetrics {
        let settings = CollectSettings { capacity: capacity.into(), slowdown_edges: vec![1.5, 10.0] };
        let mut collector = Collector::new(settings);
        records.iter().for_each(|record| collector.push(record));
        collector.outcome()
    }

    #[test]
    fn metrics_are_those_computed_by_hand() {
        let records = [
            // Alone: max(4/2, 1) + 0 = 2 s; it takes 4 s: slowed down twofold.
            record(1.0, 2.0, 5.0, [4.0, 1.0, 0.0], Some(6)),
            // Alone: max(1/2, 0) + 2/4 = 1 s; it takes 6 s.
            record(3.0, 3.0, 9.0, [1.0, 0.0, 2.0], Some(7)),
        ];
        let outcome = outcome([2.0, 1.0, 4.0], &records);
        let expected = [
            (Metric::Jobs, 2.0),
            (Metric::Flow, 5.0),
            (Metric::FlowTotal, 10.0),
            (Metric::FlowLargest, 6.0),
            (Metric::Waiting, 0.5),
            (Metric::Execution, 4.5),
            (Metric::MapSojourn, 1.5),
            (Metric::Makespan, 8.0),
            (Metric::Slowdown, 4.0),
            (Metric::Fairness, 64.0 / (2.0 * 40.0)),
            (Metric::DeadlinesMet, 0.5),
            (Metric::Tardiness, 1.0),
            (Metric::TardinessLargest, 2.0),
            (Metric::MapUtilisation, 5.0 / 16.0),
            (Metric::ShuffleUtilisation, 1.0 / 8.0),
            (Metric::ReduceUtilisation, 2.0 / 32.0),
        ];
        for (metric, value) in expected {
            let found = outcome.value(metric).unwrap();
            assert!((found - value).abs() < 1e-12, "{metric} is {found}, not {value}");
        }
        let means: Vec<_> = outcome.slowdown.iter().map(|bucket| (bucket.jobs, bucket.mean)).collect();
        assert_eq!(means, [(1, Some(6.0)), (1, Some(2.0)), (0, None)]);
    }

    #[test]
    fn what_means_nothing_has_no_value() {
        let nobody = outcome([1.0, 1.0, f64::INFINITY], &[]);
        let known: Vec<Metric> =
            Metric::ALL.iter().copied().filter(|&metric| nobody.value(metric).is_some()).collect();
        assert_eq!(known, [Metric::Jobs]);
        let without_work = outcome([1.0, 1.0, f64::INFINITY], &[record(0.0, 0.0, 0.0, [0.0; 3], None)]);
        for metric in [Metric::Slowdown, Metric::Fairness, Metric::DeadlinesMet, Metric::ReduceUtilisation] {
            assert_eq!(without_work.value(metric), None, "{metric}");
        }
    }

    #[test]
    fn the_efficiency_ratio_is_the_total_over_the_bound() {
        let mut outcome = outcome([1.0; 3], &[record(0.0, 0.0, 6.0, [1.0; 3], None)]);
        outcome.set_bound(4.0);
        assert_eq!(outcome.value(Metric::Efficiency), Some(1.5));
    }
}
