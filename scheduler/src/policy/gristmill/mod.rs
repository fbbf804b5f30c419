//! Gristmill's own policy: the job nearest to its end goes first, after a first look at every new job. Fair sharing
//! bounds how slowly a job can be served.
//!
//! It is not from a paper. Its key is that of `max-srpt` plus the reduces, and its bound on delays is the virtual fair
//! run of the fair sojourn protocol. Rules, in this order:
//!
//! 1. *Due.* A virtual run in parallel to the real one shares the cluster equally among all jobs. A job that is present
//!    longer than `stretch` times its time there gets slots before all others, up to its equal share (`aging`).
//! 2. *Pilot.* A job that the estimator does not know gets one map at once, in the order of arrival; from then on it is
//!    known. A job that would end within the time of such a map goes before it (`pilot`).
//! 3. *Nearest to the end.* All other grants go by the seconds that the job would still need with the whole
//!    cluster to itself. This is `max(maps, shuffle) + reduces`, divided by its weight, smallest first, ties
//!    to the older. In a job ready reduces go before maps. Lanes serve jobs in the same order, due jobs
//!    first.
//! 4. *Preemption.* A running reduce is suspended for a job that comes before its own; so is a running map cut, if the
//!    master divides maps (`preemptive`).
//!
//! Required: nothing. It uses the current estimates, and rules 1 and 2 bound the cost of errors.
//! Favours short jobs, and new ones for the length of a map. A long job waits while shorter ones arrive, but not beyond
//! rule 1. No slot idles that a job could use.
//! Parameters: `pilot`, `aging`, `stretch`, `reduces`, `preemptive`; each part can be disabled separately. On the fluid
//! model, which has neither tasks nor slots, only rule 3 applies.
//! Limits: it ignores deadlines, pools and workers, and it is not fair before a job is due.

use crate::catalogue::{ArgumentError, Arguments, Entry, Parameter};
use crate::plan::{Plan, Reason, Share, order_of};
use crate::policy::Ranked;
use crate::policy::fair_run::FairRun;
use crate::policy::interface::Policy;
use crate::policy::ordered::{can, merged, walk};
use crate::view::{Change, Handle, Station, View};

/// Default of `stretch`: time relative to equal sharing after which a job is due.
const STRETCH: f64 = 4.0;

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    parameters: &[
        Parameter { name: "pilot", default: "yes", meaning: "whether one map of a new job goes first" },
        Parameter { name: "aging", default: "yes", meaning: "whether a job that is due gets its equal part" },
        Parameter {
            name: "stretch",
            default: "4",
            meaning: "a job is due after this many times its time under equal sharing",
        },
        Parameter { name: "reduces", default: "yes", meaning: "whether the work of reduces counts" },
        Parameter { name: "preemptive", default: "yes", meaning: "whether running tasks make way" },
    ],
    ..Entry::new(
        "gristmill",
        "nearest to its end first, also before running reduces, after one map of every new job, and never much slower than fair",
        make,
    )
}];

fn make(arguments: &mut Arguments<'_>) -> Result<Box<dyn Policy>, ArgumentError> {
    let mut yes = |name| arguments.choice(name, &["yes", "no"]).map(|place| place == 0);
    let (pilot, aging, reduces) = (yes("pilot")?, yes("aging")?, yes("reduces")?);
    let preemptive = yes("preemptive")?;
    let fits = |stretch: f64| stretch.is_finite() && 1.0 <= stretch;
    let stretch = arguments.value("stretch", STRETCH, "a finite number from 1 on", fits)?;
    let fair = aging.then(|| FairRun::new(stretch));
    Ok(Box::new(Gristmill { pilot, reduces, preemptive, fair, ..Gristmill::new() }))
}

/// Distance, lowest first, then age.
type DistanceKey = (u64, u64);

/// Gristmill's own policy; see the module.
#[derive(Debug)]
pub struct Gristmill {
    pilot: bool,
    reduces: bool,
    preemptive: bool,
    fair: Option<FairRun>,
    /// Number of live jobs.
    live: u32,
    /// Jobs that wait for their first map, by age.
    pilots: Ranked<u64, Handle>,
    /// Jobs that are due and can use a slot, by the time since when they are due.
    due: Ranked<DistanceKey, Handle>,
    /// Jobs that can use a slot; without unified slots, a map slot.
    hungry: Ranked<DistanceKey, Handle>,
    /// Jobs that can start reduces, without unified slots.
    reducing: Ranked<DistanceKey, Handle>,
    /// Jobs with segments to fetch; due jobs come first.
    fetching: Ranked<(bool, DistanceKey), Handle>,
}

impl Gristmill {
    /// Creates the policy with all its rules.
    pub(crate) fn new() -> Self {
        Self {
            pilot: true,
            reduces: true,
            preemptive: true,
            fair: Some(FairRun::new(STRETCH)),
            live: 0,
            pilots: Ranked::new(),
            due: Ranked::new(),
            hungry: Ranked::new(),
            reducing: Ranked::new(),
            fetching: Ranked::new(),
        }
    }

    /// Returns the seconds that the job still needs with the whole cluster to itself.
    fn seconds(&self, view: View<'_>, job: Handle) -> f64 {
        let [map, shuffle, reduce] = Station::ALL.map(|station| view.time_left(job, station));
        map.max(shuffle) + if self.reduces { reduce } else { 0.0 }
    }

    /// Returns those seconds divided by the job's weight.
    fn distance(&self, view: View<'_>, job: Handle) -> f64 {
        self.seconds(view, job) / view.row(job).weight
    }

    fn key(&self, view: View<'_>, job: Handle) -> DistanceKey {
        (order_of(self.distance(view, job)), view.row(job).seq)
    }

    /// Updates a job's place in all sets.
    fn place(&mut self, view: View<'_>, job: Handle) {
        let row = view.row(job);
        let key = self.key(view, job);
        let [maps, shuffle, reduces] = Station::ALL.map(|station| can(view, job, station));
        let hungry = maps || view.unified && reduces;
        self.hungry.place(job, hungry.then_some(key));
        self.reducing.place(job, (reduces && !view.unified).then_some(key));
        let tries = self.pilot && maps && !row.known && row.held[Station::Map] < 1.0;
        self.pilots.place(job, tries.then_some(row.seq));
        let due = self.fair.as_ref().and_then(|fair| fair.due(row.seq)).map(|since| (since.0, row.seq));
        self.due.place(job, due.filter(|_| maps || reduces));
        let turn = due.map_or((true, key), |due| (false, due));
        self.fetching.place(job, shuffle.then_some(turn));
    }

    fn forget(&mut self, job: Handle) {
        for ranked in [&mut self.due, &mut self.hungry, &mut self.reducing] {
            ranked.place(job, None);
        }
        self.pilots.place(job, None);
        self.fetching.place(job, None);
    }

    /// Grants due jobs their equal share of the slots, at least one.
    fn serve_due(&self, view: View<'_>, plan: &mut Plan<'_>) {
        let reason = Reason::Own("equal sharing would have ended the job long ago");
        for job in self.due.iter() {
            for (station, other) in [(Station::Reduce, Station::Map), (Station::Map, Station::Reduce)] {
                let part = (view.cap[station] / f64::from(self.live.max(1))).floor().max(1.0);
                let elsewhere = if view.unified { plan.got(job, other) } else { 0.0 };
                let target = part - elsewhere;
                if plan.got(job, station) < target {
                    plan.grant(job, station, Share::Slots(target as u32), reason);
                }
            }
            if !slots_left(plan) {
                break;
            }
        }
    }

    /// Grants new jobs one map each, in the order of arrival, after the jobs that would end within the time of a map.
    fn serve_pilots(&self, view: View<'_>, plan: &mut Plan<'_>) {
        let Some(first) = self.pilots.iter().next() else { return };
        let waiting = f64::from(view.row(first).pend[Station::Map].max(1));
        let map = order_of(view.time_left(first, Station::Map) / waiting);
        let near = self.hungry.entries().take_while(|((distance, _), _)| *distance < map);
        let stations: &[Station] =
            if view.unified { &[Station::Reduce, Station::Map] } else { &[Station::Map] };
        walk(view, plan, near, stations, |job| self.reason(view, job), &mut Vec::new());
        let reason = Reason::Own("the first map of a new job, which shows how long its maps take");
        for job in self.pilots.iter() {
            if !plan.grant(job, Station::Map, Share::Slots(1), reason) {
                break;
            }
        }
    }

    /// Grants slots in the order of the jobs. Returns the jobs without segments to fetch that this plan's maps feed.
    fn serve_in_order(&self, view: View<'_>, plan: &mut Plan<'_>) -> Vec<((bool, DistanceKey), Handle)> {
        let mut fed = Vec::new();
        let sets: &[(&Ranked<DistanceKey, Handle>, &[Station])] = match view.unified {
            true => &[(&self.hungry, &[Station::Reduce, Station::Map])],
            false => &[(&self.reducing, &[Station::Reduce]), (&self.hungry, &[Station::Map])],
        };
        for &(set, stations) in sets {
            let jobs = set.entries().map(|(key, job)| ((true, key), job));
            walk(view, plan, jobs, stations, |job| self.reason(view, job), &mut fed);
        }
        fed
    }

    fn reason(&self, view: View<'_>, job: Handle) -> Reason {
        let unit = "seconds with every slot working for it, divided by its weight";
        Reason::Smallest { what: "work left", value: self.distance(view, job), unit }
    }
}

fn slots_left(plan: &Plan<'_>) -> bool {
    0.0 < plan.remaining(Station::Map) || 0.0 < plan.remaining(Station::Reduce)
}

impl Policy for Gristmill {
    fn name(&self) -> &'static str {
        "gristmill"
    }

    fn preempts(&self) -> bool {
        self.preemptive
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        match change {
            Change::Arrived(_) => self.live += 1,
            Change::Left(job) => {
                self.live -= 1;
                self.forget(job);
            }
            Change::Progress | Change::Tick => {}
        }
        if let Some(fair) = &mut self.fair {
            let whole = |job| {
                let [map, shuffle, reduce] = Station::ALL.map(|station| view.time_whole(job, station));
                map.max(shuffle) + reduce
            };
            let mut became_due = fair.advance(view.now);
            if let Change::Left(job) = change {
                fair.leave(view.row(job).seq, (!view.row(job).abandoned).then(|| whole(job)));
            }
            for &job in view.touched {
                let row = view.row(job);
                fair.place(row.seq, (job, row.arrival), whole(job));
            }
            became_due.retain(|job| !view.touched.contains(job) && change != Change::Left(*job));
            for job in became_due {
                self.place(view, job);
            }
        }
        for &job in view.touched {
            self.place(view, job);
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        // Rates have neither single maps nor whole slots.
        if !plan.feeds() && slots_left(plan) {
            self.serve_due(view, plan);
            self.serve_pilots(view, plan);
        }
        let fed = self.serve_in_order(view, plan);
        for job in merged(&self.fetching, fed.into_iter()) {
            if !plan.grant(job, Station::Shuffle, Share::All, self.reason(view, job)) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;
