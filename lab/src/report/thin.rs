//! Fewer points than there are, chosen so that the curve looks the same.
//!
//! Not here: how they are drawn. CSV files hold all of them.

/// Points that a series is drawn with at most.
pub(super) const POINTS_MAX: usize = 900;

/// Points nearer to the one before than this share of the plot's width and of its height are left out: about a pixel.
const NEAR: f64 = 1.0 / 420.0;

/// Indices of at most `most` points (but no fewer than 6), in order; points are shares of the plot's width and height.
/// The first, the last, the lowest and the highest are among them.
pub(super) fn thin(points: &[(f64, f64)], most: usize) -> Vec<usize> {
    let most = most.max(6);
    if points.len() <= most {
        return (0..points.len()).collect();
    }
    let far = apart(points);
    if far.len() <= most {
        return far;
    }
    // A curve that goes up and down all the time: its envelope is what can be seen.
    let places: Vec<(f64, f64)> = far.iter().map(|&index| points[index]).collect();
    envelope(&places, most).into_iter().map(|place| far[place]).collect()
}

/// Points that are not near the one before; the first, the last, the lowest and the highest.
fn apart(points: &[(f64, f64)]) -> Vec<usize> {
    let by_height = |left: &usize, right: &usize| points[*left].1.total_cmp(&points[*right].1);
    let all = 0..points.len();
    let mut kept: Vec<usize> = all
        .clone()
        .min_by(by_height)
        .into_iter()
        .chain(all.clone().max_by(by_height))
        .chain(all.clone().last())
        .collect();
    let mut before: Option<(f64, f64)> = None;
    for (index, &(x, y)) in points.iter().enumerate() {
        if before.is_none_or(|(left, low)| NEAR <= (x - left).abs() || NEAR <= (y - low).abs()) {
            kept.push(index);
            before = Some((x, y));
        }
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Of each stretch the lowest, the highest and those at its ends.
fn envelope(points: &[(f64, f64)], most: usize) -> Vec<usize> {
    let count = points.len();
    let stretches = (most - 2) / 4;
    let mut kept = vec![0, count - 1];
    for stretch in 0..stretches {
        let (start, end) = (stretch * count / stretches, (stretch + 1) * count / stretches);
        let by_height = |left: &usize, right: &usize| points[*left].1.total_cmp(&points[*right].1);
        kept.extend((start..end).min_by(by_height));
        kept.extend((start..end).max_by(by_height));
        kept.extend([start, end - 1]);
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::{POINTS_MAX, thin};
    use proptest::prelude::*;

    #[test]
    fn short_series_are_left_alone() {
        let points: Vec<(f64, f64)> = (0..POINTS_MAX).map(|place| (place as f64, 0.0)).collect();
        assert_eq!(thin(&points, POINTS_MAX), (0..POINTS_MAX).collect::<Vec<_>>());
        assert_eq!(thin(&[], POINTS_MAX), [0_usize; 0]);
    }

    #[test]
    fn monotone_curve_loses_nothing_that_can_be_seen() {
        let curve = |step: u32| {
            let share = f64::from(step) / 100_000.0;
            (share.powi(40), share)
        };
        let points: Vec<(f64, f64)> = (0..=100_000).map(curve).collect();
        let kept = thin(&points, POINTS_MAX);
        assert!(kept.len() < POINTS_MAX, "{} points", kept.len());
        for pair in kept.windows(2) {
            let (left, right) = (points[pair[0]], points[pair[1] - 1]);
            assert!(right.0 - left.0 < super::NEAR && right.1 - left.1 < super::NEAR);
        }
    }

    proptest! {
        #[test]
        fn thinning_keeps_ends_and_extremes(heights in prop::collection::vec(0.0..1.0_f64, 1..3000), most in 6..900_usize) {
            let count = heights.len() as f64;
            let points: Vec<(f64, f64)> =
                heights.iter().enumerate().map(|(place, &height)| (place as f64 / count, height)).collect();
            let kept = thin(&points, most);
            prop_assert!(kept.len() <= most);
            prop_assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!((kept[0], kept[kept.len() - 1]), (0, points.len() - 1));
            for pick in [f64::min, f64::max] {
                let of_all = points.iter().map(|point| point.1).fold(points[0].1, pick);
                let of_kept = kept.iter().map(|&index| points[index].1).fold(points[0].1, pick);
                prop_assert!(of_all.total_cmp(&of_kept).is_eq());
            }
        }
    }
}
