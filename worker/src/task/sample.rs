//! Cutting the key space into ranges: a seeded sample of keys, and the keys at which partitions begin.
//!
//! The sample depends on the job's input alone, so every run of a job cuts the same ranges. Not here: which
//! blocks are looked at (whoever submits decides).

use super::map::{no_such_input, partitioning};
use super::{ErasedSample, Progress, TaskFailure};
use crate::api::{Counters, JobPlan, MapReducePlan, TaskContext};
use crate::budget::Budget;
use crate::collect::{Emitter, EmitterSetting, Target};
use crate::key::Key;
use crate::recycle::Recycler;
use crate::segment::{SegmentOrder, SpillCompression, WriteSetting};
use crate::value::Value;
use gristmill_scheduler::ids::{JobId, TaskId};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Keys in a sample. For a hundred partitions that is a thousand keys each: their sizes then differ by a few
/// percent.
pub const SAMPLE_KEYS_MAX: usize = 100_000;
/// Bytes of the keys in a sample.
const SAMPLE_BYTES_MAX: usize = 64 << 20;
/// Any number would do.
const SEED: u64 = 0x5EED_0F0A_4D11;

/// A sample of keys, each with the same chance, of bounded size.
///
/// Every key draws a number; those with the least stay.
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
    /// An empty sample of at most `keys_max` keys.
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

    /// Keys in the sample.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether no key was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// The first keys of all partitions but the first, ascending and all different; fewer than `partitions - 1` if
/// the sample does not have as many different keys (or group prefixes, if the job groups by a part of the key).
/// So equal keys, and keys of one group, always lie in one partition.
#[must_use]
pub fn cut_points(sample: KeySample, partitions: u32, plan: &JobPlan) -> Vec<Vec<u8>> {
    let group = super::map_reduce(plan).ok().and_then(super::MapReduceWork::group);
    let mut keys: Vec<Vec<u8>> = sample.kept.into_iter().map(|(_, key)| key).collect();
    if let Some(prefix) = group {
        for key in &mut keys {
            key.truncate(prefix(key));
        }
    }
    keys.sort_unstable();
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    for partition in 1..partitions as usize {
        let fair = keys.len() * partition / partitions as usize;
        // A key that is more frequent than a partition's share was cut before: go on with the next one.
        let last = cuts.last().or(keys.first());
        let later = keys[fair..].iter().find(|key| last.is_some_and(|last| last < *key));
        match later {
            Some(key) => cuts.push(key.clone()),
            None => break,
        }
    }
    cuts
}

pub(super) fn run<K: Key, V: Value>(
    plan: &MapReducePlan<K, V>,
    erased: ErasedSample<'_>,
) -> Result<KeySample, TaskFailure> {
    let ErasedSample { input, blocks, side, sample, spill } = erased;
    let mapper = plan.mappers.get(input).ok_or_else(|| no_such_input(input, plan.mappers.len()))?;
    let write = WriteSetting {
        job: JobId(0),
        map: 0,
        epoch: 0,
        partitions: 1,
        order: SegmentOrder::Key,
        spill,
        compression: SpillCompression::None,
    };
    let (progress, recycler) = (Arc::new(Progress::default()), Recycler::default());
    let kept_in_files = Budget::new(0);
    let setting = EmitterSetting { write, fan_in_max: 2, progress, recycler, kept_in_files };
    let mut emitter: Emitter<K, V> =
        Emitter::new(Target::Sample(Some(sample)), partitioning(plan, &Arc::default()), setting);
    let context = TaskContext::new(TaskId::map(JobId(0), 0), 1, Counters::default(), side);
    mapper().run(&context, blocks, &mut emitter)?;
    Ok(emitter.into_sample().unwrap_or_default())
}
