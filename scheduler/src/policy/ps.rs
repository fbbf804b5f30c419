//! Processor sharing: the jobs share a station equally; in a variant only the k oldest share the maps.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, sections 2.2
//! and 5.1. Rule: the k oldest jobs with maps left share the map station by weight. All jobs share the
//! shuffle by weight. Capacity that a job cannot use goes to the others (max-min). `ps` has no k. With k = 1
//! it is the FIFO map with shared shuffle by which the paper models Hadoop (figure 4); `k-lps:k=100` is its
//! fair scheduler. Required: weights. Favours no size of jobs: the slowdown is nearly the same for all. Harms
//! the mean, since all jobs end late together. Parameters: `k`, jobs at the map at once, 100 by default.
//! Deviations: the paper leaves open what happens to a share that a job without data to shuffle cannot use.
//! Its numbers are reproduced if the share goes to other jobs, not if it is lost. Ready reduces are shared
//! like maps, by all jobs. Limits: unlike `fair`, which counts slots held by pools, it has no pools; in the
//! fluid model it is exact.

use crate::catalogue::{Entry, Parameter};
use crate::plan::{Plan, Reason, Share};
use crate::policy::Ranked;
use crate::policy::interface::Policy;
use crate::policy::ordered::can;
use crate::station::PerStation;
use crate::view::{Change, Handle, Station, View};

/// Catalogue entries of the policies.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[
    Entry {
        paper: "overlap 5.1",
        ..Entry::new("ps", "all jobs share both stations equally, by weight", |_| Ok(Box::new(Ps::sharing())))
    },
    Entry {
        paper: "overlap 5.1",
        parameters: &[Parameter { name: "k", default: "100", meaning: "jobs at the map at once" }],
        ..Entry::new("k-lps", "the k oldest jobs share the maps, all share the shuffle", |arguments| {
            let k = arguments.value("k", 100_u32, "a whole number above 0", |k| 0 < k)?;
            Ok(Box::new(Ps::limited("k-lps", k)))
        })
    },
    Entry {
        paper: "overlap 2.2, figure 4",
        ..Entry::new(
            "map-fifo-shuffle-ps",
            "maps in the order of arrival, the shuffle shared equally",
            |_| Ok(Box::new(Ps::limited("map-fifo-shuffle-ps", 1))),
        )
    },
];

/// Processor sharing, with a limit at the map.
#[derive(Debug)]
pub struct Ps {
    name: &'static str,
    /// Number of jobs at the map at once; `None` is no limit.
    limit: Option<u32>,
    /// Jobs that can use each station, by seq.
    waiting: PerStation<Ranked<u64, Handle>>,
    /// Membership of each job in `waiting`, by handle: most changes leave it unchanged.
    listed: Vec<PerStation<bool>>,
    /// Kept only to reuse its memory.
    fed: Vec<Handle>,
}

impl Ps {
    /// Creates sharing by all jobs at all stations.
    #[must_use]
    pub fn sharing() -> Self {
        let waiting = PerStation::by(|_| Ranked::new());
        Self { name: "ps", limit: None, waiting, listed: Vec::new(), fed: Vec::new() }
    }

    fn limited(name: &'static str, limit: u32) -> Self {
        Self { name, limit: Some(limit), ..Self::sharing() }
    }

    fn list(&mut self, job: Handle, seq: u64, wants: PerStation<bool>) {
        if self.listed.len() <= job.index() {
            self.listed.resize(job.index() + 1, PerStation::default());
        }
        for ((set, listed), wants) in
            self.waiting.iter_mut().zip(self.listed[job.index()].iter_mut()).zip(wants)
        {
            if *listed != wants {
                *listed = wants;
                set.place(job, wants.then_some(seq));
            }
        }
    }
}

impl Policy for Ps {
    fn name(&self) -> &'static str {
        self.name
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Left(job) = change {
            self.list(job, 0, PerStation::default());
        }
        for &job in view.touched {
            let row = view.row(job);
            self.list(job, row.seq, row.can.map(|can| 0.0 < can));
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let PerStation([maps, fetching, reduces]) = &self.waiting;
        let share = |job: Handle| Share::Weight(view.row(job).weight);
        let reason = Reason::Own("an equal share");
        self.fed.clear();
        if 0.0 < plan.remaining(Station::Reduce) {
            for job in reduces.iter() {
                plan.grant(job, Station::Reduce, share(job), reason);
            }
        }
        if 0.0 < plan.remaining(Station::Map) {
            for job in maps.iter().take(self.limit.map_or(usize::MAX, |limit| limit as usize)) {
                plan.grant(job, Station::Map, share(job), reason);
                // The amount is known only when the tier closes, but it is above 0.
                if plan.feeds() && !can(view, job, Station::Shuffle) {
                    self.fed.push(job);
                }
            }
        }
        for job in fetching.iter() {
            if !plan.grant(job, Station::Shuffle, share(job), reason) {
                break;
            }
        }
        for &job in &self.fed {
            plan.grant(job, Station::Shuffle, share(job), reason);
        }
    }
}
