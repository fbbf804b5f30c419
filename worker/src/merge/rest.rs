//! Estimate of the pairs that a merge has not passed, by their keys.

use crate::segment::SegmentRest;

/// Pairs from the current one on. Bytes are those of keys and values, estimated.
pub(crate) struct MergeRest {
    /// All bytes.
    pub(crate) bytes: f64,
    /// Known keys, ascending.
    pub(crate) keys: Vec<Vec<u8>>,
    /// Keys, ascending, with the bytes of pairs before each.
    steps: Vec<(Vec<u8>, f64)>,
}

impl MergeRest {
    /// Sums up the rests of the segments. The pairs between two known keys of a segment count half to each side of a
    /// key that is between them.
    pub(super) fn new(segments: Vec<SegmentRest>) -> Self {
        let (mut bytes, mut keys, mut steps) = (0.0, Vec::new(), Vec::new());
        for segment in segments {
            bytes += segment.bytes;
            let mut known = segment.keys.into_iter().peekable();
            while let Some((key, start)) = known.next() {
                let next_greater = [&key[..], b"\0"].concat();
                match known.peek() {
                    None => steps.push((next_greater, (segment.bytes - start) / 2.0)),
                    Some((next, end)) if *next == key => steps.push((next_greater, end - start)),
                    Some((next, end)) => {
                        let half = (end - start) / 2.0;
                        steps.extend([(next_greater, half), (next.clone(), half)]);
                    }
                }
                keys.push(key);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        steps.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut sum = 0.0;
        for (_, bytes) in &mut steps {
            sum += *bytes;
            *bytes = sum;
        }
        Self { bytes, keys, steps }
    }

    /// Returns the bytes of pairs with keys less than this one.
    pub(crate) fn bytes_before(&self, key: &[u8]) -> f64 {
        let count = self.steps.partition_point(|(step, _)| step.as_slice() <= key);
        count.checked_sub(1).map_or(0.0, |last| self.steps[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(keys: &[(&str, f64)], bytes: f64) -> SegmentRest {
        let keys = keys.iter().map(|(key, bytes)| (key.as_bytes().to_vec(), *bytes)).collect();
        SegmentRest { keys, bytes }
    }

    #[test]
    fn bytes_before_a_key_are_those_up_to_it_and_half_of_those_around_it() {
        let segments =
            vec![segment(&[("b", 0.0), ("d", 10.0), ("f", 30.0)], 70.0), segment(&[("e", 0.0)], 100.0)];
        let rest = MergeRest::new(segments);
        assert_eq!(rest.bytes, 170.0);
        let before = |key: &str| rest.bytes_before(key.as_bytes());
        assert_eq!(["a", "b", "c", "d", "e", "f", "g"].map(before), [0.0, 0.0, 5.0, 10.0, 20.0, 80.0, 100.0]);
        assert_eq!(rest.keys, [b"b", b"d", b"e", b"f"]);
    }

    #[test]
    fn bytes_of_one_key_are_all_before_a_greater_one() {
        let rest = MergeRest::new(vec![segment(&[("k", 0.0), ("k", 10.0), ("k", 20.0)], 24.0)]);
        assert_eq!((rest.bytes_before(b"k"), rest.bytes_before(b"l"), rest.bytes), (0.0, 22.0, 24.0));
    }
}
