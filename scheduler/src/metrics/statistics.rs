//! Means with their 95 % confidence intervals, quantiles, and Jain's fairness index.

use super::student;

/// Probability with which an interval does not contain the mean.
const LEVEL: f64 = 0.05;

/// Mean and variance of a stream, by Welford's update, which avoids cancellation.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a sample.
    pub fn push(&mut self, sample: f64) {
        self.count += 1;
        let before = sample - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (sample - self.mean);
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean; `None` without samples.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (0 < self.count).then_some(self.mean)
    }

    /// Returns the variance, with denominator `count - 1`; `None` with fewer than two samples.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        (1 < self.count).then(|| self.squares / (self.count - 1) as f64)
    }

    /// Returns the mean with its 95 % interval, assuming independent and approximately normal samples; `None` without
    /// samples.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        let mean = self.mean()?;
        let half_width = self
            .variance()
            .map(|variance| student::critical(LEVEL, self.count - 1) * (variance / self.count as f64).sqrt());
        Some(Interval { mean, half_width, samples: self.count })
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        let mut moments = Moments::default();
        for sample in samples {
            moments.push(sample);
        }
        moments
    }
}

/// Mean with its confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Interval {
    pub mean: f64,
    /// Half width of the 95 % interval (Student's t); `None` for a single sample.
    pub half_width: Option<f64>,
    /// Number of samples.
    pub samples: u64,
}

impl Interval {
    /// Computes the interval of independent samples, such as one mean for each seed; `None` without samples.
    #[must_use]
    pub fn from_samples(samples: &[f64]) -> Option<Interval> {
        samples.iter().copied().collect::<Moments>().interval()
    }

    /// Returns a number without sampling error.
    #[must_use]
    pub fn exactly(number: f64) -> Interval {
        Interval { mean: number, half_width: Some(0.0), samples: u64::MAX }
    }

    /// Returns the difference to the mean of other, independent samples, whose variance may differ (Welch).
    ///
    /// Degrees of freedom are rounded down; `samples` is one more than they are.
    #[must_use]
    pub fn minus(&self, other: &Interval) -> Interval {
        let mean = self.mean - other.mean;
        let (Some(ours), Some(theirs)) = (self.squared_error(), other.squared_error()) else {
            return Interval { mean, half_width: None, samples: 1 };
        };
        let whole = ours + theirs;
        if whole == 0.0 {
            return Interval::exactly(mean);
        }
        let part = |square: f64, samples: u64| square * square / (samples - 1) as f64;
        let freedom = whole * whole / (part(ours, self.samples) + part(theirs, other.samples));
        let freedom = (freedom as u64).max(1);
        Interval {
            mean,
            half_width: Some(student::critical(LEVEL, freedom) * whole.sqrt()),
            samples: freedom + 1,
        }
    }

    /// Returns the difference to the mean of this many more samples with the same variance. The interval
    /// contains 0 in 95 of 100 cases if both have the same distribution.
    #[must_use]
    pub fn minus_drawn_alike(&self, other: f64, samples: u64) -> Interval {
        let widened = (1.0 + self.samples as f64 / samples.max(1) as f64).sqrt();
        let half_width = self.half_width.map(|half_width| half_width * widened);
        Interval { mean: self.mean - other, half_width, samples: self.samples }
    }

    /// Returns the square of the standard error.
    fn squared_error(&self) -> Option<f64> {
        let half_width = self.half_width?;
        Some(if half_width == 0.0 {
            0.0
        } else {
            (half_width / student::critical(LEVEL, self.samples - 1)).powi(2)
        })
    }
}

/// Returns the smallest of these samples, given in ascending order, that is at least as large as this fraction of them;
/// `None` without samples.
///
/// # Panics
/// If `part` is not from 0 to 1.
#[must_use]
pub fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    sorted.get(rank(part, sorted.len() as u64) as usize - 1).copied()
}

/// Returns the number of samples up to and including that quantile.
pub(super) fn rank(part: f64, count: u64) -> u64 {
    assert!((0.0..=1.0).contains(&part), "quantile {part}");
    ((part * count as f64).ceil() as u64).max(1)
}

pub(super) fn jain_of_sums(count: u64, sum: f64, squares: f64) -> Option<f64> {
    (0.0 < squares).then(|| sum * sum / (count as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_of_three_samples_is_students() {
        let interval = Interval::from_samples(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((interval.mean, interval.samples), (2.0, 3));
        // 4.302653 · sqrt(1 / 3)
        assert!((interval.half_width.unwrap() - 2.484_138).abs() < 1e-5);
        assert_eq!(Interval::from_samples(&[5.0]).unwrap().half_width, None);
        assert_eq!(Interval::from_samples(&[]), None);
    }

    #[test]
    fn a_quantile_is_a_sample_that_so_many_do_not_exceed() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        for (part, sample) in [(0.0, 1.0), (0.1, 1.0), (0.11, 2.0), (0.5, 5.0), (0.95, 10.0), (1.0, 10.0)] {
            assert_eq!(quantile(&ten, part), Some(sample), "{part}");
        }
        assert_eq!(quantile(&[3.0], 0.99), Some(3.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn a_difference_of_two_means_has_welchs_interval() {
        let one = Interval::from_samples(&[1.0, 2.0, 3.0]).unwrap();
        let other = Interval::from_samples(&[10.0, 14.0, 18.0, 22.0]).unwrap();
        // Variances 1 and 80 / 3 over 3 and 4: standard error sqrt(7), 49 / (1 / 18 + 400 / 27) degrees of freedom.
        let apart = one.minus(&other);
        assert_eq!((apart.mean, apart.samples), (-14.0, 4));
        assert!((apart.half_width.unwrap() - 3.182_446 * 7.0_f64.sqrt()).abs() < 1e-5);
        let exact = one.minus(&Interval::exactly(0.5));
        assert!((exact.half_width.unwrap() - one.half_width.unwrap()).abs() < 1e-9);
        assert_eq!(Interval::exactly(3.0).minus(&Interval::exactly(2.0)).half_width, Some(0.0));
        assert_eq!(one.minus(&Interval::from_samples(&[1.0]).unwrap()).half_width, None);
    }

    #[test]
    fn a_single_further_sample_is_further_off_than_the_mean() {
        let one = Interval::from_samples(&[1.0, 2.0, 3.0]).unwrap();
        let apart = one.minus_drawn_alike(7.0, 1);
        assert_eq!(apart.mean, -5.0);
        assert!((apart.half_width.unwrap() - 4.302_653 * (4.0_f64 / 3.0).sqrt()).abs() < 1e-5);
    }

    proptest! {
        #[test]
        fn moments_are_those_of_two_passes(samples in prop::collection::vec(-1e3..1e3_f64, 2..50)) {
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (samples.len() - 1) as f64;
            let moments: Moments = samples.iter().copied().collect();
            prop_assert!((moments.mean().unwrap() - mean).abs() < 1e-9);
            prop_assert!((moments.variance().unwrap() - variance).abs() < 1e-6 * variance.max(1.0));
        }
    }
}
