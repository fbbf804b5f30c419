//! Emission with a recorder of the pairs: a separate path, so that the usual one needs no additional check.

use super::partition::Partitioning;
use super::{EmitTarget, Emitter};
use crate::attempt::TaskFailure;
use crate::key::Key;
use crate::key::hash::key_hash;
use crate::merge::MergeError;
use crate::narration::{MapNarrator, MapStory, PairWords, PartitionRule, PlacedPair, bounded};
use crate::segment::{MapOutput, SegmentReader};
use crate::value::Value;

/// Collector with a recorder of the pairs.
pub(crate) struct NarratedTarget<V: Value> {
    collector: EmitTarget<V>,
    narrator: MapNarrator,
}

impl<V: Value> EmitTarget<V> {
    /// Returns the actual collector.
    pub(super) fn collector(&self) -> &Self {
        match self {
            Self::Narrated(narrated) => &narrated.collector,
            other => other,
        }
    }

    /// Returns the actual collector.
    pub(super) fn collector_mut(&mut self) -> &mut Self {
        match self {
            Self::Narrated(narrated) => &mut narrated.collector,
            other => other,
        }
    }

    /// Adds a recorder of the pairs.
    pub(crate) fn narrated<K: Key>(self) -> Self {
        let narrator = MapNarrator::new(PairWords { key: K::words, value: V::words });
        Self::Narrated(Box::new(NarratedTarget { collector: self, narrator }))
    }
}

impl<K: Key, V: Value> Emitter<K, V> {
    /// Emits one pair that is also recorded.
    #[cold]
    #[inline(never)]
    pub(super) fn emit_narrated(&mut self, key: K::View<'_>, value: V::View<'_>) {
        let EmitTarget::Narrated(narrated) = &mut self.target else { return };
        let NarratedTarget { collector, narrator } = &mut **narrated;
        let added = match collector {
            EmitTarget::Combine(combining) => {
                let (value, encoded) = (V::from_view(value), &mut self.value_scratch);
                encoded.clear();
                if let Err(error) = value.encode_owned(encoded) {
                    return self.spill_or_fail(Err(error.into()));
                }
                let full = K::with_bytes(key, &mut self.key_scratch, |key| {
                    narrator.emitted(key, encoded);
                    combining.push(key, None, value)
                });
                if full {
                    self.settle();
                }
                return;
            }
            EmitTarget::Sort(sorting) => {
                let (partitioning, partitions) = (&self.partitioning, self.setting.write.partitions);
                let value_scratch = &mut self.value_scratch;
                K::with_bytes(key, &mut self.key_scratch, |key| {
                    let partition = partitioning.partition(key, partitions)?;
                    let added = V::with_bytes(value, value_scratch, |value| {
                        narrator.emitted(key, value);
                        sorting.add(partition, key, value)
                    });
                    Ok(added??)
                })
            }
            EmitTarget::Sample(_) | EmitTarget::Narrated(_) | EmitTarget::Kept(_) => return,
        };
        self.go_on(added);
    }

    /// Removes the recorder of the pairs, and returns it.
    pub(crate) fn end_narration(&mut self) -> Option<MapNarrator> {
        match std::mem::replace(&mut self.target, EmitTarget::Sample(None)) {
            EmitTarget::Narrated(narrated) => {
                let NarratedTarget { collector, narrator } = *narrated;
                self.target = collector;
                Some(narrator)
            }
            other => {
                self.target = other;
                None
            }
        }
    }
}

impl<K: Key> Partitioning<K> {
    /// Returns the rule for display.
    fn rule(&self) -> PartitionRule {
        match self {
            Self::Hash => PartitionRule::Hash,
            Self::GroupHash(_) => PartitionRule::FirstComponent,
            Self::Ranges(ranges) => {
                PartitionRule::Ranges(ranges.cuts().iter().map(|cut| bounded(&K::words(cut))).collect())
            }
            Self::User(_) => PartitionRule::Own,
        }
    }

    /// Returns the hash that chooses a key's partition, if one does.
    fn hash(&self, key: &[u8]) -> Option<u64> {
        match self {
            Self::Hash => Some(key_hash(key).get()),
            Self::GroupHash(prefix) => Some(key_hash(&key[..prefix(key)]).get()),
            Self::Ranges(_) | Self::User(_) => None,
        }
    }
}

/// Returns the recorded story of a map: the pairs that it emitted, and those of its output, read back.
pub(crate) fn map_story<K: Key>(
    narrator: MapNarrator,
    partitioning: &Partitioning<K>,
    output: &MapOutput,
    (combines, partitions): (bool, u32),
) -> Result<MapStory, TaskFailure> {
    let MapNarrator { words, mut room, emitted } = narrator;
    let rule = partitioning.rule();
    let mut story = MapStory { emitted, combines, rule, partitions, ..MapStory::default() };
    for partition in output.filled().iter().copied() {
        let Some(data) = output.segment(partition).filter(|data| !data.is_empty()) else { continue };
        story.segments.push((partition, data.len() as u64));
        let wrong = |source| MergeError { map: None, source };
        let mut reader = SegmentReader::open(data).map_err(wrong)?;
        while reader.advance().map_err(wrong)? {
            let (key, value) = words.format(reader.key(), reader.value());
            let hash = partitioning.hash(reader.key());
            let bytes = key.len() + value.len();
            room.keep(&mut story.output, bytes, PlacedPair { partition, key, value, hash });
        }
    }
    Ok(story)
}
