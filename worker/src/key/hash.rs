//! Hash of a key, equal on all machines, and the packed form of short keys in tables.
//!
//! `FORMAT.md` specifies both, because the hash chooses partitions. It spreads well but does not resist deliberate
//! collisions.

use std::num::NonZeroU64;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Maximum length of a key that a table holds in its slot, bytes.
pub(crate) const INLINE_BYTES_MAX: usize = 15;

/// Added to both halves before they are multiplied.
const MIX_LOW: u64 = 0x6A09_E667_F3BC_C909;
const MIX_HIGH: u64 = 0xBB67_AE85_84CA_A73B;
/// Seed of the hash of longer keys.
const LONG_SEED: u64 = 0x3C6E_F372_FE94_F82B;
/// Top byte of `high` for longer keys.
pub(crate) const LONG_MARK: u64 = 0xFF << 56;

/// Masks of the bits of both halves that belong to a short key, by its length.
const SHORT_MASKS: [(u64, u64); INLINE_BYTES_MAX + 1] = {
    let mut masks = [(u64::MAX, 0); INLINE_BYTES_MAX + 1];
    let mut length = 0;
    while length <= INLINE_BYTES_MAX {
        if length < 8 {
            masks[length].0 = (1 << (8 * length)) - 1;
        } else {
            masks[length].1 = (1 << (8 * (length - 8))) - 1;
        }
        length += 1;
    }
    masks
};

/// Short key in two numbers: its bytes, padded with zeros, and its length plus one in the last byte. Without the length
/// `a` and `a\0` would be the same key.
///
/// A longer key has [`LONG_MARK`] and its length in `high`, and its offset in an arena in `low`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packed {
    pub low: u64,
    pub high: u64,
}

impl Packed {
    /// Packs a key of at most [`INLINE_BYTES_MAX`] bytes.
    #[inline]
    pub fn short(key: &[u8]) -> Self {
        let length = key.len();
        debug_assert!(length <= INLINE_BYTES_MAX);
        let u64_at = |at: usize| key[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let u32_at = |at: usize| key[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        // Two overlapping loads instead of a loop over bytes.
        let (low, high) = if 8 <= length {
            (u64_at(0), u64_at(length - 8).unbounded_shr(8 * (16 - length) as u32))
        } else if 4 <= length {
            let (front, back) = (u64::from(u32_at(0)), u64::from(u32_at(length - 4)));
            (front | (back >> (8 * (8 - length))) << 32, 0)
        } else if 0 < length {
            let at = |at: usize| u64::from(key[at]) << (8 * at);
            (at(0) | at(length / 2) | at(length - 1), 0)
        } else {
            (0, 0)
        };
        Self { low, high: high | (length as u64 + 1) << 56 }
    }

    /// Packs a key of `length` bytes, at most [`INLINE_BYTES_MAX`], which are the first of `loaded`; the other bytes
    /// are masked. Without a branch: lengths of words are hard to predict.
    #[inline(always)]
    pub(crate) fn loaded(loaded: [u8; 16], length: usize) -> Self {
        debug_assert!(length <= INLINE_BYTES_MAX);
        let (low, high) = SHORT_MASKS[length & INLINE_BYTES_MAX];
        let both = u128::from_le_bytes(loaded);
        Self { low: both as u64 & low, high: (both >> 64) as u64 & high | (length as u64 + 1) << 56 }
    }

    /// Represents a longer key at `offset` of an arena.
    pub fn long(offset: usize, length: usize) -> Self {
        Self { low: offset as u64, high: LONG_MARK | length as u64 }
    }

    #[inline]
    pub(crate) fn is_long(self) -> bool {
        LONG_MARK <= self.high
    }

    /// Returns the length of a longer key.
    #[inline]
    pub(crate) fn long_length(self) -> usize {
        (self.high & !LONG_MARK) as usize
    }

    /// Returns the bytes of a short key, followed by padding, and its length.
    #[inline]
    pub(crate) fn unpack(self) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.low.to_le_bytes());
        bytes[8..].copy_from_slice(&self.high.to_le_bytes());
        (bytes, (self.high >> 56) as usize - 1)
    }

    /// Returns a number that sorts like short keys: by bytes, and for prefixes by length, which is in the last byte.
    #[inline]
    pub(crate) fn short_rank(self) -> u128 {
        u128::from(self.low.swap_bytes()) << 64 | u128::from(self.high.swap_bytes())
    }

    #[inline]
    pub(crate) fn short_hash(self) -> NonZeroU64 {
        let product = u128::from(self.low ^ MIX_LOW) * u128::from(self.high ^ MIX_HIGH);
        odd(product as u64 ^ (product >> 64) as u64)
    }
}

/// Returns the hash of a key longer than [`INLINE_BYTES_MAX`].
pub(crate) fn long_hash(key: &[u8]) -> NonZeroU64 {
    odd(xxh3_64_with_seed(key, LONG_SEED))
}

/// Returns the hash of any key. Its lowest bit is set, so that it is never zero; the others are significant.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> NonZeroU64 {
    if key.len() <= INLINE_BYTES_MAX { Packed::short(key).short_hash() } else { long_hash(key) }
}

#[inline]
fn odd(hash: u64) -> NonZeroU64 {
    NonZeroU64::MIN | hash
}

/// Returns the first eight bytes of a key as a number that sorts like them; shorter keys are padded with zeros.
#[inline]
pub(crate) fn key_prefix(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => Packed::short(key).low.swap_bytes(),
    }
}

/// Returns the share of the hash space that contains a hash, of `shares` equal ones.
#[inline]
pub(crate) fn hash_share(hash: NonZeroU64, shares: u32) -> u32 {
    ((u128::from(hash.get()) * u128::from(shares)) >> 64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn short_key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(
            prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()],
            0..=INLINE_BYTES_MAX,
        )
    }

    proptest! {
        #[test]
        fn packed_keys_unpack_to_themselves_and_sort_like_their_bytes(a in short_key(), b in short_key()) {
            let (bytes, length) = Packed::short(&a).unpack();
            prop_assert_eq!(&bytes[..length], &a[..]);
            let (x, y) = (Packed::short(&a), Packed::short(&b));
            prop_assert_eq!(x.short_rank().cmp(&y.short_rank()), a.cmp(&b));
            prop_assert_eq!(x == y, a == b);
            prop_assert!(!x.is_long());
            let mut loaded = [0xAB; 16];
            loaded[..a.len()].copy_from_slice(&a);
            prop_assert_eq!(Packed::loaded(loaded, a.len()), x);
        }

        #[test]
        fn prefixes_never_contradict_the_order_of_keys(
            a in proptest::collection::vec(0u8..3, 0..12), b in proptest::collection::vec(0u8..3, 0..12),
        ) {
            if a <= b {
                prop_assert!(key_prefix(&a) <= key_prefix(&b));
            }
        }
    }

    #[test]
    fn hashes_are_the_specified_numbers() {
        let hashes =
            [&b""[..], b"a", b"a\0", b"the mill", b"fifteen letters", b"sixteen letters!"].map(key_hash);
        // Computed from the specification by another program.
        let expected = [
            0xe697_07ec_db6b_9681,
            0x3cd6_fe0b_0443_a4f7,
            0x4478_e82d_ac36_6bbf,
            0x08eb_700e_ddd4_6b47,
            0xf532_3451_b950_52ef,
            0x894d_1099_906b_d117,
        ];
        assert_eq!(hashes.map(NonZeroU64::get), expected);
    }

    #[test]
    fn shares_of_the_hash_space_are_even_for_numbers_and_words() {
        let mut counts = [[0u32; 7]; 2];
        for number in 0..70_000u64 {
            counts[0][hash_share(key_hash(&number.to_be_bytes()), 7) as usize] += 1;
            counts[1][hash_share(key_hash(format!("word{number}").as_bytes()), 7) as usize] += 1;
        }
        for count in counts.iter().flatten() {
            assert!((9_500..10_500).contains(count), "{counts:?}");
        }
    }
}
