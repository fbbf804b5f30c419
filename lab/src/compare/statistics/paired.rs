//! One number under two policies, pair by pair: the mean difference, its interval, and its probability if
//! the policies were equal.
//!
//! A pair is a repetition, in which both ran the same jobs. Jobs of one run depend on each other,
//! repetitions do not. Not here: judging (`difference`), and several comparisons together (`holm`).

use gristmill_scheduler::metrics::{Moments, student};

/// Maximum number of pairs that is recommended.
const PAIRS_MAX: u64 = 200;
/// Quantile of the normal distribution that four of five values do not exceed.
const FOUR_OF_FIVE: f64 = 0.8416;

/// Pairs of values under two policies as one number with its error.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Paired {
    /// Of the logarithms of the ratios.
    moments: Moments,
}

impl Paired {
    /// Pairs (one, other) by their ratio less 1. Ratios are averaged as logarithms, so that twice and half cancel and no
    /// interval reaches -100 %; pairs without a logarithm are left out. `None` without pairs.
    pub(super) fn from_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        let logarithms = pairs.iter().map(|(one, other)| (one / other).ln());
        let moments: Moments = logarithms.filter(|logarithm| logarithm.is_finite()).collect();
        (0 < moments.count()).then_some(Self { moments })
    }

    /// Returns the number of pairs that count.
    pub(super) fn pairs(&self) -> u64 {
        self.moments.count()
    }

    /// The mean, as a share of the other's value.
    pub(super) fn mean(&self) -> f64 {
        self.moments.mean().unwrap_or(0.0).exp_m1()
    }

    /// Returns the probability that pairs which differ only by noise are as far apart as these (Student's
    /// t, two-sided); `None` for fewer than two pairs.
    pub(super) fn chance(&self) -> Option<f64> {
        let (mean, error, freedom) = self.tested()?;
        // All pairs agree to the last digit, so there is no noise.
        if error <= 0.0 {
            return Some(if mean == 0.0 { 1.0 } else { 0.0 });
        }
        Some(student::two_sided(mean / error, freedom))
    }

    /// Returns the interval that contains the mean, except with this probability; `None` for fewer than
    /// two pairs.
    pub(super) fn interval(&self, level: f64) -> Option<[f64; 2]> {
        let (mean, error, freedom) = self.tested()?;
        let half = if error <= 0.0 { 0.0 } else { student::critical(level, freedom) * error };
        Some([(mean - half).exp_m1(), (mean + half).exp_m1()])
    }

    /// Returns the number of pairs of which four of five samples would show this mean at this level, if it and their
    /// spread are the true ones; `None` beyond [`PAIRS_MAX`], and for fewer than two pairs.
    pub(super) fn needed(&self, level: f64) -> Option<u64> {
        let (mean, deviation) = (self.moments.mean()?.abs(), self.moments.variance()?.sqrt());
        let is_enough = |pairs: u64| {
            let quantiles = student::critical(level, pairs - 1) + FOUR_OF_FIVE;
            quantiles * deviation / (pairs as f64).sqrt() < mean
        };
        // More pairs are enough too, and each look takes a quantile.
        let (mut few, mut enough) = (1, PAIRS_MAX);
        while few + 1 < enough {
            let middle = few.midpoint(enough);
            *(if is_enough(middle) { &mut enough } else { &mut few }) = middle;
        }
        is_enough(enough).then_some(enough)
    }

    /// Returns the mean, its standard error, and degrees of freedom.
    fn tested(&self) -> Option<(f64, f64, u64)> {
        let count = self.moments.count();
        let error = (self.moments.variance()? / count as f64).sqrt();
        Some((self.moments.mean()?, error, count - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ratios_of_known_numbers_have_students_interval_of_their_logarithms() {
        // Logarithms of -0.1, -0.2 and -0.3: mean -0.2, error 0.1 / √3, quantile 4.302653.
        let pairs: Vec<(f64, f64)> =
            [-0.1_f64, -0.2, -0.3].iter().map(|log| (5.0 * log.exp(), 5.0)).collect();
        let paired = Paired::from_pairs(&pairs).unwrap();
        assert!((paired.mean() - (-0.2_f64).exp_m1()).abs() < 1e-12);
        let [low, high] = paired.interval(0.05).unwrap();
        let half = 4.302_653 * 0.1 / 3.0_f64.sqrt();
        assert!((low - (-0.2 - half).exp_m1()).abs() < 1e-6 && (high - (-0.2 + half).exp_m1()).abs() < 1e-6);
        // t = 3.4641 with two degrees of freedom.
        assert!((paired.chance().unwrap() - 0.074_180).abs() < 1e-5, "{:?}", paired.chance());
    }

    #[test]
    fn twice_and_half_cancel() {
        let paired = Paired::from_pairs(&[(2.0, 1.0), (1.0, 2.0)]).unwrap();
        assert!(paired.mean().abs() < 1e-12);
    }

    #[test]
    fn pairs_that_agree_to_the_last_digit_are_no_noise() {
        let same = Paired::from_pairs(&[(100.0, 100.0); 3]).unwrap();
        assert_eq!((same.chance(), same.interval(0.05)), (Some(1.0), Some([0.0, 0.0])));
        let other = Paired::from_pairs(&[(3.0, 2.0); 3]).unwrap();
        assert_eq!((other.chance(), other.interval(0.05)), (Some(0.0), Some([0.5, 0.5])));
    }

    #[test]
    fn single_pair_has_a_mean_and_neither_interval_nor_chance() {
        let one = Paired::from_pairs(&[(3.0, 2.0)]).unwrap();
        assert_eq!((one.mean(), one.interval(0.05), one.chance()), (0.5, None, None));
        assert_eq!(Paired::from_pairs(&[]), None);
        assert_eq!(Paired::from_pairs(&[(0.0, 0.0), (1.0, 0.0)]), None, "no logarithms");
    }

    #[test]
    fn more_pairs_are_needed_the_smaller_the_mean_is_by_its_spread() {
        // Logarithms of -0.1 and 0.3: mean 0.1, deviation 0.2828; (2.00 + 0.84)² · 8 = 64.5 pairs.
        let logarithms = |values: &[f64]| {
            Paired::from_pairs(&values.iter().map(|value| (value.exp(), 1.0)).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(logarithms(&[-0.1, 0.3]).needed(0.05), Some(65));
        assert_eq!(logarithms(&[0.1, 0.3]).needed(0.05), Some(6), "(2.57 + 0.84)² · 0.5");
        assert_eq!(logarithms(&[-0.29, 0.3]).needed(0.05), None, "a mean of 0.005");
        assert_eq!(logarithms(&[0.3]).needed(0.05), None);
        assert_eq!(logarithms(&[0.0, 0.0]).needed(0.05), None, "equal policies");
    }

    proptest! {
        #[test]
        fn interval_holds_the_mean_and_stays_above_minus_a_hundred_percent(
            pairs in prop::collection::vec((1e-3..1e3_f64, 1e-3..1e3_f64), 2..20), level in 1e-4..0.5_f64,
        ) {
            let paired = Paired::from_pairs(&pairs).unwrap();
            let [low, high] = paired.interval(level).unwrap();
            prop_assert!(-1.0 <= low && low <= paired.mean() && paired.mean() <= high);
        }

        #[test]
        fn interval_leaves_out_zero_where_the_chance_is_below_its_level(
            pairs in prop::collection::vec((1.0..1.5_f64, 1.0..1.5_f64), 2..12), level in 1e-3..0.5_f64,
        ) {
            let paired = Paired::from_pairs(&pairs).unwrap();
            let [low, high] = paired.interval(level).unwrap();
            let chance = paired.chance().unwrap();
            prop_assume!(1e-6 < (chance - level).abs());
            prop_assert_eq!(chance < level, 0.0 < low || high < 0.0);
        }

        #[test]
        fn swapped_pairs_turn_the_ratio_over(pairs in prop::collection::vec((0.1..10.0_f64, 0.1..10.0_f64), 2..12)) {
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|&(one, other)| (other, one)).collect();
            let one = Paired::from_pairs(&pairs).unwrap();
            let other = Paired::from_pairs(&swapped).unwrap();
            prop_assert!(((1.0 + one.mean()) * (1.0 + other.mean()) - 1.0).abs() < 1e-9);
            prop_assert!((one.chance().unwrap() - other.chance().unwrap()).abs() < 1e-9);
        }
    }
}
