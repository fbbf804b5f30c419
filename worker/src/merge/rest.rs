//! Estimate of the pairs that a merge has not passed, by their keys.

use crate::segment::SegmentRest;

/// Pairs from the current one on. Bytes are those of keys and values, estimated.
pub(crate) struct MergeRest {
    bytes: f64,
    /// Ascending.
    keys: Vec<Vec<u8>>,
    /// In the order of the keys at which they count.
    steps: Vec<Step>,
}

/// Bytes that are before all keys greater than `key` and, unless `is_after`, before `key` itself.
struct Step {
    key: Vec<u8>,
    is_after: bool,
    bytes: f64,
    /// Bytes of this step and of all earlier ones.
    sum: f64,
}

impl MergeRest {
    /// Sums up the rests of the segments. The pairs between two known keys of a segment count half to each side of a
    /// key that is between them.
    pub(super) fn new(segments: Vec<SegmentRest>) -> Self {
        let (mut keys, mut steps) = (Vec::new(), Vec::new());
        let mut all_bytes = 0.0;
        let step = |key: &[u8], is_after, bytes| Step { key: key.to_vec(), is_after, bytes, sum: 0.0 };
        for segment in segments {
            let mut start = segment.first;
            for (end, bytes) in segment.keys {
                all_bytes += bytes;
                if start == end {
                    steps.push(step(&start, true, bytes));
                } else {
                    steps.push(step(&start, true, bytes / 2.0));
                    steps.push(step(&end, false, bytes / 2.0));
                }
                start.clone_from(&end);
                keys.push(end);
            }
            all_bytes += segment.last_bytes;
            steps.push(step(&start, true, segment.last_bytes / 2.0));
        }
        keys.sort_unstable();
        keys.dedup();
        steps.sort_unstable_by(|a, b| (&a.key, a.is_after).cmp(&(&b.key, b.is_after)));
        let mut sum = 0.0;
        for step in &mut steps {
            sum += step.bytes;
            step.sum = sum;
        }
        Self { bytes: all_bytes, keys, steps }
    }

    /// Returns all bytes.
    pub(crate) fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Returns the bytes of pairs with keys less than this one.
    pub(crate) fn bytes_before(&self, key: &[u8]) -> f64 {
        let counted = |step: &Step| step.key.as_slice() < key || (!step.is_after && step.key == key);
        let count = self.steps.partition_point(counted);
        count.checked_sub(1).map_or(0.0, |last| self.steps[last].sum)
    }

    /// Returns the known keys, ascending.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(first: &str, keys: &[(&str, f64)], last_bytes: f64) -> SegmentRest {
        let keys = keys.iter().map(|(key, bytes)| (key.as_bytes().to_vec(), *bytes)).collect();
        SegmentRest { first: first.into(), keys, last_bytes }
    }

    #[test]
    fn bytes_before_a_key_are_those_up_to_it_and_half_of_those_around_it() {
        let rest =
            MergeRest::new(vec![segment("b", &[("d", 10.0), ("f", 20.0)], 40.0), segment("e", &[], 100.0)]);
        assert_eq!(rest.bytes(), 170.0);
        let before = |key: &str| rest.bytes_before(key.as_bytes());
        assert_eq!(["a", "b", "c", "d", "e", "f", "g"].map(before), [0.0, 0.0, 5.0, 10.0, 20.0, 80.0, 100.0]);
        assert_eq!(rest.keys().collect::<Vec<_>>(), [b"d", b"f"]);
    }

    #[test]
    fn bytes_of_one_key_are_all_before_a_greater_one() {
        let rest = MergeRest::new(vec![segment("k", &[("k", 10.0), ("k", 10.0)], 4.0)]);
        assert_eq!((rest.bytes_before(b"k"), rest.bytes_before(b"l"), rest.bytes()), (0.0, 22.0, 24.0));
    }
}
