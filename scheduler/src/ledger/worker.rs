//! One live worker: its slots, what runs and waits there, and which jobs know it.

use crate::event::Slots;
use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::units::{Bytes, Time};
use std::collections::{BTreeSet, VecDeque};

/// Both kinds, in the order of tables by pool.
pub(crate) const KINDS: [TaskKind; 2] = [TaskKind::Map, TaskKind::Reduce];

/// One live worker.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) host: HostId,
    pub(crate) slots: Slots,
    /// Nothing was heard of it for a while: it gets nothing new.
    pub(crate) silent: bool,
    /// Its spill disks are full: it gets nothing new while others have room.
    #[serde(default)]
    pub(crate) disk_full: bool,
    /// It is to leave in good order, and was asked to at this time: it gets nothing new.
    pub(crate) draining: Option<Time>,
    /// Attempts that hold a slot, killed ones included.
    pub(crate) running: BTreeSet<AttemptId>,
    /// How many of them are in each pool.
    pub(crate) used: [u32; 2],
    /// How many of them are soon done, so that something may be queued behind them.
    pub(crate) quick: u32,
    /// Attempts that left their slot and keep what they have.
    pub(crate) suspended: BTreeSet<AttemptId>,
    /// Running reduces that can be ordered to leave their slot, and those that were.
    pub(crate) suspendable: u32,
    pub(crate) leaving: u32,
    /// Maps that wait for a slot here, in the order in which they will get it.
    pub(crate) queued: VecDeque<AttemptId>,
    /// Tasks that can start nowhere else and wait for a slot here, by pool.
    pub(crate) awaited: [u32; 2],
    /// Ready reduces among them.
    pub(crate) ready: u32,
    pub(crate) marks: JobMarks,
    /// Whether the rows that policies see were counted with this worker idle, by pool.
    pub(crate) shown_idle: [bool; 2],
    /// Maps that one slot ends in a second, by the last that ended here.
    pub(crate) slot_rate: Option<f64>,
    /// How many times as long tasks took here as their peers, those of late counting most.
    pub(crate) slowness: Option<f64>,
}

/// Which live jobs have something to do with a worker.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct JobMarks {
    /// Those that the worker was informed of: it runs, keeps or gathers something of them.
    pub(crate) jobs: BTreeSet<JobId>,
    /// Those that may have tasks bound to it (pinned and assigned maps, ready reduces). A superset.
    pub(crate) bound: BTreeSet<JobId>,
    /// Those that may have waiting maps that name it. A superset.
    pub(crate) named: BTreeSet<JobId>,
}

impl Worker {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// The machine it runs on.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Attempts that it can run at once.
    #[must_use]
    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// Slots for this kind that an attempt can have now: that no other holds, and none while the worker is silent or is to
    /// leave.
    #[must_use]
    pub fn free(&self, kind: TaskKind) -> u32 {
        if self.gets_nothing() { 0 } else { self.slots.of(kind) - self.used[self.pool(kind)] }
    }

    fn gets_nothing(&self) -> bool {
        self.silent || self.draining.is_some()
    }

    /// Whether its spill disks count as full with so much room. A disk that was full has room again with twice what is to
    /// stay free, so that a worker does not come and go with each file.
    pub(crate) fn is_full_with(&self, free: Bytes, reserve: Bytes) -> bool {
        let limit = if self.disk_full { reserve.0.saturating_mul(2) } else { reserve.0 };
        free.0 <= limit
    }

    /// Whether no attempt is there, running or not.
    pub(crate) fn is_done(&self) -> bool {
        self.running.is_empty() && self.queued.is_empty() && self.suspended.is_empty()
    }

    /// Attempts queued behind those that run.
    #[must_use]
    pub fn queued(&self) -> u32 {
        self.queued.len() as u32
    }

    /// Maps that it ends in a second when each of its slots for maps runs one, by the last that ended here; `None`
    /// before the first.
    #[must_use]
    pub fn service_rate(&self) -> Option<f64> {
        Some(self.slot_rate? * f64::from(self.slots.of(TaskKind::Map)))
    }

    /// How many times as long tasks take here as elsewhere; 1 before anybody knows.
    #[must_use]
    pub fn slowness(&self) -> f64 {
        self.slowness.unwrap_or(1.0)
    }

    pub(crate) fn pool(&self, kind: TaskKind) -> usize {
        self.slots.pool(kind)
    }

    /// Slots for this kind that reduces hold and could give back.
    pub(crate) fn yielding(&self, kind: TaskKind) -> u32 {
        if self.pool(kind) == self.pool(TaskKind::Reduce) { self.suspendable + self.leaving } else { 0 }
    }

    /// Tasks of this kind's pool that wait for this worker alone and would find a slot.
    pub(crate) fn usable(&self, kind: TaskKind) -> u32 {
        self.free(kind).min(self.awaited[self.pool(kind)])
    }

    /// Whether ready reduces wait here and find no slot.
    pub(crate) fn holds_up(&self) -> bool {
        0 < self.ready && self.free(TaskKind::Reduce) == 0
    }

    /// How long the queue is for the slots that work it off; `None` if nothing may be queued here: there is a
    /// free slot, or nothing that will free one soon, or somebody who can go nowhere else waits for the next, or it
    /// gets nothing new.
    pub(crate) fn level(&self) -> Option<u64> {
        let full = self.free(TaskKind::Map) == 0 && !self.gets_nothing();
        let queues = full && 0 < self.quick && self.awaited[0] == 0;
        queues.then(|| ((self.queued.len() as u64) << LEVEL_BITS) / u64::from(self.quick))
    }
}

/// Bits of a [`Worker::level`] behind the point.
pub(super) const LEVEL_BITS: u32 = 16;
