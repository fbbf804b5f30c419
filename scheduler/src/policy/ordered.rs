//! Jobs in one order at all stations: what the priority policies have in common, each being a key.
//!
//! A policy by priority is an [`Ordered`], a key and a reason. Policies that add to it walk with the same functions.
//!
//! Within a job ready reduces go before maps. The shuffle comes after the maps, since in the fluid model a job can
//! shuffle what its maps put out under the same plan.

use crate::plan::{Plan, Reason, Share};
use crate::policy::Ranked;
use crate::view::{Change, Handle, Row, Station, View};
use std::fmt::Debug;

/// The order of arrival, for ties; a job with a reduce that would have to give its slot back comes before its equals.
pub(super) fn turn(row: &Row) -> u64 {
    if row.yields { row.seq } else { row.seq | 1 << 63 }
}

/// Who gets the shuffle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShuffleRule {
    /// Everybody in order, until nothing is left.
    All,
    /// The first in order alone, even if it leaves capacity idle.
    Head,
}

/// Places of the sets in [`Ordered`].
const HUNGRY: usize = 0;
const REDUCING: usize = 1;
const FETCHING: usize = 2;

/// Jobs by key at every station, the lowest first. A job stands in a set only while it can use what the set is about,
/// so that planning walks over nobody who wants nothing. Keys must be unique: they end in [`Row::seq`].
#[derive(Clone, Debug)]
pub struct Ordered<K> {
    /// Jobs that can use a slot (without unified slots: for maps), those that can start reduces where slots are not
    /// unified, and those with something to fetch.
    sets: [Ranked<K, Handle>; 3],
    /// Which sets have a job, by handle: most jobs that change are in one of them, and a look here is the quickest.
    listed: Vec<[bool; 3]>,
    /// Jobs without anything to fetch that this plan's maps feed. Kept only for its memory.
    fed: Vec<(K, Handle)>,
}

impl<K: Ord + Copy + Debug> Default for Ordered<K> {
    fn default() -> Self {
        Self { sets: [Ranked::new(), Ranked::new(), Ranked::new()], listed: Vec::new(), fed: Vec::new() }
    }
}

/// Whether the job can use more of this station.
pub(super) fn can(view: View<'_>, job: Handle, station: Station) -> bool {
    0.0 < view.row(job).can[station]
}

/// Whether this plan's maps feed the shuffle of a job that has nothing to fetch otherwise.
pub(super) fn is_fed(view: View<'_>, plan: &Plan<'_>, job: Handle) -> bool {
    plan.feeds()
        && !can(view, job, Station::Shuffle)
        && 0.0 < view.row(job).left[Station::Shuffle]
        && 0.0 < plan.got(job, Station::Map)
}

/// Gives each job in turn all that it can use at these stations, until no slot is left there. Jobs whose shuffle the
/// plan's maps feed are appended to `fed`.
pub(super) fn walk<K>(
    view: View<'_>,
    plan: &mut Plan<'_>,
    jobs: impl Iterator<Item = (K, Handle)>,
    stations: &[Station],
    mut reason: impl FnMut(Handle) -> Reason,
    fed: &mut Vec<(K, Handle)>,
) {
    let left = |plan: &Plan<'_>| stations.iter().any(|&station| 0.0 < plan.left(station));
    if !left(plan) {
        return;
    }
    for (key, job) in jobs {
        let why = reason(job);
        for &station in stations {
            plan.grant(job, station, Share::All, why);
        }
        if is_fed(view, plan, job) {
            fed.push((key, job));
        }
        if !left(plan) {
            return;
        }
    }
}

/// Those who have something to fetch and those who are fed, in the order of their keys.
pub(super) fn merged<K: Ord + Copy + Debug>(
    fetching: &Ranked<K, Handle>,
    fed: impl Iterator<Item = (K, Handle)>,
) -> impl Iterator<Item = Handle> {
    let mut fetching = fetching.entries().peekable();
    let mut fed = fed.peekable();
    std::iter::from_fn(move || {
        let fed_first = match (fetching.peek(), fed.peek()) {
            (Some(fetching), Some(fed)) => fed < fetching,
            (_, fed) => fed.is_some(),
        };
        if fed_first { fed.next() } else { fetching.next() }.map(|(_, job)| job)
    })
}

impl<K: Ord + Copy + Debug> Ordered<K> {
    fn place(&mut self, job: Handle, key: Option<K>, wants: [bool; 3]) {
        if self.listed.len() <= job.index() {
            self.listed.resize(job.index() + 1, [false; 3]);
        }
        let listed = std::mem::replace(&mut self.listed[job.index()], wants);
        for ((set, listed), wants) in self.sets.iter_mut().zip(listed).zip(wants) {
            if listed || wants {
                set.place(job, key.filter(|_| wants));
            }
        }
    }

    /// Puts the jobs that changed at their places.
    pub fn observe(&mut self, view: View<'_>, change: Change, key: impl Fn(View<'_>, Handle) -> K) {
        if let Change::Left(job) = change {
            self.place(job, None, [false; 3]);
        }
        for &job in view.touched {
            let [maps, shuffle, reduces] = Station::ALL.map(|station| can(view, job, station));
            let wants = match view.unified {
                true => [maps || reduces, false, shuffle],
                false => [maps, reduces, shuffle],
            };
            self.place(job, Some(key(view, job)), wants);
        }
    }

    /// Grants everything in order.
    pub fn plan(
        &mut self,
        view: View<'_>,
        plan: &mut Plan<'_>,
        shuffle: ShuffleRule,
        reason: impl Fn(View<'_>, Handle) -> Reason,
    ) {
        self.fed.clear();
        let slots: &[(usize, &[Station])] = match view.unified {
            true => &[(HUNGRY, &[Station::Reduce, Station::Map])],
            false => &[(HUNGRY, &[Station::Map]), (REDUCING, &[Station::Reduce])],
        };
        for &(set, stations) in slots {
            let jobs = self.sets[set].entries();
            walk(view, plan, jobs, stations, |job| reason(view, job), &mut self.fed);
        }
        if shuffle == ShuffleRule::Head {
            plan.only(Station::Shuffle);
        }
        for job in merged(&self.sets[FETCHING], self.fed.iter().copied()) {
            let left = plan.grant(job, Station::Shuffle, Share::All, reason(view, job));
            if !left || shuffle == ShuffleRule::Head {
                break;
            }
        }
    }
}
