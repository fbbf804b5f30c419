//! Fair sojourn protocol: jobs in the order in which equal sharing would end them.
//!
//! Papers: Friedman and Henderson, *Fairness and Efficiency in Web Server Protocols* (SIGMETRICS 2003); Pastorelli et al.,
//! *HFSP: Size-based Scheduling for Hadoop* (IEEE BigData 2013), which is the same for MapReduce with estimated sizes. Rule:
//! a virtual run shares the cluster equally among its jobs; the job that ends first there comes first here, late ones by the
//! same order. With exact sizes on one interruptible server no job ends later than by equal sharing.
//! Required: work of every job at map and reduce. Favours short jobs, and starves none. Harms no job by more than errors of
//! sizes: a job that is much larger than estimated holds the cluster until its end.
//! Parameters: `preemptive` (no): allows suspending running reduces.
//! Deviations: many slots, tasks that are not interrupted; a job's seconds are those with every slot to itself, where HFSP
//! shares slots up to what each job can use; it has no training phase, which the estimator replaces. The shuffle follows the
//! same order.

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason, order_of};
use crate::policy::asrpt::PREEMPTIVE;
use crate::policy::fair_run::FairRun;
use crate::policy::interface::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule, turn};
use crate::station::Station;
use crate::view::{Change, View};

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "Friedman and Henderson 2003; HFSP",
    parameters: &[PREEMPTIVE],
    aliases: &["hfsp"],
    ..Entry::new("fsp", "by their end under equal sharing, the earliest first", |arguments| {
        // Nothing is ever due.
        let (preemptive, run) = (arguments.flag("preemptive")?, FairRun::new(f64::MAX));
        Ok(Box::new(FairSojourn { preemptive, run, jobs: Ordered::default() }))
    })
}];

/// Jobs by their end in the virtual run, then age.
#[derive(Debug)]
struct FairSojourn {
    preemptive: bool,
    run: FairRun,
    jobs: Ordered<(u64, u64)>,
}

impl Policy for FairSojourn {
    fn name(&self) -> &'static str {
        "fsp"
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn preempts(&self) -> bool {
        self.preemptive
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        let whole = |job| view.time_whole(job, Station::Map) + view.time_whole(job, Station::Reduce);
        self.run.advance(view.now);
        if let Change::Left(job) = change {
            self.run.leave(view.row(job).seq, (!view.row(job).abandoned).then(|| whole(job)));
        }
        for &job in view.touched {
            let row = view.row(job);
            self.run.place(row.seq, (job, row.arrival), whole(job));
        }
        let run = &self.run;
        self.jobs.observe(view, change, |view, job| {
            let row = view.row(job);
            (order_of(run.tag(row.seq)), turn(row))
        });
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let run = &self.run;
        let reason = |view: View<'_>, job| Reason::Smallest {
            what: "end under equal sharing",
            value: run.tag(view.row(job).seq),
            unit: "seconds of virtual time",
        };
        self.jobs.plan(view, plan, ShuffleRule::All, reason);
    }
}
