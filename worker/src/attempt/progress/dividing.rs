//! Orders to a running attempt to give up the end of its input, and its responses.

use super::{DIVIDE, Progress};
use crate::input::KeptPart;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Division of the input of a running attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Division {
    /// A map keeps this many bytes of its split, from its start on.
    Bytes(u64),
    /// A reduce keeps the keys before `key`. `kept` and `given` are the estimated bytes of keys and values that are not
    /// read yet, before and from this key on.
    Key { key: Vec<u8>, kept: u64, given: u64 },
}

/// Receives the division of an attempt's input; `None` if the attempt cannot give up any. Called on its thread.
pub(crate) type DivisionReport = Box<dyn Fn(Option<Division>) + Send + Sync>;

/// Order to divide the input of an attempt. It is in force while [`DIVIDE`] is set.
#[derive(Default)]
pub(super) struct DivisionOrder {
    at_once: AtomicBool,
    report: Option<DivisionReport>,
}

impl fmt::Debug for DivisionOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DivisionOrder").field("at_once", &self.at_once).finish_non_exhaustive()
    }
}

impl Progress {
    /// Sets the receiver of responses. Without one the attempt ignores orders to divide its input.
    pub(crate) fn reporting_divisions(mut self, report: Option<DivisionReport>) -> Self {
        self.division.report = report;
        self
    }

    /// Orders the attempt to give up about half of what it has left to read, with its next block or group; all of it, if
    /// at once.
    pub(crate) fn order_division(&self, at_once: bool) {
        if self.division.report.is_some() {
            self.division.at_once.store(at_once, Relaxed);
            self.signals.fetch_or(DIVIDE, Relaxed);
        }
    }

    /// Returns the part of its remaining input that the attempt has to keep: `None` without an order. The order stays
    /// until the response.
    pub(crate) fn part_to_keep(&self) -> Option<KeptPart> {
        let ordered = self.signals.load(Relaxed) & DIVIDE != 0;
        let at_once = self.division.at_once.load(Relaxed);
        ordered.then_some(if at_once { KeptPart::Least } else { KeptPart::Half })
    }

    /// Reports the division of the attempt's input; `None` if it keeps all.
    pub(crate) fn divided(&self, division: Option<Division>) {
        self.signals.fetch_and(!DIVIDE, Relaxed);
        if let Some(report) = &self.division.report {
            report(division);
        }
    }
}
