//! Means of samples, and samples in order.
//!
//! Not here: intervals of means and quantiles, which are the scheduler's (`metrics`), and differences (`paired`).

/// The same samples in order.
#[must_use]
pub fn sorted(samples: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut samples: Vec<f64> = samples.into_iter().collect();
    samples.sort_by(f64::total_cmp);
    samples
}

/// The mean; `None` without samples.
#[must_use]
pub fn mean(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for sample in samples {
        sum += sample;
        count += 1;
    }
    (0 < count).then(|| sum / f64::from(count))
}
