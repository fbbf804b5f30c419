//! What came out of one run: a value of each metric that means something, flow times, slowdown by size.

use super::{Metric, Sketch};
use crate::station::{PerStation, Station};

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
    /// These flow times and slowdowns, and no value of any metric yet.
    pub(super) fn new(flow: Sketch, slowdown: Vec<Bucket>) -> Self {
        Self { values: vec![None; Metric::ALL.len()], flow, slowdown }
    }

    /// The value of a metric; `None` where it means nothing, such as tardiness where no job has a deadline.
    #[must_use]
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values[metric.index()]
    }

    /// All metrics that mean something, in the order of tables.
    pub fn known(&self) -> impl Iterator<Item = (Metric, f64)> + '_ {
        Metric::ALL.iter().filter_map(|&metric| Some((metric, self.value(metric)?)))
    }

    /// Sets what the times of jobs do not tell; no number is no value.
    pub fn set(&mut self, metric: Metric, value: Option<f64>) {
        self.values[metric.index()] = value.filter(|value| value.is_finite());
    }

    /// Sets the efficiency ratio against a total flow time that no schedule can beat.
    pub fn set_bound(&mut self, total_flow: f64) {
        let total = self.value(Metric::FlowTotal).filter(|_| 0.0 < total_flow);
        self.set(Metric::EfficiencyRatio, total.map(|total| total / total_flow));
    }

    /// Sets what was counted better than the work of the jobs tells: the used part of each station's capacity, from 0 to
    /// 1.
    pub fn set_use(&mut self, used: PerStation<f64>) {
        for (station, used) in Station::ALL.into_iter().zip(used) {
            self.set(use_of(station), Some(100.0 * used));
        }
    }
}

/// The use of a station.
pub(super) fn use_of(station: Station) -> Metric {
    match station {
        Station::Map => Metric::MapUse,
        Station::Shuffle => Metric::ShuffleUse,
        Station::Reduce => Metric::ReduceUse,
    }
}
