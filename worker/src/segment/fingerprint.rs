//! Fingerprint of a map output, which must be equal for all attempts of one map.
//!
//! If fingerprints differ, some reduces may have records of one attempt and others those of another, so that records
//! are lost or duplicated without any damage. The sums do not depend on the order of pairs, on the place of the output,
//! or on the division and compression of its blocks.

use gristmill_scheduler::event::Fingerprint;
use std::num::NonZeroU64;
use xxhash_rust::xxh3::xxh3_64;

/// Odd multipliers that spread bits.
const MIX_ONE: u64 = 0x9E37_79B9_7F4A_7C15;
const MIX_TWO: u64 = 0xBF58_476D_1CE4_E5B9;

/// Computes the fingerprint of pairs that were left in the input: each by its partition and a number for its key and
/// position.
pub(crate) fn fingerprint_of_places(entries: impl Iterator<Item = (u32, u128)>) -> Fingerprint {
    let (mut pairs, mut places) = (0_u64, 0_u64);
    for (partition, number) in entries {
        pairs = pairs.wrapping_add(spread(partition));
        let product = u128::from(number as u64 ^ MIX_ONE) * u128::from((number >> 64) as u64 ^ MIX_TWO);
        places = places.wrapping_add(product as u64 ^ (product >> 64) as u64);
    }
    Fingerprint { pairs, places: Some(some(places)), ..Fingerprint::default() }
}

/// Sums the pairs of an output one by one, in any order. The common multiplication is applied to the sums at the end.
#[derive(Default)]
pub(crate) struct Printing {
    pairs: u64,
    hashes: u64,
}

impl Printing {
    /// Adds a pair by its relevant bytes: all, as stored in a block, or the key.
    #[inline]
    pub fn add(&mut self, partition: u32, bytes: &[u8]) {
        let spread = spread(partition);
        self.pairs = self.pairs.wrapping_add(spread);
        self.hashes = self.hashes.wrapping_add(xxh3_64(bytes) ^ spread);
    }

    /// Returns the fingerprint, if whole pairs were added.
    pub(crate) fn of_frames(&self) -> Fingerprint {
        Fingerprint { pairs: self.pairs, frames: Some(self.sum()), ..Fingerprint::default() }
    }

    /// Returns the fingerprint, if keys were added.
    pub fn of_keys(&self) -> Fingerprint {
        Fingerprint { pairs: self.pairs, keys: Some(self.sum()), ..Fingerprint::default() }
    }

    fn sum(&self) -> NonZeroU64 {
        some(self.hashes.wrapping_mul(MIX_ONE))
    }
}

/// Spreads a partition over all bits of a number.
#[inline]
fn spread(partition: u32) -> u64 {
    let mixed = (u64::from(partition) + 1).wrapping_mul(MIX_ONE);
    (mixed ^ mixed >> 31).wrapping_mul(MIX_TWO)
}

fn some(sum: u64) -> NonZeroU64 {
    NonZeroU64::MIN | sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::put_frame;

    type Pair = (u32, &'static str, &'static str);

    /// Returns the fingerprints by whole pairs and by keys.
    fn prints(pairs: &[Pair]) -> [Fingerprint; 2] {
        let (mut frames, mut keys) = (Printing::default(), Printing::default());
        for (partition, key, value) in pairs {
            let mut frame = Vec::new();
            put_frame(key.as_bytes(), value.as_bytes(), &mut frame);
            frames.add(*partition, &frame);
            keys.add(*partition, key.as_bytes());
        }
        [frames.of_frames(), keys.of_keys()]
    }

    const PAIRS: [Pair; 3] = [(0, "a", "1"), (0, "b", "2"), (1, "c", "1")];

    #[test]
    fn fingerprint_is_the_same_for_the_same_pairs_in_any_order() {
        let [first, second, third] = PAIRS;
        assert_eq!(prints(&PAIRS), prints(&[third, first, second]));
    }

    #[test]
    fn fingerprint_differs_when_a_pair_is_lost_doubled_moved_or_changed() {
        let changed: [&[Pair]; 5] = [
            &[(0, "a", "1"), (0, "b", "2")],
            &[(0, "a", "1"), (0, "b", "2"), (1, "c", "1"), (1, "c", "1")],
            &[(1, "a", "1"), (0, "b", "2"), (1, "c", "1")],
            &[(1, "a", "1"), (0, "b", "2"), (0, "c", "1")],
            &[(0, "a", "2"), (0, "b", "1"), (1, "c", "1")],
        ];
        let frames = |pairs: &[Pair]| prints(pairs)[0].frames;
        for pairs in changed {
            assert_ne!(frames(pairs), frames(&PAIRS), "{pairs:?}");
        }
        let keys = |pairs: &[Pair]| prints(pairs)[1].keys;
        assert_eq!(keys(changed[4]), keys(&PAIRS), "values do not count where only keys do");
        assert_ne!(keys(changed[3]), keys(&PAIRS));
    }

    #[test]
    fn fingerprint_of_pairs_in_their_file_differs_by_place_and_partition() {
        let of = |pairs: &[(u32, u128)]| fingerprint_of_places(pairs.iter().copied());
        assert_eq!(of(&[(0, 5), (1, 6)]), of(&[(1, 6), (0, 5)]));
        assert_ne!(of(&[(0, 5), (1, 6)]), of(&[(0, 5), (1, 7)]));
        assert_ne!(of(&[(0, 5), (1, 6)]), of(&[(0, 5), (0, 6)]));
    }
}
