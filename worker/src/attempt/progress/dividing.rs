//! Orders to a map attempt to give up the end of its split, and its responses.

use super::Progress;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Receives the bytes of its split that an attempt keeps; `None` if it cannot give up any. Called on its thread.
pub(crate) type DivisionReport = Box<dyn Fn(Option<u64>) + Send + Sync>;

/// Order to divide a split.
#[derive(Default)]
pub(super) struct DivisionOrder {
    ordered: AtomicBool,
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

    /// Orders the attempt to give up about half of what it has left to read, with its next block.
    pub(crate) fn order_division(&self) {
        self.division.ordered.store(true, Relaxed);
    }

    /// True if the attempt has to divide its split. The order stays until the response.
    pub(crate) fn is_to_divide(&self) -> bool {
        self.division.ordered.load(Relaxed) && self.division.report.is_some()
    }

    /// Reports the bytes of its split that the attempt keeps; `None` if it keeps all.
    pub(crate) fn divided(&self, kept: Option<u64>) {
        self.division.ordered.store(false, Relaxed);
        if let Some(report) = &self.division.report {
            report(kept);
        }
    }
}
