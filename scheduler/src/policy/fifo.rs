//! First in, first out.
//!
//! Paper: the baseline of all five; Hadoop's default since the first release. Rule: jobs in the order of
//! arrival, each takes all it can use; within a job ready reduces go before maps.
//! It favours long jobs that came early and harms short ones behind them.
//! Deviations: none; as reduces take their slot only when their input is complete, a younger job's maps fill
//! the slots that an older job cannot use yet.
//! Parameters: none.
//! It is not: a strict queue; it never leaves a slot idle to keep the order.

use crate::plan::{Plan, Reason, Share};
use crate::policy::{Policy, Ranked};
use crate::view::{Change, Handle, Station, View};

/// Jobs in the order of arrival.
#[derive(Debug, Default)]
pub struct Fifo {
    /// Jobs that can use a slot, by seq.
    hungry: Ranked<u64, Handle>,
    /// Jobs with segments to fetch, by seq.
    fetching: Ranked<u64, Handle>,
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
        if let Change::Left(job) = change {
            self.hungry.place(job, None);
            self.fetching.place(job, None);
        }
        for &job in view.touched {
            let row = view.row(job);
            let can = |station: Station| 0.0 < row.can[station.index()];
            self.hungry.place(job, (can(Station::Map) || can(Station::Reduce)).then_some(row.seq));
            self.fetching.place(job, can(Station::Shuffle).then_some(row.seq));
        }
    }

    fn plan(&mut self, _view: View<'_>, plan: &mut Plan<'_>) {
        for job in self.fetching.iter() {
            if !plan.grant(job, Station::Shuffle, Share::All, Reason::Oldest) {
                break;
            }
        }
        if plan.left(Station::Map) <= 0.0 && plan.left(Station::Reduce) <= 0.0 {
            return;
        }
        for job in self.hungry.iter() {
            plan.grant(job, Station::Reduce, Share::All, Reason::Oldest);
            plan.grant(job, Station::Map, Share::All, Reason::Oldest);
            if plan.left(Station::Map) <= 0.0 && plan.left(Station::Reduce) <= 0.0 {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;
