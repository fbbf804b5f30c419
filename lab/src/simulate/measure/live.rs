//! Workers that have joined, and attempts that have not ended.

use super::super::WorkerShape;
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use std::collections::VecDeque;

/// Worker that has joined.
pub(super) struct LiveWorker {
    pub(super) shape: WorkerShape,
    /// Number of attempts that hold a slot, by pool.
    pub(super) running: [u32; 2],
    /// Attempts that wait for a slot.
    pub(super) queue: VecDeque<AttemptId>,
}

/// Attempt that has not ended.
pub(super) struct OpenAttempt {
    pub(super) worker: WorkerId,
    /// Time since when it holds a slot; `None` while it waits or is suspended.
    pub(super) began: Option<Time>,
    pub(super) queued: bool,
    /// Number of its suspensions.
    pub(super) suspensions: u32,
    /// Time for which it held slots before it was suspended.
    pub(super) held: Span,
}
