//! Routes between workers, as observed by fetches: which are cut, and which workers to set aside so that all others
//! reach each other.
//!
//! A route is cut when a home has given up reading over it although the master receives heartbeats from both ends.
//! Workers that are set aside get no new tasks, and all that homes lack behind a cut route is made again at once. So
//! one cut costs one worker, for a route between two workers as well as for a worker that is unreachable or reaches no
//! other. Draining workers are set aside as well.
//!
//! The effects on jobs are defined in `detours`.
//!
//! Invariant: at least one end of a cut route is set aside.

use crate::ids::WorkerId;
use crate::ledger::config::RouteLimits;
use crate::units::{Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A worker that has exchanged segments with any other in this time is connected. Of the two ends of a cut route, the
/// one that is not connected is set aside.
const CONTACT_MEMORY: Span = Span::whole_seconds(2);

/// Route that was cut at least once.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct CutRoute {
    /// Time until which it counts as cut. After that it may be tried again.
    until: Time,
    /// Number of times that it was found cut since the last successful read.
    times: u32,
    /// True if the route is not cut, but so slow that it counts as cut. Successful reads over it are then ignored.
    slow: bool,
}

/// Outputs at a worker that would be made again.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RouteLoss {
    pub(super) outputs: u64,
    /// True if some of it could be made only there.
    pub(super) pinned: bool,
}

/// State of the routes between workers. No worker has a route to itself.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Routes {
    /// Cut routes by home and source.
    cuts: BTreeMap<(WorkerId, WorkerId), CutRoute>,
    /// Time when each worker last read from another, or was read from.
    contacts: BTreeMap<WorkerId, Time>,
    /// Live workers that get no new tasks.
    pub(super) aside: BTreeSet<WorkerId>,
}

impl Routes {
    /// Records that a home has read from a source. Returns true if that route counted as cut.
    pub(crate) fn read(&mut self, home: WorkerId, from: WorkerId, now: Time) -> bool {
        if home == from {
            return false;
        }
        self.contacts.insert(home, now);
        self.contacts.insert(from, now);
        let heals = self.cuts.get(&(home, from)).is_some_and(|cut| !cut.slow || cut.until <= now);
        heals && self.cuts.remove(&(home, from)).is_some()
    }

    /// Records that a home could not read from a source after several tries, or that the route is so `slow` that it
    /// should count as cut. Returns true if that is new.
    pub(crate) fn cut_off(
        &mut self,
        (home, from): (WorkerId, WorkerId),
        now: Time,
        limits: &RouteLimits,
        slow: bool,
    ) -> bool {
        assert!(home != from, "{home} has no way to itself");
        let cut = self.cuts.entry((home, from)).or_insert(CutRoute { until: now, times: 0, slow });
        let news = cut.until <= now;
        if news {
            // Twenty doublings exceed any limit.
            let span = Span(limits.cut_for.0.saturating_mul(1 << cut.times.min(20)));
            cut.until = now + span.min(limits.cut_for_max);
            cut.times += 1;
            cut.slow = slow;
        }
        news
    }

    /// Removes a lost worker. Returns true if routes to or from it counted as cut.
    pub(crate) fn lose(&mut self, worker: WorkerId) -> bool {
        let before = self.cuts.len();
        self.cuts.retain(|&(home, from), _| home != worker && from != worker);
        self.contacts.remove(&worker);
        self.cuts.len() < before
    }

    /// Returns the routes that are cut now, by home and source.
    pub(crate) fn cut(&self, now: Time) -> impl Iterator<Item = (WorkerId, WorkerId)> {
        self.cuts.iter().filter(move |(_, cut)| now < cut.until).map(|(&way, _)| way)
    }

    /// Returns the time when the first of them may be tried again.
    pub(crate) fn next_try(&self, now: Time) -> Option<Time> {
        self.cuts.values().map(|cut| cut.until).filter(|&until| now < until).min()
    }

    /// Returns the live workers that get no new tasks.
    pub(crate) fn aside(&self) -> &BTreeSet<WorkerId> {
        &self.aside
    }

    /// Chooses the workers to set aside, so that no route between two others is cut. Workers with most cut routes come
    /// first; of these, those whose outputs can be made elsewhere, then those without recent contact, then those with
    /// the smallest loss. Only cut routes are examined.
    pub(super) fn choose(&self, now: Time, loss: impl Fn(WorkerId) -> RouteLoss) -> BTreeSet<WorkerId> {
        let mut pairs: BTreeSet<(WorkerId, WorkerId)> =
            self.cut(now).map(|(home, from)| (home.min(from), home.max(from))).collect();
        let lonely = |worker: WorkerId| {
            let contact = self.contacts.get(&worker);
            contact.is_none_or(|&contact| CONTACT_MEMORY <= now.since(contact))
        };
        let mut aside = BTreeSet::new();
        loop {
            let mut ways: BTreeMap<WorkerId, usize> = BTreeMap::new();
            for &(one, other) in &pairs {
                *ways.entry(one).or_default() += 1;
                *ways.entry(other).or_default() += 1;
            }
            let rank = |(&worker, &ways): (&WorkerId, &usize)| {
                let loss = loss(worker);
                (ways, Reverse(loss.pinned), lonely(worker), Reverse(loss.outputs), worker)
            };
            let Some((.., worst)) = ways.iter().map(rank).max() else { return aside };
            pairs.retain(|&(one, other)| one != worst && other != worst);
            aside.insert(worst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: [WorkerId; 5] = [WorkerId(0), WorkerId(1), WorkerId(2), WorkerId(3), WorkerId(4)];

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::whole_seconds(seconds)
    }

    fn aside(routes: &Routes, now: Time) -> Vec<WorkerId> {
        routes.choose(now, |_| RouteLoss::default()).into_iter().collect()
    }

    fn fail(routes: &mut Routes, ways: &[(usize, usize)], now: Time) {
        for &(home, from) in ways {
            routes.cut_off((W[home], W[from]), now, &RouteLimits::default(), false);
        }
    }

    #[test]
    fn of_two_that_do_not_reach_each_other_the_one_with_less_to_lose_is_set_aside() {
        let mut routes = Routes::default();
        fail(&mut routes, &[(1, 3), (3, 1)], at(10));
        let loss = |worker| RouteLoss { outputs: if worker == W[3] { 5 } else { 2 }, pinned: false };
        assert_eq!(routes.choose(at(10), loss).into_iter().collect::<Vec<_>>(), [W[1]]);
    }

    #[test]
    fn of_two_the_one_that_is_in_contact_with_a_third_stays() {
        let mut routes = Routes::default();
        routes.read(W[1], W[2], at(5));
        routes.read(W[3], W[2], at(10));
        fail(&mut routes, &[(3, 1)], at(11));
        let loss = |worker| RouteLoss { outputs: if worker == W[1] { 5 } else { 2 }, pinned: false };
        assert_eq!(routes.choose(at(11), loss).into_iter().collect::<Vec<_>>(), [W[1]]);
    }

    #[test]
    fn of_two_the_one_stays_that_has_what_can_be_made_nowhere_else() {
        let mut routes = Routes::default();
        fail(&mut routes, &[(1, 3)], at(10));
        let loss = |worker| RouteLoss { outputs: 1, pinned: worker == W[3] };
        assert_eq!(routes.choose(at(10), loss).into_iter().collect::<Vec<_>>(), [W[1]]);
    }

    #[test]
    fn a_worker_that_reaches_nobody_is_set_aside_alone() {
        let mut routes = Routes::default();
        fail(&mut routes, &[(2, 0), (2, 1), (2, 3)], at(10));
        assert_eq!(aside(&routes, at(10)), [W[2]]);
    }

    #[test]
    fn a_worker_that_nobody_reaches_is_set_aside_alone() {
        let mut routes = Routes::default();
        fail(&mut routes, &[(0, 2), (1, 2), (3, 2)], at(10));
        assert_eq!(aside(&routes, at(10)), [W[2]]);
    }

    #[test]
    fn one_worker_is_left_where_nobody_reaches_anybody() {
        let mut routes = Routes::default();
        let all: Vec<_> = (0..5).flat_map(|home| (0..5).map(move |from| (home, from))).collect();
        fail(&mut routes, &all.into_iter().filter(|(home, from)| home != from).collect::<Vec<_>>(), at(10));
        assert_eq!(aside(&routes, at(10)).len(), 4);
    }

    #[test]
    fn a_cut_way_is_tried_again_after_twice_as_long_each_time() {
        let limits = RouteLimits::default();
        let (mut routes, mut now) = (Routes::default(), at(10));
        for times in 0..3 {
            fail(&mut routes, &[(1, 2)], now);
            let due = routes.next_try(now).unwrap();
            assert_eq!(due.since(now), Span(limits.cut_for.0 << times));
            fail(&mut routes, &[(1, 2)], now + Span(1));
            assert_eq!(routes.next_try(now), Some(due), "old news");
            assert_eq!(aside(&routes, now), [W[2]]);
            now = due;
            assert_eq!(aside(&routes, now), []);
        }
    }

    #[test]
    fn a_way_that_was_read_over_is_not_cut() {
        let mut routes = Routes::default();
        fail(&mut routes, &[(1, 2)], at(10));
        assert!(!routes.read(W[2], W[1], at(11)), "the other direction");
        assert_eq!(aside(&routes, at(11)), [W[2]]);
        assert!(routes.read(W[1], W[2], at(11)));
        assert_eq!(aside(&routes, at(11)), []);
    }

    #[test]
    fn a_slow_way_counts_as_cut_for_its_time_whatever_comes_over_it() {
        let limits = RouteLimits::default();
        let mut routes = Routes::default();
        assert!(routes.cut_off((W[1], W[2]), at(10), &limits, true));
        assert!(!routes.cut_off((W[1], W[2]), at(11), &limits, true), "no news");
        assert!(!routes.read(W[1], W[2], at(12)));
        assert_eq!(aside(&routes, at(12)), [W[2]]);
        let over = at(10) + limits.cut_for;
        assert_eq!(aside(&routes, over), []);
        assert!(routes.read(W[1], W[2], over));
        assert_eq!(routes.next_try(at(10)), None, "it starts again");
    }

    #[test]
    fn ways_of_a_lost_worker_are_forgotten() {
        let mut routes = Routes::default();
        fail(&mut routes, &[(1, 2)], at(10));
        assert!(routes.lose(W[2]));
        assert_eq!((aside(&routes, at(10)), routes.next_try(at(10))), (vec![], None));
    }
}
