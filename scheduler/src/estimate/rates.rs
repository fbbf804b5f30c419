//! Speed of each worker: exponentially weighted mean times of its finished tasks.
//!
//! `mean <- (1 - weight) mean + weight * seconds`, and the service rate is `1 / mean`, in tasks per second.
//! This is the `mu_i` of the stragglers thesis, for placements that assign tasks to workers in advance.

use crate::ids::WorkerId;
use std::collections::BTreeMap;

/// Default weight of the newest task: half of the mean is from the last seven.
pub(crate) const WEIGHT_DEFAULT: f64 = 0.1;

/// Minimum accepted task length, in seconds: a mean of 0 would be an infinite rate.
const SECONDS_MIN: f64 = 1e-9;

/// Mean task times of workers; see the module.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ServiceRates {
    weight: f64,
    /// Mean seconds of a task.
    means: BTreeMap<WorkerId, f64>,
}

impl ServiceRates {
    /// Creates empty rates; the newest task has this weight.
    ///
    /// # Panics
    /// If the weight is not above 0 and at most 1.
    #[must_use]
    pub fn new(weight: f64) -> Self {
        assert!(0.0 < weight && weight <= 1.0, "weight {weight} of the newest task");
        Self { weight, means: BTreeMap::new() }
    }

    /// Records a task of a worker that took this many seconds. Values that are not finite and above 0 count as the
    /// minimum.
    pub fn finished(&mut self, worker: WorkerId, seconds: f64) {
        let seconds = if seconds.is_finite() { seconds.max(SECONDS_MIN) } else { SECONDS_MIN };
        let weight = self.weight;
        self.means.entry(worker).and_modify(|mean| *mean += weight * (seconds - *mean)).or_insert(seconds);
    }

    /// Removes a lost worker.
    pub fn forget(&mut self, worker: WorkerId) {
        self.means.remove(&worker);
    }

    /// Returns the tasks per second of one slot of this worker. A worker without finished tasks gets the mean task of
    /// all others; `None` if no worker has finished any.
    #[must_use]
    pub fn rate(&self, worker: WorkerId) -> Option<f64> {
        let mean = match self.means.get(&worker) {
            Some(&mean) => mean,
            None if self.means.is_empty() => return None,
            None => self.means.values().sum::<f64>() / self.means.len() as f64,
        };
        Some(1.0 / mean)
    }
}

impl Default for ServiceRates {
    fn default() -> Self {
        Self::new(WEIGHT_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_follows_the_newest_tasks_and_forgets_old_ones() {
        let (slow, fast, new) = (WorkerId(1), WorkerId(2), WorkerId(3));
        let mut rates = ServiceRates::new(0.5);
        assert_eq!(rates.rate(slow), None);
        rates.finished(slow, 4.0);
        assert_eq!(rates.rate(slow), Some(0.25));
        rates.finished(slow, 2.0);
        assert_eq!(rates.rate(slow), Some(1.0 / 3.0));
        rates.finished(fast, 1.0);
        assert_eq!(rates.rate(new), Some(0.5), "a new worker is as the mean of the others");
        rates.forget(slow);
        assert_eq!(rates.rate(new), Some(1.0));
        rates.finished(fast, f64::NAN);
        assert!(rates.rate(fast).unwrap().is_finite());
    }

    #[test]
    fn a_constant_worker_has_its_own_rate_whatever_the_weight() {
        for weight in [0.01, 0.1, 1.0] {
            let mut rates = ServiceRates::new(weight);
            (0..50).for_each(|_| rates.finished(WorkerId(1), 8.0));
            assert_eq!(rates.rate(WorkerId(1)), Some(0.125));
        }
    }
}
