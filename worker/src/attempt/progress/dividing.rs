//! Orders to a map attempt to give up the end of its split, and its responses.

use super::Progress;
use crate::input::KeptPart;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Receives the bytes of its split that an attempt keeps; `None` if it cannot give up any. Called on its thread.
pub(crate) type DivisionReport = Box<dyn Fn(Option<u64>) + Send + Sync>;

/// Order to divide a split.
#[derive(Default)]
pub(super) struct DivisionOrder {
    ordered: AtomicBool,
    at_once: AtomicBool,
    report: Option<DivisionReport>,
}

impl fmt::Debug for DivisionOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DivisionOrder").field("ordered", &self.ordered).finish_non_exhaustive()
    }
}

impl Progress {
    /// Sets the receiver of responses. Without one the attempt ignores orders to divide its split.
    pub(crate) fn reporting_divisions(mut self, report: Option<DivisionReport>) -> Self {
        self.division.report = report;
        self
    }

    /// Orders the attempt to give up about half of what it has left to read, with its next block; all of it, if at once.
    pub(crate) fn order_division(&self, at_once: bool) {
        self.division.at_once.store(at_once, Relaxed);
        self.division.ordered.store(true, Relaxed);
    }

    /// Returns the part of its remaining input that the attempt has to keep: `None` without an order. The order stays
    /// until the response.
    pub(crate) fn part_to_keep(&self) -> Option<KeptPart> {
        let ordered = self.division.ordered.load(Relaxed) && self.division.report.is_some();
        let at_once = self.division.at_once.load(Relaxed);
        ordered.then_some(if at_once { KeptPart::Least } else { KeptPart::Half })
    }

    /// Reports the bytes of its split that the attempt keeps; `None` if it keeps all.
    pub(crate) fn divided(&self, kept: Option<u64>) {
        self.division.ordered.store(false, Relaxed);
        if let Some(report) = &self.division.report {
            report(kept);
        }
    }
}
