//! Shortest remaining processing time first, as if reduces did not have to wait for maps.
//!
//! Paper: ASRPT, section VI and Lemma 1. Rule: jobs by their work left at map and reduce together, smallest
//! first, ties to the older. Each takes all it can use, maps before reduces, both in the same slot. In the
//! slotted model without precedence and with preemption, its total flow time is a lower bound of that of
//! every schedule (`sim::slotted::lower_bound` computes the same in less time). Its virtual run controls
//! `asrpt` and `dsrpt`. Required: the work left of every job, in slot-seconds. Favours small jobs; large ones
//! wait while smaller ones arrive. Deviations: none. With precedence it is a feasible policy that starves
//! reduces in favour of smaller jobs' maps. Parameters: none. Limits: it is not meant for live use, since the
//! order that makes it a bound is not feasible with precedence.

pub(crate) mod virtual_list;

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason, Share, order_of};
use crate::policy::Ranked;
use crate::policy::interface::Policy;
use crate::view::{Change, Handle, Row, Station, View};

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "ASRPT VI, Lemma 1",
    only_simulated: Some(
        "it ignores that reduces wait for the maps of their job, so its schedule is a bound and not one that a \
         cluster can carry out; `asrpt` is its feasible form",
    ),
    ..Entry::new("srpt", "least work left first, as if reduces need not wait for maps: a lower bound", |_| {
        Ok(Box::<Srpt>::default())
    })
}];

/// Key of a job by work, lowest first, then by [`Row::seq`].
pub(super) type WorkKey = (u64, u64);

/// Work left of a job, in slot-seconds: maps and reduces.
pub(super) fn work_left(row: &Row) -> f64 {
    row.left[Station::Map] + row.left[Station::Reduce]
}

/// Jobs by their work left, smallest first.
#[derive(Debug, Default)]
pub struct Srpt {
    hungry: Ranked<WorkKey, Handle>,
}

impl Policy for Srpt {
    fn name(&self) -> &'static str {
        "srpt"
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Left(job) = change {
            self.hungry.place(job, None);
        }
        for &job in view.touched {
            let row = view.row(job);
            let hungry = 0.0 < row.can[Station::Map] + row.can[Station::Reduce];
            self.hungry.place(job, hungry.then(|| (order_of(work_left(row)), row.seq)));
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        for job in self.hungry.iter() {
            let value = work_left(view.row(job));
            let reason = Reason::Smallest { what: "work left", value, unit: "slot-seconds" };
            plan.grant(job, Station::Map, Share::All, reason);
            plan.grant(job, Station::Reduce, Share::All, reason);
            if plan.remaining(Station::Map) <= 0.0 && plan.remaining(Station::Reduce) <= 0.0 {
                break;
            }
        }
    }
}
