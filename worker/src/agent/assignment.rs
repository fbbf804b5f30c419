//! Messages between the control loop of a worker and its slots, the threads that run attempts: the assignment of an
//! attempt to a slot, and the events that the slot reports.

use super::capture::CaptureMark;
use super::failed::Failed;
use super::job::RunningJob;
use super::memory_peak::MemoryPeak;
use super::started::StartedAttempts;
use crate::attempt::Division;
use crate::budget::Budget;
use crate::http::{Pool, Secret};
use crate::input::{FileStamp, Split};
use crate::protocol::{AttemptReport, Part};
use crate::segment::{MapOutput, SpillDirs};
use crate::shuffle::store::{HeldSegment, SegmentStore};
use crate::task::{Progress, ReducePart};
use crossbeam_channel::Receiver;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::Bytes;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;

/// Work for a slot.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub(crate) struct Assignment {
    pub attempt: AttemptId,
    pub job: Arc<RunningJob>,
    pub input: AttemptInput,
    /// True if nothing else runs in this process meanwhile, and the attempt gets less memory for its
    /// pairs than others.
    pub alone: bool,
    /// Progress of the attempt, and requests to stop it.
    pub progress: Arc<Progress>,
    /// Receives the response to the request to commit. Closed if the attempt is cancelled.
    pub permit: Receiver<Permit>,
}

/// Input of an attempt.
pub enum AttemptInput {
    /// A map reads a split.
    Split(Split),
    /// A reduce reads the gathered segments of its partition, in the order of the input.
    Segments(Vec<HeldSegment>, ReducePart),
}

/// Response to a request to commit.
#[derive(Clone, Debug)]
pub enum Permit {
    /// The part of this attempt counts. The secret authorizes it on the submitter's route.
    Granted(Secret),
    /// The part of another attempt counts.
    Refused,
}

/// Event that a slot reports to the control loop.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SlotEvent {
    /// The attempt has built its part and asks to publish it.
    WantsCommit(AttemptId),
    /// The attempt is suspended between two groups and has left its slot.
    Suspended {
        attempt: AttemptId,
        /// Bytes that user code of this process had written by then; 0 if its output is not captured.
        written: u64,
    },
    /// The attempt was asked to leave its slot and keeps it.
    NotSuspended(AttemptId),
    /// The attempt has given up the end of its input, or cannot.
    Divided { attempt: AttemptId, division: Option<Division> },
    /// The attempt has ended.
    Ended(Box<EndedAttempt>),
    /// The thread of a slot has panicked outside user code, so the state of this process is unreliable.
    Broken {
        /// Attempt that it ran, if any.
        attempt: Option<AttemptId>,
        /// Message of the panic.
        message: String,
    },
}

/// End of an attempt.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct EndedAttempt {
    pub attempt: AttemptId,
    pub result: Result<Done, Failed>,
    /// Report of the attempt.
    pub report: AttemptReport,
    /// Bytes that user code of this process had written when it ended; 0 if its output is not captured.
    pub written: u64,
}

/// Result of an attempt.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Done {
    /// Map output to serve.
    Output(MapOutput),
    /// Part that can be published.
    Part {
        part: Part,
        /// Stamp of the file it was built in, where the output is. For an object its size and a hash of
        /// its `ETag`.
        stamp: FileStamp,
        /// Local copy of it that this worker does not need any more.
        sent: bool,
    },
}

/// Context that slots share.
#[derive(Clone)]
pub struct SlotSetting {
    /// Total memory of the worker.
    pub memory: Bytes,
    /// Budget of outputs and gathered segments, a part of the memory.
    pub budget: Budget,
    /// Directories for runs that exceed it.
    pub spill: SpillDirs,
    /// Outputs and gathered segments of the worker.
    pub store: SegmentStore,
    /// Connections to the submitter.
    pub pool: Pool,
    /// Runtime that drives the connections.
    pub runtime: tokio::runtime::Handle,
    /// Start of the worker's clock.
    pub epoch: Instant,
    /// Channel to the control loop.
    pub events: UnboundedSender<SlotEvent>,
    /// Record of the attempts that slots start.
    pub begun: StartedAttempts,
    /// Reads the number of bytes that user code has written, if its output is captured.
    pub written: Option<CaptureMark>,
    /// Peak memory of the process, sampled occasionally.
    pub memory_peak: Arc<MemoryPeak>,
}
