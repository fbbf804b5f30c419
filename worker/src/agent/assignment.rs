//! Work for slots, and what they report.

use super::begun::Begun;
use super::built::Built;
use super::capture::CaptureMark;
use super::failed::Failed;
use super::job::RunningJob;
use super::memory_peak::MemoryPeak;
use super::runners::Runners;
use crate::budget::Budget;
use crate::http::{Pool, Secret};
use crate::input::{FileStamp, Split};
use crate::protocol::{AttemptReport, Continuation, HandOver, Part};
use crate::segment::{MapOutput, SpillDirs};
use crate::shuffle::store::{HeldSegment, Store};
use crate::task::Progress;
use crossbeam_channel::Receiver;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::Bytes;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;

/// Work for a slot.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Assignment {
    pub attempt: AttemptId,
    pub job: Arc<RunningJob>,
    pub input: AttemptInput,
    /// Where a reduce goes on that was handed over; `None`: from the beginning.
    pub resume: Option<Continuation>,
    /// Nothing else runs in this process meanwhile, and it gets less memory for its pairs than others.
    pub alone: bool,
    /// How far it is, and whether it is to stop.
    pub progress: Arc<Progress>,
    /// Brings the answer to the request to commit; closed if the attempt is not wanted any more.
    pub permit: Receiver<Permit>,
}

/// The input of an attempt.
pub enum AttemptInput {
    /// A map reads a split.
    Split(Split),
    /// A reduce reads the gathered segments of its partition, in map order.
    Segments(Vec<HeldSegment>),
}

/// The answer to a request to commit.
#[derive(Clone, Debug)]
pub enum Permit {
    /// The part of this attempt counts. The secret opens the submitter's route for it.
    Granted(Secret),
    /// That of another attempt does.
    Refused,
}

/// An event that a slot reports to the control loop.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SlotEvent {
    /// The attempt has built its part and asks to publish it.
    WantsCommit(AttemptId),
    /// The attempt stands at a border between groups and has no slot any more; reported again if it was to be handed
    /// over and cannot.
    Suspended {
        attempt: AttemptId,
        /// How much user code of this process had written by then; 0 if nobody catches that.
        written: u64,
    },
    /// The attempt was to leave its slot and keeps it.
    NotSuspended(AttemptId),
    /// The attempt has ended.
    Ended(Box<EndedAttempt>),
    /// The thread of a slot has died outside user code: this process is not sound any more.
    Broken {
        /// What it ran, if anything.
        attempt: Option<AttemptId>,
        /// The message of the panic.
        message: String,
    },
}

/// The end of an attempt.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct EndedAttempt {
    pub attempt: AttemptId,
    pub result: Result<Done, Failed>,
    /// What it did.
    pub report: AttemptReport,
    /// How much user code of this process had written when it ended; 0 if nobody catches that.
    pub written: u64,
}

/// What an attempt leaves behind.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Done {
    /// A map output to serve.
    Output(MapOutput),
    /// A part that can be published.
    Part {
        part: Part,
        /// The file it was built in, where the output is; of an object its size and a hash of its `ETag`.
        stamp: FileStamp,
        /// A copy of it that this worker needs no more.
        sent: bool,
    },
    /// Where it stood, for another attempt to go on from.
    HandedOver {
        /// What it had done.
        state: Box<HandOver>,
        /// What it had written.
        built: Built,
    },
}

/// What slots share.
#[derive(Clone)]
pub struct SlotSetting {
    /// All memory that the worker may use.
    pub memory: Bytes,
    /// The part of it that holds outputs and gathered segments.
    pub budget: Budget,
    /// Where runs go when it does not suffice.
    pub spill: SpillDirs,
    /// Outputs and gathered segments of the worker.
    pub store: Store,
    /// Processes of shipped programs.
    pub runners: Runners,
    /// Connections to the submitter.
    pub pool: Pool,
    /// Drives them.
    pub runtime: tokio::runtime::Handle,
    /// The worker's clock starts here.
    pub epoch: Instant,
    /// To the control loop.
    pub events: UnboundedSender<SlotEvent>,
    /// Where slots note what they begin.
    pub begun: Begun,
    /// Tells how much user code has written, if that is caught.
    pub written: Option<CaptureMark>,
    /// The largest memory of the process, looked up now and then.
    pub memory_peak: Arc<MemoryPeak>,
}
