//! Serves the job first that would end first with the whole cluster to itself.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, section 4.1,
//! Algorithm 1. Rule: each station serves the job with the smallest `L_i(t) = max(x_i(t), y_i(t))`; ties to
//! the older job. Here x and y are its map and shuffle work left in seconds of the whole station. It is
//! 2a/(1+a)-speed 1-competitive, where a is the largest imbalance `max(x/y, y/x)` of any job. If all jobs
//! arrive at once, it is within that factor of the optimum (Theorem 3, Corollary 4). Required: map and
//! shuffle work of every job. Favours jobs that are short in both. Harms long ones, and with unbalanced jobs
//! it leaves stations idle that `split-srpt` uses. Parameters: `shuffle=all` (as in the paper's section 5)
//! lets later jobs use the shuffle capacity that the first in order leaves. `shuffle=head` (sufficient for
//! section 4.1) gives the shuffle to the first alone, and then carries less load. Deviations: sizes are the
//! current ones, so a job can pass another even if all arrived at once, where the paper keeps the order by
//! `max(x, y)`. Ready reduces go first within their job. Limits: it is not the shortest remaining processing
//! time of the sum of both, which is `srpt`.

use crate::catalogue::{Entry, Parameter};
use crate::plan::{Plan, Reason, order_of};
use crate::policy::interface::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule};
use crate::view::{Change, Handle, Station, View};

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "overlap 4.1, Algorithm 1",
    parameters: &[Parameter {
        name: "shuffle",
        default: "all",
        meaning: "who may use the shuffle: `all` in order, or the `head` of the order alone",
    }],
    ..Entry::new("max-srpt", "smallest max(map work left, shuffle work left) first", |arguments| {
        let shuffle = [ShuffleRule::All, ShuffleRule::Head][arguments.choice("shuffle", &["all", "head"])?];
        Ok(Box::new(MaxSrpt { shuffle, ..MaxSrpt::new() }))
    })
}];

/// Jobs by the larger of their two remaining sizes.
#[derive(Debug)]
pub struct MaxSrpt {
    /// Jobs by remaining size, then seq.
    jobs: Ordered<(u64, u64)>,
    shuffle: ShuffleRule,
}

impl MaxSrpt {
    /// Creates the policy with a shuffle that serves all jobs in order.
    pub(crate) fn new() -> Self {
        Self { jobs: Ordered::default(), shuffle: ShuffleRule::All }
    }
}

fn remaining(view: View<'_>, job: Handle) -> f64 {
    view.time_left(job, Station::Map).max(view.time_left(job, Station::Shuffle))
}

impl Policy for MaxSrpt {
    fn name(&self) -> &'static str {
        "max-srpt"
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        self.jobs.observe(view, change, |view, job| (order_of(remaining(view, job)), view.row(job).seq));
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let reason = |view: View<'_>, job| Reason::Smallest {
            what: "time left",
            value: remaining(view, job),
            unit: "seconds, the longer of its maps and its shuffle",
        };
        self.jobs.plan(view, plan, self.shuffle, reason);
    }
}
