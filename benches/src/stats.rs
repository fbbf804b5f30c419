//! Medians, spread and percentiles of a few numbers.

/// Returns the middle value of an odd number, the mean of the two middle values of an even one; `None`
/// for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Returns the smallest value that `percent` of all do not exceed (nearest rank); `None` for no values.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Returns the smallest and the largest value; `None` for no values.
pub fn range(values: &[f64]) -> Option<(f64, f64)> {
    let sorted = sorted(values);
    Some((*sorted.first()?, *sorted.last()?))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn percentile_is_of_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 95.0), Some(95.0));
        assert_eq!(percentile(&hundred, 100.0), Some(100.0));
        assert_eq!(percentile(&[7.0], 1.0), Some(7.0));
        assert_eq!(percentile(&[], 50.0), None);
    }

    proptest! {
        #[test]
        fn at_most_so_many_values_lie_above_a_percentile(
            values in prop::collection::vec(0.0_f64..1e6, 1..200),
            percent in 1.0_f64..100.0,
        ) {
            let found = percentile(&values, percent).unwrap();
            let (least, greatest) = range(&values).unwrap();
            prop_assert!((least..=greatest).contains(&found));
            let above = values.iter().filter(|&&value| found < value).count() as f64;
            prop_assert!(above <= (1.0 - percent / 100.0) * values.len() as f64 + 1e-9);
        }
    }
}
