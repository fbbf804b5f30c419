//! The attempts of a worker that wait for a slot, in the order in which they will get one.
//!
//! Slots help themselves, so that the next attempt begins without the control loop; the loop may take one out
//! again that has not begun. Not here: how much may wait (the master decides).

use super::slots::Assignment;
use gristmill_scheduler::ids::AttemptId;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Line {
    waiting: VecDeque<Assignment>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    line: Mutex<Line>,
    changed: Condvar,
}

/// The line in front of the slots. Cloning shares it.
#[derive(Clone, Default)]
pub(super) struct Work(Arc<Shared>);

impl Work {
    fn line(&self) -> MutexGuard<'_, Line> {
        // Nothing that happens under the lock leaves the line half changed.
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an attempt.
    pub(super) fn push(&self, assignment: Assignment) {
        self.line().waiting.push_back(assignment);
        self.0.changed.notify_one();
    }

    /// The next attempt, when there is one; `None` once the line is closed.
    pub(super) fn next(&self) -> Option<Assignment> {
        let mut line = self.line();
        loop {
            if line.closed {
                return None;
            }
            if let Some(next) = line.waiting.pop_front() {
                return Some(next);
            }
            line = self.0.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes an attempt out that no slot has taken yet.
    pub(super) fn withdraw(&self, attempt: AttemptId) -> Option<Assignment> {
        let mut line = self.line();
        let place = line.waiting.iter().position(|assignment| assignment.attempt == attempt)?;
        line.waiting.remove(place)
    }

    /// The attempts that no slot has taken yet.
    pub(super) fn waiting(&self) -> Vec<AttemptId> {
        self.line().waiting.iter().map(|assignment| assignment.attempt).collect()
    }

    /// Slots take nothing more and end.
    pub(super) fn close(&self) {
        self.line().closed = true;
        self.0.changed.notify_all();
    }
}
