//! Handles events of slots, and sends the resulting frames to the master.

use super::attempts::Suspension;
use super::{Agent, delete};
use crate::agent::assignment::{Done, EndedAttempt, SlotEvent};
use crate::attempt::Division;
use crate::protocol::{AttemptReport, FailureClass, WorkerFrame};
use crate::shuffle::store::DiscardedData;
use gristmill_scheduler::ids::{AttemptId, TaskKind};
use std::sync::Arc;

/// Maximum number of events of slots that are handled in one turn of the loop.
const SLOT_EVENTS_MAX: usize = 256;

impl Agent {
    /// Handles the events that slots have sent meanwhile.
    pub(super) fn drain_slot_events(&mut self) {
        for _ in 0..SLOT_EVENTS_MAX {
            let Ok(event) = self.slots.events.try_recv() else { return };
            self.handle_slot_event(event);
        }
    }

    fn slot_broke(&mut self, attempt: Option<AttemptId>, message: &str) {
        tracing::error!(?attempt, message, "the thread of a slot has died; ending this process");
        self.broken = true;
        if let Some(attempt) = attempt.filter(|attempt| self.running.remove(attempt).is_some()) {
            self.refuse(attempt, FailureClass::Engine, message);
        }
    }

    pub(super) fn handle_slot_event(&mut self, event: SlotEvent) {
        let ended = match event {
            SlotEvent::WantsCommit(attempt) => {
                if let Some(running) = self.running.get_mut(&attempt) {
                    running.built = true;
                }
                return self.send(&WorkerFrame::CommitRequest { attempt });
            }
            SlotEvent::Suspended { attempt, written } => return self.suspended(attempt, written),
            SlotEvent::NotSuspended(attempt) => return self.not_suspended(attempt),
            SlotEvent::Divided { attempt, division } => {
                return self.send(&match division {
                    Some(Division::Bytes(kept)) => WorkerFrame::Divided { attempt, kept },
                    Some(Division::Key { key, kept, given }) => {
                        WorkerFrame::ReduceDivided { attempt, key, left: [kept, given] }
                    }
                    None => WorkerFrame::NotDivided { attempt },
                });
            }
            SlotEvent::Broken { attempt, message } => return self.slot_broke(attempt, &message),
            SlotEvent::Ended(ended) => ended,
        };
        let EndedAttempt { attempt, result, report, written } = *ended;
        // With one slot, all output up to its end is this attempt's, if it had the slot.
        let had_slot =
            self.running.get(&attempt).is_some_and(|running| running.suspension != Suspension::Suspended);
        let writer =
            (had_slot && self.config.settings.slots.total() == 1).then_some(attempt).or_else(|| self.alone());
        self.forward_output(writer, written);
        let killed = self.running.remove(&attempt).is_some_and(|running| running.killed_at.is_some());
        match result {
            Ok(Done::Output(output)) if killed => {
                delete(DiscardedData::new(output));
                self.refuse(attempt, FailureClass::Cancelled, "it was told to stop just before it ended");
            }
            Ok(Done::Output(output)) => {
                let report = AttemptReport { bytes_out: output.bytes(), ..report };
                let fingerprint = output.fingerprint();
                // Keeps fetch nothing of an empty output, so nothing is stored.
                if 0 < report.bytes_out {
                    delete(self.store.put_output(attempt, Arc::new(output)));
                }
                self.send(&WorkerFrame::MapFinished { attempt, fingerprint, report });
            }
            Ok(Done::Part { part, stamp, sent: _ }) => {
                if attempt.task.kind == TaskKind::Reduce {
                    delete(self.store.unhome(attempt.task.job, attempt.task.index));
                }
                self.send(&WorkerFrame::PartFinished { attempt, part, stamp, report });
            }
            Err(failed) => {
                let (class, message) = (failed.class, failed.message);
                self.send(&WorkerFrame::AttemptFailed { attempt, class, message, report });
            }
        }
    }
}
