//! Attempts that are taken out of their slots: suspended, resumed or killed, as in
//! `worker/src/agent/control/suspend.rs` and `worker/src/attempt/hold.rs`.

use super::process::Process;
use super::slots::Stage;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::Span;
use gristmill_worker::protocol::{FailureClass, WorkerFrame};

/// Time until a working attempt notices that it is cancelled.
const KILL_IS_SEEN_AFTER: Span = Span::milliseconds(50);

impl Process {
    pub fn kill(&mut self, attempt: AttemptId) {
        if self.withdraw(attempt, Stage::Waiting) {
            return self.ends_badly(attempt, FailureClass::Cancelled);
        }
        self.withdraw(attempt, Stage::GoesOn);
        let Some(one) = self.tries.get_mut(&attempt) else {
            // It was faster, but another attempt of its task counts.
            drop(self.store.discard_output(attempt));
            self.outputs.remove(&attempt);
            return;
        };
        one.killed = true;
        one.answer.get_or_insert(false);
        match one.stage {
            Stage::Parked | Stage::GoesOn => self.ends_badly(attempt, FailureClass::Cancelled),
            // It checks for cancellation now and then, however long a group takes.
            Stage::Working => self.next_step(attempt, KILL_IS_SEEN_AFTER),
            _ => self.heed_answer(attempt),
        }
    }

    pub fn suspend(&mut self, attempt: AttemptId) {
        let waits = self.withdraw(attempt, Stage::GoesOn);
        let Some(one) = self.tries.get_mut(&attempt) else { return };
        if waits {
            one.stage = Stage::Parked;
            return self.send(&WorkerFrame::Suspended { attempt });
        }
        let ends = matches!(one.stage, Stage::Built | Stage::Publishing | Stage::Parked) || one.killed;
        if ends {
            return;
        }
        one.asked = true;
    }

    pub fn resume(&mut self, attempt: AttemptId) {
        let pool = self.pool(attempt.task.kind);
        let Some(one) = self.tries.get_mut(&attempt) else { return };
        one.asked = false;
        if one.stage == Stage::Parked {
            one.stage = Stage::GoesOn;
            self.lines[pool].push_back(attempt);
        }
    }
}
