//! Student's t distribution, for intervals and tests.

use std::f64::consts::FRAC_2_PI;

/// Maximum distinguished degrees of freedom. Beyond it this distribution is used, whose quantiles are less than 0.02 %
/// too large.
const FREEDOM_MAX: u64 = 10_000;

/// Number of bisection steps for a quantile: more have no effect.
const HALVINGS: u32 = 200;

/// Returns the probability that a t of this many degrees of freedom is further from 0 than `t`, on either side.
///
/// Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4: exact except for rounding, so that
/// probabilities below 1e-14 are meaningless. O(freedom).
///
/// # Panics
/// If `freedom` is 0.
#[must_use]
pub fn two_sided(t: f64, freedom: u64) -> f64 {
    assert!(0 < freedom, "a t distribution has at least one degree of freedom");
    let freedom = freedom.min(FREEDOM_MAX);
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    // 1 + 1/2 cos² + 1·3/(2·4) cos⁴ + ..., or cos + 2/3 cos³ + ..., until the power is freedom - 2.
    let (mut term, mut sum) = if odd { (cosine, 0.0) } else { (1.0, 0.0) };
    let mut power = if odd { 1 } else { 0 };
    while power + 2 <= freedom {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    let within = if odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

/// Returns the distance from 0 that a t of this many degrees of freedom exceeds on either side with
/// probability `level`. It is the half width of an interval of `1 - level`, in standard errors. Infinite for
/// a level of 0.
///
/// # Panics
/// If `freedom` is 0, or `level` is not a probability.
#[must_use]
pub fn critical(level: f64, freedom: u64) -> f64 {
    assert!((0.0..=1.0).contains(&level), "a level of {level}");
    if level == 0.0 {
        return f64::INFINITY;
    }
    if level == 0.05 {
        return critical_of_95(freedom);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while level < two_sided(high, freedom) {
        if f64::MAX / 2.0 < high {
            return f64::INFINITY;
        }
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if level < two_sided(middle, freedom) { low = middle } else { high = middle }
    }
    high
}

/// [`critical`] for the usual level, which is needed for streams of millions. Uses a table up to 30, then the
/// expansion of Cornish and Fisher around the normal quantile, correct to six digits there.
fn critical_of_95(freedom: u64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157,
        2.228_139, 2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922,
        2.093_024, 2.085_963, 2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831,
        2.048_407, 2.045_230, 2.042_272,
    ];
    const NORMAL: f64 = 1.959_963_985;
    match TABLE.get(freedom as usize - 1) {
        Some(&quantile) => quantile,
        None => {
            let (z, n) = (NORMAL, freedom as f64);
            let first = (z.powi(3) + z) / 4.0;
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
            z + first / n + second / (n * n) + third / (n * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        // Two-sided levels and degrees of freedom, as in printed tables of Student's t.
        for (level, freedom, printed) in [
            (0.05, 1, 12.706_205),
            (0.05, 2, 4.302_653),
            (0.01, 2, 9.924_843),
            (0.05, 11, 2.200_985),
            (0.01, 11, 3.105_807),
            (0.001, 5, 6.868_827),
            (0.2, 10, 1.372_184),
            (0.5, 4, 0.740_697),
            (0.05, 60, 2.000_298),
        ] {
            let found = critical(level, freedom);
            assert!((found - printed).abs() < 2e-6, "{level}, {freedom}: {found} and not {printed}");
        }
        assert!((critical(0.05, u64::MAX) - 1.959_964).abs() < 4e-4);
    }

    #[test]
    fn the_usual_interval_is_that_of_the_distribution() {
        for freedom in (1..100).chain([1_000, 10_000]) {
            let (found, chance) = (critical(0.05, freedom), two_sided(critical(0.05, freedom), freedom));
            assert!((chance - 0.05).abs() < 2e-7, "{freedom}: {found} is exceeded with {chance}");
        }
        assert!((critical(0.05, 1_000_000) - 1.959_966).abs() < 1e-5);
    }

    #[test]
    fn chances_at_the_ends_are_one_and_nothing() {
        assert_eq!(two_sided(0.0, 3), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 3), 0.0);
        assert_eq!(two_sided(f64::INFINITY, 4), 0.0);
        assert!((two_sided(1.0, 1) - 0.5).abs() < 1e-15);
        assert_eq!(critical(0.0, 5), f64::INFINITY);
        assert!(critical(1.0, 5) < 1e-12);
    }

    proptest! {
        #[test]
        fn quantiles_and_chances_turn_each_other_back(level in 1e-6..0.99_f64, freedom in 1..400_u64) {
            let found = two_sided(critical(level, freedom), freedom);
            prop_assert!((found - level).abs() < 1e-9 * level.max(1e-3), "{level} became {found}");
        }

        #[test]
        fn fewer_degrees_of_freedom_reach_further(level in 1e-4..0.9_f64, freedom in 1..300_u64) {
            prop_assert!(critical(level, freedom + 1) < critical(level, freedom));
        }
    }
}
