//! What master and worker say to each other: one long-lived connection, frames in both directions.
//!
//! A frame is a 4-byte little-endian length and that many bytes as `codec` makes them. The first frame of a connection
//! is [`Hello`](WorkerFrame::Hello) from the worker, answered by `Welcome` or `Refused`. Of the scheduler's
//! types only ids appear here; the master translates facts and orders at its own border.
//!
//! Not here: payload. Records travel between workers over HTTP and never touch this connection.

use crate::codec;
use crate::folder::PlainName;
use crate::http::{Endpoint, Secret};
use crate::input::{FilePath, FileStamp, Split};
use crate::segment::OutputPrint;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Version of the frames below. Both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 5;

/// Longest frame in bytes, once both sides know each other.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

/// Slots of one worker, of one kind.
pub const SLOTS_MAX: u32 = 1000;

/// Longest frame of a worker in bytes: all partitions that a job can have, of one map, are a third of it.
pub const WORKER_FRAME_BYTES_MAX: usize = 16 << 20;

/// Memory that the lists of a worker's frame may take, bytes: no frame of a worker that is right has lists that are much
/// larger than they are encoded, and several frames of one that lies are in a master's memory at once.
pub const WORKER_FRAME_MEMORY_MAX: usize = WORKER_FRAME_BYTES_MAX;

/// Memory that the lists of any other frame may take, for each byte that a frame may have.
const FRAME_MEMORY_FACTOR: usize = 4;

/// Longest first frame in bytes, before the worker has been accepted.
pub const HELLO_BYTES_MAX: usize = 4 << 10;

/// Path of the control connection on the master.
pub const CONNECT_PATH: &str = "/worker/connect";

/// What the connection is upgraded to.
pub const CONTROL_PROTOCOL: &str = "gristmill-control";

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub enum WorkerFrame {
    /// First frame.
    Hello(Hello),
    /// Sign of life, several times a second.
    Heartbeat(Heartbeat),
    /// Answer to `Ping`.
    Pong {
        /// The master's clock as in the ping, nanoseconds.
        master_ns: u64,
        /// The worker's clock when it answered, nanoseconds.
        worker_ns: u64,
    },
    /// A map attempt ended well and its output is held by this worker.
    MapFinished {
        /// The attempt.
        attempt: AttemptId,
        /// What its output consists of.
        print: OutputPrint,
        /// What it did.
        report: AttemptReport,
    },
    /// A part was built, and lies ready to be published, by a reduce attempt (or a map attempt of a map-only job).
    PartFinished {
        /// The attempt.
        attempt: AttemptId,
        /// The part.
        part: Part,
        /// The file it was built in, as it stands now where the output is.
        stamp: FileStamp,
        /// What the attempt did.
        report: AttemptReport,
    },
    /// An attempt ended badly.
    AttemptFailed {
        /// The attempt.
        attempt: AttemptId,
        /// Whose fault.
        class: FailureClass,
        /// What happened, one line, escaped for display.
        message: String,
        /// What it did until then.
        report: AttemptReport,
    },
    /// A queued attempt is given back, as the master asked, before it began.
    Returned {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A reduce attempt stopped at a border between groups of keys, as the master asked, and has left its slot.
    Suspended {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A reduce attempt cannot leave its slot, though the master asked: there is no room for what it holds.
    NotSuspended {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A suspended reduce attempt has ended, and another can go on where it stood.
    HandedOver {
        /// The attempt.
        attempt: AttemptId,
        /// Where it stood.
        state: HandOver,
        /// What it did until then.
        report: AttemptReport,
    },
    /// Segments have arrived at the home of their partitions, with one request.
    Fetched {
        /// Map by map.
        outputs: Vec<FetchedOutput>,
        /// Where from.
        from: WorkerId,
        /// When the request began, worker's clock, nanoseconds.
        started_ns: u64,
        /// When the last byte was in, worker's clock, nanoseconds.
        ended_ns: u64,
    },
    /// Segments of one map output could not be had, after retries.
    FetchFailed {
        /// The map attempt whose output it was.
        map: AttemptId,
        /// Where it was looked for.
        from: WorkerId,
        /// Whose fault.
        class: FailureClass,
        /// What happened.
        message: String,
    },
    /// A finished attempt asks to publish its part.
    CommitRequest {
        /// The attempt.
        attempt: AttemptId,
    },
    /// What user code wrote to stdout or stderr.
    Log {
        /// The attempt that ran then; `None` if several did.
        attempt: Option<AttemptId>,
        /// As written, at most [`crate::agent::LOG_CHUNK_BYTES_MAX`].
        bytes: Vec<u8>,
    },
    /// The worker leaves in good order.
    Goodbye,
}

/// What a master says.
#[derive(Debug, Serialize, Deserialize)]
pub enum MasterFrame {
    /// The worker is in.
    Welcome {
        /// Its name from now on.
        worker: WorkerId,
        /// Heartbeats this many milliseconds apart, please.
        heartbeat_ms: u32,
        /// What opens this worker's listings and samples of files, to clients that may submit jobs.
        list_key: Secret,
    },
    /// The worker is not wanted, and why.
    Refused {
        /// For a person.
        reason: String,
    },
    /// Read your clock.
    Ping {
        /// The master's clock, nanoseconds.
        master_ns: u64,
    },
    /// All about a job; comes before anything else that names it.
    Job(Box<JobOrder>),
    /// Run a map attempt, after those launched before if no slot is free.
    LaunchMap {
        /// The attempt.
        attempt: AttemptId,
        /// What to read.
        split: Split,
    },
    /// Run a reduce attempt; its input is complete at this worker.
    LaunchReduce {
        /// The attempt.
        attempt: AttemptId,
        /// The maps whose output is empty, which were not announced: one bit each, 64 to a word, the lowest
        /// first.
        empty: Vec<u64>,
        /// Where an earlier attempt stood that was handed over; `None`: from the beginning.
        resume: Option<Continuation>,
    },
    /// Stop a reduce attempt at the next border between groups of keys and leave its slot.
    Suspend {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Let a suspended attempt go on, after those launched before if no slot is free.
    Resume {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Write down where a suspended attempt stands and end it.
    HandOver {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Which jobs' segments to fetch first, from now on.
    Lanes(LaneOrder),
    /// Give back an attempt that has not begun.
    Recall {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Gather these partitions from now on.
    Home {
        /// The job.
        job: JobId,
        /// The partition.
        partition: u32,
    },
    /// Map outputs can be fetched.
    Announce {
        /// The attempts that made them.
        maps: Vec<AttemptId>,
        /// Who has them.
        from: WorkerId,
        /// Where that worker serves it.
        endpoint: Endpoint,
    },
    /// Do not fetch that map output any more.
    Retract {
        /// The attempt that made it.
        map: AttemptId,
    },
    /// Stop gathering a partition and drop what there is of it.
    Unhome {
        /// The job.
        job: JobId,
        /// The partition.
        partition: u32,
    },
    /// Stop an attempt.
    Kill {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Your part is the one that will be published.
    CommitGranted {
        /// The attempt.
        attempt: AttemptId,
        /// What opens the submitter's route for this attempt's part.
        permit: Secret,
    },
    /// Your part will not be published: another attempt's will.
    CommitRefused {
        /// The attempt.
        attempt: AttemptId,
    },
    /// The job is over: drop everything of it.
    Forget {
        /// The job.
        job: JobId,
    },
    /// End your process.
    Shutdown,
}

/// What a worker can run at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotCounts {
    /// Maps and reduces draw on the same slots.
    Unified(u32),
    /// Each kind has slots of its own.
    Pools {
        /// Slots for maps.
        map: u32,
        /// Slots for reduces.
        reduce: u32,
    },
}

impl SlotCounts {
    /// Attempts that can run at once.
    #[must_use]
    pub fn total(self) -> u32 {
        match self {
            SlotCounts::Unified(slots) => slots,
            SlotCounts::Pools { map, reduce } => map.saturating_add(reduce),
        }
    }
}

/// Which jobs' segments go first over a worker's lanes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LaneOrder {
    /// Most urgent first.
    pub grants: Vec<(JobId, LaneShare)>,
    /// Fractions of the bytes by line; empty if there are no lines.
    pub lines: Vec<f64>,
    /// Jobs that are not named get nothing; otherwise they come after those named, by age.
    pub only: bool,
}

/// What a job may have of the lanes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneShare {
    /// All it can use before the next.
    All,
    /// So many requests in flight.
    Requests(u32),
    /// A share of the bytes relative to its neighbours in the list that have a weight too.
    Weight(f64),
    /// All it can use of a line's share, from 0.
    Line(u32),
}

/// Where a reduce attempt stood when it was handed over. Its output so far lies at the worker that ran it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HandOver {
    /// Encoded key of the last group that is in the output; `None` if nothing is.
    pub last_key: Option<Vec<u8>>,
    /// Groups reduced so far.
    pub groups: u64,
    /// Bytes of output so far.
    pub bytes: u64,
    /// Records of output so far.
    pub records: u64,
    /// CRC-32C of the output so far.
    pub crc32c: u32,
    /// What the reducer keeps between groups, as it wrote it.
    pub reducer: Vec<u8>,
    /// User counters so far.
    pub counters: Vec<(String, u64)>,
}

/// What a new attempt goes on from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Continuation {
    /// The attempt that was handed over.
    pub attempt: AttemptId,
    /// Where its worker serves what it wrote.
    pub endpoint: Endpoint,
    /// Where it stood.
    pub state: HandOver,
}

/// What a worker, and so its user code, knows of the key by which its end is told: it cannot be turned back.
#[must_use]
pub fn ended_proof(key: &Secret) -> Secret {
    key.derive("a worker process has ended")
}

/// A worker introduces itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`].
    pub protocol: u32,
    /// [`crate::build_id`] of the executable: user functions are compiled in, so it must be the master's own.
    pub build: String,
    /// Attempts that can run at once.
    pub slots: SlotCounts,
    /// How fast its slots are made to be, 1 for as fast as they can.
    pub speed: f64,
    /// What its shuffle is held to in each direction, bytes in a second; `None`: nothing.
    pub nic_bytes_per_second: Option<u64>,
    /// Where its shuffle server listens. An empty host means: the address this connection comes from.
    pub shuffle: Endpoint,
    /// Name of its machine; workers with the same name share a disk.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// What the key gives ([`ended_proof`]) by which whoever started the process tells that it has ended.
    pub ended_proof: Secret,
    /// Memory budget in bytes.
    pub memory_bytes: u64,
    /// Its clock now, nanoseconds since its own start.
    pub worker_ns: u64,
}

/// Sign of life with what the worker is doing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Running attempts.
    pub running: Vec<AttemptProgress>,
    /// Anonymous and shared memory of the process now, bytes.
    pub memory_bytes: u64,
    /// Free bytes on the fullest spill directory.
    pub disk_free_bytes: u64,
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
}

/// How far an attempt is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AttemptProgress {
    /// The attempt.
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
    /// It was told to stop.
    Cancelled,
    /// The output directory could not be written.
    Output,
    /// The engine's own code panicked: a mistake in this program, not in user code.
    Engine,
    /// The submitter, or a worker that has input files, could not be reached.
    Unreachable,
    /// A worker that was reached does not hold a map output any more.
    Missing,
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
        }
    }
}

/// How large the records of a job's input may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLimits {
    /// Longest record in bytes.
    pub record_bytes_max: u64,
    /// Bytes that may come out of a compressed file for each that goes in.
    pub expansion_max: u32,
}

/// All a worker must know of a job.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobOrder {
    /// Its number.
    pub job: JobId,
    /// Its name in the registry.
    pub name: String,
    /// Its parameters as JSON.
    pub parameters: String,
    /// Number of maps.
    pub maps: u32,
    /// Number of partitions; 0 for map-only.
    pub partitions: u32,
    /// Borders of the ranges of a totally ordered job, `partitions - 1` encoded keys; empty otherwise.
    pub cuts: Vec<Vec<u8>>,
    /// What opens this job's segments and files.
    pub key: Secret,
    /// Output directory as the submitter names it.
    pub output: FilePath,
    /// Name of a file in `_temporary` there: whoever sees it shares the directory with the submitter.
    pub output_probe: PlainName,
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

/// A connection that does not speak as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The connection broke.
    #[error("the control connection broke")]
    Io {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A length beyond the limit.
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// As claimed.
        length: u64,
        /// As allowed.
        limit: u64,
    },
    /// Bytes that are no frame of this version.
    #[error("a frame of {length} bytes could not be read")]
    Decode {
        /// Its length.
        length: usize,
        /// Why.
        #[source]
        source: codec::CodecError,
    },
}

/// Appends a frame to a buffer.
///
/// # Errors
/// A message that encodes to more than [`FRAME_BYTES_MAX`].
pub fn push_frame<T: Serialize>(frame: &T, buffer: &mut Vec<u8>) -> Result<(), FrameError> {
    push_within(frame, FRAME_BYTES_MAX, buffer)
}

/// Appends a worker's frame to a buffer.
///
/// # Errors
/// A message that encodes to more than [`WORKER_FRAME_BYTES_MAX`].
pub fn push_worker_frame(frame: &WorkerFrame, buffer: &mut Vec<u8>) -> Result<(), FrameError> {
    push_within(frame, WORKER_FRAME_BYTES_MAX, buffer)
}

fn push_within<T: Serialize>(frame: &T, limit: usize, buffer: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    codec::encode(frame, buffer);
    let length = buffer.len() - start - 4;
    if limit < length {
        buffer.truncate(start);
        return Err(FrameError::TooLong { length: length as u64, limit: limit as u64 });
    }
    buffer[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Bytes that a [`FrameReader`] asks its connection for at once.
const READ_BYTES: usize = 64 << 10;

/// A buffer that a long frame made longer than this is not kept.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Frames of one connection: reads as much as has come and hands it out frame by frame.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: R,
    /// Bytes that have come, from `taken` on not handed out yet.
    buffer: Vec<u8>,
    taken: usize,
    limit: usize,
    /// Memory that the lists of a frame may take, bytes.
    memory_max: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// A reader of frames of up to `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        let memory_max = limit.saturating_mul(FRAME_MEMORY_FACTOR);
        Self { reader, buffer: Vec::new(), taken: 0, limit, memory_max }
    }

    /// Longer frames are allowed from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.set_limits(limit, limit.saturating_mul(FRAME_MEMORY_FACTOR));
    }

    /// As [`FrameReader::set_limit`], and the lists of a frame may take this memory.
    pub fn set_limits(&mut self, limit: usize, memory_max: usize) {
        self.limit = limit;
        self.memory_max = memory_max;
    }

    /// The next frame; `None` when the other side has closed between frames. Nothing is lost when this is
    /// dropped before it is ready.
    ///
    /// # Errors
    /// A broken connection, a frame over the limit, bytes that do not decode.
    pub async fn next<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        loop {
            if let Some(frame) = self.ready()? {
                return Ok(Some(frame));
            }
            self.buffer.drain(..self.taken);
            self.taken = 0;
            if self.buffer.is_empty() && BUFFER_KEPT_BYTES < self.buffer.capacity() {
                self.buffer = Vec::new();
            }
            // The buffer grows with what arrives, so a lying length costs its sender the bytes.
            self.buffer.reserve(READ_BYTES);
            let got = self.reader.read_buf(&mut self.buffer).await;
            if got.map_err(|source| FrameError::Io { source })? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next frame if all of it has come.
    ///
    /// # Errors
    /// A frame over the limit, bytes that do not decode.
    pub fn ready<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some((head, rest)) = self.buffer[self.taken..].split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if self.limit < length {
            return Err(FrameError::TooLong { length: length as u64, limit: self.limit as u64 });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = codec::decode_message(body, self.memory_max)
            .map_err(|source| FrameError::Decode { length, source })?;
        self.taken += 4 + length;
        Ok(Some(frame))
    }
}

/// Writes one frame and flushes.
///
/// # Errors
/// A broken connection, or a frame that is too long.
pub async fn write_frame<T, W>(writer: &mut W, frame: &T) -> Result<(), FrameError>
where
    T: Serialize,
    W: AsyncWrite + Unpin,
{
    let mut buffer = Vec::new();
    push_frame(frame, &mut buffer)?;
    writer.write_all(&buffer).await.map_err(|source| FrameError::Io { source })?;
    writer.flush().await.map_err(|source| FrameError::Io { source })
}

#[cfg(test)]
mod tests;
