//! Division of the key space into ranges: the first keys of partitions, from a sample.
//!
//! The sample depends only on the job's input, so every run of a job has the same ranges. The submitter chooses the
//! sampled blocks.

use super::map::{no_such_input, partitioning};
use crate::api::{Counters, ErasedSample, JobPlan, MapReducePlan, MapReduceWork, TaskContext};
use crate::attempt::TaskFailure;
use crate::collect::{EmitTarget, Emitter, EmitterSetting, KeySample};
use crate::key::Key;
use crate::value::Value;
use gristmill_scheduler::ids::{JobId, TaskId};
use std::sync::Arc;

/// Returns the first keys of all partitions except the first, ascending and different. There are fewer than
/// `partitions - 1` if the sample has fewer different keys (or group prefixes, if the job groups by a part of the key).
/// So equal keys, and keys of one group, are always in one partition.
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
        // A key more frequent than a partition's share is already a boundary: continue with the next one.
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
    let ErasedSample { input, blocks, side, sample } = erased;
    let mapper = plan.mappers.get(input).ok_or_else(|| no_such_input(input, plan.mappers.len()))?;
    let mut emitter: Emitter<K, V> = Emitter::new(
        EmitTarget::Sample(Some(sample)),
        partitioning(plan, &Arc::default()),
        EmitterSetting::without_spills(),
    );
    let context = TaskContext::new(TaskId::map(JobId(0), 0), 1, Counters::default(), side);
    mapper().run(&context, blocks, &mut emitter)?;
    Ok(emitter.into_sample().unwrap_or_default())
}
