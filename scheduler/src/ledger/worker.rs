//! One live worker: its slots, its running and waiting attempts, and its jobs.

use crate::event::Slots;
use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::units::{Bytes, Time};
use std::collections::{BTreeSet, VecDeque};

/// Both kinds of task, in the order of tables by pool.
pub(crate) const KINDS: [TaskKind; 2] = [TaskKind::Map, TaskKind::Reduce];

/// One live worker.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) host: HostId,
    pub(crate) slots: Slots,
    /// True if its heartbeats are overdue. It gets no new tasks.
    pub(crate) silent: bool,
    /// True if its spill disks are full. It gets no new tasks while others have room.
    #[serde(default)]
    pub(crate) disk_full: bool,
    /// Time when it was asked to drain. It gets no new tasks.
    pub(crate) draining: Option<Time>,
    /// Attempts that hold a slot, killed ones included.
    pub(crate) running: BTreeSet<AttemptId>,
    /// Number of running attempts in each pool.
    pub(crate) used: [u32; 2],
    /// Number of running attempts that end soon, so that maps may be queued behind them.
    pub(crate) quick: u32,
    /// Attempts that left their slot and keep their state.
    pub(crate) suspended: BTreeSet<AttemptId>,
    /// Number of running reduces that can be ordered to leave their slot, and of those that were.
    pub(crate) suspendable: u32,
    pub(crate) leaving: u32,
    /// Maps that wait for a slot here, first to run first.
    pub(crate) queued: VecDeque<AttemptId>,
    /// Number of tasks that can only start here and wait for a slot, by pool.
    pub(crate) awaited: [u32; 2],
    /// Number of ready reduces among them.
    pub(crate) ready: u32,
    pub(crate) marks: JobMarks,
    /// True if the policies' rows were counted with this worker idle, by pool.
    pub(crate) shown_idle: [bool; 2],
    /// Maps per second of one slot, from the last maps that ended here.
    pub(crate) slot_rate: Option<f64>,
    /// Time of tasks here relative to their peers. Recent tasks have the largest weight.
    pub(crate) slowness: Option<f64>,
}

/// Live jobs that involve a worker.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct JobMarks {
    /// Jobs that the worker was notified of, because it runs, keeps or gathers something of them.
    pub(crate) jobs: BTreeSet<JobId>,
    /// Jobs that may have tasks bound to the worker (pinned and assigned maps, ready reduces). A superset.
    pub(crate) bound: BTreeSet<JobId>,
    /// Jobs that may have waiting maps that name the worker. A superset.
    pub(crate) named: BTreeSet<JobId>,
}

impl Worker {
    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Returns its machine.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Returns the attempts that it can run at once.
    #[must_use]
    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// Number of free slots for this kind that an attempt can get now; 0 while the worker is silent or draining.
    #[must_use]
    pub fn free(&self, kind: TaskKind) -> u32 {
        if self.gets_nothing() { 0 } else { self.slots.count(kind) - self.used[self.pool(kind)] }
    }

    fn gets_nothing(&self) -> bool {
        self.silent || self.draining.is_some()
    }

    /// True if its spill disks count as full with this much free space. A full disk must have twice the reserve to
    /// count as free again. This hysteresis avoids a change with every file.
    pub(crate) fn is_full_with(&self, free: Bytes, reserve: Bytes) -> bool {
        let limit = if self.disk_full { reserve.0.saturating_mul(2) } else { reserve.0 };
        free.0 <= limit
    }

    /// True if it has no attempts, running or not.
    pub(crate) fn is_done(&self) -> bool {
        self.running.is_empty() && self.queued.is_empty() && self.suspended.is_empty()
    }

    /// Number of attempts queued behind those that run.
    #[must_use]
    pub fn queued(&self) -> u32 {
        self.queued.len() as u32
    }

    /// Returns the maps per second with all its map slots busy, from the last maps that ended here; `None` before the
    /// first.
    #[must_use]
    pub fn service_rate(&self) -> Option<f64> {
        Some(self.slot_rate? * f64::from(self.slots.count(TaskKind::Map)))
    }

    /// Returns the time of tasks here relative to other workers; 1 if unknown.
    #[must_use]
    pub fn slowness(&self) -> f64 {
        self.slowness.unwrap_or(1.0)
    }

    pub(crate) fn pool(&self, kind: TaskKind) -> usize {
        self.slots.pool(kind)
    }

    /// Number of slots for this kind that could be preempted.
    pub(crate) fn yielding(&self, kind: TaskKind) -> u32 {
        if self.pool(kind) == self.pool(TaskKind::Reduce) { self.suspendable + self.leaving } else { 0 }
    }

    /// Number of tasks of this kind's pool that can only run here and would get a slot.
    pub(crate) fn usable(&self, kind: TaskKind) -> u32 {
        self.free(kind).min(self.awaited[self.pool(kind)])
    }

    /// True if ready reduces wait here and find no slot.
    pub(crate) fn holds_up(&self) -> bool {
        0 < self.ready && self.free(TaskKind::Reduce) == 0
    }

    /// Length of the queue relative to the slots that work it off. `None` if no map may be queued here. The
    /// reasons are that a slot is free, that no slot becomes free soon, that a task that can only run here
    /// waits for the next slot, or that the worker gets no new tasks.
    pub(crate) fn level(&self) -> Option<u64> {
        let full = self.free(TaskKind::Map) == 0 && !self.gets_nothing();
        let queues = full && 0 < self.quick && self.awaited[0] == 0;
        queues.then(|| ((self.queued.len() as u64) << LEVEL_BITS) / u64::from(self.quick))
    }
}

/// Number of fractional bits of a [`Worker::level`].
pub(super) const LEVEL_BITS: u32 = 16;
