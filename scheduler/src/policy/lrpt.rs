//! Longest remaining processing time first.
//!
//! Paper: ASRPT, section VII A, as an example of a bad work-conserving scheduler.
//! Rule: jobs by their work left at map and reduce together, largest first; each takes all it can use. Ties: the older.
//! Required: the work left of every job, in slot-seconds. Live it comes from the estimator.
//! Favours the largest jobs and harms all others: they wait until the large ones have become as small.
//! Deviations: none in the slotted model. Live, running maps keep their slots, the whole work of a reduce counts as
//! left until it is done, and the shuffle follows the same order.
//! Parameters: `preemptive` (no): allows suspending running reduces, as in the paper's preemptive scenario. Of jobs
//! with equal work left, one with running reduces then goes first.
//! Limits: it is useful for comparison only.

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason, order_of};
use crate::policy::asrpt::PREEMPTIVE;
use crate::policy::interface::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule, turn};
use crate::policy::srpt::{WorkKey, work_left};
use crate::view::{Change, View};

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "ASRPT VII",
    parameters: &[PREEMPTIVE],
    ..Entry::new(
        "lrpt",
        "most work left first; shows how badly a work-conserving policy can do",
        |arguments| Ok(Box::new(Lrpt::new(arguments.flag("preemptive")?))),
    )
}];

/// Jobs by their work left, largest first.
#[derive(Debug, Default)]
pub struct Lrpt {
    preemptive: bool,
    jobs: Ordered<WorkKey>,
}

impl Lrpt {
    /// Creates a policy without jobs.
    #[must_use]
    pub fn new(preemptive: bool) -> Self {
        Self { preemptive, ..Self::default() }
    }
}

impl Policy for Lrpt {
    fn name(&self) -> &'static str {
        "lrpt"
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn preempts(&self) -> bool {
        self.preemptive
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        self.jobs.observe(view, change, |view, job| {
            let row = view.row(job);
            (u64::MAX - order_of(work_left(row)), turn(row))
        });
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        self.jobs.plan(view, plan, ShuffleRule::All, |view, job| Reason::Largest {
            what: "work left",
            value: work_left(view.row(job)),
            unit: "slot-seconds",
        });
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
        fn lrpt_serves_the_job_with_most_work_left_fully_before_the_next_and_the_older_of_equals(
            free in 0..30_u32,
            jobs in prop::collection::vec((0..8_u32, 0..8_u32, 0..4_u32), 1..10),
        ) {
            let wants: Vec<[u32; 3]> = jobs.iter().map(|&(maps, reduces, _)| [maps, 0, reduces]).collect();
            let row = |(seq, &(_, _, left)): (usize, &(u32, u32, u32))| {
                // The order depends on the work left at map and reduce together, not on what could start now.
                let left = [f64::from(left), 100.0, f64::from(left % 2)];
                Row { seq: seq as u64, weight: 1.0, live: true, left: left.into(), ..Row::default() }
            };
            let mut rows: Vec<Row> = jobs.iter().enumerate().map(row).collect();
            let mut order: Vec<usize> = (0..jobs.len()).collect();
            order.sort_by(|&a, &b| work_left(&rows[b]).total_cmp(&work_left(&rows[a])).then(a.cmp(&b)));
            let mut floor = Counts::unified(free, wants.clone());
            floor.plan(&mut Lrpt::default(), &mut rows);
            let mut left = free;
            for job in order {
                let demand = (wants[job][0] + wants[job][2]).min(left);
                prop_assert_eq!(floor.totals()[job], demand);
                left -= demand;
            }
        }
    }
}
