//! Preemptive shortest job first: by the size that a job had when it came, not by what is left of it.
//!
//! Paper: Harchol-Balter, *Performance Modeling and Design of Computer Systems*, chapter 32; Wierman, Harchol-Balter and
//! Osogami, *Nearly Insensitive Bounds on SMART Scheduling* (SIGMETRICS 2005). Rule: least total work at map and reduce
//! first; ties to the older. Its mean response time in an M/G/1 queue is at most 1.5 times that of `srpt`, and an error
//! of a size does not grow in importance as the job nears its end.
//! Required: the work of every job, in slot-seconds. Favours short jobs, harms long ones.
//! Parameters: `preemptive` (no): allows suspending running reduces.
//! Deviations: many slots and tasks that are not interrupted. An estimate that changes moves the job. The shuffle follows
//! the same order.

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason, order_of};
use crate::policy::asrpt::PREEMPTIVE;
use crate::policy::interface::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule, turn};
use crate::station::Station;
use crate::view::{Change, Row, View};

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "Harchol-Balter, chapter 32",
    parameters: &[PREEMPTIVE],
    ..Entry::new("psjf", "least total work first, of what a job had when it came", |arguments| {
        Ok(Box::new(Psjf { preemptive: arguments.flag("preemptive")?, jobs: Ordered::default() }))
    })
}];

fn size(row: &Row) -> f64 {
    row.whole[Station::Map] + row.whole[Station::Reduce]
}

/// Jobs by total work, then age.
#[derive(Debug)]
pub struct Psjf {
    preemptive: bool,
    jobs: Ordered<(u64, u64)>,
}

impl Policy for Psjf {
    fn name(&self) -> &'static str {
        "psjf"
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn preempts(&self) -> bool {
        self.preemptive
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        self.jobs.observe(view, change, |view, job| (order_of(size(view.row(job))), turn(view.row(job))));
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let reason = |view: View<'_>, job| Reason::Smallest {
            what: "total work",
            value: size(view.row(job)),
            unit: "slot-seconds",
        };
        self.jobs.plan(view, plan, ShuffleRule::All, reason);
    }
}
