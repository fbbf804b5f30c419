//! What is kept of an attempt, as it lies in its file. Keys, values and records are words for a person, bounded and
//! cleaned.

use serde::{Deserialize, Serialize};

/// Items in the order in which they came, as far as there was room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told<T> {
    /// The first ones.
    pub kept: Vec<T>,
    /// Items after those.
    pub omitted: u64,
}

impl<T> Default for Told<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), omitted: 0 }
    }
}

/// What a map attempt read, emitted and left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MapStory {
    /// The pieces of its split, and its records.
    pub input: KeptInputs,
    /// The job's side inputs as its worker read them, once for all tasks there; those that no task asked for are left out.
    #[serde(default)]
    pub sides: Vec<KeptInputs>,
    /// Pairs as the mapper emitted them.
    pub emitted: Told<PlainPair>,
    /// Whether a combiner merged values of equal keys.
    pub combines: bool,
    /// How a key's partition is chosen.
    pub rule: PartitionRule,
    /// Partitions of the job.
    pub partitions: u32,
    /// The pairs of its output, as they lie there: partition by partition.
    pub output: Told<PlacedPair>,
    /// Bytes of its segments, by partition; those without pairs are left out.
    pub segments: Vec<(u32, u64)>,
}

/// What a map read, or a worker for all its tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptInputs {
    /// The stretches of files in the split.
    pub pieces: Vec<PieceTold>,
    /// Their records.
    pub records: Told<RecordTold>,
}

/// A stretch of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PieceTold {
    /// As the user named it.
    pub path: String,
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordTold {
    /// Where it begins in its file, bytes.
    pub offset: u64,
    /// The record without its line end.
    pub text: String,
}

/// A pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say all there is to say")]
pub struct PlainPair {
    pub key: String,
    pub value: String,
    /// Hash of the whole key, by which pairs of one key are known where words of keys are cut.
    pub sum: u64,
}

/// A pair and where it goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedPair {
    /// The partition in whose segment it lies.
    pub partition: u32,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The hash that chose the partition, if one did.
    pub hash: Option<u64>,
    /// As [`PlainPair::sum`].
    pub sum: u64,
}

/// How a key's partition is chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionRule {
    /// Each partition has an equal share of all hashes, and gets the keys whose hash lies there.
    #[default]
    Hash,
    /// Likewise, with the hash of the key's first component.
    FirstComponent,
    /// Each partition has a range of keys; these are the first keys of all but the first.
    Ranges(Vec<String>),
    /// By a rule of the job's own.
    Own,
}

/// What a reduce attempt read, and the groups that it made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReduceStory {
    /// Whether pairs were totalled in a table, as they are with a combiner, and not merged.
    pub combines: bool,
    /// The segments in the order in which they were merged, or went into the table; empty ones are left out.
    pub segments: Vec<SegmentTold>,
    /// The pairs in the order in which they were read.
    pub read: Told<ReadPair>,
    /// The groups in the order in which the reducer got them.
    pub groups: Told<GroupTold>,
    /// Groups that an earlier attempt had reduced, which handed over.
    pub groups_before: u64,
}

/// A segment that a reduce read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentTold {
    /// The map it came from.
    pub map: u32,
    /// Its pairs.
    pub records: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// A pair that a reduce read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadPair {
    /// The map whose segment it came from.
    pub map: u32,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupTold {
    /// Its first key.
    pub key: String,
    /// The values that the reducer got, as far as there was room.
    pub values: Vec<String>,
    /// Values after those.
    pub omitted: u64,
    /// First byte of the part that the reducer wrote for it.
    pub from: u64,
    /// The byte behind the last one.
    pub until: u64,
}
