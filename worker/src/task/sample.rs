//! Cutting the key space into ranges: the keys at which partitions begin, from a sample.
//!
//! The sample depends on the job's input alone, so every run of a job cuts the same ranges. Which blocks are looked at
//! decides whoever submits.

use super::map::{no_such_input, partitioning};
use crate::api::{Counters, ErasedSample, JobPlan, MapReducePlan, MapReduceWork, TaskContext};
use crate::attempt::{Progress, TaskFailure};
use crate::budget::KeptInFiles;
use crate::collect::{EmitTarget, Emitter, EmitterSetting, KeySample};
use crate::key::Key;
use crate::recycle::Recycler;
use crate::segment::{SegmentOrder, SpillCompression, WriteSetting};
use crate::value::Value;
use gristmill_scheduler::ids::{JobId, TaskId};
use std::sync::Arc;

/// The first keys of all partitions but the first, ascending and all different; fewer than `partitions - 1` if
/// the sample does not have as many different keys (or group prefixes, if the job groups by a part of the key).
/// So equal keys, and keys of one group, always lie in one partition.
#[must_use]
pub fn cut_points(sample: KeySample, partitions: u32, plan: &JobPlan) -> Vec<Vec<u8>> {
    let group = super::map_reduce(plan).ok().and_then(MapReduceWork::group);
    let mut keys: Vec<Vec<u8>> = sample.into_keys().collect();
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
    let kept_in_files = KeptInFiles::none();
    let setting = EmitterSetting { write, fan_in_max: 2, progress, recycler, kept_in_files };
    let mut emitter: Emitter<K, V> =
        Emitter::new(EmitTarget::Sample(Some(sample)), partitioning(plan, &Arc::default()), setting);
    let context = TaskContext::new(TaskId::map(JobId(0), 0), 1, Counters::default(), side);
    mapper().run(&context, blocks, &mut emitter)?;
    Ok(emitter.into_sample().unwrap_or_default())
}
