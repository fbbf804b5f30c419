//! Partitions and order of keys: Hadoop's partitions, bit by bit, and the pairs of the engine that
//! represent them.
//!
//! Keys that are sorted by their bytes are sent unchanged, and keys of functions in a form that has the order of their values.
//! With a comparator, the engine's key is the number of the partition and bytes with the comparator's order. The key itself is
//! sent in the value.

use super::key_specs::KeySpecs;
use super::typed_keys::{first_integer, push_ordered, push_typed};
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
    /// By the first part of the key, which is a tuple: its function has chosen.
    Chosen,
}

/// Returns the hash of these bytes after others whose hash is `before`: `h = 31 h + b` for each signed
/// byte, in 32 bits.
#[must_use]
pub(super) fn hash_bytes(before: i32, bytes: &[u8]) -> i32 {
    bytes.iter().fold(before, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed())))
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
    pub fn part(&self, key: &[u8], partitions: u32) -> u32 {
        let hash = match self {
            // Hadoop starts at 1 here.
            Self::Hash => hash_bytes(1, key),
            Self::Chosen => first_integer(key).unwrap_or(0) as i32,
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
    pub order: KeyOrder,
}

/// Order of keys.
pub(super) enum KeyOrder {
    Bytes,
    /// By parts of keys; equal ones may have different bytes.
    Fields(KeySpecs),
    /// That of the values which the keys are, as typed bytes.
    Typed,
}

/// Bytes of a partition's number before a key, and of a key's length before a value.
const NUMBER_BYTES: usize = 4;

impl KeyCoding {
    /// Emits a pair of the job. `scratch` is reused for its memory.
    pub fn emit(
        &self,
        (key, value): (&[u8], &[u8]),
        partitions: u32,
        scratch: &mut PairScratch,
        out: &mut Emitter<ByteString, ByteString>,
    ) -> TaskResult {
        if let KeyOrder::Bytes = self.order {
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
        let KeyOrder::Fields(order) = &self.order else {
            match &self.order {
                KeyOrder::Typed => push_ordered(key, &mut scratch.key).ok_or_else(no_key)?,
                _ => scratch.key.extend_from_slice(key),
            }
            scratch.value.extend_from_slice(value);
            return Ok(());
        };
        let length = u32::try_from(key.len())
            .map_err(|_| TaskError::new("a key has more than 4 GiB, which none may"))?;
        scratch.key.extend_from_slice(&self.partition.part(key, partitions).to_be_bytes());
        order.push_order(key, &mut scratch.key);
        scratch.value.extend_from_slice(&length.to_be_bytes());
        scratch.value.extend_from_slice(key);
        scratch.value.extend_from_slice(value);
        Ok(())
    }

    /// Returns the pair of the job in a pair of the engine; its key as [`push_key`](Self::push_key) wants it.
    pub fn decode<'a>(&self, key: &'a [u8], value: &'a [u8]) -> TaskResult<(&'a [u8], &'a [u8])> {
        if !matches!(self.order, KeyOrder::Fields(_)) {
            return Ok((key, value));
        }
        let pair = value
            .split_first_chunk::<NUMBER_BYTES>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_be_bytes(*length) as usize));
        pair.ok_or_else(|| TaskError::new("a pair of the map output has no key in its value"))
    }

    /// Appends the key of the job in a decoded pair.
    pub fn push_key(&self, key: &[u8], out: &mut Vec<u8>) -> TaskResult {
        match self.order {
            KeyOrder::Typed => push_typed(key, out)
                .ok_or_else(|| TaskError::new("a key of the map output has lost its form")),
            _ => {
                out.extend_from_slice(key);
                Ok(())
            }
        }
    }
}

fn no_key() -> TaskError {
    TaskError::new("the command wrote a key that is no plain value, or has too many tuples within each other")
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
            Some(number) if matches!(self.0.order, KeyOrder::Fields(_)) => u32::from_be_bytes(*number),
            _ => self.0.partition.part(key, partitions),
        }
    }
}
