//! Statistics of comparisons: balanced orders of runs, paired differences with intervals and
//! probabilities, corrections for several of them, required repetitions, and means of samples.
//!
//! Not here: intervals of means and quantiles, which are in the scheduler (`metrics`).

mod difference;
mod holm;
pub(super) mod order;
mod paired;
mod power;

pub use difference::{Difference, FlowTimes, Scope, Shown, difference, differences};
pub use holm::{Candidate, FALSE_MAX, Judgement, PLANNED_SHARE, judge};
pub use paired::{Contrast, Paired};
pub use power::{Need, POWER, SPREAD_SURE, repetitions};

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
