//! Percentiles and distributions of streams too large to store: exact for few samples, then a histogram whose bucket
//! width is proportional to the value.

use super::statistics::{quantile, rank};

/// Number of samples up to which all are kept and results are exact: half the memory of the largest histogram.
pub const EXACT_MAX: usize = 4096;

/// Maximum relative error of a percentile of more than [`EXACT_MAX`] samples: half a bucket.
pub const SKETCH_ERROR: f64 = 0.5 / STEPS as f64;

/// Buckets between a power of two and the next. A sketch takes at most 70 powers × 128 buckets × 8 bytes = 70 KiB.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 7;
/// Smaller samples count as 0: 2^-30 is a nanosecond, if the unit is a second.
const LOWEST: usize = (1023 - 30) << STEP_BITS;
/// Larger samples count as 2^40, which is 35,000 years.
const HIGHEST: usize = (1023 + 40) << STEP_BITS;

/// Distribution of non-negative samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sketch {
    /// All samples in ascending order, while there is no histogram.
    few: Vec<f64>,
    /// Counts by bucket; the first is for samples below 2^-30. Empty while the samples are few.
    counts: Vec<u64>,
    total: u64,
    largest: f64,
}

impl Sketch {
    /// Creates an empty sketch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sample; one below 0 counts as 0.
    pub fn push(&mut self, sample: f64) {
        debug_assert!(!sample.is_nan(), "a sample that is no number");
        let sample = sample.max(0.0);
        self.total += 1;
        self.largest = self.largest.max(sample);
        if !self.counts.is_empty() {
            self.count_in(sample);
        } else if self.few.len() < EXACT_MAX {
            self.few.insert(self.few.partition_point(|&other| other <= sample), sample);
        } else {
            self.become_histogram();
            self.count_in(sample);
        }
    }

    fn become_histogram(&mut self) {
        for sample in std::mem::take(&mut self.few) {
            self.count_in(sample);
        }
    }

    fn count_in(&mut self, sample: f64) {
        // The exponent and the first bits of the fraction of a float are the number of its bucket.
        let place = (sample.to_bits() >> (52 - STEP_BITS)) as usize;
        let bucket = place.clamp(LOWEST, HIGHEST) - LOWEST;
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns the largest sample, exactly; `None` without samples.
    #[must_use]
    pub fn largest(&self) -> Option<f64> {
        (0 < self.total).then_some(self.largest)
    }

    /// Returns the smallest sample that is at least as large as this fraction of the samples. For more than
    /// [`EXACT_MAX`] samples its relative error is at most [`SKETCH_ERROR`]. `None` without samples.
    ///
    /// # Panics
    /// If `part` is not from 0 to 1.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        if self.counts.is_empty() {
            return quantile(&self.few, part);
        }
        let rank = rank(part, self.total);
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            if rank <= below {
                return Some(middle(bucket).min(self.largest));
            }
        }
        None
    }

    /// Adds all samples of another sketch.
    pub fn merge(&mut self, other: &Sketch) {
        if other.counts.is_empty() {
            other.few.iter().for_each(|&sample| self.push(sample));
            return;
        }
        self.become_histogram();
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

/// Returns the lower bound of a bucket.
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
    }

    #[test]
    fn nothing_and_next_to_nothing_is_zero_in_a_histogram() {
        let mut sketch = Sketch::new();
        [0.0, 1e-12, 0.0].into_iter().for_each(|sample| sketch.push(sample));
        sketch.become_histogram();
        assert_eq!(sketch.quantile(1.0), Some(0.0));
    }

    #[test]
    fn quantiles_of_few_samples_are_samples_and_those_of_many_nearly_so() {
        let of = |count: usize| {
            let mut sketch = Sketch::new();
            (0..count).rev().for_each(|place| sketch.push(1.0 + place as f64 / count as f64));
            sketch
        };
        let (few, many) = (of(EXACT_MAX), of(EXACT_MAX + 1));
        assert_eq!(few.quantile(0.25), Some(1.0 + 1023.0 / EXACT_MAX as f64));
        let quarter = many.quantile(0.25).unwrap();
        assert!((quarter - 1.25).abs() <= 1.25 * SKETCH_ERROR, "{quarter}");
    }

    proptest! {
        #[test]
        fn a_quantile_is_that_of_the_sorted_samples_exactly_and_in_a_histogram_within_the_error(
            samples in prop::collection::vec((-20.0..30.0_f64).prop_map(f64::exp2), 1..300),
            part in 0.0..=1.0_f64,
        ) {
            let mut sketch = Sketch::new();
            let mut sorted = samples.clone();
            sorted.sort_by(f64::total_cmp);
            samples.iter().for_each(|&sample| sketch.push(sample));
            let rank = ((part * sorted.len() as f64).ceil() as usize).max(1);
            let exact = sorted[rank - 1];
            prop_assert_eq!(sketch.quantile(part), Some(exact));
            sketch.become_histogram();
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
            let mut whole = sketch_of(&[&one[..], &other].concat());
            prop_assert_eq!(&merged, &whole);
            let [mut coarse, mut others] = [&one, &other].map(|samples| sketch_of(samples));
            [&mut coarse, &mut others, &mut whole].into_iter().for_each(Sketch::become_histogram);
            coarse.merge(&others);
            prop_assert_eq!(&coarse, &whole);
        }
    }
}
