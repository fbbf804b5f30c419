//! Facts that enter the core: what happened to jobs, tasks and workers.
//!
//! Not here: wire frames (the driver translates them) and the time of a fact, which is an argument of
//! [`Core::handle`](crate::core::Core::handle). Facts may be late or doubled: what concerns an ended job, a
//! lost worker or a superseded attempt is counted and otherwise ignored.

use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::job::JobSpec;
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Why an attempt or a fetch failed. The class decides who is charged and what is tried next.
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
    /// Bytes could not be had from another process. Not charged.
    Fetch,
    /// A segment's checksum was wrong. Not charged.
    Corrupt,
    /// The attempt was killed, or the worker gave it up. Not charged.
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

    /// Whether it is the worker's fault, or may be: the task pauses and goes elsewhere.
    #[must_use]
    pub(crate) const fn avoids_worker(self) -> bool {
        matches!(self, Failure::Worker | Failure::Unreachable)
    }

    /// The place of this class in tables by class.
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
            Failure::Unreachable => "way cut off",
        })
    }
}

/// Why somebody outside the core ended a job. Details in words stay with whoever reported it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum External {
    /// The input cannot be had any more.
    InputGone,
    /// The client that serves the input or takes the output is gone.
    ClientLost,
    /// The output directory cannot be written or published.
    OutputUnavailable,
    /// A limit of time or size that the submitter set was passed.
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

/// What a worker can run at once. All workers of a cluster are alike in kind: slots for both kinds of task, or a pool
/// for each kind. Every number is at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slots {
    /// Maps and reduces draw on the same slots.
    Unified(u32),
    /// Maps and reduces have slots of their own.
    Pools {
        /// Slots for maps.
        map: u32,
        /// Slots for reduces.
        reduce: u32,
    },
}

impl Slots {
    /// Whether maps and reduces draw on the same slots.
    #[must_use]
    pub const fn unified(self) -> bool {
        matches!(self, Slots::Unified(_))
    }

    /// Attempts of this kind that can run at once, if none of the other kind runs.
    #[must_use]
    pub const fn of(self, kind: TaskKind) -> u32 {
        match (self, kind) {
            (Slots::Unified(slots), _) => slots,
            (Slots::Pools { map, .. }, TaskKind::Map) => map,
            (Slots::Pools { reduce, .. }, TaskKind::Reduce) => reduce,
        }
    }

    /// Where slots for this kind stand in tables by pool, which have two places; unified slots use the first.
    #[must_use]
    pub(crate) const fn pool(self, kind: TaskKind) -> usize {
        match (self, kind) {
            (Slots::Pools { .. }, TaskKind::Reduce) => 1,
            _ => 0,
        }
    }

    /// Attempts that can run at once.
    #[must_use]
    pub const fn total(self) -> u32 {
        match self {
            Slots::Unified(slots) => slots,
            Slots::Pools { map, reduce } => map.saturating_add(reduce),
        }
    }
}

/// What the output of a map attempt consists of, as sums of hashes over its pairs: the order of pairs does not matter,
/// their partitions do. Two attempts of one map must agree, or reduces that took from different ones lose or double
/// records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Over the partitions of all pairs.
    pub pairs: u64,
    /// Over partitions and keys; `None` where only whole pairs were looked at.
    pub keys: Option<NonZeroU64>,
    /// Over partitions and pairs; `None` where values were combined, which may round by their order and grouping, and
    /// where pairs were not read.
    pub frames: Option<NonZeroU64>,
    /// Over partitions and places of pairs that were left in the input; `None` where they were not.
    pub places: Option<NonZeroU64>,
}

impl Fingerprint {
    /// Whether both may be of the same output, as far as both looked at the same things.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let sums = [(self.keys, other.keys), (self.frames, other.frames), (self.places, other.places)];
        self.pairs == other.pairs
            && sums.iter().all(|(one, two)| one.is_none() || two.is_none() || one == two)
    }
}

/// How fast bytes have come from one worker lately.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FetchRate {
    /// Where from.
    pub from: WorkerId,
    /// What has come.
    pub bytes: Bytes,
    /// In how much time in which something was asked for there.
    pub busy: Span,
}

/// A fact.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Event {
    /// A worker process is ready to work. Its id is new: a process that was given up comes back as another.
    WorkerJoined {
        /// The new worker.
        worker: WorkerId,
        /// The machine it runs on.
        host: HostId,
        /// Attempts that it can run at once.
        slots: Slots,
    },
    /// Nothing was heard of a worker for a while, though not so long that it is lost; or it was heard of again.
    WorkerSilent { worker: WorkerId, silent: bool },
    /// How fast bytes come to a home from others. Told again and again, while something is asked for.
    FetchRates { home: WorkerId, ways: Vec<FetchRate> },
    /// How much room a worker's spill disks have. Told when that makes a difference
    /// ([`Core::room_matters`](crate::core::Core::room_matters)).
    WorkerDiskRoom {
        worker: WorkerId,
        /// Free bytes where most are free.
        free: Bytes,
        /// Bytes that are to stay free.
        reserve: Bytes,
    },
    /// Somebody wants a worker to leave in good order: what it runs ends, what others lack of it they fetch.
    WorkerDraining { worker: WorkerId },
    /// The kernel has ended a process for lack of memory in which these attempts ran: their tasks run alone from now on.
    /// Comes before what is said of their end.
    MemoryRanOut { attempts: Vec<AttemptId> },
    /// A worker is gone for good, with all that it ran, kept and gathered.
    WorkerLost {
        worker: WorkerId,
        /// Attempts whose user code is known to have killed the process; charged like user failures.
        culprit: Vec<AttemptId>,
    },
    /// A job was submitted and its input is split.
    JobArrived {
        /// The new job; ids rise with every arrival.
        job: JobId,
        /// It; [`JobSpec::check`] passed.
        spec: Arc<JobSpec>,
    },
    /// Somebody cancelled the job.
    JobCancelled { job: JobId },
    /// The mechanism around the core has to give the job up.
    JobFailed { job: JobId, cause: External },
    /// A map attempt ended well: its output is kept on its worker, or, in a map-only job, published.
    MapFinished {
        attempt: AttemptId,
        /// Size of its output. Of an output without bytes there is nothing to fetch: all homes have it.
        output_bytes: Bytes,
        /// How long it ran in its slot, by the worker's clock; the time it was queued there is not in it.
        took: Span,
        /// What its output consists of; `None` in a map-only job, where nobody compares, and in simulations.
        #[serde(default)]
        print: Option<Fingerprint>,
    },
    /// A reduce attempt ended well: its part is published.
    ReduceFinished {
        attempt: AttemptId,
        /// Size of its part.
        output_bytes: Bytes,
        /// How long it ran in its slot, by the worker's clock; times when it was suspended are not in it.
        took: Span,
    },
    /// A reduce attempt stopped at a border between groups of keys, as it was asked to, and has released its slot.
    /// It keeps what it has.
    AttemptSuspended { attempt: AttemptId },
    /// A running reduce attempt cannot be suspended, though it was asked to: its worker has no room to keep what it
    /// holds beside the task that would get its slot, or keeps too many already. It is not asked again.
    SuspensionRefused { attempt: AttemptId },
    /// A suspended attempt has written down where it stands and ended, so that the next attempt of its task can go
    /// on from there, on any worker.
    AttemptHandedOver { attempt: AttemptId },
    /// An attempt ended without result and has released its slot.
    AttemptFailed { attempt: AttemptId, class: Failure },
    /// A worker gives a queued attempt back, as it was asked to, before it began.
    AttemptReturned { attempt: AttemptId },
    /// A home has these partitions of a map output, verified.
    Fetched {
        job: JobId,
        /// The worker that fetched.
        home: WorkerId,
        /// The map attempt whose output it is.
        map: AttemptId,
        /// The partitions that are complete now.
        partitions: Vec<u32>,
    },
    /// A home gave up fetching from a map output, after its own retries.
    FetchFailed {
        job: JobId,
        /// The worker that tried.
        home: WorkerId,
        /// The map attempt whose output it is.
        map: AttemptId,
        /// [`Failure::Worker`] blames the home, every other class the output.
        class: Failure,
    },
    /// How much a running map attempt has read so far. Said now and then of those that run for a while.
    AttemptProgressed {
        attempt: AttemptId,
        /// Of its split.
        read: Bytes,
    },
    /// An attempt has built its part and asks to publish it.
    CommitRequested { attempt: AttemptId },
    /// The driver has learned, or learned anew, what the network can do; estimates of shuffles change.
    NetworkRate {
        /// What each worker can take in from others, in bytes per second; `None` counts as no limit.
        per_worker: Option<Bytes>,
    },
    /// The time of the last [`WakeAt`](crate::command::Command::WakeAt) has come.
    Tick,
}
