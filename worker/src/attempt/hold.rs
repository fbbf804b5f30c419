//! Wait of a suspended attempt: its thread parks with all its state, and its slot goes to another thread.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Environment of an attempt that can be suspended.
pub trait Parking: Send + Sync {
    /// Stops the attempt here and leaves this slot, which another thread takes. Called on the attempt's thread. Returns
    /// false if there is no such thread: then the attempt continues.
    fn leave(&self, slot: u32) -> bool;

    /// Reports that the attempt was ordered to suspend and cannot: it keeps its slot.
    fn refuses(&self);
}

/// Next action of an attempt after its suspension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wake {
    /// Continue; if it left its slot, it has another now.
    GoesOn,
    /// End, without a slot.
    Cancelled,
}

/// Invariant: while an attempt is `Parked`, it has no slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Runs,
    /// Ordered to stop at this time.
    Asked(Instant),
    Parked,
}

#[derive(Debug, Default)]
struct HoldState {
    stage: Stage,
    /// Slot that the attempt's thread serves.
    slot: Option<u32>,
    cancelled: bool,
}

/// Synchronisation of one attempt's suspension, shared between its thread, the control loop and the slot that resumes
/// it.
#[derive(Default)]
pub(super) struct Hold {
    held: Mutex<HoldState>,
    changed: Condvar,
    parking: Option<Box<dyn Parking>>,
}

impl Hold {
    pub fn new(parking: Option<Box<dyn Parking>>) -> Self {
        Self { parking, ..Self::default() }
    }

    fn held(&self) -> MutexGuard<'_, HoldState> {
        // Every change consists of assignments, none of which can panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the attempt in this slot.
    pub fn start(&self, slot: u32) {
        self.held().slot = Some(slot);
    }

    /// Returns the slot of the attempt's thread; `None` if it left its slot permanently.
    pub fn slot(&self) -> Option<u32> {
        self.held().slot
    }

    /// Orders the attempt to stop; `asking` runs before it can. Returns true if it is ordered now.
    pub fn order_stop(&self, asking: impl FnOnce()) -> bool {
        let mut held = self.held();
        if held.stage == Stage::Runs && self.parking.is_some() {
            held.stage = Stage::Asked(Instant::now());
            asking();
            self.changed.notify_all();
        }
        matches!(held.stage, Stage::Asked(_))
    }

    /// Withdraws the order. Returns true if the attempt has not stopped.
    pub(crate) fn unask(&self, taking_back: impl FnOnce()) -> bool {
        let mut held = self.held();
        if matches!(held.stage, Stage::Asked(_)) {
            held.stage = Stage::Runs;
            taking_back();
        }
        held.stage == Stage::Runs
    }

    /// Records that the attempt cannot stop, even if ordered to. Then `taking_back` runs, and the refusal is reported.
    pub fn refuse(&self, taking_back: impl FnOnce()) {
        {
            let mut held = self.held();
            if !matches!(held.stage, Stage::Asked(_)) {
                return;
            }
            held.stage = Stage::Runs;
            taking_back();
        }
        if let Some(parking) = &self.parking {
            parking.refuses();
        }
    }

    /// Returns the time since it was ordered to stop.
    pub(crate) fn asked_for(&self) -> Option<Duration> {
        match self.held().stage {
            Stage::Asked(since) => Some(since.elapsed()),
            Stage::Runs | Stage::Parked => None,
        }
    }

    /// Resumes a parked attempt in this slot. Returns true if it was parked; otherwise the slot is not taken.
    pub fn resume(&self, slot: u32) -> bool {
        let mut held = self.held();
        let parked = held.stage == Stage::Parked && !held.cancelled;
        if parked {
            held.stage = Stage::Runs;
            held.slot = Some(slot);
            self.changed.notify_all();
        }
        parked
    }

    /// Wakes the attempt from any wait because it was cancelled.
    pub fn cancel(&self) {
        self.held().cancelled = true;
        self.changed.notify_all();
    }

    /// Stops here if ordered to, until the next order; `stopping` runs before. `None` if it did not stop.
    pub fn park(&self, stopping: impl FnOnce()) -> Option<Wake> {
        let slot = {
            let mut held = self.held();
            if !matches!(held.stage, Stage::Asked(_)) || held.cancelled {
                return None;
            }
            stopping();
            // Before the report: the attempt must be parked when it is resumed.
            held.stage = Stage::Parked;
            held.slot.take()
        };
        let left = match (&self.parking, slot) {
            (Some(parking), Some(slot)) => parking.leave(slot),
            _ => false,
        };
        if !left {
            {
                let mut held = self.held();
                (held.stage, held.slot) = (Stage::Runs, slot);
            }
            if let Some(parking) = &self.parking {
                parking.refuses();
            }
            return None;
        }
        Some(self.wait())
    }

    fn wait(&self) -> Wake {
        let mut held = self.held();
        loop {
            match held.stage {
                Stage::Runs | Stage::Asked(_) => return Wake::GoesOn,
                Stage::Parked if held.cancelled => return Wake::Cancelled,
                Stage::Parked => {}
            }
            held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps; wakes early if the attempt is cancelled or, with `unless_asked`, ordered to stop.
    pub fn sleep(&self, time: Duration, unless_asked: bool) {
        let end = Instant::now() + time;
        let mut held = self.held();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let asked = unless_asked && matches!(held.stage, Stage::Asked(_));
            if held.cancelled || asked || left.is_zero() {
                return;
            }
            held = self.changed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("held", &self.held()).finish_non_exhaustive()
    }
}
