//! Queue of work for the slots of a worker.
//!
//! Slots take work themselves, so that the next attempt starts without the control loop. The loop may
//! remove work that has not started. Maps and reduces are in one queue, or in two if they have slots of
//! their own. An attempt that ran out of memory before needs all slots: it starts when none is busy, and
//! none takes work until it has ended.

use super::assignment::Assignment;
use crate::protocol::Slots;
use crate::task::Progress;
use gristmill_scheduler::ids::{AttemptId, TaskKind};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Next work of a slot.
pub(super) enum SlotTurn {
    /// Start an attempt.
    Begin(Box<Assignment>),
    /// Resume a suspended attempt, by leaving the slot to its thread.
    GoOn(AttemptId, Arc<Progress>),
}

impl SlotTurn {
    fn attempt(&self) -> AttemptId {
        match self {
            SlotTurn::Begin(assignment) => assignment.attempt,
            SlotTurn::GoOn(attempt, _) => *attempt,
        }
    }
}

/// Waiting work.
struct WaitingWork {
    turn: SlotTurn,
    /// True if nothing else may run meanwhile.
    alone: bool,
}

/// Queues by pool. Unified slots use the first.
#[derive(Default)]
struct WorkQueues {
    waiting: [VecDeque<WaitingWork>; 2],
    /// Slots that have taken work and have not returned.
    busy: BTreeSet<u32>,
    /// Busy slot whose attempt must run alone.
    alone: Option<u32>,
    closed: bool,
}

impl WorkQueues {
    /// True if the next work of a queue must run alone.
    fn awaits_solitude(&self) -> bool {
        self.waiting.iter().any(|line| line.front().is_some_and(|next| next.alone))
    }

    /// Takes work for this slot of that pool. Work that must run alone starts when nothing runs. Until
    /// then nothing else starts, so that it is not starved.
    fn take(&mut self, slot: u32, pool: usize) -> Option<SlotTurn> {
        let alone = self.waiting[pool].front()?.alone;
        if self.alone.is_some() || self.awaits_solitude() && !(alone && self.busy.is_empty()) {
            return None;
        }
        let next = self.waiting[pool].pop_front()?;
        self.busy.insert(slot);
        self.alone = alone.then_some(slot);
        Some(next.turn)
    }

    /// Handles the return of this slot. Returns true if slots that waited for it may continue.
    fn come_back(&mut self, slot: u32) -> bool {
        self.busy.remove(&slot);
        self.alone.take_if(|alone| *alone == slot).is_some() || self.awaits_solitude()
    }
}

struct SharedWork {
    slots: Slots,
    lines: Mutex<WorkQueues>,
    /// Notifies the slots of each pool.
    changed: [Condvar; 2],
}

/// Queues of the slots, which are numbered from 0, those for maps first. Clones share them.
#[derive(Clone)]
pub(super) struct SlotWork(Arc<SharedWork>);

impl SlotWork {
    /// Creates empty queues.
    pub(super) fn new(slots: Slots) -> Self {
        Self(Arc::new(SharedWork { slots, lines: Mutex::default(), changed: Default::default() }))
    }

    fn lines(&self) -> MutexGuard<'_, WorkQueues> {
        // No code under the lock leaves a queue in an inconsistent state.
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pool_of_kind(&self, kind: TaskKind) -> usize {
        match (self.0.slots, kind) {
            (Slots::Pools { .. }, TaskKind::Reduce) => 1,
            _ => 0,
        }
    }

    fn pool_of_slot(&self, slot: u32) -> usize {
        match self.0.slots {
            Slots::Pools { map, .. } if map <= slot => 1,
            _ => 0,
        }
    }

    /// Appends work, which may have to run alone.
    pub(super) fn push(&self, turn: SlotTurn, alone: bool) {
        let pool = self.pool_of_kind(turn.attempt().task.kind);
        self.lines().waiting[pool].push_back(WaitingWork { turn, alone });
        self.0.changed[pool].notify_one();
    }

    fn notify_all(&self) {
        self.0.changed.iter().for_each(Condvar::notify_all);
    }

    /// Waits for the next work of this slot; `None` once the queues are closed.
    pub(super) fn next(&self, slot: u32) -> Option<SlotTurn> {
        let pool = self.pool_of_slot(slot);
        let mut lines = self.lines();
        if lines.come_back(slot) {
            self.notify_all();
        }
        loop {
            if lines.closed {
                return None;
            }
            if let Some(next) = lines.take(slot, pool) {
                return Some(next);
            }
            lines = self.0.changed[pool].wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn remove(&self, wanted: impl Fn(&SlotTurn) -> bool) -> Option<SlotTurn> {
        let removed = self.lines().waiting.iter_mut().find_map(|line| {
            let place = line.iter().position(|waiting| wanted(&waiting.turn))?;
            line.remove(place)
        })?;
        if removed.alone {
            self.notify_all();
        }
        Some(removed.turn)
    }

    /// Removes an attempt that has not started. Returns true if it was queued.
    pub(super) fn withdraw(&self, attempt: AttemptId) -> bool {
        self.remove(|turn| matches!(turn, SlotTurn::Begin(assignment) if assignment.attempt == attempt))
            .is_some()
    }

    /// Removes a suspended attempt that was to resume. Returns true if it was queued.
    pub(super) fn withdraw_suspended(&self, attempt: AttemptId) -> bool {
        self.remove(|turn| matches!(turn, SlotTurn::GoOn(waiting, _) if *waiting == attempt)).is_some()
    }

    /// Returns the attempts that no slot has taken yet.
    pub(super) fn waiting(&self) -> Vec<AttemptId> {
        self.lines().waiting.iter().flatten().map(|waiting| waiting.turn.attempt()).collect()
    }

    /// Closes the queues: slots take no more work and end.
    pub(super) fn close(&self) {
        self.lines().closed = true;
        self.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::{JobId, TaskId};

    fn go_on(kind: TaskKind, index: u32) -> (AttemptId, SlotTurn) {
        let task = match kind {
            TaskKind::Map => TaskId::map(JobId(1), index),
            TaskKind::Reduce => TaskId::reduce(JobId(1), index),
        };
        let attempt = task.attempt(0);
        (attempt, SlotTurn::GoOn(attempt, Arc::default()))
    }

    #[test]
    fn slots_of_a_pool_take_only_what_is_of_their_kind() {
        let work = SlotWork::new(Slots::Pools { map: 2, reduce: 1 });
        let (reduce, turn) = go_on(TaskKind::Reduce, 0);
        work.push(turn, false);
        let (map, turn) = go_on(TaskKind::Map, 0);
        work.push(turn, false);
        assert_eq!(work.next(1).map(|turn| turn.attempt()), Some(map), "slots 0 and 1 are for maps");
        assert_eq!(work.next(2).map(|turn| turn.attempt()), Some(reduce));
        assert!(work.waiting().is_empty());
    }

    #[test]
    fn unified_slots_take_everything_in_the_order_in_which_it_came() {
        let work = SlotWork::new(Slots::Unified(2));
        let kinds = [TaskKind::Reduce, TaskKind::Map, TaskKind::Reduce];
        let pushed: Vec<AttemptId> = kinds
            .into_iter()
            .zip(0..)
            .map(|(kind, index)| {
                let (attempt, turn) = go_on(kind, index);
                work.push(turn, false);
                attempt
            })
            .collect();
        let taken: Vec<_> = (0..3).filter_map(|_| work.next(1)).map(|turn| turn.attempt()).collect();
        assert_eq!(taken, pushed);
    }

    #[test]
    fn a_suspended_attempt_can_be_taken_out_of_the_line_again() {
        let work = SlotWork::new(Slots::Unified(1));
        let (attempt, turn) = go_on(TaskKind::Reduce, 3);
        work.push(turn, false);
        assert!(!work.withdraw(attempt), "it has begun long ago");
        assert_eq!(work.waiting(), [attempt]);
        assert!(work.withdraw_suspended(attempt));
        assert!(!work.withdraw_suspended(attempt));
        work.close();
        assert!(work.next(0).is_none());
    }

    #[test]
    fn what_must_run_alone_starts_when_nothing_runs_and_nothing_starts_until_it_has_ended() {
        let work = SlotWork::new(Slots::Pools { map: 2, reduce: 1 });
        let push = |kind, index, alone| {
            let (attempt, turn) = go_on(kind, index);
            work.push(turn, alone);
            attempt
        };
        let take = |slot: u32, pool| work.lines().take(slot, pool).map(|turn| turn.attempt());
        let back = |slot| work.lines().come_back(slot);
        let first = push(TaskKind::Map, 0, false);
        assert_eq!(take(0, 0), Some(first));
        let alone = push(TaskKind::Map, 1, true);
        let reduce = push(TaskKind::Reduce, 0, false);
        let last = push(TaskKind::Map, 2, false);
        assert_eq!((take(1, 0), take(2, 1)), (None, None), "slot 0 is busy");
        assert!(back(0), "others may go on");
        assert_eq!(take(2, 1), None, "another waits to be alone");
        assert_eq!(take(1, 0), Some(alone));
        assert_eq!((take(0, 0), take(2, 1)), (None, None), "it is to be alone");
        assert!(back(1));
        assert_eq!((take(0, 0), take(2, 1)), (Some(last), Some(reduce)));
        assert!(!back(0), "nothing has waited for that");
    }

    #[test]
    fn slots_go_on_when_what_was_to_run_alone_is_taken_out_of_the_line() {
        let work = SlotWork::new(Slots::Unified(2));
        let (first, turn) = go_on(TaskKind::Reduce, 0);
        work.push(turn, false);
        assert_eq!(work.next(0).map(|turn| turn.attempt()), Some(first));
        let (alone, turn) = go_on(TaskKind::Reduce, 1);
        work.push(turn, true);
        let (last, turn) = go_on(TaskKind::Reduce, 2);
        work.push(turn, false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| work.next(1).map(|turn| turn.attempt()));
            assert!(work.withdraw_suspended(alone));
            assert_eq!(waiting.join().unwrap(), Some(last));
        });
    }
}
