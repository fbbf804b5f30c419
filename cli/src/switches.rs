//! Switches that ask a process to end, and their sources: a user's signals, or the process's parent.

use gristmill_worker::agent::EndRequests;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Effect of the first Ctrl-C or SIGTERM on a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FirstSignal {
    /// It ends at once.
    Ends,
    /// It leaves in good order; the second signal ends it.
    Leaves,
}

/// Switches that ask this process to end, by source.
#[derive(Clone)]
pub struct Switches {
    leave: watch::Sender<bool>,
    end: watch::Sender<bool>,
    /// Its parent has asked for it.
    by_parent: Arc<AtomicBool>,
    /// Its parent has died without notice, or the kernel reports so.
    orphaned: Arc<AtomicBool>,
}

impl Switches {
    /// Returns switches that are not set, and the requests that they make.
    pub fn new() -> (Self, EndRequests) {
        let ((leave, leaving), (end, ending)) = (watch::channel(false), watch::channel(false));
        let switches = Self { leave, end, by_parent: Arc::default(), orphaned: Arc::default() };
        (switches, EndRequests { leave: leaving, end: ending })
    }

    /// Handles Ctrl-C or SIGTERM.
    pub fn signalled(&self, first: FirstSignal) {
        if first == FirstSignal::Ends || self.leave.send_replace(true) {
            self.end.send_replace(true);
        }
    }

    /// True if its parent, dead or alive, is the reason for its end.
    pub fn is_by_parent(&self) -> bool {
        self.by_parent.load(Ordering::Relaxed) || self.is_orphaned()
    }

    /// True if its parent has died without notice.
    pub fn is_orphaned(&self) -> bool {
        self.orphaned.load(Ordering::Relaxed)
    }

    /// Handles the death of the parent without notice.
    pub fn lose_parent(&self) {
        self.orphaned.store(true, Ordering::Relaxed);
        self.end.send_replace(true);
    }

    /// Handles the parent's request to leave in good order.
    pub fn leave(&self) {
        self.by_parent.store(true, Ordering::Relaxed);
        self.leave.send_replace(true);
    }

    /// Handles the parent's request to end at once.
    pub fn end(&self) {
        self.by_parent.store(true, Ordering::Relaxed);
        self.end.send_replace(true);
    }
}
