//! Tests of matchings against trying all pairs, and against the prices that prove them minimal.

use super::blossom::solve;
use super::minimum_weight_perfect;
use proptest::prelude::*;

/// Returns the smallest weight by trying all: vertices as bits, the lowest one left is matched with each other one.
fn smallest_by_trying(n: usize, weights: &[i64]) -> i64 {
    let mut best = vec![i64::MAX; 1 << n];
    best[0] = 0;
    for set in 1_usize..1 << n {
        if set.count_ones() % 2 == 1 {
            continue;
        }
        let first = set.trailing_zeros() as usize;
        let rest = set & !(1 << first);
        let others = (0..n).filter(|other| rest >> other & 1 == 1);
        best[set] =
            others.map(|other| best[rest & !(1 << other)] + weights[first * n + other]).min().unwrap();
    }
    best[(1 << n) - 1]
}

fn symmetric(n: usize, weight: impl Fn(usize, usize) -> i64) -> Vec<i64> {
    let both = |place: usize| (place / n, place % n);
    (0..n * n).map(both).map(|(a, b)| if a == b { 0 } else { weight(a.min(b), a.max(b)) }).collect()
}

/// Weights of a complete graph of an even number of vertices, from ranges that make many or few ties.
fn graphs(halves_max: usize) -> impl Strategy<Value = (usize, Vec<i64>)> {
    let sizes = (0..=halves_max, prop_oneof![Just(2_i64), Just(10), Just(1000), Just(1 << 50)]);
    sizes.prop_flat_map(|(half, range)| {
        let n = 2 * half;
        let drawn = prop::collection::vec(-range..range, n * n);
        drawn.prop_map(move |drawn| (n, symmetric(n, |a, b| drawn[a * n + b])))
    })
}

proptest! {
    #[test]
    fn matching_is_as_light_as_the_lightest_of_all((n, weights) in graphs(6)) {
        let solved = solve(n, &weights);
        prop_assert_eq!(solved.proven_weight(), smallest_by_trying(n, &weights));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn matching_is_proven_by_its_prices_when_there_are_too_many_to_try((n, weights) in graphs(40)) {
        let pairs = solve(n, &weights).pairs();
        let weight: i64 = pairs.iter().map(|&[a, b]| weights[a * n + b]).sum();
        prop_assert_eq!(solve(n, &weights).proven_weight(), weight);
        let mut vertices: Vec<usize> = pairs.concat();
        vertices.sort_unstable();
        prop_assert_eq!(vertices, (0..n).collect::<Vec<_>>());
    }

    /// Triangles of near vertices: blossoms within blossoms.
    #[test]
    fn matching_is_proven_where_vertices_lie_in_odd_clusters(
        places in prop::collection::vec((0_i64..4, 0_i64..4, 0_i64..3), 0..40),
    ) {
        let points: Vec<(i64, i64)> = places.iter().flat_map(|&(x, y, z)| {
            [(100 * x, 100 * y), (100 * x + z, 100 * y), (100 * x, 100 * y + z)]
        }).collect();
        let n = points.len() / 2 * 2;
        let weights = symmetric(n, |a, b| {
            (points[a].0 - points[b].0).abs() + (points[a].1 - points[b].1).abs()
        });
        solve(n, &weights).proven_weight();
    }
}

#[test]
fn weights_that_are_binary_fractions_are_exact_however_large_or_small() {
    for scale in [1.0, 0.25, f64::MIN_POSITIVE, 2.0_f64.powi(1000)] {
        // Two distant triangles: one edge has to cross, and the cheapest crossing costs one short edge more.
        let near = |a: usize, b: usize| if a / 3 == b / 3 { 1.0 } else { 9.0 + (a + b) as f64 };
        let pairs = minimum_weight_perfect(6, |a, b| near(a, b) * scale);
        assert_eq!(pairs, [[0, 3], [1, 2], [4, 5]], "scale {scale:e}");
    }
    assert_eq!(minimum_weight_perfect(2, |_, _| 0.0), [[0, 1]]);
    assert!(minimum_weight_perfect(0, |_, _| 0.0).is_empty());
}
