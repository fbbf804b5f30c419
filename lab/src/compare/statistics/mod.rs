//! Statistics of comparisons: balanced orders of runs, paired differences with intervals and chances, several of them
//! judged together; and means of samples.
//!
//! Not here: intervals of means and quantiles, which are the scheduler's (`metrics`).

mod difference;
mod holm;
pub(super) mod order;
mod paired;

pub use difference::{Difference, Scope, Shown};
pub(crate) use difference::{FlowTimes, differences};
pub(crate) use holm::{FALSE_MAX, PLANNED_SHARE};

/// Returns the samples in ascending order.
#[must_use]
pub fn sorted(samples: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut samples: Vec<f64> = samples.into_iter().collect();
    samples.sort_by(f64::total_cmp);
    samples
}

/// Returns the middle sample, the larger of two; `None` without samples.
#[must_use]
pub fn median(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    let samples = sorted(samples);
    samples.get(samples.len() / 2).copied()
}

/// Returns the mean; `None` without samples.
#[must_use]
pub fn mean(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for sample in samples {
        sum += sample;
        count += 1;
    }
    (0 < count).then(|| sum / f64::from(count))
}
