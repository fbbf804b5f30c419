//! What a client hands in: a job with its input cut into splits, and word that it has closed the output.

use super::JobOwner;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::decode_reduces;
use gristmill_worker::folder::PlainName;
use gristmill_worker::http::Endpoint;
use gristmill_worker::input::{FilePath, FileStamp, Split};
use gristmill_worker::output::PartFormat;
use gristmill_worker::protocol::ShippedProgram;
use serde::{Deserialize, Serialize};

/// Longest submission in bytes.
pub(crate) const SUBMISSION_BYTES_MAX: usize = 256 << 20;

/// Bad records that a job may leave out: each is named, in memory and beside the output.
pub const BAD_RECORDS_MAX: u64 = 10_000;

/// A job with its input cut into splits. Body of `POST /api/v1/jobs`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submission {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Identifies the submitting program, as [`MasterStatus::build`](super::MasterStatus::build) does the cluster's: user functions are compiled
    /// in, so the two must be the same.
    #[serde(default)]
    pub build: String,
    /// The submitting program itself, which the master has been sent: the job's functions are run by processes of it, and it
    /// need not be the cluster's.
    #[serde(default)]
    pub program: Option<ShippedProgram>,
    /// Its owner. Filled in by the master, whatever stands here.
    #[serde(default)]
    pub owner: Option<JobOwner>,
    /// Name of the job in the registry.
    pub name: String,
    /// Its parameters as JSON text.
    pub parameters: String,
    /// What the submitter calls it: jobs of one label are alike, for estimators that keep history; `None`: its name.
    #[serde(default)]
    pub label: Option<String>,
    /// One map task each, in input order.
    pub splits: Vec<Split>,
    /// Number of parts; 0 for a map-only job.
    #[serde(deserialize_with = "decode_reduces")]
    pub reduces: u32,
    /// Whether values of equal keys are merged before they travel; `None` if the client does not say.
    #[serde(default)]
    pub combines: Option<bool>,
    /// Ends of ranges for a totally ordered job, as hexadecimal text.
    pub cuts: Vec<String>,
    /// Side inputs.
    pub side: Vec<Split>,
    /// Output directory, absolute.
    pub output: FilePath,
    /// Name of the file in `_temporary` by which a worker knows the directory.
    pub output_probe: PlainName,
    /// The directory was made for this job.
    pub output_made: bool,
    /// How parts lie in their files.
    #[serde(default)]
    pub part_format: PartFormat,
    /// Where the submitter serves its files and takes parts.
    pub submitter: Option<Endpoint>,
    /// What opens the job's segments and files, as text; made by the submitter because it serves files too.
    pub key: String,
    /// What the permits to send in parts are made of, as text: the master and the submitter know it, workers do not.
    pub permit_key: String,
    /// Share under a fair policy; 1 is usual.
    pub weight: f64,
    /// Pool under a fair policy; `None`: a pool of its own.
    pub pool: Option<String>,
    /// Urgency, for policies that look at it; the higher the sooner.
    #[serde(default)]
    pub priority: i32,
    /// The job should end within this time of its arrival, nanoseconds; a wish, not a limit.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// The job's work as measured before, for experiments: policies see it through the oracle estimator.
    #[serde(default)]
    pub exact: Option<ExactWork>,
    /// Charged failures of one task after which the job fails.
    pub attempts_max: u32,
    /// Whether parts are synced to disk before they count as published.
    pub sync: bool,
    /// Longest record, bytes.
    pub record_bytes_max: u64,
    /// Bytes that may come out of a compressed file for each that goes in.
    pub expansion_max: u32,
    /// Bad records that may be left out, at most [`BAD_RECORDS_MAX`].
    #[serde(default)]
    pub bad_records_max: u64,
    /// User code that reads and writes nothing for this long hangs, milliseconds.
    pub hang_ms: u64,
    /// The job is cancelled when the connection that submitted it closes.
    pub attached: bool,
    /// Remarks of the job's plan, for the summary.
    pub remarks: Vec<String>,
    /// What the columns of the output mean, for `_SUCCESS`.
    pub columns: Option<Vec<String>>,
}

/// The work of a job task by task, from an earlier run of it alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExactWork {
    /// Seconds that each map holds a slot of a worker of speed 1.
    pub map_seconds: Vec<f64>,
    /// Bytes that all maps put out.
    pub shuffle_bytes: f64,
    /// Seconds that each reduce holds such a slot.
    pub reduce_seconds: Vec<f64>,
}

impl ExactWork {
    /// Checks the numbers.
    ///
    /// # Errors
    /// A number that is negative or not finite, in words.
    pub fn validate(&self) -> Result<(), String> {
        let lists = [
            ("map_seconds", &self.map_seconds[..]),
            ("shuffle_bytes", std::slice::from_ref(&self.shuffle_bytes)),
            ("reduce_seconds", &self.reduce_seconds[..]),
        ];
        for (name, numbers) in lists {
            if let Some(number) = numbers.iter().find(|number| !(number.is_finite() && 0.0 <= **number)) {
                return Err(format!("{name} holds {number}, which is not a number of at least 0"));
            }
        }
        Ok(())
    }
}

/// Body of `POST /api/v1/jobs/JOB/closed`: the client that follows a job has closed its output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputClosed {
    /// Why the output is not there, if it could not be finished.
    pub failed: Option<String>,
}

/// Body of `POST /api/v1/attend`: what only the client that submitted the job has.
#[derive(Clone, Serialize, Deserialize)]
pub struct JobAttended {
    /// As the submission had it.
    pub permit_key: String,
}

/// Where a part lies until it is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BuiltPart {
    /// The attempt that built it, and was allowed to.
    pub attempt: AttemptId,
    /// Its file as it was when the attempt was done with it.
    pub stamp: FileStamp,
}
