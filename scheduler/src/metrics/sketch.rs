//! Percentiles and distributions of streams that nobody can keep: a histogram whose buckets are as wide as their
//! values are large.
//!
//! Not here: exact percentiles; the relative error is at most [`SKETCH_ERROR`].

/// How far a percentile may be off, as a part of its value: half a bucket.
pub const SKETCH_ERROR: f64 = 0.5 / STEPS as f64;

/// Buckets between a power of two and the next. A sketch takes 70 powers × 128 buckets × 8 bytes = 70 KiB at most.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 7;
/// Smaller samples count as 0: 2^-30 is a nanosecond, if the unit is a second.
const LOWEST: usize = (1023 - 30) << STEP_BITS;
/// Larger samples count as 2^40, which is 35,000 years.
const HIGHEST: usize = (1023 + 40) << STEP_BITS;

/// A histogram of samples from 0 on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sketch {
    /// By bucket; the first is for what is smaller than 2^-30.
    counts: Vec<u64>,
    total: u64,
    largest: f64,
}

impl Sketch {
    /// No samples yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sample; one below 0 counts as 0.
    pub fn push(&mut self, sample: f64) {
        debug_assert!(!sample.is_nan(), "a sample that is no number");
        // The exponent and the first bits of the fraction of a float number its buckets.
        let place = (sample.max(0.0).to_bits() >> (52 - STEP_BITS)) as usize;
        let bucket = place.clamp(LOWEST, HIGHEST) - LOWEST;
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.largest = self.largest.max(sample);
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The largest sample, exactly; `None` without samples.
    #[must_use]
    pub fn largest(&self) -> Option<f64> {
        (0 < self.total).then_some(self.largest)
    }

    /// The smallest value that at least this part of the samples does not exceed, with an error of at most
    /// [`SKETCH_ERROR`] of it. `None` without samples.
    ///
    /// # Panics
    /// If `part` is not from 0 to 1.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        assert!((0.0..=1.0).contains(&part), "quantile {part}");
        let rank = ((part * self.total as f64).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            if rank <= below {
                return Some(middle(bucket).min(self.largest));
            }
        }
        None
    }

    /// The distribution function: (value, part of the samples up to it), at the end of each bucket that holds any, in
    /// rising order.
    #[must_use]
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        let mut below = 0;
        let filled = self.counts.iter().enumerate().filter(|&(_, &count)| 0 < count);
        filled
            .map(|(bucket, count)| {
                below += count;
                (edge(bucket + 1).min(self.largest), below as f64 / self.total as f64)
            })
            .collect()
    }

    /// Adds all samples of another sketch.
    pub fn merge(&mut self, other: &Sketch) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.largest = self.largest.max(other.largest);
    }
}

/// Where a bucket begins.
fn edge(bucket: usize) -> f64 {
    f64::from_bits(((bucket + LOWEST) as u64) << (52 - STEP_BITS))
}

fn middle(bucket: usize) -> f64 {
    if bucket == 0 { 0.0 } else { f64::midpoint(edge(bucket), edge(bucket + 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sketch_without_samples_has_no_quantile() {
        assert_eq!(Sketch::new().quantile(0.5), None);
        assert_eq!(Sketch::new().largest(), None);
        assert_eq!(Sketch::new().distribution(), []);
    }

    #[test]
    fn nothing_and_next_to_nothing_is_zero() {
        let mut sketch = Sketch::new();
        [0.0, 1e-12, 0.0].into_iter().for_each(|sample| sketch.push(sample));
        assert_eq!(sketch.quantile(1.0), Some(0.0));
    }

    proptest! {
        #[test]
        fn a_quantile_is_that_of_the_sorted_samples_within_the_error(
            samples in prop::collection::vec((-20.0..30.0_f64).prop_map(f64::exp2), 1..300),
            part in 0.0..=1.0_f64,
        ) {
            let mut sketch = Sketch::new();
            let mut sorted = samples.clone();
            sorted.sort_by(f64::total_cmp);
            samples.iter().for_each(|&sample| sketch.push(sample));
            let rank = ((part * sorted.len() as f64).ceil() as usize).max(1);
            let exact = sorted[rank - 1];
            let found = sketch.quantile(part).unwrap();
            prop_assert!((found - exact).abs() <= SKETCH_ERROR * exact, "{found} for {exact}");
            prop_assert_eq!(sketch.largest(), sorted.last().copied());
        }

        #[test]
        fn two_halves_merged_are_the_whole(
            one in prop::collection::vec(0.0..1e6_f64, 0..50),
            other in prop::collection::vec(0.0..1e6_f64, 1..50),
        ) {
            let sketch_of = |samples: &[f64]| {
                let mut sketch = Sketch::new();
                samples.iter().for_each(|&sample| sketch.push(sample));
                sketch
            };
            let mut merged = sketch_of(&one);
            merged.merge(&sketch_of(&other));
            prop_assert_eq!(&merged, &sketch_of(&[one, other].concat()));
            let distribution = merged.distribution();
            prop_assert!(distribution.is_sorted());
            prop_assert_eq!(distribution.last().unwrap().1, 1.0);
        }
    }
}
