//! Where a suspended attempt waits: its thread parks with all that it has, and its slot goes to another thread.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What surrounds an attempt that can be suspended.
pub trait Parking: Send + Sync {
    /// The attempt stops here and leaves this slot, which another thread takes. Called on the attempt's thread.
    /// Answers false if there is no such thread: then the attempt goes on.
    fn leave(&self, slot: u32) -> bool;

    /// The attempt was asked to stop, and cannot: it keeps its slot.
    fn refuses(&self);

    /// The attempt was asked to write down where it stands, and cannot: it stays where it is.
    fn stays(&self);
}

/// What an attempt is to do after it was suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wake {
    /// Go on; if it left its slot, it has another now.
    GoesOn,
    /// End, without a slot.
    Cancelled,
    /// Write down where it stands and end, without a slot.
    Moves,
}

/// Invariant: while an attempt is `Parked` or `Moves`, it has no slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Runs,
    /// To stop, since this moment.
    Asked(Instant),
    Parked,
    Moves,
}

#[derive(Debug, Default)]
struct HoldState {
    stage: Stage,
    /// The slot that the attempt's thread serves.
    slot: Option<u32>,
    cancelled: bool,
}

/// One attempt's place to wait, shared between its thread, the control loop and the slot that lets it go on.
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
        // Every change is one assignment after another, none of which can panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The attempt begins in this slot.
    pub fn begin(&self, slot: u32) {
        self.held().slot = Some(slot);
    }

    /// The slot of the attempt's thread; `None` if it was left for good.
    pub fn slot(&self) -> Option<u32> {
        self.held().slot
    }

    /// Asks the attempt to stop; `asking` runs before it can. Answers whether it is asked now.
    pub fn ask(&self, asking: impl FnOnce()) -> bool {
        let mut held = self.held();
        if held.stage == Stage::Runs && self.parking.is_some() {
            held.stage = Stage::Asked(Instant::now());
            asking();
            self.changed.notify_all();
        }
        matches!(held.stage, Stage::Asked(_))
    }

    /// Takes the question back. Answers whether the attempt has not stopped.
    pub(crate) fn unask(&self, taking_back: impl FnOnce()) -> bool {
        let mut held = self.held();
        if matches!(held.stage, Stage::Asked(_)) {
            held.stage = Stage::Runs;
            taking_back();
        }
        held.stage == Stage::Runs
    }

    /// The attempt cannot stop, though it may have been asked; `taking_back` runs if so, and whoever asked is informed.
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

    /// How long ago it was asked to stop.
    pub(crate) fn asked_for(&self) -> Option<Duration> {
        match self.held().stage {
            Stage::Asked(since) => Some(since.elapsed()),
            Stage::Runs | Stage::Parked | Stage::Moves => None,
        }
    }

    /// Lets a parked attempt go on in this slot. Answers whether it was parked; otherwise the slot is not taken.
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

    /// Asks a parked attempt to write down where it stands. Answers whether it was parked.
    pub fn hand_over(&self) -> bool {
        let mut held = self.held();
        let parked = held.stage == Stage::Parked && !held.cancelled;
        if parked {
            held.stage = Stage::Moves;
            self.changed.notify_all();
        }
        parked
    }

    /// Wakes the attempt wherever it waits: it is not wanted any more.
    pub fn cancel(&self) {
        self.held().cancelled = true;
        self.changed.notify_all();
    }

    /// Stops here if that was asked for, until something else is; `stopping` runs before. `None` if it did not stop.
    pub fn park(&self, stopping: impl FnOnce()) -> Option<Wake> {
        let slot = {
            let mut held = self.held();
            if !matches!(held.stage, Stage::Asked(_)) || held.cancelled {
                return None;
            }
            stopping();
            // Before anyone is informed: who resumes it must find it parked.
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

    /// Goes on waiting after [`Wake::Moves`], which could not be done.
    pub(crate) fn stay(&self) -> Wake {
        self.held().stage = Stage::Parked;
        if let Some(parking) = &self.parking {
            parking.stays();
        }
        self.wait()
    }

    fn wait(&self) -> Wake {
        let mut held = self.held();
        loop {
            match held.stage {
                Stage::Runs | Stage::Asked(_) => return Wake::GoesOn,
                Stage::Moves => return Wake::Moves,
                Stage::Parked if held.cancelled => return Wake::Cancelled,
                Stage::Parked => {}
            }
            held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps, less long if the attempt is cancelled or, with `unless_asked`, if it is to stop.
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
