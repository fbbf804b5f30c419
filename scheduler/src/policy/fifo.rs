//! First in, first out.
//!
//! Paper: the baseline of all five; Hadoop's default since the first release. Rule: jobs of higher priority first,
//! those of equal priority in the order of arrival; each takes all it can use; within a job ready reduces go before
//! maps.
//! Favours long jobs that arrived early and harms short ones behind them.
//! Deviations: the priority, which is 0 unless set by the submitter, as in Hadoop. Reduces take their slot only when
//! their input is complete, so a younger job's maps fill the slots that an older job cannot use yet.
//! Parameters: none.
//! Limits: it is not a strict queue; it never leaves a slot idle to keep the order.

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason};
use crate::policy::interface::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule};
use crate::view::{Change, View};
use std::cmp::Reverse;

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    aliases: &["fcfs"],
    paper: "baseline of all five papers",
    ..Entry::new("fifo", "jobs in the order of arrival, those of higher priority first", |_| {
        Ok(Box::new(Fifo::new()))
    })
}];

/// Jobs in the order of arrival.
#[derive(Debug, Default)]
pub struct Fifo {
    /// Jobs by priority, then seq.
    jobs: Ordered<(Reverse<i32>, u64)>,
}

impl Fifo {
    /// Creates a policy without jobs.
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
mod tests {
    use super::*;
    use crate::plan::tests::Counts;
    use crate::view::Row;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fifo_serves_an_older_job_fully_and_its_reduces_first(
            free in 0..30_u32,
            wants in prop::collection::vec((0..8_u32, 0..8_u32), 1..10),
        ) {
            let wants: Vec<[u32; 3]> = wants.iter().map(|&(maps, reduces)| [maps, 0, reduces]).collect();
            let row = |seq| Row { seq, weight: 1.0, live: true, ..Row::default() };
            // The handles are in reverse order of arrival.
            let mut rows: Vec<Row> = (0..wants.len() as u64).rev().map(row).collect();
            let mut floor = Counts::unified(free, wants.clone());
            floor.plan(&mut Fifo::new(), &mut rows);
            let mut left = free;
            for job in (0..wants.len()).rev() {
                let reduces = wants[job][2].min(left);
                let maps = wants[job][0].min(left - reduces);
                prop_assert_eq!(floor.held[job], [maps, 0, reduces]);
                left -= reduces + maps;
            }
        }
    }

    #[test]
    fn fifo_puts_higher_priority_first_and_age_decides_among_equals() {
        let row =
            |(seq, priority): (u64, i32)| Row { seq, priority, weight: 1.0, live: true, ..Row::default() };
        let mut rows: Vec<Row> = (0..).zip([0, -1, 2, 0, 2]).map(row).collect();
        for (free, expected) in
            [(1, [0, 0, 1, 0, 0]), (3, [1, 0, 1, 0, 1]), (4, [1, 0, 1, 1, 1]), (5, [1; 5])]
        {
            let mut floor = Counts::unified(free, vec![[1, 0, 0]; 5]);
            floor.plan(&mut Fifo::new(), &mut rows);
            assert_eq!(floor.totals(), expected, "{free} slots");
        }
    }
}
