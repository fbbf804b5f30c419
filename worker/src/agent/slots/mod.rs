//! Slots: threads that run one attempt at a time, start to finish, blocking.
//!
//! A slot is a number, independent of its thread. The thread of a suspended attempt parks and leaves its
//! slot to a new thread. A slot that resumes a suspended attempt is left to that attempt's thread. So
//! attempts that run have a slot each, and suspended ones have none. A panic of user code is caught and
//! fails the attempt.

mod panics;
mod run;

use super::assignment::{SlotEvent, SlotSetting};
use super::capture::CaptureMark;
use super::work::{SlotTurn, SlotWork};
use crate::fault;
use crate::protocol::Slots;
use crate::task::Parking;
use gristmill_scheduler::ids::AttemptId;
use panics::{SERVES_SLOT, panicked};
use run::run;
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

pub use panics::install_panic_hook;

/// Starts a thread for each slot. They take work until the queue is closed.
///
/// # Errors
/// A thread cannot be started.
pub(super) fn start(slots: Slots, work: &SlotWork, setting: &SlotSetting) -> std::io::Result<()> {
    (0..slots.total()).try_for_each(|slot| serve(slot, work, setting))
}

/// Starts a thread that serves this slot.
fn serve(slot: u32, work: &SlotWork, setting: &SlotSetting) -> std::io::Result<()> {
    let (work, setting) = (work.clone(), setting.clone());
    let name = format!("slot-{slot}");
    let serving = move || {
        SERVES_SLOT.set(true);
        let runs = Cell::new(None);
        let turns = std::panic::catch_unwind(AssertUnwindSafe(|| take_turns(slot, &work, &setting, &runs)));
        if turns.is_err() {
            let message = panicked().message;
            let _ = setting.events.send(SlotEvent::Broken { attempt: runs.get(), message });
        }
    };
    std::thread::Builder::new().name(name).spawn(serving).map(drop)
}

/// Serves a slot, which may change, until the thread has none or there is no more work. `runs` is the
/// attempt that has started and has not been reported.
fn take_turns(mut slot: u32, work: &SlotWork, setting: &SlotSetting, runs: &Cell<Option<AttemptId>>) {
    while let Some(turn) = work.next(slot) {
        match turn {
            SlotTurn::Begin(assignment) => {
                runs.set(Some(assignment.attempt));
                fault::place("slot");
                setting.begun.note(slot, assignment.attempt);
                assignment.progress.start(slot);
                run(&assignment, setting);
                runs.set(None);
                match assignment.progress.slot() {
                    Some(now) => slot = now,
                    None => return,
                }
            }
            SlotTurn::GoOn(attempt, progress) => {
                setting.begun.note(slot, attempt);
                if progress.resume(slot) {
                    return;
                }
            }
        }
    }
}

/// Context in which a reduce attempt leaves its slot.
pub(super) struct LeaveSlot {
    pub attempt: AttemptId,
    pub work: SlotWork,
    pub setting: SlotSetting,
}

impl LeaveSlot {
    fn report(&self, written: u64) {
        let _ = self.setting.events.send(SlotEvent::Suspended { attempt: self.attempt, written });
    }
}

impl Parking for LeaveSlot {
    fn leave(&self, slot: u32) -> bool {
        let written = self.setting.written.as_ref().map_or(0, CaptureMark::now);
        self.setting.begun.clear(slot);
        match serve(slot, &self.work, &self.setting) {
            Ok(()) => {
                self.report(written);
                true
            }
            Err(error) => {
                tracing::warn!(%error, attempt = %self.attempt, "there is no thread for the slot: not suspended");
                self.setting.begun.note(slot, self.attempt);
                false
            }
        }
    }

    fn refuses(&self) {
        let _ = self.setting.events.send(SlotEvent::NotSuspended(self.attempt));
    }
}

/// Maximum time that the engine may sort, read or write without a sign of life: much longer than the
/// largest buffer takes, and than a reliable disk stalls.
pub(super) const ENGINE_TIMEOUT: Duration = Duration::from_secs(600);

/// Time that a killed attempt may take to end before its process is given up; longer than a transfer may
/// stall.
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(45);
