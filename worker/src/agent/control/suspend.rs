//! Suspends and resumes reduce attempts.

use super::{Agent, RunningAttempt, SUSPENDED_MAX, Suspension};
use crate::agent::work::SlotTurn;
use crate::protocol::WorkerFrame;
use gristmill_scheduler::ids::AttemptId;
use std::time::Instant;

impl Agent {
    /// Asks a reduce attempt to leave its slot. If it cannot any more, it runs to its end.
    pub(super) fn suspend(&mut self, attempt: AttemptId) {
        let stopped = |running: &&RunningAttempt| running.suspension != Suspension::None;
        let full = SUSPENDED_MAX <= self.running.values().filter(stopped).count();
        let waits = self.slots.work.withdraw_suspended(attempt);
        let Some(running) = self.running.get_mut(&attempt) else { return };
        if waits {
            // It has not resumed yet.
            running.suspension = Suspension::Suspended;
            return self.send(&WorkerFrame::Suspended { attempt });
        }
        let can =
            !running.built && running.killed_at.is_none() && running.suspension != Suspension::Suspended;
        if !can {
            // It ends, and the slot reports that.
        } else if !full && running.progress.suspend() {
            running.suspension = Suspension::Asked;
        } else {
            self.send(&WorkerFrame::NotSuspended { attempt });
        }
    }

    /// Resumes a suspended attempt.
    pub(super) fn resume(&mut self, attempt: AttemptId) {
        let Some(running) = self.running.get_mut(&attempt) else { return };
        match running.suspension {
            Suspension::None => {}
            Suspension::Asked => {
                if running.progress.do_not_suspend() {
                    running.suspension = Suspension::None;
                }
            }
            Suspension::Suspended => {
                running.suspension = Suspension::None;
                running.seen_at = Instant::now();
                self.slots.work.push(SlotTurn::GoOn(attempt, running.progress.clone()), false);
            }
        }
    }

    /// Handles an attempt that could not leave its slot, for lack of room to wait.
    pub(super) fn not_suspended(&mut self, attempt: AttemptId) {
        let Some(running) = self.running.get_mut(&attempt) else { return };
        tracing::debug!(%attempt, "not suspended: there is no room for what it holds");
        running.suspension = Suspension::None;
        self.send(&WorkerFrame::NotSuspended { attempt });
    }

    pub(super) fn suspended(&mut self, attempt: AttemptId, written: u64) {
        // With one slot, later output is not its own.
        let writer = (self.config.settings.slots.total() == 1).then_some(attempt).or_else(|| self.alone());
        self.forward_output(writer, written);
        let Some(running) = self.running.get_mut(&attempt) else { return };
        running.suspension = Suspension::Suspended;
        self.send(&WorkerFrame::Suspended { attempt });
    }
}
