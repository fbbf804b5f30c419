//! Frames between master and worker: one long-lived connection, used in both directions.
//!
//! A frame is a 4-byte little-endian length, followed by that many bytes as encoded by `codec`. The first frame of a
//! connection is [`Hello`](WorkerFrame::Hello) from the worker; the response is `Welcome` or `Refused`. Of the
//! scheduler's types only ids, slots, rates and fingerprints are used here; the master translates events and commands.
//!
//! Frames carry no records, which are sent between workers over HTTP; but what user code prints.

mod framing;
mod hello;
mod holding;
mod job;
mod lanes;
mod report;

use crate::http::{Endpoint, Secret};
use crate::input::{FileStamp, Split};
use crate::segment::{Fingerprint, KeyBounds};
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::decode_maps;
use serde::{Deserialize, Serialize};

pub use framing::{FrameError, FrameReader, push_frame, push_worker_frame, write_frame};
pub use gristmill_scheduler::event::{FetchRate, Slots};
pub use hello::{Hello, Rejoin, ended_proof};
pub use holding::{HeldAttempt, HeldHome, Holding};
pub use job::{AddedMap, JobOrder, RecordLimits};
pub use lanes::{LaneOrder, LaneShare};
pub use report::{
    AttemptProgress, AttemptReport, DiskRoom, FailureClass, FetchedOutput, Heartbeat, MemoryUse, NamedPart,
    Part,
};

/// Version of the frames below. Both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 22;

/// Maximum length of a frame in bytes, after the handshake.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

/// Maximum slots of one worker, of one kind.
pub const SLOTS_MAX: u32 = 1000;

/// Maximum length of a worker's frame in bytes: all partitions that a job can have, of one map, are less than two
/// thirds of it. For each faulty worker a master may hold one frame as received and three decoded ones in memory.
pub const WORKER_FRAME_BYTES_MAX: usize = 10 << 20;

/// Maximum memory of the lists of a worker's frame, bytes. Lists of valid frames are not much larger than their
/// encoding, and several frames of a faulty worker are in a master's memory at once.
pub const WORKER_FRAME_MEMORY_MAX: usize = WORKER_FRAME_BYTES_MAX;

/// Maximum length of the first frame in bytes, before the worker has been accepted.
pub const HELLO_BYTES_MAX: usize = 4 << 10;

/// Path of the control connection on the master.
pub const CONNECT_PATH: &str = "/worker/connect";

/// Protocol to which the connection is upgraded.
pub const CONTROL_PROTOCOL: &str = "gristmill-control";

/// Frame from a worker.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum WorkerFrame {
    /// First frame.
    Hello(Hello),
    /// Heartbeat, several times a second.
    Heartbeat(Heartbeat),
    /// Response to `Ping`.
    Pong {
        /// Master's clock of the ping, nanoseconds.
        master_ns: u64,
        /// Worker's clock at the response, nanoseconds.
        worker_ns: u64,
    },
    /// A map attempt succeeded and its output is held by this worker.
    MapFinished {
        attempt: AttemptId,
        /// Fingerprint of its output.
        fingerprint: Fingerprint,
        /// Report of the attempt.
        report: AttemptReport,
    },
    /// A reduce attempt (or a map attempt of a map-only job) has built its part, which is ready to be published.
    PartFinished {
        attempt: AttemptId,
        part: Part,
        /// Stamp of the built file at the output.
        stamp: FileStamp,
        /// Report of the attempt.
        report: AttemptReport,
    },
    /// An attempt failed.
    AttemptFailed {
        attempt: AttemptId,
        /// Class of the failure.
        class: FailureClass,
        /// Message, one line, escaped for display.
        message: String,
        /// Report until then.
        report: AttemptReport,
    },
    /// A queued attempt is returned as ordered, before it started.
    Returned { attempt: AttemptId },
    /// A reduce attempt stopped at a boundary between groups of keys as ordered, and has left its slot.
    Suspended { attempt: AttemptId },
    /// A reduce attempt cannot leave its slot as ordered: there is no room for its state.
    NotSuspended { attempt: AttemptId },
    /// A running map attempt has given up the end of its split as ordered: it reads the first `kept` bytes.
    Divided { attempt: AttemptId, kept: u64 },
    /// A running reduce attempt stops before this key as ordered.
    ReduceDivided {
        attempt: AttemptId,
        /// First key that it gives up, encoded; at most
        /// [`CUT_KEY_BYTES_MAX`](crate::segment::CUT_KEY_BYTES_MAX) bytes.
        key: Vec<u8>,
        /// Estimated bytes that it had left to read: those that it keeps, and those that it gives up.
        left: [u64; 2],
    },
    /// An attempt cannot give up a part of its input as ordered.
    NotDivided { attempt: AttemptId },
    /// Segments have arrived at the home of their partitions, with one request.
    Fetched {
        /// Results by map.
        outputs: Vec<FetchedOutput>,
        /// Source of the segments.
        from: WorkerId,
        /// Start of the request, worker's clock, nanoseconds.
        started_ns: u64,
        /// Time of the last byte, worker's clock, nanoseconds.
        ended_ns: u64,
    },
    /// Segments of one map output could not be fetched, after retries.
    FetchFailed {
        /// Map attempt of the output.
        map: AttemptId,
        /// Worker from which they were requested.
        from: WorkerId,
        /// Class of the failure.
        class: FailureClass,
        /// Error message.
        message: String,
    },
    /// A finished attempt requests to publish its part.
    CommitRequest { attempt: AttemptId },
    /// Output of user code to stdout or stderr.
    Log {
        /// Attempt that ran then; `None` if several did.
        attempt: Option<AttemptId>,
        /// Bytes as written, at most `LOG_CHUNK_BYTES_MAX` of the agent.
        bytes: Vec<u8>,
    },
    /// The worker requests to be drained: it stays until it is ordered to end.
    Leave,
    /// The worker ends now.
    Goodbye,
    /// State of a worker that has reconnected, after all frames that its master had not confirmed.
    Holding(Holding),
}

impl WorkerFrame {
    /// True if the frame is numbered: such frames are numbered from 1 in the order of sending, and a worker keeps each
    /// until its master has stored it. Heartbeats and task logs are not numbered.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        !matches!(
            self,
            Self::Hello(_)
                | Self::Heartbeat(_)
                | Self::Pong { .. }
                | Self::Log { .. }
                | Self::Goodbye
                | Self::Holding(_)
        )
    }
}

/// Data by which a worker and its master resume after their connection was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Number that increases with each master of a state directory; a worker obeys no lower one.
    pub generation: u64,
    /// True if another master may replace this one: the worker then waits for it, and keeps the state that it needs.
    pub returns: bool,
    /// Last numbered frame of this worker that is stored; 0 if none is.
    pub heard: u64,
}

/// Frame from the master.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum MasterFrame {
    /// The worker is accepted.
    Welcome {
        /// Id of the worker from now on.
        worker: WorkerId,
        /// Requested interval of heartbeats, milliseconds.
        heartbeat_ms: u32,
        /// Key of this worker's listings and samples of files, for clients that may submit jobs.
        list_key: Secret,
        /// Data to resume the session.
        session: Session,
    },
    /// The worker is rejected, with the reason.
    Refused {
        /// Reason for a person.
        reason: String,
    },
    /// Request to return the worker's clock.
    Ping {
        /// Master's clock, nanoseconds.
        master_ns: u64,
    },
    /// Description of a job; sent before all other frames that name it.
    Job(Box<JobOrder>),
    /// Run a map attempt, after those launched before if no slot is free.
    LaunchMap {
        attempt: AttemptId,
        /// Input of the map.
        split: Split,
        /// True if it runs alone in its process, with half the memory for its pairs, because memory ran out where it
        /// ran before.
        alone: bool,
    },
    /// Run a reduce attempt; its input is complete at this worker.
    LaunchReduce {
        attempt: AttemptId,
        /// Maps with empty output, which were not announced: one bit each, 64 to a word, lowest first.
        empty: Vec<u64>,
        /// Places of the last maps of the job, which divisions added.
        added: Vec<AddedMap>,
        /// As for a map.
        alone: bool,
        /// Partition of the reduce, as submitted.
        partition: u32,
        /// Keys of the partition that the attempt reduces.
        bounds: KeyBounds,
    },
    /// Give up about half of what a running attempt has left to read; all of it, if at once.
    Divide { attempt: AttemptId, at_once: bool },
    /// The job has this many maps from now on: divisions added the last ones.
    MapsAdded {
        job: JobId,
        #[serde(deserialize_with = "decode_maps")]
        maps: u32,
    },
    /// Suspend a reduce attempt at the next boundary between groups of keys, so that it leaves its slot.
    Suspend { attempt: AttemptId },
    /// Resume a suspended attempt, after those launched before if no slot is free.
    Resume { attempt: AttemptId },
    /// Priorities of jobs' segments from now on.
    Lanes(LaneOrder),
    /// Return an attempt that has not started.
    Recall { attempt: AttemptId },
    /// Gather for this reduce from now on.
    Home {
        job: JobId,
        reduce: u32,
        /// Partition that it reads, as submitted.
        partition: u32,
    },
    /// Gather for a reduce that a division added, starting with the segments of the divided one.
    HomeOfRest {
        job: JobId,
        /// Reduce that was divided.
        divided: u32,
        reduce: u32,
        partition: u32,
    },
    /// Map outputs can be fetched.
    Announce {
        /// Attempts that made them.
        maps: Vec<AttemptId>,
        /// Worker that has them.
        from: WorkerId,
        /// Endpoint where that worker serves them.
        endpoint: Endpoint,
    },
    /// Stop fetching that map output.
    Retract {
        /// Attempt that made it.
        map: AttemptId,
    },
    /// Stop gathering for a reduce and drop its segments.
    Unhome { job: JobId, reduce: u32 },
    /// Stop an attempt. If it has ended, its files are removed: another attempt of its task counts.
    Kill { attempt: AttemptId },
    /// The attempt's part will be published.
    CommitGranted {
        attempt: AttemptId,
        /// Key of the submitter's route for this attempt's part.
        permit: Secret,
    },
    /// The attempt's part will not be published: another attempt's will.
    CommitRefused { attempt: AttemptId },
    /// The job is over: drop all its data.
    Forget { job: JobId },
    /// End the process.
    Shutdown,
    /// All numbered frames up to this one are stored, and need not be kept any longer.
    Heard {
        /// Number of the last of them.
        through: u64,
    },
}

#[cfg(test)]
mod tests;
