//! Minimum-weight perfect matching of a complete graph.
//!
//! Method: Edmonds' blossom algorithm in its primal-dual form, in O(n³). Every vertex has a price `y`, and every
//! blossom (an odd set of vertices contracted to one node) a price `z >= 0`. The slack of an edge is its weight minus
//! the prices of both ends, plus those of the blossoms that contain both, and stays at least 0. From each unmatched
//! vertex an alternating tree grows along edges of slack 0. If no such edge continues it, prices change until one does,
//! an odd cycle becomes a blossom, or a blossom's price is 0 and it is expanded. The tree ends at another unmatched
//! vertex, which adds one pair. At the end all edges of the matching have slack 0, which proves that its weight is
//! minimal.
//!
//! Prices are integers, so there are no rounding errors. Weights are rounded to the number of bits of the largest one
//! that fits, 50 for a thousand vertices; integers and short binary fractions are exact. Invariant: vertices of outer
//! nodes of the tree have prices of the same parity, since weights are multiples of 4 and initial prices are even. So
//! half a slack between two of them is an integer.

mod blossom;

/// Maximum number of vertices; the tables grow with its square, to about 140 MB.
const VERTICES_MAX: usize = 2_048;

/// Bits of prices, one less than available for a sign. Weights count 4 times, and a path can add up `n` of them.
const PRICE_BITS: u32 = 62;

/// Returns the pairs of a perfect matching of `n` vertices whose sum of weights is minimal, each with the lower vertex
/// first, in the order of the lower ones. `weight(a, b)` is called once for each `a < b`. O(n³) time, O(n²) memory.
///
/// # Panics
/// If `n` is odd or above [`VERTICES_MAX`], or a weight is not finite.
pub fn minimum_weight_perfect(n: usize, weight: impl Fn(usize, usize) -> f64) -> Vec<[usize; 2]> {
    assert!(n.is_multiple_of(2), "{n} vertices cannot be matched: an odd number");
    assert!(n <= VERTICES_MAX, "{n} vertices cannot be matched: more than {VERTICES_MAX}");
    let mut weights = vec![0.0; n * n];
    let mut largest = 0.0_f64;
    for a in 0..n {
        for b in a + 1..n {
            let weight = weight(a, b);
            assert!(weight.is_finite(), "the weight of {a} with {b} is {weight}");
            largest = largest.max(weight.abs());
            weights[a * n + b] = weight;
            weights[b * n + a] = weight;
        }
    }
    // The power of two that makes the largest weight use all bits. It is applied in two steps, since one factor alone
    // may be out of range.
    let bits = PRICE_BITS - 2 - n.next_power_of_two().ilog2();
    let exponent = if largest == 0.0 { 0 } else { bits as i32 - 1 - (largest.log2().floor() as i32) };
    let (half, rest) = (exponent / 2, exponent - exponent / 2);
    let whole = |weight: f64| (weight * 2.0_f64.powi(half) * 2.0_f64.powi(rest)).round() as i64;
    let weights: Vec<i64> = weights.into_iter().map(whole).collect();
    blossom::solve(n, &weights).pairs()
}

#[cfg(test)]
mod tests;
