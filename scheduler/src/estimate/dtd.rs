//! Fit of a delayed tailed distribution to measured times, by maximum likelihood.
//!
//! Stragglers thesis, section 3-2. The offset is the shortest time. Let `x_i` be the times minus the offset.
//! The logarithm of the likelihood, `sum of ln(a + b / (1 + x_i)) - a sum of x_i - b sum of ln(1 + x_i)`, is
//! concave in `a, b >= 0`. At its maximum `a sum of x_i + b sum of ln(1 + x_i) = n`. One unknown remains,
//! which is found by bisection with a check of both ends (a purely exponential, a purely Pareto tail). The
//! error is the mean of `(F(t_(i)) - i / n)^2` over the sorted times.

use crate::queueing::Dtd;

/// Maximum number of times.
pub(crate) const TIMES_MAX: usize = 100_000_000;

/// Fitted distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// The distribution; times in seconds.
    pub dtd: Dtd,
    /// Logarithm of the likelihood of the times minus the offset.
    pub log_likelihood: f64,
    /// Mean squared difference from the empirical distribution function.
    pub mean_squared_error: f64,
    /// Number of times.
    pub count: usize,
}

/// Error of fitting.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// A time is negative or not finite.
    #[error("time {index} is {value}, which is not a finite time of at least 0 s")]
    Time {
        /// Index of the time, from 0.
        index: usize,
        /// Given value, in seconds.
        value: f64,
    },
    /// Fewer than two different times, so the variation is unknown.
    #[error("a fit needs two different times; there are {count} times, all the same")]
    Same {
        /// Number of times.
        count: usize,
    },
    /// Too many times.
    #[error("there are {count} times, more than the limit of {}", TIMES_MAX)]
    Many {
        /// Number of times.
        count: usize,
    },
}

/// Fits a distribution to these times in seconds. O(n log n).
///
/// # Errors
/// A time out of range, too many of them, or fewer than two different ones.
pub fn fit(times: &[f64]) -> Result<Fit, FitError> {
    if TIMES_MAX < times.len() {
        return Err(FitError::Many { count: times.len() });
    }
    if let Some(index) = times.iter().position(|time| !(time.is_finite() && 0.0 <= *time)) {
        return Err(FitError::Time { index, value: times[index] });
    }
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(&offset), Some(&longest)) = (sorted.first(), sorted.last()) else {
        return Err(FitError::Same { count: 0 });
    };
    if longest <= offset {
        return Err(FitError::Same { count: times.len() });
    }
    let excess: Vec<f64> = sorted.iter().map(|time| time - offset).collect();
    let (a, b) = most_likely(&excess);
    let dtd = Dtd { a, b, offset };
    let log_likelihood = excess.iter().map(|x| dtd.hazard(*x).ln() - dtd.cumulative_hazard(*x)).sum::<f64>();
    let count = sorted.len();
    let error = |(index, time): (usize, &f64)| (dtd.cdf(*time) - (index + 1) as f64 / count as f64).powi(2);
    let mean_squared_error = sorted.iter().enumerate().map(error).sum::<f64>() / count as f64;
    Ok(Fit { dtd, log_likelihood, mean_squared_error, count })
}

/// Returns the most likely `a` and `b`; at least one of the times must be above 0.
fn most_likely(excess: &[f64]) -> (f64, f64) {
    let count = excess.len() as f64;
    let a = count / excess.iter().sum::<f64>();
    let b = count / excess.iter().map(|x| x.ln_1p()).sum::<f64>();
    // Between (a, 0) and (0, b): the derivative of the likelihood by `part`, which is decreasing.
    let slope = |part: f64| -> f64 {
        let term = |x: &f64| (b / (1.0 + x) - a) / ((1.0 - part) * a + part * b / (1.0 + x));
        excess.iter().map(term).sum()
    };
    if slope(0.0) <= 0.0 {
        return (a, 0.0);
    }
    if 0.0 <= slope(1.0) {
        return (0.0, b);
    }
    let (mut low, mut high) = (0.0, 1.0);
    // Each iteration adds a bit.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if 0.0 < slope(middle) { low = middle } else { high = middle }
    }
    ((1.0 - low) * a, low * b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    fn near(computed: f64, expected: f64, tolerance: f64) {
        let off = (computed - expected).abs();
        assert!(off <= tolerance * expected.abs().max(1.0), "computed {computed}, expected {expected}");
    }

    #[test]
    fn worked_mle12() {
        let fit = fit(&[2.0, 2.1, 2.3, 2.35, 2.8, 3.1, 3.6, 4.4, 6.0, 9.5, 15.0, 31.0]).unwrap();
        near(fit.dtd.offset, 2.0, 0.0);
        near(fit.dtd.a, 0.0394463167128701, 1e-6);
        near(fit.dtd.b, 0.689805499168807, 1e-6);
        near(fit.log_likelihood, -27.3876355922405, 1e-6);
        near(fit.mean_squared_error, 0.00502210540209278, 1e-6);
    }

    #[test]
    fn times_that_cannot_be_fitted_are_named() {
        assert_eq!(fit(&[1.0, -1.0]), Err(FitError::Time { index: 1, value: -1.0 }));
        assert!(matches!(fit(&[1.0, f64::NAN]), Err(FitError::Time { index: 1, .. })));
        assert_eq!(fit(&[]), Err(FitError::Same { count: 0 }));
        assert_eq!(fit(&[3.0, 3.0]), Err(FitError::Same { count: 2 }));
    }

    #[test]
    fn a_fit_of_many_drawn_times_finds_their_distribution() {
        for (seed, dtd) in [(1, (0.0, 1.7, 2.0)), (2, (0.5, 0.0, 1.0)), (3, (0.2, 1.2, 5.0))]
            .map(|(seed, (a, b, offset))| (seed, Dtd { a, b, offset }))
        {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let times: Vec<f64> = (0..20_000).map(|_| dtd.sample(&mut random)).collect();
            let fit = fit(&times).unwrap();
            assert!((fit.dtd.a - dtd.a).abs() < 0.05, "seed {seed}: {fit:?}");
            assert!((fit.dtd.b - dtd.b).abs() < 0.1, "seed {seed}: {fit:?}");
            assert!(fit.mean_squared_error < 1e-4, "seed {seed}: {fit:?}");
        }
    }

    proptest! {
        #[test]
        fn no_neighbour_is_more_likely(times in prop::collection::vec(0.0_f64..50.0, 2..60), seed in 0_u64..1000) {
            prop_assume!(times.iter().any(|time| *time != times[0]));
            let best = fit(&times).unwrap();
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            for _ in 0..20 {
                let mut shift = || 0.2 * (rand::RngExt::random::<f64>(&mut random) - 0.5);
                let a = (best.dtd.a + shift()).max(0.0);
                let other = Dtd { a, b: (best.dtd.b + shift()).max(0.0), offset: best.dtd.offset };
                let likelihood: f64 = times
                    .iter()
                    .map(|time| time - other.offset)
                    .map(|x| other.hazard(x).ln() - other.cumulative_hazard(x))
                    .sum();
                prop_assert!(likelihood <= best.log_likelihood + 1e-9, "{other:?} {best:?}");
            }
        }
    }
}
