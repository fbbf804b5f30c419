//! Partitions and order of keys: Hadoop's partitions, bit by bit, and the pairs of the engine that
//! represent them.
//!
//! Keys that are sorted by their bytes are sent unchanged. With a comparator, the engine's key is the
//! number of the partition and bytes with the comparator's order. The key itself is sent in the value.

use super::key_specs::KeySpecs;
use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rule that assigns a key to a part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PartRule {
    /// By all bytes of the key, like `HashPartitioner` with texts.
    Hash,
    /// By parts of it, like `KeyFieldBasedPartitioner`.
    Fields(KeySpecs),
}

/// Returns the hash of these bytes after others whose hash is `before`: `h = 31 h + b` for each signed
/// byte, in 32 bits.
#[must_use]
#[inline]
pub(super) fn hash_bytes(before: i32, bytes: &[u8]) -> i32 {
    let (groups, rest) = bytes.as_chunks::<8>();
    let hash = groups.iter().fold(before.cast_unsigned(), |hash, group| {
        hash.wrapping_mul(POWER_EIGHT).wrapping_add(hash_of_group(*group))
    });
    hash_one_by_one(hash.cast_signed(), rest)
}

fn hash_one_by_one(before: i32, bytes: &[u8]) -> i32 {
    bytes.iter().fold(before, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed())))
}

/// 31 to the power of 8, in 32 bits.
const POWER_EIGHT: u32 = 31_u32.wrapping_pow(8);

/// Contribution of a group of 128s to a hash. Signed bytes start at -128, and are computed as unsigned
/// from 0.
const OFFSET: u32 = {
    let (mut sum, mut byte) = (0_u32, 0);
    while byte < 8 {
        sum = sum.wrapping_mul(31).wrapping_add(128);
        byte += 1;
    }
    sum
};

/// Returns the contribution of eight bytes to a hash: pairs of bytes, then pairs of these, all at once in
/// the lanes of a number. Computed one by one, each byte would wait for the previous product.
#[inline]
fn hash_of_group(group: [u8; 8]) -> u32 {
    const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    const PAIRS: u64 = 0x0000_ffff_0000_ffff;
    let bytes = u64::from_le_bytes(group) ^ 0x8080_8080_8080_8080;
    // At most 255 * 32 in 16 bits, then 8160 * 962 in 32.
    let pairs = (bytes & BYTES) * 31 + (bytes >> 8 & BYTES);
    let fours = (pairs & PAIRS) * (31 * 31) + (pairs >> 16 & PAIRS);
    let (first, second) = (fours as u32, (fours >> 32) as u32);
    first.wrapping_mul(31 * 31 * 31 * 31).wrapping_add(second).wrapping_sub(OFFSET)
}

/// Computes `String.hashCode` of Java on the UTF-16 units of a text, bytes that are not UTF-8 replaced.
fn hash_of_string(bytes: &[u8]) -> i32 {
    String::from_utf8_lossy(bytes)
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

impl PartRule {
    /// Returns the part of this key, among `partitions`.
    #[must_use]
    pub fn of(&self, key: &[u8], partitions: u32) -> u32 {
        let hash = match self {
            // Hadoop starts at 1 here.
            Self::Hash => hash_bytes(1, key),
            Self::Fields(specs) if specs.is_empty() => hash_of_string(key),
            Self::Fields(_) if key.is_empty() => return 0,
            // Java converts the key to a text first.
            Self::Fields(specs) => {
                let text = String::from_utf8_lossy(key);
                specs.parts(text.as_bytes()).fold(0, hash_bytes)
            }
        };
        (hash & i32::MAX).cast_unsigned() % partitions.max(1)
    }
}

/// Conversion of pairs of the job to pairs of the engine and back.
pub(super) struct KeyCoding {
    pub partition: PartRule,
    order: Option<KeySpecs>,
}

/// Bytes of a partition's number before a key, and of a key's length before a value.
const NUMBER_BYTES: usize = 4;

impl KeyCoding {
    pub fn new(partition: PartRule, order: Option<KeySpecs>) -> Self {
        Self { partition, order }
    }

    /// Emits a pair of the job. `scratch` is reused for its memory.
    pub fn emit(
        &self,
        (key, value): (&[u8], &[u8]),
        partitions: u32,
        scratch: &mut PairScratch,
        out: &mut Emitter<ByteString, ByteString>,
    ) -> TaskResult {
        if self.order.is_none() {
            out.emit(key, value);
            return Ok(());
        }
        self.encode((key, value), partitions, scratch)?;
        out.emit(&scratch.key, &scratch.value);
        Ok(())
    }

    /// Returns the pair of the engine that represents a pair of the job.
    pub fn encode(
        &self,
        (key, value): (&[u8], &[u8]),
        partitions: u32,
        scratch: &mut PairScratch,
    ) -> TaskResult {
        scratch.key.clear();
        scratch.value.clear();
        let Some(order) = &self.order else {
            scratch.key.extend_from_slice(key);
            scratch.value.extend_from_slice(value);
            return Ok(());
        };
        let length = u32::try_from(key.len())
            .map_err(|_| TaskError::new("a key has more than 4 GiB, which none may"))?;
        scratch.key.extend_from_slice(&self.partition.of(key, partitions).to_be_bytes());
        order.push_order(key, &mut scratch.key);
        scratch.value.extend_from_slice(&length.to_be_bytes());
        scratch.value.extend_from_slice(key);
        scratch.value.extend_from_slice(value);
        Ok(())
    }

    /// Returns the pair of the job in a pair of the engine.
    pub fn decode<'a>(&self, key: &'a [u8], value: &'a [u8]) -> TaskResult<(&'a [u8], &'a [u8])> {
        if self.order.is_none() {
            return Ok((key, value));
        }
        let pair = value
            .split_first_chunk::<NUMBER_BYTES>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_be_bytes(*length) as usize));
        pair.ok_or_else(|| TaskError::new("a pair of the map output has no key in its value"))
    }

    /// True if equal keys may have different bytes.
    pub fn compares(&self) -> bool {
        self.order.is_some()
    }
}

/// Buffers of a pair of the engine.
#[derive(Default)]
pub(super) struct PairScratch {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Partitioner of the engine by this coding.
pub(super) struct KeyPartitioner(pub Arc<KeyCoding>);

impl Partitioner for KeyPartitioner {
    type Key = ByteString;

    fn partition(&self, key: &[u8], partitions: u32) -> u32 {
        match key.first_chunk::<NUMBER_BYTES>() {
            Some(number) if self.0.compares() => u32::from_be_bytes(*number),
            _ => self.0.partition.of(key, partitions),
        }
    }
}
