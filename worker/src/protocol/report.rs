//! Reports of a worker about itself and its attempts.

use crate::directory::PlainName;
use crate::input::FileBadRecords;
use gristmill_scheduler::event::FetchRate;
use gristmill_scheduler::ids::AttemptId;
use serde::{Deserialize, Serialize};

/// Heartbeat with the state of the worker.
#[derive(Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Heartbeat {
    pub running: Vec<AttemptProgress>,
    /// Current anonymous and shared memory of the process, bytes.
    pub memory_bytes: u64,
    /// Processors that the process used on average since its last heartbeat.
    pub processors: f64,
    /// Free bytes on the fullest spill directory.
    pub disk_free_bytes: u64,
    /// Free space for spill files; `None` before the first check.
    pub disk_room: Option<DiskRoom>,
    /// On an unlimited network, rates of bytes from other workers in the last seconds, while requests were in flight.
    pub fetches: Vec<FetchRate>,
}

/// Free space for spill files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRoom {
    /// Free bytes on the emptiest spill directory.
    pub free_bytes: u64,
    /// Bytes that must stay free there.
    pub reserve_bytes: u64,
}

/// Segments that have arrived of one map output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedOutput {
    /// Map attempt of the output.
    pub map: AttemptId,
    /// Partitions that have it now.
    pub partitions: Vec<u32>,
    /// Bytes received.
    pub bytes: u64,
    /// Number of times that damaged data with an intact copy was sent again.
    pub resent: u32,
}

/// Progress of an attempt.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct AttemptProgress {
    pub attempt: AttemptId,
    /// Bytes read so far: of the split, or of the partition's segments.
    pub bytes_in: u64,
    /// Records read so far.
    pub records_in: u64,
    /// Bytes that a reduce which may be divided reads in all; else 0.
    pub divisible_bytes: u64,
}

/// Report of an attempt. Times are by the worker's clock, nanoseconds since its start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AttemptReport {
    /// Time when user code could start, after the time in the queue for a slot.
    pub started_ns: u64,
    /// Time when it ended.
    pub ended_ns: u64,
    /// Records read.
    pub records_in: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Records emitted or written.
    pub records_out: u64,
    /// Bytes of the map output or the part.
    pub bytes_out: u64,
    /// Number of runs written to disk because memory was full.
    pub spills: u64,
    /// Bytes of those runs.
    pub spilled_bytes: u64,
    /// Input bytes read from files on this worker's disk; the rest was received over HTTP.
    pub local_bytes: u64,
    /// User counters.
    pub counters: Vec<(String, u64)>,
    /// CPU time of the slot's thread in nanoseconds.
    pub cpu_ns: u64,
    /// Memory use of its worker.
    pub memory: MemoryUse,
    /// Time of waiting because its slot is limited to a lower speed than the machine, nanoseconds.
    pub paced_ns: u64,
    /// Time of suspension, nanoseconds; part of the time between start and end.
    pub suspended_ns: u64,
    /// Number of suspensions.
    pub suspensions: u32,
    /// Bad records of the input that a map skipped, by file, in the order of reading.
    pub bad_records: Vec<FileBadRecords>,
}

/// Memory use of a worker's process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Maximum resident memory, bytes.
    pub peak_bytes: u64,
    /// Memory that the worker may use, bytes.
    pub budget_bytes: u64,
    /// Maximum bytes of it used by outputs and gathered segments at once.
    pub kept_peak_bytes: u64,
}

/// One part of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// File name, `part-00000`.
    pub name: String,
    /// Length of the file.
    pub bytes: u64,
    /// Number of records, as counted by its writer.
    pub records: u64,
    /// CRC-32C of the file.
    pub crc32c: u32,
    /// Files of its task in named outputs, in the order of names.
    #[serde(default)]
    pub named: Vec<NamedPart>,
}

/// Part of a named output, written by the task of a part. It is stored in a directory of the output's name, under the
/// part's name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NamedPart {
    /// Name of the output.
    pub output: PlainName,
    /// Length of the file.
    pub bytes: u64,
    /// Number of records, as counted by its writer.
    pub records: u64,
    /// CRC-32C of the file.
    pub crc32c: u32,
}

impl Part {
    /// Returns the bytes of all files.
    #[must_use]
    pub fn all_bytes(&self) -> u64 {
        self.named.iter().fold(self.bytes, |sum, named| sum.saturating_add(named.bytes))
    }

    /// Returns the records of all files.
    #[must_use]
    pub fn all_records(&self) -> u64 {
        self.named.iter().fold(self.records, |sum, named| sum.saturating_add(named.records))
    }
}

/// Class of a failure. The master decides by this alone, never by text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// User code returned an error or panicked.
    User,
    /// User code made no progress for too long.
    Hang,
    /// The input is missing, changed, corrupt or holds a record over the limit.
    Input,
    /// The job's parameters are invalid.
    Config,
    /// The worker's own disk or memory failed.
    Worker,
    /// Another worker could not be reached or did not have the output.
    Fetch,
    /// A segment's checksum did not match.
    Corrupt,
    /// It was killed by order of the master.
    Cancelled,
    /// The output directory could not be written.
    Output,
    /// The engine's own code panicked: a bug of this program, not of user code.
    Engine,
    /// The submitter, or a worker that has input files, could not be reached.
    Unreachable,
    /// A worker that was reached no longer holds a map output.
    Missing,
    /// A store rejects the credentials of the worker, or it has none.
    Credentials,
    /// The output directory does not exist, or no longer does.
    OutputGone,
}

impl FailureClass {
    /// Returns its name for display and JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Hang => "hang",
            Self::Input => "input",
            Self::Config => "config",
            Self::Worker => "worker",
            Self::Fetch => "fetch",
            Self::Corrupt => "corrupt",
            Self::Cancelled => "cancelled",
            Self::Output => "output",
            Self::Engine => "engine",
            Self::Unreachable => "unreachable",
            Self::Missing => "missing",
            Self::Credentials => "credentials",
            Self::OutputGone => "output_gone",
        }
    }
}
