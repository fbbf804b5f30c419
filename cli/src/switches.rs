//! Switches by which a process is asked to end, turned by signals or by its parent.

use gristmill_worker::agent::EndRequests;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Effect of the first Ctrl-C or SIGTERM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FirstSignal {
    /// The process ends at once.
    Ends,
    /// The process leaves in good order; the second signal ends it.
    Leaves,
}

/// Requests to end this process, and their origin.
#[derive(Clone)]
pub struct Switches {
    leave: watch::Sender<bool>,
    end: watch::Sender<bool>,
    /// True if its parent has requested it.
    by_parent: Arc<AtomicBool>,
    /// True if its parent has died without a request.
    orphaned: Arc<AtomicBool>,
}

impl Switches {
    /// Returns switches that are off, and the requests that they make.
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

    /// True if the parent, dead or alive, is the reason to end.
    pub fn is_by_parent(&self) -> bool {
        self.by_parent.load(Ordering::Relaxed) || self.is_orphaned()
    }

    /// True if its parent has died without a request.
    pub fn is_orphaned(&self) -> bool {
        self.orphaned.load(Ordering::Relaxed)
    }

    /// Handles the death of the parent.
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
