//! The description of a job that the master sends to its workers.

use super::ShippedProgram;
use crate::folder::PlainName;
use crate::http::{Endpoint, Secret};
use crate::input::{FilePath, Split};
use crate::part_format::PartFormat;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::{decode_maps, decode_reduces};
use serde::{Deserialize, Serialize};

/// How large the records of a job's input may be, and how many of them bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLimits {
    /// Longest record in bytes.
    pub record_bytes_max: u64,
    /// Bytes that may come out of a compressed file for each that goes in.
    pub expansion_max: u32,
    /// Bad records that may be left out of the job.
    pub bad_records_max: u64,
}

/// All a worker must know of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobOrder {
    /// Its number.
    pub job: JobId,
    /// The program whose registry and functions it is of; `None`: the cluster's own.
    pub program: Option<ShippedProgram>,
    /// Its name in the registry.
    pub name: String,
    /// Its parameters as JSON.
    pub parameters: String,
    /// Number of maps.
    #[serde(deserialize_with = "decode_maps")]
    pub maps: u32,
    /// Number of partitions; 0 for map-only.
    #[serde(deserialize_with = "decode_reduces")]
    pub partitions: u32,
    /// Borders of the ranges of a totally ordered job, `partitions - 1` encoded keys; empty otherwise.
    pub cuts: Vec<Vec<u8>>,
    /// What opens this job's segments and files.
    pub key: Secret,
    /// Output directory as the submitter names it.
    pub output: FilePath,
    /// Name of a file in `_temporary` there: whoever sees it shares the directory with the submitter.
    pub output_probe: PlainName,
    /// How parts lie in their files.
    pub part_format: PartFormat,
    /// Side inputs, each with its files whole.
    pub side: Vec<Split>,
    /// Where the attached submitter serves its files and takes parts; `None` if it does not.
    pub submitter: Option<Endpoint>,
    /// Where workers that files are named on serve them.
    pub peers: Vec<(WorkerId, Endpoint)>,
    /// Limits of reading its input.
    pub limits: RecordLimits,
    /// Whether parts are synced to disk before they count as published.
    pub sync: bool,
    /// No progress for this long means that user code hangs, milliseconds.
    pub hang_ms: u64,
}
