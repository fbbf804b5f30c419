//! Description of a job that the master sends to its workers.

use crate::directory::PlainName;
use crate::http::{Endpoint, Secret};
use crate::input::{FilePath, Split};
use crate::part_format::PartFormat;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::{decode_maps, decode_reduces};
use serde::{Deserialize, Serialize};

/// Maximum size of the records of a job's input, and maximum number of bad ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLimits {
    /// Maximum length of a record in bytes.
    pub record_bytes_max: u64,
    /// Maximum ratio of decompressed to compressed bytes of a file.
    pub expansion_max: u32,
    /// Maximum number of bad records that the job skips.
    pub bad_records_max: u64,
}

/// Place of a map that a division added, in the order of the input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct AddedMap {
    /// Map whose split, as submitted, has its input.
    pub root: u32,
    /// Bytes of that split before its own.
    pub start: u64,
}

impl AddedMap {
    /// Returns the place of a map, in a job of `maps` maps of which divisions added the last.
    #[must_use]
    pub fn of_map(map: u32, maps: u32, added: &[AddedMap]) -> Self {
        let first = maps.saturating_sub(added.len() as u32);
        let found = map.checked_sub(first).and_then(|index| added.get(index as usize));
        found.copied().unwrap_or(AddedMap { root: map, start: 0 })
    }
}

/// Description of a job for a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobOrder {
    /// Number of the job.
    pub job: JobId,
    /// Name of the job in the registry.
    pub name: String,
    /// Parameters as JSON.
    pub parameters: String,
    /// Number of maps.
    #[serde(deserialize_with = "decode_maps")]
    pub maps: u32,
    /// Number of partitions; 0 for map-only.
    #[serde(deserialize_with = "decode_reduces")]
    pub partitions: u32,
    /// Boundaries of the ranges of a totally ordered job, `partitions - 1` encoded keys; empty otherwise.
    pub cuts: Vec<Vec<u8>>,
    /// Key of this job's segments and files.
    pub key: Secret,
    /// Output directory as given by the submitter.
    pub output: FilePath,
    /// Name of a file in `_temporary` there: a worker that sees it shares the directory with the submitter.
    pub output_probe: PlainName,
    /// Format of the files of parts.
    pub part_format: PartFormat,
    /// Side inputs, each with its whole files.
    pub side: Vec<Split>,
    /// Endpoint where the attached submitter serves its files and receives parts; `None` if it does not.
    pub submitter: Option<Endpoint>,
    /// Endpoints of workers that are named in file paths.
    pub peers: Vec<(WorkerId, Endpoint)>,
    /// Limits of reading its input.
    pub limits: RecordLimits,
    /// True if parts are synced to disk before they count as published.
    pub sync: bool,
    /// Time without progress after which user code counts as hanging, milliseconds.
    pub hang_ms: u64,
}
