//! Attempts that are taken out of their slots: suspended, resumed, handed over or killed, as in
//! `worker/src/agent/control/suspend.rs` and `worker/src/attempt/hold.rs`.

use super::process::Process;
use super::slots::Stage;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::Span;
use gristmill_worker::protocol::{AttemptReport, FailureClass, HandOver, WorkerFrame};
use rand::RngExt as _;

/// Time until a working attempt notices that it is cancelled.
const KILL_IS_SEEN_AFTER: Span = Span::milliseconds(50);

impl Process {
    pub fn handed_over(&mut self, attempt: AttemptId) {
        let stays = self.rng.random_range(0..10) == 0;
        let Some(one) = self.tries.get_mut(&attempt) else { return };
        if one.killed {
            return self.ends_badly(attempt, FailureClass::Cancelled);
        }
        if stays {
            one.stage = Stage::Parked;
            return self.send(&WorkerFrame::Suspended { attempt });
        }
        let groups = std::mem::take(&mut one.groups);
        self.tries.remove(&attempt);
        let state = HandOver {
            last_key: None,
            groups: groups.len() as u64,
            bytes: 0,
            records: groups.len() as u64,
            crc32c: 0,
            reducer: Vec::new(),
            counters: Vec::new(),
        };
        if self.jobs.contains_key(&attempt.task.job) {
            self.handovers.insert(attempt, groups);
        }
        self.send(&WorkerFrame::HandedOver { attempt, state, report: AttemptReport::default() });
    }

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
            Stage::Parked | Stage::GoesOn | Stage::TakingOver => {
                self.ends_badly(attempt, FailureClass::Cancelled);
            }
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
        match one.stage {
            Stage::HandingOver => self.send(&WorkerFrame::NotSuspended { attempt }),
            _ => one.asked = true,
        }
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

    pub fn hand_over(&mut self, attempt: AttemptId) {
        let waits = self.withdraw(attempt, Stage::GoesOn);
        let Some(one) = self.tries.get_mut(&attempt) else { return };
        if waits || one.stage == Stage::Parked {
            one.stage = Stage::HandingOver;
            self.next_step(attempt, Span::milliseconds(20));
        }
    }
}
