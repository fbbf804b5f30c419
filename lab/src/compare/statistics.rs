//! Percentiles, paired differences with their intervals, and the words for what they show.
//!
//! Means with Student's t are the scheduler's ([`Interval`]). Jobs of one run depend on each other, so intervals are
//! over repetitions, never over jobs. Not here: what is measured.

use gristmill_scheduler::metrics::Interval;
use serde::Serialize;

/// The value below which this share of the samples lies, between neighbours in proportion; `None` without samples.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// The same samples in order.
#[must_use]
pub fn sorted(samples: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut samples: Vec<f64> = samples.into_iter().collect();
    samples.sort_by(f64::total_cmp);
    samples
}

/// The mean; `None` without samples.
#[must_use]
pub fn mean(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for sample in samples {
        sum += sample;
        count += 1;
    }
    (0 < count).then(|| sum / f64::from(count))
}

/// How the mean flow time under one policy differs from that under another, as a share of the other's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// One policy.
    pub one: String,
    /// The other, of whose mean the difference is a share.
    pub other: String,
    /// Mean over repetitions; below 0 if the one is faster. `None` if they share no repetition.
    pub share: Option<Interval>,
    /// Jobs, paired with themselves under the other policy, that were faster under the one.
    pub faster: usize,
    /// Pairs of jobs.
    pub pairs: usize,
    /// What it shows.
    pub shown: Shown,
}

/// What a difference shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The interval lies below 0.
    Faster,
    /// The interval lies above 0.
    Slower,
    /// The interval holds 0.
    Nothing,
    /// There is no interval: fewer than two repetitions.
    TooFew,
}

/// Compares flow times: for each repetition that both have, pairs of (one, other) of the same job.
#[must_use]
pub fn difference(one: &str, other: &str, repetitions: &[Vec<(f64, f64)>]) -> Difference {
    let shares: Vec<f64> = repetitions
        .iter()
        .filter_map(|pairs| {
            let of_other = mean(pairs.iter().map(|pair| pair.1)).filter(|mean| 0.0 < *mean)?;
            mean(pairs.iter().map(|pair| pair.0 - pair.1)).map(|difference| difference / of_other)
        })
        .collect();
    let share = Interval::of(&shares);
    let shown = match share {
        Some(Interval { mean, half_width: Some(half_width), .. }) if mean + half_width < 0.0 => Shown::Faster,
        Some(Interval { mean, half_width: Some(half_width), .. }) if 0.0 < mean - half_width => Shown::Slower,
        Some(Interval { half_width: Some(_), .. }) => Shown::Nothing,
        _ => Shown::TooFew,
    };
    let pairs = || repetitions.iter().flatten();
    Difference {
        one: one.to_owned(),
        other: other.to_owned(),
        share,
        faster: pairs().filter(|(one, other)| one < other).count(),
        pairs: pairs().count(),
        shown,
    }
}

impl Difference {
    /// In a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { one, other, share, shown, .. } = self;
        let Some(share) = share else { return format!("{one} and {other} share no repetition") };
        let percent = |share: f64| format!("{:.0}", 100.0 * share);
        let near = share.half_width.unwrap_or(0.0);
        let sizes = [share.mean - near, share.mean + near];
        match shown {
            Shown::Faster | Shown::Slower => {
                let (word, size) = if *shown == Shown::Faster { ("faster", -1.0) } else { ("slower", 1.0) };
                let sizes = sorted(sizes.map(|share| share * size));
                format!(
                    "{one} is {word} than {other} by {} % ({} to {} %)",
                    percent(share.mean * size),
                    percent(sizes[0]),
                    percent(sizes[1])
                )
            }
            Shown::Nothing => format!(
                "no difference shown between {one} and {other} ({} to {} %)",
                signed(sizes[0]),
                signed(sizes[1])
            ),
            Shown::TooFew => format!(
                "no difference shown between {one} and {other}: one repetition has no interval ({} %)",
                signed(share.mean)
            ),
        }
    }
}

fn signed(share: f64) -> String {
    format!("{:+.0}", 100.0 * share).replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_lie_between_neighbours_in_proportion() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(quantile(&ten, 0.5), Some(5.5));
        assert_eq!(quantile(&ten, 0.0), Some(1.0));
        assert_eq!(quantile(&ten, 1.0), Some(10.0));
        assert!((quantile(&ten, 0.95).unwrap() - 9.55).abs() < 1e-12);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[3.0], 0.99), Some(3.0));
    }

    #[test]
    fn paired_difference_of_known_numbers_has_students_interval() {
        // Shares of -10 %, -12 % and -14 %: mean -12 %, half width 4.302653 · 2 % / √3.
        let repetitions: Vec<Vec<(f64, f64)>> =
            [0.90, 0.88, 0.86].map(|share| vec![(share * 2.0, 2.0), (share * 8.0, 8.0)]).to_vec();
        let found = difference("a", "b", &repetitions);
        let share = found.share.unwrap();
        assert!((share.mean + 0.12).abs() < 1e-12);
        assert!((share.half_width.unwrap() - 0.049_683).abs() < 1e-5);
        assert_eq!((found.shown, found.faster, found.pairs), (Shown::Faster, 6, 6));
        assert_eq!(found.words(), "a is faster than b by 12 % (7 to 17 %)");
        let swapped: Vec<Vec<(f64, f64)>> = repetitions
            .iter()
            .map(|pairs| pairs.iter().map(|&(one, other)| (other, one)).collect())
            .collect();
        assert_eq!(difference("b", "a", &swapped).shown, Shown::Slower);
        assert!(difference("b", "a", &swapped).words().starts_with("b is slower than a by 14 %"));
    }

    #[test]
    fn interval_that_holds_zero_shows_no_difference() {
        let repetitions = vec![vec![(1.0, 1.1)], vec![(1.1, 1.0)], vec![(1.0, 1.0)]];
        let found = difference("a", "b", &repetitions);
        assert_eq!(found.shown, Shown::Nothing);
        assert!(found.words().starts_with("no difference shown between a and b (−"), "{}", found.words());
    }

    #[test]
    fn single_repetition_shows_nothing_however_large_the_difference() {
        let found = difference("a", "b", &[vec![(1.0, 10.0); 50]]);
        assert_eq!(found.shown, Shown::TooFew);
        assert!(found.words().contains("one repetition has no interval"));
        assert_eq!(difference("a", "b", &[]).share, None);
    }

    proptest! {
        #[test]
        fn quantiles_never_fall_and_stay_within(samples in prop::collection::vec(-1e6..1e6_f64, 1..60), one in 0.0..1.0_f64, other in 0.0..1.0_f64) {
            let samples = sorted(samples);
            let (low, high) = (one.min(other), one.max(other));
            let (low, high) = (quantile(&samples, low).unwrap(), quantile(&samples, high).unwrap());
            prop_assert!(low <= high && samples[0] <= low && high <= samples[samples.len() - 1]);
        }
    }
}
