//! Suspends and resumes an attempt, so that another can use its slot. The worker's control loop gives the orders; the
//! thread of the attempt obeys at its next boundary, such as the end of a group.

use super::{ASKED, DIVIDE, Progress};
use crate::attempt::TaskFailure;
use crate::attempt::hold::Wake;
use crate::budget::{Budget, Reservation};
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Memory of the attempt while it is suspended, when its slot serves another one.
#[derive(Debug, Default)]
pub(super) struct SuspendedMemory {
    /// Budget that must have room for it.
    budget: OnceLock<Budget>,
    /// Bytes of its table, or of its buffers before files.
    bytes: AtomicUsize,
}

impl Progress {
    /// Stops, if ordered to, where the caller cannot fail. A cancelled attempt fails at the next check.
    #[cold]
    pub(crate) fn stop_here(&self) {
        let _ = self.stop_at_border();
    }

    /// True if the attempt has to stop at the next boundary.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.signals.load(Relaxed) & ASKED != 0
    }

    /// True if the attempt has to respond to an order at the next boundary: to stop, or to divide its input.
    #[inline]
    pub(crate) fn has_orders(&self) -> bool {
        self.signals.load(Relaxed) & (ASKED | DIVIDE) != 0
    }

    /// Sets the budget for the attempt's memory while it is suspended.
    pub(crate) fn keeps_in(&self, budget: &Budget) {
        // An attempt has one budget.
        let _ = self.kept.budget.set(budget.clone());
    }

    /// Sets the number of bytes that it holds in addition to its slot's.
    pub(crate) fn holds(&self, bytes: usize) {
        self.kept.bytes.store(bytes, Relaxed);
    }

    /// Reserves memory for its state; if there is none it keeps its slot, and the refusal is reported.
    fn room(&self) -> Result<Option<Reservation>, ()> {
        let Some(budget) = self.kept.budget.get() else { return Ok(None) };
        budget.try_reserve(self.kept.bytes.load(Relaxed)).map(Some).ok_or_else(|| {
            self.hold.refuse(|| {
                self.signals.fetch_and(!ASKED, Relaxed);
            });
        })
    }

    /// Stops at a boundary, if ordered to and there is memory.
    ///
    /// # Errors
    /// [`TaskFailure::Cancelled`].
    #[cold]
    #[inline(never)]
    pub(crate) fn stop_at_border(&self) -> Result<(), TaskFailure> {
        let Ok(_room) = self.room() else { return Ok(()) };
        match self.park() {
            Wake::GoesOn => Ok(()),
            Wake::Cancelled => Err(TaskFailure::Cancelled),
        }
    }

    fn park(&self) -> Wake {
        let stopping = || {
            self.signals.fetch_and(!ASKED, Relaxed);
            if let Some(pacing) = &self.pacing {
                // Work since the last check is owed when it continues.
                pacing.owes(pacing.epoch.elapsed());
            }
        };
        let before = Instant::now();
        let Some(wake) = self.hold.park(stopping) else { return Wake::GoesOn };
        self.suspensions.fetch_add(1, Relaxed);
        self.stood_still_since(before);
        wake
    }

    fn stood_still_since(&self, before: Instant) {
        self.suspended_ns.fetch_add(before.elapsed().as_nanos() as u64, Relaxed);
        if let Some(pacing) = &self.pacing {
            pacing.pacer().pass_over(pacing.epoch.elapsed());
            pacing.count();
        }
    }

    /// Orders the attempt to stop at the next boundary. Returns true if it can stop at all and has not.
    pub fn suspend(&self) -> bool {
        self.hold.order_stop(|| {
            self.signals.fetch_or(ASKED, Relaxed);
        })
    }

    /// Withdraws that order. Returns true if the attempt has not stopped.
    pub(crate) fn do_not_suspend(&self) -> bool {
        self.hold.unask(|| {
            self.signals.fetch_and(!ASKED, Relaxed);
        })
    }

    /// Resumes the suspended attempt in this slot. Returns false if it is not suspended; then the slot is not taken.
    #[must_use]
    pub fn resume(&self, slot: u32) -> bool {
        self.hold.resume(slot)
    }
}
