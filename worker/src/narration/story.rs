//! Record of an attempt, as stored in its file. Keys, values and records are text for display, bounded and sanitized.

use serde::{Deserialize, Serialize};

/// Items in their order, up to the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told<T> {
    /// The first items.
    pub kept: Vec<T>,
    /// Number of omitted items after those.
    pub omitted: u64,
}

impl<T> Default for Told<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), omitted: 0 }
    }
}

/// Input, emitted pairs and output of a map attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MapStory {
    /// Pieces of its split, and its records.
    pub input: KeptInputs,
    /// Side inputs of the job as its worker read them, once for all tasks there; without those that no task requested.
    #[serde(default)]
    pub sides: Vec<KeptInputs>,
    /// Pairs emitted by the mapper.
    pub emitted: Told<PlainPair>,
    /// True if a combiner merged values of equal keys.
    pub combines: bool,
    /// Rule that chooses the partition of a key.
    pub rule: PartitionRule,
    /// Number of partitions of the job.
    pub partitions: u32,
    /// Pairs of its output, in stored order: partition by partition.
    pub output: Told<PlacedPair>,
    /// Bytes of its segments, by partition; empty ones are omitted.
    pub segments: Vec<(u32, u64)>,
}

/// Input of a map, or side input of a worker for all its tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptInputs {
    /// Ranges of files in the split.
    pub pieces: Vec<StoryPiece>,
    /// Records of the input.
    pub records: Told<StoryRecord>,
}

/// Range of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoryPiece {
    /// Path as given by the user.
    pub path: String,
    /// Offset of its first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Input record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoryRecord {
    /// Offset in its file, bytes.
    pub offset: u64,
    /// Text without its line end.
    pub text: String,
}

/// Key-value pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say all there is to say")]
pub struct PlainPair {
    pub key: String,
    pub value: String,
}

/// Pair with its partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedPair {
    /// Partition of its segment.
    pub partition: u32,
    /// Key as text.
    pub key: String,
    /// Value as text.
    pub value: String,
    /// Hash that chose the partition, if one did.
    pub hash: Option<u64>,
}

/// Rule that chooses the partition of a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionRule {
    /// Each partition has an equal share of all hashes, and gets the keys whose hash is in it.
    #[default]
    Hash,
    /// The same, with the hash of the key's first component.
    FirstComponent,
    /// Each partition has a range of keys; these are the first keys of all except the first.
    Ranges(Vec<String>),
    /// Custom rule of the job.
    Own,
}

/// Input of a reduce attempt, and its groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReduceStory {
    /// True if pairs were totalled in a table, as with a combiner, and not merged.
    pub combines: bool,
    /// Segments in the order in which they were merged, or added to the table; empty ones are omitted.
    pub segments: Vec<StorySegment>,
    /// Pairs in the order in which they were read.
    pub read: Told<ReadPair>,
    /// Groups in the order in which the reducer received them.
    pub groups: Told<GroupTold>,
}

/// Segment that a reduce read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorySegment {
    /// Map of the segment.
    pub map: u32,
    /// Number of pairs.
    pub records: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Pair that a reduce read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadPair {
    /// Map of its segment.
    pub map: u32,
    /// Key as text.
    pub key: String,
    /// Value as text.
    pub value: String,
}

/// Group of a reduce.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupTold {
    /// First key of the group.
    pub key: String,
    /// Values that the reducer received, up to the limit.
    pub values: Vec<String>,
    /// Number of omitted values after those.
    pub omitted: u64,
    /// Offset of the first output byte that the reducer wrote for it.
    pub from: u64,
    /// Offset after its last output byte.
    pub until: u64,
}
