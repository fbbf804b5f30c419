//! What a worker reports of itself and of its attempts.

use super::Measures;
use crate::folder::PlainName;
use crate::input::FileBadRecords;
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use serde::{Deserialize, Serialize};

/// Sign of life with what the worker is doing.
#[derive(Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Heartbeat {
    pub running: Vec<AttemptProgress>,
    /// Anonymous and shared memory of the process now, bytes.
    pub memory_bytes: u64,
    /// Free bytes on the fullest spill directory.
    pub disk_free_bytes: u64,
    /// Whether there is room for more; `None` before it has looked.
    pub disk_room: Option<DiskRoom>,
    /// On a network that nobody has made slow, what has come from other workers in the last seconds, while something was
    /// asked for there.
    pub fetches: Vec<FetchRate>,
}

/// Room for spill files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRoom {
    /// Free bytes on the emptiest spill directory.
    pub free_bytes: u64,
    /// Bytes that are to stay free there.
    pub reserve_bytes: u64,
}

/// How fast bytes have come over one way lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRate {
    /// Where from.
    pub from: WorkerId,
    /// What has come.
    pub bytes: u64,
    /// In how much time with requests in flight, nanoseconds.
    pub busy_ns: u64,
}

/// What has arrived of one map output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedOutput {
    /// The map attempt whose output it was.
    pub map: AttemptId,
    /// The partitions that now have it.
    pub partitions: Vec<u32>,
    /// Bytes received.
    pub bytes: u64,
    /// Times that some of it came damaged though the copy there is whole, and was sent again.
    pub resent: u32,
}

/// How far an attempt is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct AttemptProgress {
    pub attempt: AttemptId,
    /// Bytes read so far: of the split, or of the partition's segments.
    pub bytes_in: u64,
    /// Records read so far.
    pub records_in: u64,
}

/// What an attempt did. Times are the worker's clock, nanoseconds since its start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AttemptReport {
    /// When user code could start; the time it was queued for a slot is before that.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Records read.
    pub records_in: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Records emitted or written.
    pub records_out: u64,
    /// Bytes of map output or part.
    pub bytes_out: u64,
    /// Times that memory ran out and a run went to disk.
    pub spills: u64,
    /// Bytes that went to disk for that.
    pub spilled_bytes: u64,
    /// Bytes of input read from files on this worker's disk (the rest came over HTTP).
    pub local_bytes: u64,
    /// User counters.
    pub counters: Vec<(String, u64)>,
    /// What user code measured besides.
    #[serde(default)]
    pub measures: Measures,
    /// CPU time of the slot's thread in nanoseconds.
    pub cpu_ns: u64,
    /// Memory of its worker.
    pub memory: MemoryUse,
    /// Time it was made to wait because its worker's slots are slower than the machine, nanoseconds.
    pub paced_ns: u64,
    /// Time it was suspended, nanoseconds; part of the time between start and end.
    pub suspended_ns: u64,
    /// Times it was suspended.
    pub suspensions: u32,
    /// Bad records of the input that a map left out, file by file, in the order in which it reads them.
    pub bad_records: Vec<FileBadRecords>,
}

/// What a worker's process has needed of its memory so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Largest resident memory, bytes.
    pub peak_bytes: u64,
    /// Memory that the worker may use, bytes.
    pub budget_bytes: u64,
    /// Most bytes of it that outputs and gathered segments have taken at once.
    pub kept_peak_bytes: u64,
}

/// One part of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its file name, `part-00000`.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Records in it as its writer counted them.
    pub records: u64,
    /// CRC-32C of its bytes.
    pub crc32c: u32,
    /// What its task wrote to outputs beside the main one, in the order of their names.
    #[serde(default)]
    pub named: Vec<NamedPart>,
}

/// The part of a named output that the task of a part has written. It lies in a folder of the output's name, under the
/// part's name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NamedPart {
    /// The output.
    pub output: PlainName,
    /// Its length.
    pub bytes: u64,
    /// Records in it as its writer counted them.
    pub records: u64,
    /// CRC-32C of its bytes.
    pub crc32c: u32,
}

impl Part {
    /// Bytes of all files.
    #[must_use]
    pub fn all_bytes(&self) -> u64 {
        self.named.iter().fold(self.bytes, |sum, named| sum.saturating_add(named.bytes))
    }

    /// Records of all files.
    #[must_use]
    pub fn all_records(&self) -> u64 {
        self.named.iter().fold(self.records, |sum, named| sum.saturating_add(named.records))
    }
}

/// Whose fault a failure is. The master decides by this alone, never by text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// User code returned an error or panicked.
    User,
    /// User code read and wrote nothing for too long.
    Hang,
    /// The input is missing, changed, corrupt or holds a record over the limit.
    Input,
    /// The job's parameters do not work.
    Config,
    /// The worker's own disk or memory.
    Worker,
    /// Another worker could not be reached or did not have the output.
    Fetch,
    /// A segment's checksum did not match.
    Corrupt,
    /// It was killed by order of the master.
    Cancelled,
    /// The output directory could not be written.
    Output,
    /// The engine's own code panicked: a mistake in this program, not in user code.
    Engine,
    /// The submitter, or a worker that has input files, could not be reached.
    Unreachable,
    /// A worker that was reached does not hold a map output any more.
    Missing,
    /// The process that ran it was killed, and nobody knows why.
    Lost,
    /// A store does not take the credentials of the worker, or it has none.
    Credentials,
    /// The output directory is not there, or not any more.
    OutputGone,
}

impl FailureClass {
    /// As people read it, and as it stands in JSON.
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
            Self::Lost => "lost",
            Self::Credentials => "credentials",
            Self::OutputGone => "output_gone",
        }
    }
}
