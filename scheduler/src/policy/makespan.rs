//! Shuffle-heavy jobs first, which ends a batch as early as possible.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, section 3.1.
//! Rule: jobs with `y_i >= x_i` before jobs with `y_i < x_i` at both stations, in the order of arrival within
//! each class. Here x and y are a job's whole map and shuffle work in seconds of the whole station. If all
//! jobs arrive at once, the last one ends at `max(sum x, sum y)`, which is optimal. Required: for each job,
//! if its shuffle is the larger part. Favours shuffle-heavy jobs and harms map-heavy ones, which may wait
//! forever while others arrive. Parameters: none. Deviations: sizes are updated whenever the estimate
//! changes. Ready reduces go first within their job. Limits: it does not aim at short response times; within
//! a class it is first in, first out.

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason};
use crate::policy::interface::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule};
use crate::view::{Change, Handle, Station, View};

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "overlap 3.1",
    ..Entry::new("makespan", "jobs that shuffle at least as long as they map first, else by arrival", |_| {
        Ok(Box::<Makespan>::default())
    })
}];

/// Shuffle-heavy jobs before map-heavy ones.
#[derive(Debug, Default)]
pub struct Makespan {
    /// Jobs by class (true if map-heavy), then seq.
    jobs: Ordered<(bool, u64)>,
}

fn is_map_heavy(view: View<'_>, job: Handle) -> bool {
    view.time_whole(job, Station::Shuffle) < view.time_whole(job, Station::Map)
}

impl Policy for Makespan {
    fn name(&self) -> &'static str {
        "makespan"
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        self.jobs.observe(view, change, |view, job| (is_map_heavy(view, job), view.row(job).seq));
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let reason = |view: View<'_>, job| match is_map_heavy(view, job) {
            false => Reason::Own("oldest job that shuffles at least as long as it maps"),
            true => Reason::Own("oldest job, and none that shuffles longer than it maps could use the slot"),
        };
        self.jobs.plan(view, plan, ShuffleRule::All, reason);
    }
}
