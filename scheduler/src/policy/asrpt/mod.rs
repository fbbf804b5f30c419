//! Available shortest remaining processing time.
//!
//! Paper: ASRPT, section VI, Algorithm 1 and Corollary 2. A virtual SRPT schedule, in which reduces need not wait for
//! maps, runs in parallel to the real one, in slots, on all machines. In each slot, jobs are ordered by their work left
//! at map and reduce together (smallest first, ties to the older). They get machines in three phases: (1) every job's
//! maps up to the number of machines that the virtual SRPT gives its maps in this slot; (2) reduces that can start; (3)
//! remaining maps. So maps end no later than in the virtual schedule, and no machine idles while a job can use it.
//! Required: the work of every job, in slot-seconds. Live it comes from the estimator. A job that turns out larger or
//! smaller moves in the virtual list by the difference.
//! Favours small jobs. A large job waits while smaller ones arrive, but no longer than in the virtual schedule.
//! Deviations: maps and reduces are counted in whole units, rounded up. Live, slots of time follow the master's clock.
//! A map may take more or less than one slot. The machines of a job's maps in the virtual schedule are a target of
//! slots held. The shuffle follows the order of the jobs. Preemptive, maps run to their end unless the master divides
//! maps, and a reduce's work counts as left until it is done. Of jobs with equal work left, one with running tasks that
//! could be preempted goes first.
//! Parameters: `slot`, length of a slot (1s), with a unit or in seconds; `preemptive` (no): allows preempting running
//! tasks, as in the paper's preemptive scenario; `order` (phases): with `work`, phases 1 and 2 are one, in the order of
//! work left. That is our own change: as printed, the reduce of a small job waits as long as the virtual schedule gives
//! all machines to the maps of a large one, so Theorem 4 and its corollaries are false (POLICIES.md).
//! Limits: it is not fair, and does not by itself bound a job's waiting time.

use crate::catalogue::{ArgumentError, Arguments, Entry, Parameter};
use crate::plan::{Plan, Reason, Share, order_of};
use crate::policy::Ranked;
use crate::policy::interface::Policy;
use crate::policy::ordered::turn;
use crate::policy::srpt::virtual_list::VirtualRun;
use crate::policy::srpt::{WorkKey, work_left};
use crate::units::Span;
use crate::view::{Change, Handle, Row, Station, View};
use std::collections::BTreeMap;

/// Default length of a slot.
pub(super) const SLOT: Span = Span::whole_seconds(1);

/// Parameter that makes a policy of the paper preemptive.
pub(super) const PREEMPTIVE: Parameter =
    Parameter { name: "preemptive", default: "no", meaning: "whether running tasks make way" };

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "ASRPT VI, Algorithm 1",
    parameters: &[
        Parameter { name: "slot", default: "1s", meaning: "length of a slot, in which work is measured" },
        PREEMPTIVE,
        Parameter {
            name: "order",
            default: "phases",
            meaning: "phases: virtual maps before all reduces, as printed; work: both by work left",
        },
    ],
    ..Entry::new(
        "asrpt",
        "maps as in a virtual SRPT, then reduces, then maps, least work left first",
        |arguments| {
            let slot = slot_length(arguments)?;
            let preemptive = arguments.flag("preemptive")?;
            let by_work = arguments.choice("order", &["phases", "work"])? == 1;
            Ok(Box::new(Asrpt { by_work, ..Asrpt::new(slot, preemptive) }))
        },
    )
}];

/// Takes the parameter `slot`.
pub(super) fn slot_length(arguments: &mut Arguments<'_>) -> Result<Span, ArgumentError> {
    let fits = |slot: Span| (Span::milliseconds(1)..=Span::whole_seconds(3600)).contains(&slot);
    arguments.value("slot", SLOT, "a length of time from 1ms to 3600s, as 1s or 250ms", fits)
}

/// Algorithm 1.
#[derive(Debug)]
pub struct Asrpt {
    preemptive: bool,
    /// True if reduces go before the virtual maps of jobs with more work left.
    by_work: bool,
    srpt: VirtualRun,
    /// Machines that the virtual SRPT gives to each job's maps in this slot.
    targets: BTreeMap<Handle, u32>,
    /// Jobs that hold less than their target and can use more.
    short: Ranked<WorkKey, Handle>,
    /// Jobs with maps that can start.
    maps: Ranked<WorkKey, Handle>,
    /// Jobs with reduces that can start.
    reduces: Ranked<WorkKey, Handle>,
    /// Jobs with segments to fetch.
    fetching: Ranked<WorkKey, Handle>,
}

impl Asrpt {
    /// Creates a policy without jobs, with slots of this length.
    ///
    /// # Panics
    /// If the slot has no length.
    #[must_use]
    pub fn new(slot: Span, preemptive: bool) -> Self {
        Self {
            preemptive,
            by_work: false,
            srpt: VirtualRun::new(slot),
            targets: BTreeMap::new(),
            short: Ranked::new(),
            maps: Ranked::new(),
            reduces: Ranked::new(),
            fetching: Ranked::new(),
        }
    }

    fn rank(&mut self, job: Handle, row: &Row) {
        let key = (order_of(work_left(row)), turn(row));
        let can = |station: Station| (0.0 < row.can[station]).then_some(key);
        self.maps.place(job, can(Station::Map));
        self.reduces.place(job, can(Station::Reduce));
        self.fetching.place(job, can(Station::Shuffle));
        self.rank_short(job, row);
    }

    fn rank_short(&mut self, job: Handle, row: &Row) {
        let target = self.targets.get(&job).copied().unwrap_or(0);
        let short = row.held[Station::Map] < f64::from(target) && 0.0 < row.can[Station::Map];
        self.short.place(job, short.then(|| (order_of(work_left(row)), turn(row))));
    }

    fn forget(&mut self, job: Handle) {
        self.targets.remove(&job);
        for ranked in [&mut self.short, &mut self.maps, &mut self.reduces, &mut self.fetching] {
            ranked.place(job, None);
        }
    }
}

impl Policy for Asrpt {
    fn name(&self) -> &'static str {
        "asrpt"
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn preempts(&self) -> bool {
        self.preemptive
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        let mut gives = None;
        self.srpt.observe(view, change, |served, _| {
            let maps = served.iter().filter(|job| 0 < job.maps).map(|job| (job.seq, job.maps));
            gives = Some(maps.collect::<Vec<_>>());
            false
        });
        if let Some(gives) = gives {
            for (job, _) in std::mem::take(&mut self.targets) {
                self.short.place(job, None);
            }
            for (seq, machines) in gives {
                // A job that has ended in reality no longer uses its share of the virtual schedule.
                if let Some(job) = self.srpt.handle(seq) {
                    self.targets.insert(job, u32::try_from(machines).unwrap_or(u32::MAX));
                    self.rank_short(job, view.row(job));
                }
            }
        }
        if let Change::Left(job) = change {
            self.forget(job);
        }
        for &job in view.touched {
            self.rank(job, view.row(job));
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let smallest = |job| Reason::Smallest {
            what: "work left",
            value: work_left(view.row(job)),
            unit: "slot-seconds",
        };
        for job in self.fetching.iter() {
            if !plan.grant(job, Station::Shuffle, Share::All, smallest(job)) {
                break;
            }
        }
        if !self.srpt.is_empty() {
            plan.wake(self.srpt.wake(view.now));
        }
        if plan.remaining(Station::Map) <= 0.0 && plan.remaining(Station::Reduce) <= 0.0 {
            return;
        }
        let key = |job: Handle| (order_of(work_left(view.row(job))), turn(view.row(job)));
        let mut smaller = self.reduces.iter().peekable();
        for job in self.short.iter() {
            while let Some(reduce) = smaller.next_if(|&reduce| self.by_work && key(reduce) < key(job)) {
                plan.grant(reduce, Station::Reduce, Share::All, smallest(reduce));
            }
            let target = self.targets[&job];
            let what = "machines that the virtual SRPT gives its maps";
            let reason = Reason::Target { what, slots: f64::from(target) };
            if !plan.grant(job, Station::Map, Share::Slots(target), reason) {
                break;
            }
        }
        for (station, jobs) in [(Station::Reduce, &self.reduces), (Station::Map, &self.maps)] {
            for job in jobs.iter() {
                if !plan.grant(job, station, Share::All, smallest(job)) {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
