//! Commands of the core, checked against the ledger. The driver carries them out unconditionally.
//!
//! Wire frames are defined elsewhere. Commands to one worker are delivered in the order given here; a lost worker gets
//! no more of them.

use crate::event::External;
use crate::ids::{AttemptId, JobId, TaskId, WorkerId};
use crate::job::Locality;
use crate::plan::Reason;
use crate::units::{Bytes, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Command of the core.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Command {
    /// Start this attempt as soon as a slot of the worker is free: at once, or after those launched there before it. It
    /// holds the slot until it is reported finished or failed.
    Launch {
        attempt: AttemptId,
        worker: WorkerId,
        /// Reason for this job and this worker.
        reason: LaunchReason,
    },
    /// Return this attempt if it has not started; otherwise continue it.
    Recall {
        /// Queued attempt.
        attempt: AttemptId,
        worker: WorkerId,
    },
    /// Stop this attempt and report it failed as cancelled, or report its end if it ended first.
    Kill {
        attempt: AttemptId,
        /// Worker of the attempt.
        worker: WorkerId,
    },
    /// Stop this reduce attempt at the next boundary between groups of keys, keep its state, and report it suspended,
    /// or report its end if it ended first.
    Suspend {
        attempt: AttemptId,
        /// Worker of the attempt.
        worker: WorkerId,
    },
    /// Resume this suspended attempt as soon as a slot of the worker is free, as for a launch.
    Resume {
        attempt: AttemptId,
        /// Worker of the suspended attempt.
        worker: WorkerId,
        /// Reason for this job and this worker.
        reason: LaunchReason,
    },
    /// Give up about half of what this running attempt has left to read, and report it divided, or that it cannot be.
    /// An attempt that ends first reports its end alone.
    Divide {
        attempt: AttemptId,
        /// Worker of the attempt.
        worker: WorkerId,
        /// True to give up all that is left, so that the attempt ends soon.
        at_once: bool,
    },
    /// The end of this attempt's split, after its first `kept` bytes, is from now on the split of the map `rest`, which
    /// is the last of the job. All attempts of the divided map read the first bytes only.
    MapAdded {
        attempt: AttemptId,
        /// Bytes that the divided map keeps.
        kept: Bytes,
        /// Index of the new map.
        rest: u32,
    },
    /// The keys of this reduce from `key` on are from now on those of the reduce `rest`, which is the last of the job
    /// and belongs to the same partition. All attempts of the divided reduce stop before `key`. The worker of the
    /// attempt is the home of both: it gathers for the new reduce, starting with the segments of the divided one.
    ReduceAdded {
        attempt: AttemptId,
        worker: WorkerId,
        /// First key of the new reduce, encoded.
        key: Vec<u8>,
        /// Index of the new reduce.
        rest: u32,
    },
    /// Gather the segments of this partition from now on, starting empty. A reduce that a division added counts as a
    /// partition here.
    Home {
        job: JobId,
        partition: u32,
        /// Worker that gathers.
        worker: WorkerId,
    },
    /// Stop gathering this partition and drop its segments.
    Unhome {
        job: JobId,
        partition: u32,
        /// Worker that gathered.
        worker: WorkerId,
    },
    /// Fetch from this output all partitions that `to` is home of and that it lacks of this map.
    Announce {
        job: JobId,
        /// Map attempt of the output.
        map: AttemptId,
        /// Worker that keeps it; may be `to` itself, which then reads it locally.
        from: WorkerId,
        to: WorkerId,
    },
    /// Stop fetching from this output. Segments already reported as fetched stay.
    Retract {
        job: JobId,
        /// Map attempt of the output.
        map: AttemptId,
        to: WorkerId,
    },
    /// Publish the part.
    GrantCommit {
        /// Attempt that requested it.
        attempt: AttemptId,
        /// Worker of the attempt.
        worker: WorkerId,
    },
    /// Do not publish: another attempt may or did, or the job is over.
    RefuseCommit {
        /// Attempt that requested it.
        attempt: AttemptId,
        /// Worker of the attempt.
        worker: WorkerId,
    },
    /// Drop all data of this job.
    Forget {
        job: JobId,
        /// Worker that has data of it.
        worker: WorkerId,
    },
    /// The job is over; it launches no more attempts.
    JobEnded {
        job: JobId,
        /// Outcome of the job.
        outcome: Outcome,
    },
    /// Send [`Tick`](crate::event::Event::Tick) at this time; replaces the previous request.
    WakeAt {
        /// Requested time; later than now.
        time: Time,
    },
}

/// Reasons of a launch: the policy's and the placement's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LaunchReason {
    /// Reason why the job was granted the slot.
    pub grant: Reason,
    /// Locality of the attempt on the worker.
    pub locality: Locality,
}

impl fmt::Display for LaunchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.grant, self.locality)
    }
}

/// Outcome of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Outcome {
    /// All parts are published.
    Succeeded,
    /// The job failed.
    Failed { cause: Cause },
    /// The job was cancelled.
    Cancelled,
}

/// Cause of a failed job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Cause {
    /// User code of this task failed as often as the job allows.
    UserCode { task: TaskId },
    /// The input of this task cannot be used, or the only workers that have it are lost.
    Input { task: TaskId },
    /// This task found that the configuration cannot work.
    Config { task: TaskId },
    /// The output of this map, or the segments gathered by this reduce, were unreadable too often.
    OutputUnreadable { task: TaskId },
    /// Two attempts of this map had different outputs, and reduces read from both: the mapper is not deterministic.
    NotDeterministic { task: TaskId },
    /// The worker was lost too often while this task ran, or workers were while tasks of its job ran, this one the
    /// last.
    WorkersLost { task: TaskId },
    /// Workers failed this task too often by their own fault (disks full, I/O errors).
    WorkersUnfit { task: TaskId },
    /// This task could not reach the submitter, or workers that have its input, from any worker, or too often.
    Unreachable { task: TaskId },
    /// No worker was live for longer than the configured grace period.
    NoWorkers,
    /// The job was ended from outside the core.
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
