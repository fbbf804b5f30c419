//! Chooses the partition of a key, that is, the reduce that receives it: by a hash, by ranges of keys, or by the job's
//! own [`Partitioner`]. A number that is not below the number of partitions fails the task.
//!
//! The sample for key ranges is in `task::sample`.

use crate::attempt::TaskFailure;
use crate::key::hash::{hash_share, key_hash, key_prefix};
use crate::key::{GroupPrefix, Key};
use std::sync::Arc;

/// Chooses the partition of a key. The default is a hash of the key's bytes (or of its group prefix).
pub trait Partitioner: Send + Sync + 'static {
    /// Key of the job's mappers.
    type Key: Key;

    /// Returns a number below `partitions`; any other result fails the task with a message that names both. Must depend
    /// on nothing but its arguments.
    fn partition(&self, key: <Self::Key as Key>::View<'_>, partitions: u32) -> u32;
}

/// Partitioning of a job's keys.
pub(crate) enum Partitioning<K: Key> {
    /// By the hash of the whole key.
    Hash,
    /// By the hash of the group prefix.
    GroupHash(GroupPrefix),
    /// By ranges of keys.
    Ranges(KeyRanges),
    /// By the user's rule.
    User(Arc<dyn Partitioner<Key = K>>),
}

/// Ranges of keys. Partition `i` starts with cut `i - 1`.
pub(crate) struct KeyRanges {
    /// Ascending; there may be fewer than needed.
    cuts: Arc<Vec<Vec<u8>>>,
    /// First bytes of the cuts, which decide most comparisons.
    prefixes: Vec<u64>,
}

impl KeyRanges {
    /// Creates ranges that start with these keys, which must be ascending.
    pub fn new(cuts: Arc<Vec<Vec<u8>>>) -> Self {
        let prefixes = cuts.iter().map(|cut| key_prefix(cut)).collect();
        Self { cuts, prefixes }
    }

    /// Returns the first keys of all partitions except the first.
    pub(super) fn cuts(&self) -> &[Vec<u8>] {
        &self.cuts
    }

    #[inline]
    fn partition(&self, key: &[u8]) -> u32 {
        let prefix = key_prefix(key);
        let mut partition = self.prefixes.partition_point(|cut| *cut < prefix);
        while self.prefixes.get(partition) == Some(&prefix) && self.cuts[partition].as_slice() <= key {
            partition += 1;
        }
        partition as u32
    }
}

impl<K: Key> Partitioning<K> {
    /// Returns the partition of an encoded key.
    #[inline]
    pub fn partition(&self, key: &[u8], partitions: u32) -> Result<u32, TaskFailure> {
        match self {
            Self::Hash => Ok(hash_share(key_hash(key), partitions)),
            Self::GroupHash(prefix) => Ok(hash_share(key_hash(&key[..prefix(key)]), partitions)),
            Self::Ranges(ranges) => {
                let partition = ranges.partition(key);
                if partition < partitions {
                    Ok(partition)
                } else {
                    Err(out_of_range("range", partition, partitions))
                }
            }
            Self::User(partitioner) => {
                let partition = partitioner.partition(K::decode(key)?, partitions);
                if partition < partitions {
                    Ok(partition)
                } else {
                    Err(out_of_range("partitioner", partition, partitions))
                }
            }
        }
    }
}

#[cold]
fn out_of_range(what: &str, found: u32, partitions: u32) -> TaskFailure {
    TaskFailure::User { message: format!("{what} returned {found} for {partitions} partitions") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_hold_the_keys_from_their_cut_to_the_next(
            mut cuts in proptest::collection::vec(proptest::collection::vec(0u8..3, 0..12), 0..20),
            key in proptest::collection::vec(0u8..3, 0..12),
        ) {
            cuts.sort();
            cuts.dedup();
            let expected = cuts.iter().filter(|cut| **cut <= key).count() as u32;
            prop_assert_eq!(KeyRanges::new(Arc::new(cuts)).partition(&key), expected);
        }
    }
}
