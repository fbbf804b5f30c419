//! The switches by which a process is asked to go, and who turned them: a person's signals, or whoever started it.

use gristmill_worker::agent::EndRequests;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// What the first Ctrl-C or SIGTERM asks of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FirstSignal {
    /// To end at once.
    Ends,
    /// To leave in good order; the second ends it.
    Leaves,
}

/// Who asks this process to go, and how.
#[derive(Clone)]
pub struct Switches {
    leave: watch::Sender<bool>,
    end: watch::Sender<bool>,
    /// Its parent has said so.
    by_parent: Arc<AtomicBool>,
    /// Its parent has died without a word, or the kernel says so.
    orphaned: Arc<AtomicBool>,
}

impl Switches {
    /// Switches that nobody has turned yet, and what they ask.
    pub fn new() -> (Self, EndRequests) {
        let ((leave, leaving), (end, ending)) = (watch::channel(false), watch::channel(false));
        let switches = Self { leave, end, by_parent: Arc::default(), orphaned: Arc::default() };
        (switches, EndRequests { leave: leaving, end: ending })
    }

    /// Somebody has sent Ctrl-C or SIGTERM.
    pub fn signalled(&self, first: FirstSignal) {
        if first == FirstSignal::Ends || self.leave.send_replace(true) {
            self.end.send_replace(true);
        }
    }

    /// Whether its parent, dead or alive, has this process go.
    pub fn is_by_parent(&self) -> bool {
        self.by_parent.load(Ordering::Relaxed) || self.is_orphaned()
    }

    /// Whether its parent has died without a word.
    pub fn is_orphaned(&self) -> bool {
        self.orphaned.load(Ordering::Relaxed)
    }

    /// Whoever started this process is gone without a word.
    pub fn lose_parent(&self) {
        self.orphaned.store(true, Ordering::Relaxed);
        self.end.send_replace(true);
    }

    /// Whoever started this process wants it to leave in good order.
    pub fn leave(&self) {
        self.by_parent.store(true, Ordering::Relaxed);
        self.leave.send_replace(true);
    }

    /// Whoever started this process wants it to end at once.
    pub fn end(&self) {
        self.by_parent.store(true, Ordering::Relaxed);
        self.end.send_replace(true);
    }
}
