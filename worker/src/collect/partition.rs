//! Which partition a key belongs to.
//!
//! Not here: the sample that cuts key ranges (`task::sample`).

use super::hash::{hash_share, key_hash};
use crate::api::{GroupPrefix, Partitioner};
use crate::key::Key;
use crate::task::TaskFailure;
use std::sync::Arc;

/// How a job's keys are spread over its partitions.
pub(crate) enum Partitioning<K: Key> {
    /// By the hash of the whole key.
    Hash,
    /// By the hash of the group prefix.
    GroupHash(GroupPrefix),
    /// Partition `i` begins with the `i - 1`th of these keys, which ascend; there may be fewer than needed.
    Ranges(Arc<Vec<Vec<u8>>>),
    /// By the user's rule.
    User(Arc<dyn Partitioner<Key = K>>),
}

impl<K: Key> Partitioning<K> {
    /// The partition of an encoded key.
    #[inline]
    pub fn of(&self, key: &[u8], partitions: u32) -> Result<u32, TaskFailure> {
        match self {
            Self::Hash => Ok(hash_share(key_hash(key), partitions)),
            Self::GroupHash(prefix) => Ok(hash_share(key_hash(&key[..prefix(key)]), partitions)),
            Self::Ranges(cuts) => {
                let partition = cuts.partition_point(|cut| cut.as_slice() <= key) as u32;
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
