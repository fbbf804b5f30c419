//! Seeded sample of the keys that mappers emit.
//!
//! It depends only on the keys and their order, so every run of a job has the same sample.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BinaryHeap;

/// Number of keys in a sample. For a hundred partitions that is a thousand keys each: their sizes then differ by a few
/// percent.
pub const SAMPLE_KEYS_MAX: usize = 100_000;
/// Maximum bytes of the keys in a sample.
const SAMPLE_BYTES_MAX: usize = 64 << 20;
/// Arbitrary seed.
const SEED: u64 = 0x5EED_0F0A_4D11;

/// Sample of keys, each with the same probability, of bounded size.
///
/// Every key draws a random number; those with the smallest stay.
pub struct KeySample {
    draws: ChaCha8Rng,
    kept: BinaryHeap<(u64, Vec<u8>)>,
    bytes: usize,
    keys_max: usize,
}

impl Default for KeySample {
    fn default() -> Self {
        Self::new(SAMPLE_KEYS_MAX)
    }
}

impl KeySample {
    /// Creates an empty sample of at most `keys_max` keys.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        Self { draws: ChaCha8Rng::seed_from_u64(SEED), kept: BinaryHeap::new(), bytes: 0, keys_max }
    }

    /// Adds an encoded key.
    pub fn add(&mut self, key: &[u8]) {
        let draw = self.draws.next_u64();
        let full = self.keys_max <= self.kept.len();
        if full && self.kept.peek().is_none_or(|(most, _)| *most <= draw) {
            return;
        }
        self.kept.push((draw, key.to_vec()));
        self.bytes += key.len();
        while self.keys_max < self.kept.len() || (SAMPLE_BYTES_MAX < self.bytes && 1 < self.kept.len()) {
            if let Some((_, key)) = self.kept.pop() {
                self.bytes -= key.len();
            }
        }
    }

    /// Number of keys in the sample.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// True if no key was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns its keys, unordered.
    pub(crate) fn into_keys(self) -> impl Iterator<Item = Vec<u8>> {
        self.kept.into_iter().map(|(_, key)| key)
    }
}
