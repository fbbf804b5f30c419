//! Min-scheduler and max-scheduler: give each job the slots that it needs to meet its deadline.
//!
//! Paper: deadlines, III-B to IV. A job is UNDEAD once its deadline has passed, else NODATA until its first
//! map has finished, else ADJUST. Slots are granted one at a time, with priorities recomputed after each.
//! UNDEAD jobs come first, by how far their expected end is beyond the deadline, `(expected end - arrival) /
//! (deadline - arrival)`. Then come NODATA jobs, oldest first, with all slots that they can use. Then come
//! ADJUST jobs by the slots that they need in addition to those they hold. Equation 3: `(sum of what running
//! tasks have left / mu + pending) mu / (deadline - now) - running`, with `mu` of equation 1. A granted slot
//! lowers that by 1. The min-scheduler stops when no job needs another slot and leaves the rest idle
//! (equation 4). The max-scheduler continues in the same order until no slot is left. Both replan at every
//! `tick`, since needs grow while slots idle. Required: deadlines; the mean length of finished maps
//! (`estimate::completion`). Favours jobs with near deadlines, and those without data, which at first take
//! all they can. Harms jobs with far deadlines and, under min, jobs whose last tasks are longer than their
//! first. Parameters: `tick`, 1 s, the interval between plans of min; `reduce-cost`, 1, the cost of a reduce
//! relative to a map. Deviations, where the paper leaves it open: jobs without a deadline need 0 slots (under
//! min they get the slots that others leave idle). Only pending reduces count in equation 3, not running
//! ones. An UNDEAD job without a slot, or without a finished map, counts as infinitely late. A ready reduce goes before
//! any map. Overdue tasks have zero time left, not less. The shuffle goes to
//! the nearest deadline. Limits: deadlines are not guaranteed. Equation 3 targets the deadline exactly, so
//! the last wave of tasks and the reduces end after it.

mod judged;

pub use judged::{DeadlineState, JobStanding};

use crate::catalogue::{ArgumentError, Arguments, Entry, Parameter};
use crate::plan::{Plan, Reason, Share};
use crate::policy::Ranked;
use crate::policy::interface::Policy;
use crate::units::{Span, Time};
use crate::view::{Change, Handle, Station, View};
use judged::{SlotPriority, WaitingJob, waiting_job};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

const PARAMETERS: &[Parameter] = &[
    Parameter { name: "tick", default: "1s", meaning: "how often needs are looked at while slots idle" },
    Parameter { name: "reduce-cost", default: "1", meaning: "what a reduce costs relative to a map" },
];

/// Catalogue entries of the policies.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[
    Entry {
        aliases: &["min"],
        paper: "deadlines III, IV",
        parameters: PARAMETERS,
        ..Entry::new(
            "min-scheduler",
            "the slots that jobs need to reach their deadlines; leaves others idle",
            |arguments| Ok(Box::new(made(Excess::Idle, arguments)?)),
        )
    },
    Entry {
        aliases: &["max"],
        paper: "deadlines III, IV",
        parameters: PARAMETERS,
        ..Entry::new(
            "max-scheduler",
            "the slots that jobs need to reach their deadlines, and the rest in the same order",
            |arguments| Ok(Box::new(made(Excess::Given, arguments)?)),
        )
    },
];

fn made(excess: Excess, arguments: &mut Arguments<'_>) -> Result<Deadlines, ArgumentError> {
    let tick = Span::whole_seconds(1);
    let tick =
        arguments.value("tick", tick, "a length of time of at least 1ms", |t| Span::milliseconds(1) <= t)?;
    let fits = |cost: f64| cost.is_finite() && 0.0 <= cost;
    let reduce_cost = arguments.value("reduce-cost", 1.0, "a finite number of at least 0", fits)?;
    Ok(Deadlines::new(excess, tick, reduce_cost))
}

/// A need below this is zero with a rounding error.
const NEED_MIN: f64 = 1e-9;

/// Deadline of jobs that have none, for comparisons.
const NEVER: Time = Time(u64::MAX);

/// Use of slots that no job needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Excess {
    /// They stay idle: min-scheduler.
    Idle,
    /// They are given in the same order: max-scheduler.
    Given,
}

/// Both schedulers of the paper.
#[derive(Debug)]
pub struct Deadlines {
    excess: Excess,
    tick: Span,
    reduce_cost: f64,
    /// Jobs that can use a slot, unordered: needs change with time, so all are evaluated when slots are granted.
    waiting: Vec<WaitingJob>,
    /// Index of each job in `waiting`.
    places: BTreeMap<Handle, usize>,
    /// Jobs with segments to fetch, by deadline and age.
    fetching: Ranked<(Time, u64), Handle>,
}

impl Deadlines {
    /// Creates a policy without jobs.
    ///
    /// # Panics
    /// If the tick is 0 or the cost of a reduce is not a finite number of at least 0.
    #[must_use]
    pub fn new(excess: Excess, tick: Span, reduce_cost: f64) -> Self {
        assert!(Span::default() < tick, "a tick of {tick}");
        assert!(reduce_cost.is_finite() && 0.0 <= reduce_cost, "cost {reduce_cost} of a reduce");
        let (waiting, places) = (Vec::new(), BTreeMap::new());
        Self { excess, tick, reduce_cost, waiting, places, fetching: Ranked::new() }
    }

    /// Returns the evaluation of the jobs that can use a slot, in the order in which they would get the next one. O(n
    /// log n) in the number of such jobs.
    #[must_use]
    pub fn standings(&self, view: View<'_>) -> Vec<JobStanding> {
        let mut turns: Vec<SlotPriority> =
            (0..self.waiting.len()).map(|place| self.turn(view, place)).collect();
        turns.sort_by(|a, b| b.cmp(a));
        let standing = |turn: SlotPriority| {
            let WaitingJob { job, mean, .. } = *self.whose(turn);
            let required = (turn.state() == DeadlineState::Adjust).then(|| turn.urgency());
            JobStanding { job, state: turn.state(), mean, required }
        };
        turns.into_iter().map(standing).collect()
    }

    fn forget(&mut self, job: Handle) {
        let Some(place) = self.places.remove(&job) else { return };
        self.waiting.swap_remove(place);
        if let Some(moved) = self.waiting.get(place) {
            self.places.insert(moved.job, place);
        }
    }

    fn judge(&mut self, view: View<'_>, job: Handle) {
        let row = view.row(job);
        let can = |station: Station| 0.0 < row.can[station];
        let deadline = row.deadline.unwrap_or(NEVER);
        self.fetching.place(job, can(Station::Shuffle).then_some((deadline, row.seq)));
        if !can(Station::Map) && !can(Station::Reduce) {
            return self.forget(job);
        }
        let seen = WaitingJob {
            maps: row.can[Station::Map],
            reduces: can(Station::Reduce),
            ..waiting_job(view, job, row, self.reduce_cost)
        };
        match self.places.get(&job) {
            Some(&place) => self.waiting[place] = seen,
            None => {
                self.places.insert(job, self.waiting.len());
                self.waiting.push(seen);
            }
        }
    }

    fn whose(&self, turn: SlotPriority) -> &WaitingJob {
        &self.waiting[turn.place as usize]
    }

    fn turn(&self, view: View<'_>, place: usize) -> SlotPriority {
        let waiting = &self.waiting[place];
        let now = view.now.seconds();
        let turn = |state, urgency| SlotPriority::new(state, urgency, waiting, place);
        let Some(deadline) = waiting.deadline else {
            return turn(DeadlineState::Adjust, -f64::from(waiting.running));
        };
        match waiting.mean {
            _ if deadline <= now => turn(DeadlineState::Undead, waiting.lateness(view, waiting.running)),
            None => turn(DeadlineState::NoData, -waiting.arrival),
            Some(mean) => {
                turn(DeadlineState::Adjust, waiting.remaining(view, mean).required_slots(deadline - now))
            }
        }
    }

    /// Grants map slots until none is left or, under min, no job needs one. Returns true if slots stay idle that a job
    /// could use.
    fn grant_maps(&self, view: View<'_>, plan: &mut Plan<'_>) -> bool {
        let places = || (0..self.waiting.len()).filter(|&place| 0.0 < self.waiting[place].maps);
        // Mostly there is one slot to grant, and then the others need no sorting.
        let mut next = places().map(|place| self.turn(view, place)).max();
        let mut others: Option<BinaryHeap<SlotPriority>> = None;
        while let Some(turn) = next {
            let waiting = self.whose(turn);
            let again = match turn.state() {
                DeadlineState::NoData => {
                    plan.grant(waiting.job, Station::Map, Share::All, turn.reason());
                    None
                }
                DeadlineState::Adjust if turn.urgency() <= NEED_MIN && self.excess == Excess::Idle => {
                    return self.give_rest(plan);
                }
                state => give_one(waiting.job, plan, turn.reason()).then(|| {
                    let urgency = match state {
                        DeadlineState::Undead => {
                            waiting.lateness(view, plan.got(waiting.job, Station::Map) as u32)
                        }
                        _ => turn.urgency() - 1.0,
                    };
                    SlotPriority::new(state, urgency, waiting, turn.place as usize)
                }),
            };
            if plan.remaining(Station::Map) <= 0.0 {
                return false;
            }
            let others = others.get_or_insert_with(|| {
                places()
                    .filter(|&place| place != turn.place as usize)
                    .map(|place| self.turn(view, place))
                    .collect()
            });
            others.extend(again);
            next = others.pop();
        }
        false
    }

    /// Grants the rest to jobs without a deadline, oldest first, because no job with a deadline needs a slot. Returns
    /// as [`Self::grant_maps`].
    fn give_rest(&self, plan: &mut Plan<'_>) -> bool {
        let aimless = self.waiting.iter().filter(|waiting| waiting.deadline.is_none() && 0.0 < waiting.maps);
        let aimless: BTreeSet<(u64, Handle)> = aimless.map(|waiting| (waiting.seq, waiting.job)).collect();
        for (_, job) in aimless {
            if !plan.grant(
                job,
                Station::Map,
                Share::All,
                Reason::Own("no job with a deadline needs the slot"),
            ) {
                return false;
            }
        }
        let has_more = |waiting: &WaitingJob| {
            let began = plan.got(waiting.job, Station::Map) - f64::from(waiting.running);
            waiting.deadline.is_some() && began < waiting.maps
        };
        self.waiting.iter().any(has_more)
    }

    fn give_reduces(&self, view: View<'_>, plan: &mut Plan<'_>) {
        let places = (0..self.waiting.len()).filter(|&place| self.waiting[place].reduces);
        let mut turns: Vec<SlotPriority> = places.map(|place| self.turn(view, place)).collect();
        turns.sort_by(|a, b| b.cmp(a));
        for turn in turns {
            if !plan.grant(self.whose(turn).job, Station::Reduce, Share::All, turn.reason()) {
                break;
            }
        }
    }

    fn give_shuffle(&self, view: View<'_>, plan: &mut Plan<'_>) {
        let reason = Reason::Own("nearest deadline");
        if !plan.feeds() {
            for job in self.fetching.iter() {
                if !plan.grant(job, Station::Shuffle, Share::All, reason) {
                    break;
                }
            }
            return;
        }
        // Where shuffles run concurrently with maps, jobs fed by this plan can use the shuffle too.
        let key = |job: Handle| (view.row(job).deadline.unwrap_or(NEVER), view.row(job).seq, job);
        let jobs: BTreeSet<_> =
            self.fetching.iter().chain(self.waiting.iter().map(|w| w.job)).map(key).collect();
        for (_, _, job) in jobs {
            if !plan.grant(job, Station::Shuffle, Share::All, reason) {
                break;
            }
        }
    }
}

fn give_one(job: Handle, plan: &mut Plan<'_>, reason: Reason) -> bool {
    let got = plan.got(job, Station::Map);
    plan.grant(job, Station::Map, Share::Slots(got as u32 + 1), reason);
    got < plan.got(job, Station::Map)
}

impl Policy for Deadlines {
    fn name(&self) -> &'static str {
        match self.excess {
            Excess::Idle => "min-scheduler",
            Excess::Given => "max-scheduler",
        }
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn explain(&self, view: View<'_>, job: Handle) -> Vec<String> {
        let Some(&place) = self.places.get(&job) else { return Vec::new() };
        let waiting = &self.waiting[place];
        let turn = self.turn(view, place);
        let Some(deadline) = waiting.deadline else {
            return vec!["it has no deadline: it gets what jobs with one leave".to_owned()];
        };
        let left = deadline - view.now.seconds();
        vec![match turn.state() {
            DeadlineState::Undead => format!(
                "state UNDEAD: its deadline passed {:.1} s ago; expected response time is {:.2} times the one aimed at",
                -left,
                turn.urgency()
            ),
            DeadlineState::NoData => format!(
                "state NODATA: nothing is known of its tasks until its first map has finished; {left:.1} s to its deadline"
            ),
            DeadlineState::Adjust => format!(
                "state ADJUST: {left:.1} s to its deadline, mean task {:.2} s; it needs {:.2} slots besides the {} it holds",
                waiting.mean.unwrap_or(0.0),
                turn.urgency(),
                waiting.running
            ),
        }]
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Left(job) = change {
            self.fetching.place(job, None);
            self.forget(job);
        }
        for &job in view.touched {
            self.judge(view, job);
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        if 0.0 < plan.remaining(Station::Reduce) {
            self.give_reduces(view, plan);
        }
        if 0.0 < plan.remaining(Station::Map) && self.grant_maps(view, plan) {
            let tick = self.tick.0;
            plan.wake(Time((view.now.0 / tick + 1) * tick));
        }
        self.give_shuffle(view, plan);
    }
}

#[cfg(test)]
mod tests;
