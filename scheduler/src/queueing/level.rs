//! The level at which an equilibrium settles: the root of a monotone function by bisection.
//!
//! The thesis takes the secant method, whose start can leave the domain.

/// The positive number at which `above` turns from true to false (true: the root lies above). `above` must be monotone;
/// the answer is exact to one unit in the last place, after 63 calls at most.
pub(crate) fn positive_root(above: impl Fn(f64) -> bool) -> f64 {
    // Bit patterns of positive floats rise with the value, so halving them covers all magnitudes alike.
    let (mut low, mut high) = (0_u64, f64::MAX.to_bits());
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if above(f64::from_bits(middle)) { low = middle } else { high = middle }
    }
    f64::from_bits(high)
}
