//! The frames between master and worker: one long-lived connection, used in both directions.
//!
//! A frame is a 4-byte little-endian length and that many bytes as `codec` makes them. The first frame of a connection
//! is [`Hello`](WorkerFrame::Hello) from the worker, answered by `Welcome` or `Refused`. Of the scheduler's
//! types only ids appear here; the master translates facts and orders at its own border.
//!
//! Not here: payload. Records travel between workers over HTTP and never touch this connection.

mod framing;
mod handover;
mod hello;
mod holding;
mod job;
mod lanes;
mod measures;
mod program;
mod report;

use crate::http::{Endpoint, Secret};
use crate::input::{FileStamp, Split};
use crate::segment::OutputPrint;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use serde::{Deserialize, Serialize};

pub use framing::{FrameError, FrameReader, push_frame, push_worker_frame, write_frame};
pub use handover::{Continuation, HandOver};
pub use hello::{Hello, Rejoin, SlotCounts, ended_proof};
pub use holding::{HeldAttempt, HeldHome, Holding};
pub use job::{JobOrder, RecordLimits};
pub use lanes::{LaneOrder, LaneShare};
pub use measures::{ExactSum, MEASURE_MAX, Measures};
pub use program::{NoProgramSum, PROGRAMS_PATH, ProgramSum, ProgramSumming, ShippedProgram};
pub use report::{
    AttemptProgress, AttemptReport, DiskRoom, FailureClass, FetchRate, FetchedOutput, Heartbeat, MemoryUse,
    NamedPart, Part,
};

/// Version of the frames below. Both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 16;

/// Longest frame in bytes, once both sides know each other.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

/// Slots of one worker, of one kind.
pub const SLOTS_MAX: u32 = 1000;

/// Longest frame of a worker in bytes: all partitions that a job can have, of one map, are less than half of it. A master
/// may have one as it came and three that are decoded in memory, of each worker that lies.
pub const WORKER_FRAME_BYTES_MAX: usize = 12 << 20;

/// Memory that the lists of a worker's frame may take, bytes: no frame of a worker that is right has lists that are
/// much larger than they are encoded, and several frames of one that lies are in a master's memory at once.
pub const WORKER_FRAME_MEMORY_MAX: usize = WORKER_FRAME_BYTES_MAX;

/// Longest first frame in bytes, before the worker has been accepted.
pub const HELLO_BYTES_MAX: usize = 4 << 10;

/// Path of the control connection on the master.
pub const CONNECT_PATH: &str = "/worker/connect";

/// What the connection is upgraded to.
pub const CONTROL_PROTOCOL: &str = "gristmill-control";

/// A frame from a worker.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
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
        attempt: AttemptId,
        /// What its output consists of.
        print: OutputPrint,
        /// What it did.
        report: AttemptReport,
    },
    /// A part was built, and lies ready to be published, by a reduce attempt (or a map attempt of a map-only job).
    PartFinished {
        attempt: AttemptId,
        part: Part,
        /// The file it was built in, as it stands now where the output is.
        stamp: FileStamp,
        /// What the attempt did.
        report: AttemptReport,
    },
    /// An attempt ended badly.
    AttemptFailed {
        attempt: AttemptId,
        /// Whose fault.
        class: FailureClass,
        /// What happened, one line, escaped for display.
        message: String,
        /// What it did until then.
        report: AttemptReport,
    },
    /// A queued attempt is given back, as the master asked, before it began.
    Returned { attempt: AttemptId },
    /// A reduce attempt stopped at a border between groups of keys, as the master asked, and has left its slot.
    Suspended { attempt: AttemptId },
    /// A reduce attempt cannot leave its slot, though the master asked: there is no room for what it holds.
    NotSuspended { attempt: AttemptId },
    /// A suspended reduce attempt has ended, and another can go on where it stood.
    HandedOver {
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
    CommitRequest { attempt: AttemptId },
    /// What user code wrote to stdout or stderr.
    Log {
        /// The attempt that ran then; `None` if several did.
        attempt: Option<AttemptId>,
        /// As written, at most [`crate::agent::LOG_CHUNK_BYTES_MAX`].
        bytes: Vec<u8>,
    },
    /// The worker would leave in good order: it stays until it is told to end.
    Leave,
    /// The worker ends now.
    Goodbye,
    /// What a worker has that has come back, after all that its master had not confirmed.
    Holding(Holding),
}

impl WorkerFrame {
    /// Whether it counts: such frames are numbered from 1 in the order of sending, and a worker keeps each until its
    /// master has written it down. Signs of life and what user code prints are not.
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

/// How a worker and its master find together again when the connection between them is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Rises with each master of a state folder; a worker obeys none of a lower one.
    pub generation: u64,
    /// Another master may come in the place of this one: wait for it, and keep what it must know.
    pub returns: bool,
    /// The last numbered frame of this worker that is written down; 0 if none is.
    pub heard: u64,
}

/// A frame from the master.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum MasterFrame {
    /// The worker is in.
    Welcome {
        /// Its name from now on.
        worker: WorkerId,
        /// Heartbeats this many milliseconds apart, please.
        heartbeat_ms: u32,
        /// What opens this worker's listings and samples of files, to clients that may submit jobs.
        list_key: Secret,
        /// How the master takes up again what it was to this worker.
        session: Session,
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
        attempt: AttemptId,
        /// What to read.
        split: Split,
        /// It has the process to itself, and half the memory for its pairs: memory ran out where it ran before.
        alone: bool,
    },
    /// Run a reduce attempt; its input is complete at this worker.
    LaunchReduce {
        attempt: AttemptId,
        /// The maps whose output is empty, which were not announced: one bit each, 64 to a word, the lowest
        /// first.
        empty: Vec<u64>,
        /// Where an earlier attempt stood that was handed over; `None`: from the beginning.
        resume: Option<Continuation>,
        /// As for a map.
        alone: bool,
    },
    /// Stop a reduce attempt at the next border between groups of keys and leave its slot.
    Suspend { attempt: AttemptId },
    /// Let a suspended attempt go on, after those launched before if no slot is free.
    Resume { attempt: AttemptId },
    /// Write down where a suspended attempt stands and end it.
    HandOver { attempt: AttemptId },
    /// Which jobs' segments to fetch first, from now on.
    Lanes(LaneOrder),
    /// Give back an attempt that has not begun.
    Recall { attempt: AttemptId },
    /// Gather these partitions from now on.
    Home { job: JobId, partition: u32 },
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
    Unhome { job: JobId, partition: u32 },
    /// Stop an attempt. If it has ended, what it left behind goes: another attempt of its task counts.
    Kill { attempt: AttemptId },
    /// Your part is the one that will be published.
    CommitGranted {
        attempt: AttemptId,
        /// What opens the submitter's route for this attempt's part.
        permit: Secret,
    },
    /// Your part will not be published: another attempt's will.
    CommitRefused { attempt: AttemptId },
    /// The job is over: drop everything of it.
    Forget { job: JobId },
    /// End your process.
    Shutdown,
    /// All numbered frames up to this one are written down: they need not be kept any more.
    Heard {
        /// The number of the last of them.
        through: u64,
    },
}

#[cfg(test)]
mod tests;
