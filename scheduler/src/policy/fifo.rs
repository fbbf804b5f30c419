//! First in, first out.
//!
//! Paper: the baseline of all five; Hadoop's default since the first release. Rule: jobs of higher priority first, those
//! of the same in the order of arrival; each takes all it can use; within a job ready reduces go before maps.
//! It favours long jobs that came early and harms short ones behind them.
//! Deviations: the priority, which is 0 unless a submitter says otherwise, as in Hadoop. As reduces take their slot only when their input is complete, a younger job's maps fill
//! the slots that an older job cannot use yet.
//! Parameters: none.
//! It is not: a strict queue; it never leaves a slot idle to keep the order.

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason};
use crate::policy::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule};
use crate::view::{Change, View};
use std::cmp::Reverse;

/// How it is called.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    name: "fifo",
    aliases: &["fcfs"],
    paper: "baseline of all five papers",
    summary: "jobs in the order of arrival, those of higher priority first",
    parameters: &[],
    only_simulated: None,
    make: |_| Ok(Box::new(Fifo::new())),
}];

/// Jobs in the order of arrival.
#[derive(Debug, Default)]
pub struct Fifo {
    /// By priority, then seq.
    jobs: Ordered<(Reverse<i32>, u64)>,
}

impl Fifo {
    /// A policy that knows no job yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        self.jobs.observe(view, change, |view, job| {
            let row = view.row(job);
            (Reverse(row.priority), row.seq)
        });
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        self.jobs.plan(view, plan, ShuffleRule::All, |_, _| Reason::Oldest);
    }
}

#[cfg(test)]
mod tests;
