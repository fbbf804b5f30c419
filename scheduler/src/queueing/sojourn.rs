//! Mean sojourn time: the mean of the largest of independent completion times, at which a reduce can start.
//!
//! Thesis, equations 4 to 10. The sum over all subsets (equations 6 and 10) overflows and cancels beyond some thirty
//! workers. The integral of `1 - product of F_i` is used here instead, for any number of workers.

use crate::queueing::quadrature::{QuadratureNode, integrate};
use crate::queueing::{Dtd, QueueError, WORKERS_MAX, sum};

/// Panels below the scale of the integrand; each is a quarter of the next, so the first is 4^-24 of it.
const PANELS_BELOW: i32 = 24;
/// Sum of survival functions below which they do not overlap: the maximum then exceeds by their sum.
const APART: f64 = 1e-11;

/// Returns the mean of the largest of these times, in seconds, with a relative error of about 1e-11; infinite if one of
/// the means is. O(n) for each of some hundred points; equal distributions count once.
///
/// # Errors
/// No distribution or too many, and parameters out of range.
pub fn mean_sojourn(times: &[Dtd]) -> Result<f64, QueueError> {
    if times.is_empty() || WORKERS_MAX < times.len() {
        return Err(QueueError::Workers { count: times.len() });
    }
    for time in times {
        Dtd::new(time.a, time.b, time.offset)?;
    }
    Ok(Largest::new(times).mean(&mut |_| {}))
}

/// Bounds of the mean sojourn time, in seconds (Lemma 9, equation 36).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Largest of the means.
    pub lower: f64,
    /// Sum of the means; a bound if none of the times can be negative.
    pub upper: f64,
}

/// Returns the bounds of Lemma 9 from the means of the completion times, in seconds.
#[must_use]
pub fn sojourn_bounds(means: &[f64]) -> Bounds {
    Bounds {
        lower: means.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        upper: sum(means.iter().copied()),
    }
}

/// Largest of independent times.
pub(crate) struct Largest {
    /// Different distributions, with the number of each.
    groups: Vec<(Dtd, f64)>,
    /// Largest offset, which is the minimum of the largest time.
    floor: f64,
}

impl Largest {
    /// Creates the maximum of these times; at least one.
    pub(crate) fn new(times: &[Dtd]) -> Self {
        let mut sorted = times.to_vec();
        let key = |time: &Dtd| (time.offset, time.a, time.b);
        sorted.sort_by(|one, other| {
            let ((t, a, b), (u, c, d)) = (key(one), key(other));
            t.total_cmp(&u).then(a.total_cmp(&c)).then(b.total_cmp(&d))
        });
        let mut groups: Vec<(Dtd, f64)> = Vec::new();
        for time in sorted {
            match groups.last_mut() {
                Some((last, count)) if *last == time => *count += 1.0,
                _ => groups.push((time, 1.0)),
            }
        }
        Self::of_groups(groups)
    }

    /// Creates the maximum of this many times of each distribution; at least one.
    pub(crate) fn of_groups(groups: Vec<(Dtd, f64)>) -> Self {
        let floor = groups.iter().map(|(time, _)| time.offset).fold(f64::NEG_INFINITY, f64::max);
        Self { groups, floor }
    }

    /// Returns the largest offset, in seconds: the largest time is never less.
    pub(crate) fn floor(&self) -> f64 {
        self.floor
    }

    /// Returns its mean in seconds. The points of the integral are passed to `points`, as times since the largest
    /// offset. Beyond the last of them the sum of the survival functions is less than 1e-11.
    pub(crate) fn mean(&self, points: &mut impl FnMut(QuadratureNode)) -> f64 {
        if self.groups.iter().any(|(time, _)| time.a == 0.0 && time.b <= 1.0) {
            return f64::INFINITY;
        }
        // Hazards decrease, so survival over hazard is at most the mean excess of each, and so of the largest.
        let excess = |(time, _): &(Dtd, f64)| {
            let x = self.floor - time.offset;
            (-time.cumulative_hazard(x)).exp() / time.hazard(x)
        };
        let scale = self.groups.iter().map(excess).fold(0.0, f64::max);
        let tolerance = 1e-14 * (scale + self.floor.abs());
        let floor = self.floor;
        let integrand = |x: f64| -self.log_product(x).exp_m1();
        let (mut low, mut high) = (0.0, scale * 0.25_f64.powi(PANELS_BELOW));
        let mut total = 0.0;
        while high.is_finite() {
            total += integrate(&integrand, low, high, tolerance, points);
            if self.groups.iter().map(|(time, count)| count * self.survival(time, high)).sum::<f64>() < APART
            {
                break;
            }
            (low, high) = (high, 4.0 * high);
        }
        let rest = self.groups.iter().map(|(time, count)| count * time.excess(floor - time.offset + high));
        floor + total + rest.sum::<f64>()
    }

    fn survival(&self, time: &Dtd, x: f64) -> f64 {
        (-time.cumulative_hazard(self.floor - time.offset + x)).exp()
    }

    /// Returns the logarithm of the probability that all are over at `x` after the largest offset.
    fn log_product(&self, x: f64) -> f64 {
        let floor = self.floor;
        self.groups
            .iter()
            .map(|(time, count)| count * log_below(time.cumulative_hazard(floor - time.offset + x)))
            .sum()
    }
}

/// Returns `ln(1 - exp(-z))` for `z >= 0`, accurate at both ends: heavy tails need small `z`, early times large ones.
pub(crate) fn log_below(z: f64) -> f64 {
    if z < std::f64::consts::LN_2 { (-(-z).exp_m1()).ln() } else { (-(-z).exp()).ln_1p() }
}
