//! Orders that leave the core, checked against the ledger: the driver carries them out without judging.
//!
//! Not here: wire frames. Orders to one worker are delivered in the order given here; a worker that is lost
//! gets no more of them.

use crate::event::External;
use crate::ids::{AttemptId, JobId, TaskId, WorkerId};
use crate::job::Locality;
use crate::plan::Reason;
use crate::units::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An order.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Command {
    /// Start this attempt as soon as a slot of the worker is free: at once, or after those launched there
    /// before it. It holds the slot until it is reported finished or failed.
    Launch {
        attempt: AttemptId,
        worker: WorkerId,
        /// Why this job and why there.
        reason: LaunchReason,
    },
    /// Give this attempt back if it has not begun; else go on with it.
    Recall {
        /// The attempt, which is queued.
        attempt: AttemptId,
        worker: WorkerId,
    },
    /// Stop this attempt and report it failed as cancelled (or as it ended, if it was faster).
    Kill {
        attempt: AttemptId,
        /// Where it runs.
        worker: WorkerId,
    },
    /// Stop this reduce attempt at the next border between groups of keys, keep what it has, and report it
    /// suspended (or as it ended, if it was faster).
    Suspend {
        attempt: AttemptId,
        /// Where it runs.
        worker: WorkerId,
    },
    /// Let this suspended attempt go on as soon as a slot of the worker is free, like a launch.
    Resume {
        attempt: AttemptId,
        /// Where it is suspended.
        worker: WorkerId,
        /// Why this job and why there.
        reason: LaunchReason,
    },
    /// Write down where this suspended attempt stands, end it and report it handed over: the next attempt of its task
    /// goes on from there on another worker.
    HandOver {
        attempt: AttemptId,
        /// Where it is suspended.
        worker: WorkerId,
    },
    /// Gather the segments of this partition from now on, beginning with nothing.
    Home {
        job: JobId,
        partition: u32,
        /// The worker that gathers.
        worker: WorkerId,
    },
    /// Stop gathering this partition and drop what there is of it.
    Unhome {
        job: JobId,
        partition: u32,
        /// The worker that gathered.
        worker: WorkerId,
    },
    /// Fetch all partitions that `to` is home of, and does not have yet of this map, from this output.
    Announce {
        job: JobId,
        /// The map attempt whose output it is.
        map: AttemptId,
        /// The worker that keeps it; may be `to` itself, which then reads in place.
        from: WorkerId,
        to: WorkerId,
    },
    /// Do not fetch from this output any more; segments already reported as fetched stay.
    Retract {
        job: JobId,
        /// The map attempt whose output it was.
        map: AttemptId,
        to: WorkerId,
    },
    /// Publish the part.
    GrantCommit {
        /// The attempt that asked.
        attempt: AttemptId,
        /// Where it runs.
        worker: WorkerId,
    },
    /// Do not publish: another attempt may or did, or the job is over.
    RefuseCommit {
        /// The attempt that asked.
        attempt: AttemptId,
        /// Where it runs.
        worker: WorkerId,
    },
    /// Drop everything of this job.
    Forget {
        job: JobId,
        /// The worker that has something of it.
        worker: WorkerId,
    },
    /// The job is over; nothing of it will be launched any more.
    JobEnded {
        job: JobId,
        /// How it went.
        outcome: Outcome,
    },
    /// Send [`Tick`](crate::event::Event::Tick) at this time; replaces the one asked for before.
    WakeAt {
        /// When; later than now.
        time: Time,
    },
}

/// Why an attempt was launched: the policy's reason and the placement's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LaunchReason {
    /// Why the job was granted the slot.
    pub grant: Reason,
    /// How near the worker is to the attempt's input.
    pub locality: Locality,
}

impl fmt::Display for LaunchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.grant, self.locality)
    }
}

/// How a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Outcome {
    /// All parts are published.
    Succeeded,
    /// Given up.
    Failed { cause: Cause },
    /// Somebody cancelled it.
    Cancelled,
}

/// Why a job failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Cause {
    /// User code of this task failed as often as the job allows.
    UserCode { task: TaskId },
    /// The input of this task cannot be used, or the only workers that have it are gone.
    Input { task: TaskId },
    /// This task found the configuration impossible.
    Config { task: TaskId },
    /// The output of this map, or what this reduce gathered, was unreadable too often.
    OutputUnreadable { task: TaskId },
    /// Two attempts of this map put out different records, and reduces took from both: the mapper is not deterministic.
    NotDeterministic { task: TaskId },
    /// The worker died too often while this task ran, or workers did while tasks of its job ran, this one the last.
    WorkersLost { task: TaskId },
    /// Workers failed this task too often by their own fault (disks full, I/O errors).
    WorkersUnfit { task: TaskId },
    /// This task could not reach the submitter, or workers that have its input, from any worker, or too often.
    Unreachable { task: TaskId },
    /// There was no live worker for longer than the configured grace.
    NoWorkers,
    /// Somebody outside the core ended it.
    External { cause: External },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Succeeded => f.write_str("succeeded"),
            Outcome::Failed { cause } => write!(f, "failed: {cause}"),
            Outcome::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::UserCode { task } => write!(f, "user code of {task} failed too often"),
            Cause::Input { task } => write!(f, "input of {task} cannot be used"),
            Cause::Config { task } => write!(f, "{task} found the configuration impossible"),
            Cause::OutputUnreadable { task } => write!(f, "map output of {task} repeatedly unreadable"),
            Cause::NotDeterministic { task } => write!(
                f,
                "the mapper of {task} is not deterministic: it ran again because its output was lost, and made other \
                 records than those that a reduce had taken already"
            ),
            Cause::WorkersLost { task } => write!(f, "workers died too often while {task} ran"),
            Cause::WorkersUnfit { task } => {
                write!(f, "no worker could do {task} for lack of room or I/O errors")
            }
            Cause::Unreachable { task } => {
                write!(f, "{task} could not reach the submitter, or the worker that has its input")
            }
            Cause::NoWorkers => f.write_str("no live workers"),
            Cause::External { cause } => write!(f, "{cause}"),
        }
    }
}
