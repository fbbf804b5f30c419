//! Events that enter the core: changes of jobs, tasks and workers.
//!
//! The driver translates wire frames to events. The time of an event is an argument of
//! [`Core::handle`](crate::core::Core::handle). Events may be late or duplicate: those of an ended job, a lost worker
//! or a superseded attempt are counted and otherwise ignored.

use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::job::JobSpec;
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Class of a failed attempt or fetch. It decides what is charged and what is tried next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Panic, error or hang of user code. Charged to the task's attempts.
    User,
    /// The worker could not do its part: disk full, I/O error. Not charged; the worker is avoided.
    Worker,
    /// The input is missing, changed or corrupt. The job fails at once.
    Input,
    /// The job's configuration cannot work. The job fails at once.
    Config,
    /// Bytes could not be fetched from another process. Not charged.
    Fetch,
    /// A segment's checksum was wrong. Not charged.
    Corrupt,
    /// The attempt was killed, or its worker stopped it. Not charged.
    Cancelled,
    /// The worker was lost while the attempt ran. Not charged.
    Lost,
    /// The submitter, or a worker that has the input, could not be reached. Not charged; the worker is avoided.
    Unreachable,
}

impl Failure {
    /// All classes, in the order of [`Failure::index`].
    pub const ALL: [Failure; 9] = [
        Failure::User,
        Failure::Worker,
        Failure::Input,
        Failure::Config,
        Failure::Fetch,
        Failure::Corrupt,
        Failure::Cancelled,
        Failure::Lost,
        Failure::Unreachable,
    ];

    /// True if the worker is or may be at fault: the task pauses and avoids it.
    #[must_use]
    pub(crate) const fn avoids_worker(self) -> bool {
        matches!(self, Failure::Worker | Failure::Unreachable)
    }

    /// Returns the index of this class in tables by class.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::User => "user code failed",
            Failure::Worker => "worker trouble",
            Failure::Input => "input unusable",
            Failure::Config => "configuration unusable",
            Failure::Fetch => "fetch failed",
            Failure::Corrupt => "segment corrupt",
            Failure::Cancelled => "cancelled",
            Failure::Lost => "worker lost",
            Failure::Unreachable => "route cut off",
        })
    }
}

/// Cause of a job's end from outside the core. The reporter keeps details as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum External {
    /// The input is no longer available.
    InputGone,
    /// The client that serves the input or receives the output is lost.
    ClientLost,
    /// The output directory cannot be written or published.
    OutputUnavailable,
    /// A limit of time or size set by the submitter was exceeded.
    LimitPassed,
    /// The driver itself failed.
    Internal,
}

impl fmt::Display for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            External::InputGone => "the input is gone",
            External::ClientLost => "the client is gone",
            External::OutputUnavailable => "the output cannot be written",
            External::LimitPassed => "a limit of the job was passed",
            External::Internal => "the master failed",
        })
    }
}

/// Number of attempts that a worker can run at once. All workers of a cluster must have the same kind: slots for both
/// kinds of task, or a pool for each kind. Every number is at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slots {
    /// Maps and reduces share the same slots.
    Unified(u32),
    /// Maps and reduces have separate slots.
    Pools {
        /// Slots for maps.
        map: u32,
        /// Slots for reduces.
        reduce: u32,
    },
}

impl Slots {
    /// True if maps and reduces share the same slots.
    #[must_use]
    pub const fn unified(self) -> bool {
        matches!(self, Slots::Unified(_))
    }

    /// Returns the attempts of this kind that can run at once, if none of the other kind runs.
    #[must_use]
    pub const fn count(self, kind: TaskKind) -> u32 {
        match (self, kind) {
            (Slots::Unified(slots), _) => slots,
            (Slots::Pools { map, .. }, TaskKind::Map) => map,
            (Slots::Pools { reduce, .. }, TaskKind::Reduce) => reduce,
        }
    }

    /// Returns the index of the pool for this kind in tables by pool, which have two places; unified slots use the
    /// first.
    #[must_use]
    pub(crate) const fn pool(self, kind: TaskKind) -> usize {
        match (self, kind) {
            (Slots::Pools { .. }, TaskKind::Reduce) => 1,
            _ => 0,
        }
    }

    /// Returns the attempts that can run at once.
    #[must_use]
    pub const fn total(self) -> u32 {
        match self {
            Slots::Unified(slots) => slots,
            Slots::Pools { map, reduce } => map.saturating_add(reduce),
        }
    }
}

/// Fingerprint of the output of a map attempt, as sums of hashes over its pairs. It depends on the partitions of pairs,
/// not on their order. Two attempts of one map must agree, or reduces that read from different ones lose or duplicate
/// records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Sum over the partitions of all pairs.
    pub pairs: u64,
    /// Sum over partitions and keys; `None` if only whole pairs were hashed.
    pub keys: Option<NonZeroU64>,
    /// Sum over partitions and pairs; `None` if values were combined, which may round depending on order and grouping,
    /// and if pairs were not read.
    pub frames: Option<NonZeroU64>,
    /// Sum over partitions and positions of pairs that were left in the input; `None` if they were not.
    pub places: Option<NonZeroU64>,
}

impl Fingerprint {
    /// True if both may be of the same output, by the sums that both have.
    #[must_use]
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let sums = [(self.keys, other.keys), (self.frames, other.frames), (self.places, other.places)];
        self.pairs == other.pairs
            && sums.iter().all(|(one, two)| one.is_none() || two.is_none() || one == two)
    }
}

/// Recent rate of bytes from one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FetchRate {
    /// Source of the bytes.
    pub from: WorkerId,
    /// Number of bytes received.
    pub bytes: Bytes,
    /// Time during which requests to the source were in flight.
    pub busy: Span,
}

/// Event for the core.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Event {
    /// A worker process is ready to work. Its id is new: a lost process that returns gets another id.
    WorkerJoined {
        /// New worker.
        worker: WorkerId,
        /// Machine of the worker.
        host: HostId,
        /// Attempts that it can run at once.
        slots: Slots,
    },
    /// Heartbeats of a worker are overdue, but not for so long that it is lost; or they have resumed.
    WorkerSilent { worker: WorkerId, silent: bool },
    /// Rates at which bytes come to a home from others. Reported repeatedly while requests are in flight.
    FetchRates {
        home: WorkerId,
        // Journals have this name.
        #[serde(rename = "ways")]
        routes: Vec<FetchRate>,
    },
    /// Free space of a worker's spill disks. Reported when it matters
    /// ([`Core::room_matters`](crate::core::Core::room_matters)).
    WorkerDiskRoom {
        worker: WorkerId,
        /// Free bytes on the disk with most free space.
        free: Bytes,
        /// Bytes that must stay free.
        reserve: Bytes,
    },
    /// A worker is to be drained: its attempts end, and others fetch its outputs.
    WorkerDraining { worker: WorkerId },
    /// The kernel killed a process for lack of memory while these attempts ran in it. Their tasks run alone from now
    /// on. Sent before the events of their end.
    MemoryRanOut { attempts: Vec<AttemptId> },
    /// A worker is lost, with all that it ran, kept and gathered.
    WorkerLost {
        worker: WorkerId,
        /// Attempts whose user code is known to have crashed the process; charged like user failures.
        culprit: Vec<AttemptId>,
    },
    /// A job was submitted and its input is split.
    JobArrived {
        /// New job; ids increase with every arrival.
        job: JobId,
        /// Specification of the job; [`JobSpec::check`] passed.
        spec: Arc<JobSpec>,
    },
    /// The job was cancelled.
    JobCancelled { job: JobId },
    /// The driver has to fail the job.
    JobFailed { job: JobId, cause: External },
    /// A map attempt succeeded. Its output is kept on its worker or, in a map-only job, published.
    MapFinished {
        attempt: AttemptId,
        /// Size of its output. An empty output need not be fetched: all homes have it.
        output_bytes: Bytes,
        /// Time that it ran in its slot, by the worker's clock, without the time in the queue.
        took: Span,
        /// Fingerprint of its output; `None` in a map-only job, where outputs are not compared, and in simulations.
        #[serde(default)]
        fingerprint: Option<Fingerprint>,
    },
    /// A reduce attempt succeeded: its part is published.
    ReduceFinished {
        attempt: AttemptId,
        /// Size of its part.
        output_bytes: Bytes,
        /// Time that it ran in its slot, by the worker's clock, without suspensions.
        took: Span,
    },
    /// A reduce attempt stopped at a boundary between groups of keys as ordered, and has released its slot. It keeps
    /// its state.
    AttemptSuspended { attempt: AttemptId },
    /// A running reduce attempt cannot be suspended as ordered. Its worker has no room to keep its state next
    /// to the task that would get its slot, or keeps too many already. It gets no further such orders.
    SuspensionRefused { attempt: AttemptId },
    /// An attempt ended without a result and has released its slot.
    AttemptFailed { attempt: AttemptId, class: Failure },
    /// A worker returns a queued attempt as ordered, before it started.
    AttemptReturned { attempt: AttemptId },
    /// A home has verified these partitions of a map output.
    Fetched {
        job: JobId,
        /// Worker that fetched.
        home: WorkerId,
        /// Map attempt of the output.
        map: AttemptId,
        /// Partitions that are complete now.
        partitions: Vec<u32>,
    },
    /// A home gave up fetching from a map output, after its own retries.
    FetchFailed {
        job: JobId,
        /// Worker that tried.
        home: WorkerId,
        /// Map attempt of the output.
        map: AttemptId,
        /// [`Failure::Worker`] blames the home, every other class the output.
        class: Failure,
    },
    /// Bytes that a running attempt has read so far. Reported from time to time for longer attempts.
    AttemptProgressed {
        attempt: AttemptId,
        /// Bytes read of its split, or of the pairs of a reduce that may be divided.
        read: Bytes,
        /// Bytes of all pairs of such a reduce; 0 for a map.
        #[serde(default)]
        of: Bytes,
    },
    /// A running map attempt has given up the end of its split as ordered. That end is a map of its own from now on.
    MapDivided {
        attempt: AttemptId,
        /// Bytes of its split that the attempt keeps; fewer than it had.
        kept: Bytes,
        /// Exact work of the part that it keeps, if the job's is known; else work is divided as the bytes are.
        #[serde(default)]
        work: Option<f64>,
    },
    /// A running reduce attempt stops before a key, as ordered. The keys from there on are a reduce of their own from
    /// now on.
    ReduceDivided {
        attempt: AttemptId,
        /// First key that it gives up, encoded.
        key: Vec<u8>,
        /// Bytes that it had left to read: of the keys that it keeps, and of those that it gives up.
        left: [Bytes; 2],
        /// Exact work of the part that it keeps, if the job's is known; else work is divided as the bytes are.
        #[serde(default)]
        work: Option<f64>,
    },
    /// A running attempt cannot give up a part of its input as ordered. It gets no further such orders.
    DivisionRefused { attempt: AttemptId },
    /// An attempt has built its part and requests to publish it.
    CommitRequested { attempt: AttemptId },
    /// The network rate was measured, or measured again; estimates of shuffles change.
    NetworkRate {
        /// Bytes per second that each worker can receive from others; `None` means no limit.
        per_worker: Option<Bytes>,
    },
    /// The time of the last [`WakeAt`](crate::command::Command::WakeAt) has come.
    Tick,
}
