//! Delayed tailed distribution: thesis, definition 1, equations 1 and 2.
//!
//! `F(t) = 1 - exp(-a x - b ln(1 + x))` with `x = t - T` for `t >= T`, else 0: a shifted exponential if `b = 0`, a
//! shifted Pareto distribution if `a = 0`. Times are in seconds. Since `1 + x` has no unit, a `b` above 0 is only valid
//! for seconds. Fitting is in `estimate::dtd`. The thesis calls `1 / integral of exp(-Lambda)` the rate of X; it is
//! that of `X - T`.

use crate::queueing::QueueError;
use crate::queueing::quadrature::integrate;
use rand::{Rng, RngExt};

/// Newton's method needs fewer steps than this for every quantile.
const STEPS_MAX: u32 = 200;
/// Exponent at which an integrand, as `exp(-TINY)` of its start, is negligible in a double.
const TINY: f64 = 60.0;

/// Delayed tailed distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dtd {
    /// Rate of the exponential part, per second; at least 0.
    pub a: f64,
    /// Exponent of the Pareto part; at least 0, and not 0 together with `a`.
    pub b: f64,
    /// T: the smallest value, in seconds.
    pub offset: f64,
}

impl Dtd {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A parameter that is not finite, a negative `a` or `b`, and both 0.
    pub fn new(a: f64, b: f64, offset: f64) -> Result<Self, QueueError> {
        for (field, value) in [("a", a), ("b", b)] {
            if !(value.is_finite() && 0.0 <= value) {
                return Err(QueueError::Setting { field, value, wanted: "a finite number of at least 0" });
            }
        }
        if a + b <= 0.0 {
            return Err(QueueError::Setting { field: "a", value: a, wanted: "above 0 where `b` is 0" });
        }
        if !offset.is_finite() {
            return Err(QueueError::Setting { field: "T", value: offset, wanted: "a finite time" });
        }
        Ok(Self { a, b, offset })
    }

    /// Lambda: minus the logarithm of the survival function, at `x` seconds after the offset.
    pub(crate) fn cumulative_hazard(&self, x: f64) -> f64 {
        self.a * x + if self.b == 0.0 { 0.0 } else { self.b * x.ln_1p() }
    }

    /// The derivative of Lambda, per second.
    pub(crate) fn hazard(&self, x: f64) -> f64 {
        self.a + self.b / (1.0 + x)
    }

    /// Probability of at most `t` seconds (equation 1).
    #[must_use]
    pub fn cdf(&self, t: f64) -> f64 {
        if t < self.offset { 0.0 } else { -(-self.cumulative_hazard(t - self.offset)).exp_m1() }
    }

    /// Probability density at `t` seconds, per second (equation 2).
    #[must_use]
    pub fn pdf(&self, t: f64) -> f64 {
        let x = t - self.offset;
        if x < 0.0 { 0.0 } else { self.hazard(x) * (-self.cumulative_hazard(x)).exp() }
    }

    /// Mean in seconds; infinite where `a = 0` and `b <= 1`.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.offset + self.excess(0.0)
    }

    /// Returns the integral of the survival function from `x` seconds after the offset to infinity, in seconds.
    pub(crate) fn excess(&self, x: f64) -> f64 {
        let survival = (-self.cumulative_hazard(x)).exp();
        if self.b == 0.0 {
            survival / self.a
        } else {
            // With `y = x + (1 + x) w` the rest is a distribution of the same family.
            survival * (1.0 + x) * tail(self.a * (1.0 + x), self.b)
        }
    }

    /// Returns the time below which a fraction `p` of all values is, in seconds; `p` in `[0, 1)`.
    #[must_use]
    pub fn quantile(&self, p: f64) -> f64 {
        let target = -(-p).ln_1p();
        if self.b == 0.0 {
            return self.offset + target / self.a;
        }
        // In `v = ln(1 + x)` Lambda is convex, so Newton's method approaches the root from one side.
        let mut v = (target / self.b).min((target / self.a).ln_1p());
        for _ in 0..STEPS_MAX {
            let step = (self.a * v.exp_m1() + self.b * v - target) / (self.a * v.exp() + self.b);
            v -= step;
            if step.abs() <= 1e-15 * v.abs() {
                break;
            }
        }
        self.offset + v.exp_m1()
    }

    /// Draws a value, in seconds.
    pub fn sample(&self, random: &mut (impl Rng + ?Sized)) -> f64 {
        self.quantile(random.random::<f64>())
    }
}

/// `integral of exp(-c w) (1 + w)^-b` over `w` from 0 to infinity, for `b` above 0.
fn tail(c: f64, b: f64) -> f64 {
    if c == 0.0 {
        return if b <= 1.0 { f64::INFINITY } else { 1.0 / (b - 1.0) };
    }
    // In `v = ln(1 + w)` heavy tails become exponential ones.
    let integrand = |v: f64| (-c * v.exp_m1() - (b - 1.0) * v).exp();
    let mut end = (800.0 / c).ln_1p();
    if 1.0 < b {
        end = end.min(TINY / (b - 1.0));
    }
    // The hazard decreases, so this is at most the mean. Panels grow from here, but not beyond unit scale, where the
    // integrand bends.
    let mut width = 1.0 / (c + b);
    let (mut low, mut total) = (0.0_f64, 0.0_f64);
    while low < end {
        let high = (low + width).min(end);
        total += integrate(&integrand, low, high, 1e-16 * total.max(width), &mut |_| {});
        low = high;
        width = (2.0 * width).min(1.0);
    }
    total
}
