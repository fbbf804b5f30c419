//! Slots: threads that run one attempt at a time, start to finish, blocking.
//!
//! A slot is a number, and threads come and go: the thread of an attempt that is suspended parks and leaves its slot
//! to a new one; a slot that is to let a suspended attempt go on is left to that attempt's thread. So attempts that
//! run have a slot each, and suspended ones have none. A panic of user code is caught and costs the attempt.

mod memory_peak;
mod panics;
mod run;

use super::begun::Begun;
use super::capture::CaptureMark;
use super::job::RunningJob;
use super::publish::Built;
use super::runners::Runners;
use super::work::{SlotTurn, SlotWork};
use crate::budget::Budget;
use crate::fault;
use crate::folder::Folder;
use crate::http::{Endpoint, Pool, Secret};
use crate::input::{FileStamp, Split};
use crate::objects::{ObjectBucket, ObjectUrl};
use crate::protocol::{AttemptReport, Continuation, FailureClass, HandOver, Part, SlotCounts};
use crate::segment::{MapOutput, SpillDirs};
use crate::shuffle::store::{HeldSegment, Store};
use crate::task::{Parking, Progress};
use crossbeam_channel::Receiver;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::Bytes;
use panics::{SERVES_SLOT, panicked};
use run::run;
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

pub use memory_peak::MemoryPeak;
pub(super) use panics::catch_panic;
pub use panics::install_panic_hook;
pub(super) use run::{failed, thread_cpu_ns};

/// Where parts are published.
#[derive(Clone, Debug)]
pub enum Destination {
    /// This worker sees the submitter's output directory: the folder in it where parts are built.
    Shared(Arc<Folder>),
    /// It does not: parts are sent to the attached submitter.
    Submitter(Endpoint),
    /// The output is a prefix of an object store: parts are uploaded there.
    Store(Arc<ObjectBucket>, ObjectUrl),
}

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

/// Why an attempt ended badly.
#[derive(Debug)]
pub struct Failed {
    /// Whose fault.
    pub class: FailureClass,
    /// One line.
    pub message: String,
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

/// Starts a thread for each slot. They take work until the line is closed.
///
/// # Errors
/// A thread that cannot be started.
pub(super) fn start(slots: SlotCounts, work: &SlotWork, setting: &SlotSetting) -> std::io::Result<()> {
    (0..slots.total()).try_for_each(|slot| serve(slot, work, setting))
}

/// Starts a thread that serves this slot.
fn serve(slot: u32, work: &SlotWork, setting: &SlotSetting) -> std::io::Result<()> {
    let (work, setting) = (work.clone(), setting.clone());
    let name = format!("slot-{slot}");
    let serving = move || {
        SERVES_SLOT.set(true);
        let runs = Cell::new(None);
        let turns = std::panic::catch_unwind(AssertUnwindSafe(|| take_turns(slot, &work, &setting, &runs)));
        if turns.is_err() {
            let message = panicked().message;
            let _ = setting.events.send(SlotEvent::Broken { attempt: runs.get(), message });
        }
    };
    std::thread::Builder::new().name(name).spawn(serving).map(drop)
}

/// Serves a slot, which may become another one, until the thread has none or there is no more work. `runs` is what has
/// begun and has not been reported.
fn take_turns(mut slot: u32, work: &SlotWork, setting: &SlotSetting, runs: &Cell<Option<AttemptId>>) {
    while let Some(turn) = work.next(slot) {
        match turn {
            SlotTurn::Begin(assignment) => {
                runs.set(Some(assignment.attempt));
                fault::place("slot");
                setting.begun.note(slot, assignment.attempt);
                assignment.progress.begin(slot);
                run(&assignment, setting);
                runs.set(None);
                match assignment.progress.slot() {
                    Some(now) => slot = now,
                    None => return,
                }
            }
            SlotTurn::GoOn(attempt, progress) => {
                setting.begun.note(slot, attempt);
                if progress.resume(slot) {
                    return;
                }
            }
        }
    }
}

/// How a reduce attempt leaves its slot.
pub(super) struct LeaveSlot {
    pub attempt: AttemptId,
    pub work: SlotWork,
    pub setting: SlotSetting,
}

impl LeaveSlot {
    fn say(&self, written: u64) {
        let _ = self.setting.events.send(SlotEvent::Suspended { attempt: self.attempt, written });
    }
}

impl Parking for LeaveSlot {
    fn leave(&self, slot: u32) -> bool {
        let written = self.setting.written.as_ref().map_or(0, CaptureMark::now);
        self.setting.begun.clear(slot);
        match serve(slot, &self.work, &self.setting) {
            Ok(()) => {
                self.say(written);
                true
            }
            Err(error) => {
                tracing::warn!(%error, attempt = %self.attempt, "there is no thread for the slot: not suspended");
                self.setting.begun.note(slot, self.attempt);
                false
            }
        }
    }

    fn refuses(&self) {
        let _ = self.setting.events.send(SlotEvent::NotSuspended(self.attempt));
    }

    fn stays(&self) {
        self.say(0);
    }
}

/// How long the engine may sort, read or write without a sign of life: far longer than the largest buffer takes, and
/// than a disk that is to be relied on stands still.
pub(super) const ENGINE_PATIENCE: Duration = Duration::from_secs(600);

/// How long a killed attempt may take to end before its process is given up; longer than a transfer may stand still.
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(45);
