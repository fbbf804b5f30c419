//! The min-scheduler and the max-scheduler: as many slots as each job needs to reach its deadline.
//!
//! Paper: deadlines, III-B to IV. A job is UNDEAD once its deadline has passed, else NODATA until its first map has
//! finished, else ADJUST. Slots go one at a time, priorities counted anew after each: first to UNDEAD jobs, the one
//! whose expected end lies furthest beyond its deadline, `(expected end - arrival) / (deadline - arrival)`; then to
//! NODATA jobs, the oldest first and as much as it can use; then to ADJUST jobs by the slots that they need besides
//! those they hold, equation 3: `(sum of what running tasks have left / mu + pending) mu / (deadline - now) -
//! running`, with `mu` of equation 1. A slot given lowers that by 1. The min-scheduler stops when nobody needs another
//! slot and leaves the rest idle (equation 4); the max-scheduler gives on in the same order until none is left.
//! Both look again at every `tick`, since need rises while slots idle.
//! Must know: deadlines; the mean length of finished maps (`estimate::completion`).
//! Favours jobs with near deadlines, and those without data, which take all they can at first; harms jobs with far
//! deadlines, and, under min, jobs whose last tasks are longer than their first.
//! Parameters: `tick`, 1 s, how often min looks again; `reduce-cost`, 1, what a reduce costs relative to a map.
//! Deviations, where the paper is silent: jobs without a deadline need 0 slots (under min they get what the others
//! leave idle); running reduces are not counted in equation 3, only pending ones; a ready reduce goes before any map;
//! overdue tasks have nothing left rather than less; the shuffle goes to the nearest deadline.
//! It is not: a promise. Equation 3 aims at the deadline exactly, so the last wave of tasks and the reduces end after
//! it.

mod judged;

pub use judged::{DeadlineState, Standing};

use crate::catalogue::{ArgumentError, Arguments, Entry, Parameter};
use crate::plan::{Plan, Reason, Share};
use crate::policy::{Policy, Ranked};
use crate::units::{Span, Time};
use crate::view::{Change, Handle, Station, View};
use judged::{SlotPriority, WaitingJob, seen};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

const PARAMETERS: &[Parameter] = &[
    Parameter { name: "tick", default: "1s", meaning: "how often needs are looked at while slots idle" },
    Parameter { name: "reduce-cost", default: "1", meaning: "what a reduce costs relative to a map" },
];

/// How they are called.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[
    Entry {
        name: "min-scheduler",
        aliases: &["min"],
        paper: "deadlines III, IV",
        summary: "the slots that jobs need to reach their deadlines; leaves others idle",
        parameters: PARAMETERS,
        only_simulated: None,
        make: |arguments| Ok(Box::new(made(Excess::Idle, arguments)?)),
    },
    Entry {
        name: "max-scheduler",
        aliases: &["max"],
        paper: "deadlines III, IV",
        summary: "the slots that jobs need to reach their deadlines, and the rest in the same order",
        parameters: PARAMETERS,
        only_simulated: None,
        make: |arguments| Ok(Box::new(made(Excess::Given, arguments)?)),
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

/// A need below this is none: what is left of 0 after rounding.
const NEED_MIN: f64 = 1e-9;

/// The deadline of jobs that have none, where deadlines are compared.
const NEVER: Time = Time(u64::MAX);

/// What becomes of slots that nobody needs.
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
    /// Jobs that can use a slot, in no order: needs change with time, so all are looked at when slots are given.
    waiting: Vec<WaitingJob>,
    /// The place of each job in `waiting`.
    places: BTreeMap<Handle, usize>,
    /// Jobs with something to fetch, by deadline and age.
    fetching: Ranked<(Time, u64), Handle>,
}

impl Deadlines {
    /// A policy that knows no job yet.
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

    /// What the policy thinks of the jobs that can use a slot, in the order in which they would get the next one.
    /// O(n log n) of such jobs.
    #[must_use]
    pub fn standings(&self, view: View<'_>) -> Vec<Standing> {
        let mut turns: Vec<SlotPriority> =
            (0..self.waiting.len()).map(|place| self.turn(view, place)).collect();
        turns.sort_by(|a, b| b.cmp(a));
        let standing = |turn: SlotPriority| {
            let WaitingJob { job, mean, .. } = *self.whose(turn);
            let required = (turn.state() == DeadlineState::Adjust).then(|| turn.urgency());
            Standing { job, state: turn.state(), mean, required }
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

    fn look(&mut self, view: View<'_>, job: Handle) {
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
            ..seen(view, job, row, self.reduce_cost)
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

    /// Gives map slots until none is left or, under min, nobody needs one. Answers whether slots stay idle that
    /// somebody could use.
    fn give(&self, view: View<'_>, plan: &mut Plan<'_>) -> bool {
        let places = || (0..self.waiting.len()).filter(|&place| 0.0 < self.waiting[place].maps);
        // Mostly there is one slot to give, and then the others need not be put in order.
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
            if plan.left(Station::Map) <= 0.0 {
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

    /// Nobody with a deadline needs a slot: those without one get the rest, the oldest first. Answers as
    /// [`Self::give`].
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
        // Where shuffles run while maps do, jobs fed by this very plan can use the shuffle too.
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
            self.look(view, job);
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        if 0.0 < plan.left(Station::Reduce) {
            self.give_reduces(view, plan);
        }
        if 0.0 < plan.left(Station::Map) && self.give(view, plan) {
            let tick = self.tick.0;
            plan.wake(Time((view.now.0 / tick + 1) * tick));
        }
        self.give_shuffle(view, plan);
    }
}

#[cfg(test)]
mod tests;
