//! Means and percentiles of samples.
//!
//! Not here: intervals of means, which are the scheduler's (`Interval`), and differences (`paired`).

/// The value below which this share of the samples lies, between neighbours in proportion; `None` without samples.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_lie_between_neighbours_in_proportion() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(quantile(&ten, 0.5), Some(5.5));
        assert_eq!(quantile(&ten, 0.0), Some(1.0));
        assert_eq!(quantile(&ten, 1.0), Some(10.0));
        assert!((quantile(&ten, 0.95).unwrap() - 9.55).abs() < 1e-12);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[3.0], 0.99), Some(3.0));
    }

    proptest! {
        #[test]
        fn quantiles_never_fall_and_stay_within(samples in prop::collection::vec(-1e6..1e6_f64, 1..60), one in 0.0..1.0_f64, other in 0.0..1.0_f64) {
            let samples = sorted(samples);
            let (low, high) = (one.min(other), one.max(other));
            let (low, high) = (quantile(&samples, low).unwrap(), quantile(&samples, high).unwrap());
            prop_assert!(low <= high && samples[0] <= low && high <= samples[samples.len() - 1]);
        }
    }
}
