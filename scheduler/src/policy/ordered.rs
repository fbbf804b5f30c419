//! Jobs in one order at all stations: the common part of the priority policies, each of which is a key.
//!
//! A priority policy is an [`Ordered`], a key and a reason. Policies that extend it use the same functions.
//!
//! Within a job ready reduces go before maps. The shuffle comes after the maps, since in the fluid model a job can
//! shuffle the output of its maps under the same plan.

use crate::plan::{Plan, Reason, Share};
use crate::policy::Ranked;
use crate::view::{Change, Handle, Row, Station, View};
use std::fmt::Debug;

/// Returns the order of arrival, for ties; a job with a reduce that would have to release its slot comes before its
/// equals.
pub(super) fn turn(row: &Row) -> u64 {
    if row.yields { row.seq } else { row.seq | 1 << 63 }
}

/// Which jobs get the shuffle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShuffleRule {
    /// All jobs in order, until no capacity is left.
    All,
    /// The first in order alone, even if it leaves capacity idle.
    Head,
}

/// Indexes of the sets in [`Ordered`].
const HUNGRY: usize = 0;
const REDUCING: usize = 1;
const FETCHING: usize = 2;

/// Jobs by key at every station, lowest first. A job is in a set only while it can use that station, so that planning
/// visits only jobs with demand. Keys must be unique: they end in [`Row::seq`].
#[derive(Clone, Debug)]
pub struct Ordered<K> {
    /// Jobs that can use a slot (a map slot without unified slots), jobs that can start reduces without unified slots,
    /// and jobs with segments to fetch.
    sets: [Ranked<K, Handle>; 3],
    /// Sets that contain each job, by handle. Most changed jobs are in one of them, and this lookup is the fastest.
    listed: Vec<[bool; 3]>,
    /// Jobs without segments to fetch that this plan's maps feed. Kept only to reuse its memory.
    fed: Vec<(K, Handle)>,
}

impl<K: Ord + Copy + Debug> Default for Ordered<K> {
    fn default() -> Self {
        Self { sets: [Ranked::new(), Ranked::new(), Ranked::new()], listed: Vec::new(), fed: Vec::new() }
    }
}

/// True if the job can use more of this station.
pub(super) fn can(view: View<'_>, job: Handle, station: Station) -> bool {
    0.0 < view.row(job).can[station]
}

/// True if this plan's maps feed the shuffle of a job that has nothing else to fetch.
pub(super) fn is_fed(view: View<'_>, plan: &Plan<'_>, job: Handle) -> bool {
    plan.feeds()
        && !can(view, job, Station::Shuffle)
        && 0.0 < view.row(job).left[Station::Shuffle]
        && 0.0 < plan.got(job, Station::Map)
}

/// Grants each job in order all that it can use at these stations, until no slot is left there. Jobs whose shuffle the
/// plan's maps feed are appended to `fed`.
pub(super) fn walk<K>(
    view: View<'_>,
    plan: &mut Plan<'_>,
    jobs: impl Iterator<Item = (K, Handle)>,
    stations: &[Station],
    mut reason: impl FnMut(Handle) -> Reason,
    fed: &mut Vec<(K, Handle)>,
) {
    let left = |plan: &Plan<'_>| stations.iter().any(|&station| 0.0 < plan.remaining(station));
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

/// Merges the jobs with segments to fetch and those that are fed, in the order of their keys.
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

    /// Updates the places of changed jobs.
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

    /// Grants all capacity in order.
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
