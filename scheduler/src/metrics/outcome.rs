//! Result of one run: the values of the applicable metrics, flow times.

use super::{Metric, Sketch};
use crate::station::{PerStation, Station};

/// Result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunMetrics {
    values: Vec<Option<f64>>,
    /// Flow times.
    pub flow: Sketch,
}

impl RunMetrics {
    /// Creates a result with these flow times, without values of metrics.
    pub(super) fn new(flow: Sketch) -> Self {
        Self { values: vec![None; Metric::ALL.len()], flow }
    }

    /// Returns the value of a metric; `None` if it does not apply, such as tardiness without deadlines.
    #[must_use]
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values[metric.index()]
    }

    /// Returns all applicable metrics, in the order of tables.
    pub fn known(&self) -> impl Iterator<Item = (Metric, f64)> + '_ {
        Metric::ALL.iter().filter_map(|&metric| Some((metric, self.value(metric)?)))
    }

    /// Sets a metric that does not follow from the times of jobs; NaN counts as `None`.
    pub fn set(&mut self, metric: Metric, value: Option<f64>) {
        self.values[metric.index()] = value.filter(|value| value.is_finite());
    }

    /// Sets the efficiency ratio relative to a lower bound of the total flow time.
    pub fn set_bound(&mut self, total_flow: f64) {
        let total = self.value(Metric::FlowTotal).filter(|_| 0.0 < total_flow);
        self.set(Metric::EfficiencyRatio, total.map(|total| total / total_flow));
    }

    /// Sets measured utilisation, which is more exact than the work of the jobs: the used fraction of each station's
    /// capacity, from 0 to 1.
    pub fn set_use(&mut self, used: PerStation<f64>) {
        for (station, used) in Station::ALL.into_iter().zip(used) {
            self.set(use_of(station), Some(100.0 * used));
        }
    }
}

/// Returns the utilisation metric of a station.
pub(super) fn use_of(station: Station) -> Metric {
    match station {
        Station::Map => Metric::MapUse,
        Station::Shuffle => Metric::ShuffleUse,
        Station::Reduce => Metric::ReduceUse,
    }
}
