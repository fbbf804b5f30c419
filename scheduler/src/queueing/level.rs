//! Level of an equilibrium: the root of a monotone function by bisection.
//!
//! The thesis uses the secant method, whose start can leave the domain.

/// Returns the positive number at which `above` changes from true to false (true: the root is above). `above` must be
/// monotone. The result is exact to one unit in the last place, after at most 63 calls.
pub(crate) fn positive_root(above: impl Fn(f64) -> bool) -> f64 {
    // Bit patterns of positive floats increase with the value, so bisecting them covers all magnitudes alike.
    let (mut low, mut high) = (0_u64, f64::MAX.to_bits());
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if above(f64::from_bits(middle)) { low = middle } else { high = middle }
    }
    f64::from_bits(high)
}
