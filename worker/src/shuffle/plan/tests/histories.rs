//! Random histories of a plan compared with rules that are computed directly.

use super::super::*;
use super::{endpoint, map, order, plan};
use crate::protocol::LaneShare;
use gristmill_scheduler::units::Span;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Order {
        grants: Vec<(u32, u32)>,
        only: bool,
    },
    Announce {
        job: u32,
        index: u32,
        from: u32,
    },
    Retract {
        job: u32,
        index: u32,
    },
    Forget {
        job: u32,
    },
    Send,
    /// Some request ends; each of its maps fails with this probability in tenths.
    End {
        which: prop::sample::Index,
        fails: u32,
    },
    Pass {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let map = (1..4_u32, 0..6_u32);
    let grants = prop::collection::vec((1..4_u32, 0..7_u32), 0..4);
    prop_oneof![
        2 => (grants, any::<bool>()).prop_map(|(grants, only)| Step::Order { grants, only }),
        6 => (map.clone(), 1..4_u32).prop_map(|((job, index), from)| Step::Announce { job, index, from }),
        1 => map.prop_map(|(job, index)| Step::Retract { job, index }),
        1 => (1..4_u32).prop_map(|job| Step::Forget { job }),
        4 => Just(Step::Send),
        4 => (any::<prop::sample::Index>(), 0..10_u32).prop_map(|(which, fails)| Step::End { which, fails }),
        2 => (1..300_u64).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// Plan with the set of owed outputs: announced, and neither arrived, given up nor retracted.
struct Watched {
    plan: FetchPlan,
    limits: FetchLimits,
    now: Time,
    order: LaneOrder,
    flying: Vec<Fetch>,
    owed: BTreeSet<(AttemptId, WorkerId)>,
}

/// Returns the share with this number: strict, with requests counted, in tiers of weights and of lines.
fn share(number: u32) -> LaneShare {
    match number {
        0 | 1 => LaneShare::All,
        2 => LaneShare::Requests(1),
        3 | 4 => LaneShare::Weight(f64::from(number)),
        line => LaneShare::Line(line - 5),
    }
}

impl Watched {
    /// Computes the tier of each job directly; a job that is not in it is not served.
    fn tiers(&self) -> BTreeMap<u32, usize> {
        let order = &self.order;
        let (mut tiers, mut tier) = (BTreeMap::new(), 0);
        for (place, &(job, share)) in order.grants.iter().enumerate() {
            let alike = |other: LaneShare| match (other, share) {
                (LaneShare::All | LaneShare::Requests(_), _) => false,
                (other, share) => std::mem::discriminant(&other) == std::mem::discriminant(&share),
            };
            if 0 < place && !alike(order.grants[place - 1].1) {
                tier += 1;
            }
            tiers.entry(job.0).or_insert(tier);
        }
        for job in 1..4 {
            if !order.only {
                let by_age = if order.grants.is_empty() { 0 } else { tier + job as usize };
                tiers.entry(job).or_insert(by_age);
            }
        }
        tiers
    }

    /// Computes directly the jobs and sources for which a request could be sent now.
    fn possible(&self) -> Vec<(u32, WorkerId)> {
        let tiers = self.tiers();
        let tier_of = |job: JobId| tiers.get(&job.0).copied().unwrap_or(usize::MAX);
        let bytes_max = self.limits.request_bytes_max as f64;
        let counts = |fetch: &Fetch, tier: usize| {
            let expected = self.plan.in_flight[&fetch.id].expected;
            let is_small = 0.0 < expected && expected <= bytes_max / 4.0;
            if tier_of(fetch.job) == tier && is_small { 1 } else { 4 }
        };
        let room = |flying: &[&Fetch], tier: usize, most: usize| {
            let as_urgent = flying.iter().filter(|fetch| tier_of(fetch.job) <= tier);
            flying.len() < 2 * most && as_urgent.map(|fetch| counts(fetch, tier)).sum::<usize>() < 4 * most
        };
        let all: Vec<&Fetch> = self.flying.iter().collect();
        let mut possible = Vec::new();
        for (&from, source) in &self.plan.sources {
            let there: Vec<&Fetch> = self.flying.iter().filter(|fetch| fetch.from == from).collect();
            for &job in source.ready.keys() {
                let Some(&tier) = tiers.get(&job.0) else { continue };
                let grant = self.order.grants.iter().find(|(named, _)| *named == job);
                let capped = match grant {
                    Some((_, LaneShare::Requests(most))) => {
                        *most as usize <= self.flying.iter().filter(|fetch| fetch.job == job).count()
                    }
                    _ => false,
                };
                if !capped
                    && room(&all, tier, self.limits.requests_max)
                    && room(&there, tier, self.limits.requests_per_source_max)
                {
                    possible.push((job.0, from));
                }
            }
        }
        possible
    }

    fn send(&mut self) -> bool {
        let ready = self.plan.wake_at(self.now).is_none_or(|wake| self.now < wake);
        assert!(ready);
        self.plan.end_pauses(self.now);
        let (possible, tiers) = (self.possible(), self.tiers());
        let Some(fetch) = self.plan.next(self.now) else {
            assert_eq!(possible, [], "something could be fetched and nothing was");
            return false;
        };
        assert!(possible.contains(&(fetch.job.0, fetch.from)), "{fetch:?} of {possible:?}");
        let first = possible.iter().map(|(job, _)| tiers[job]).min();
        assert_eq!(Some(tiers[&fetch.job.0]), first, "{fetch:?} although {possible:?}");
        assert!((1..=self.limits.maps_per_request_max).contains(&fetch.maps.len()), "{fetch:?}");
        for map in &fetch.maps {
            assert_eq!(map.task.job, fetch.job);
            assert!(self.owed.contains(&(*map, fetch.from)), "{map} was asked for and no reduce wants it");
            let twice = |other: &Fetch| other.from == fetch.from && self.plan.wants(other.id, *map);
            assert!(!self.flying.iter().any(twice), "{map} is in two requests");
        }
        self.flying.push(fetch);
        true
    }

    fn end(&mut self, at: usize, fails: u32) {
        let fetch = self.flying.swap_remove(at);
        for (turn, map) in (0..).zip(&fetch.maps) {
            if turn % 10 < fails {
                // Either kind of failure, a closed connection or damage, may be given up.
                let retry = match turn % 2 {
                    0 => self.plan.unreachable(fetch.id, *map, self.now),
                    _ => self.plan.failed(fetch.id, *map, self.now),
                };
                if retry == Retry::GiveUp {
                    self.owed.remove(&(*map, fetch.from));
                }
            } else if self.plan.wants(fetch.id, *map) {
                let again = self.plan.in_flight[&fetch.id].again.contains(map);
                // The outputs of one job are small.
                let bytes = if map.task.job == JobId(1) { 1000 } else { 3 << 20 };
                self.plan.arrived(fetch.id, *map, bytes);
                if !again {
                    self.owed.remove(&(*map, fetch.from));
                }
            }
        }
        self.plan.ended(fetch.id);
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Order { ref grants, only } => {
                let grants: Vec<_> = grants.iter().map(|&(job, number)| (job, share(number))).collect();
                self.order = LaneOrder { only, lines: vec![0.5, 0.0], ..order(&grants) };
                self.plan.order(&self.order);
            }
            Step::Announce { job, index, from } => {
                self.plan.announce(map(job, index), WorkerId(from), &endpoint());
                self.owed.insert((map(job, index), WorkerId(from)));
            }
            Step::Retract { job, index } => {
                self.plan.retract(map(job, index));
                self.owed.retain(|(owed, _)| *owed != map(job, index));
            }
            Step::Forget { job } => {
                self.plan.forget(JobId(job));
                self.owed.retain(|(owed, _)| owed.task.job != JobId(job));
            }
            Step::Send => drop(self.send()),
            Step::End { which, fails } if !self.flying.is_empty() => {
                self.end(which.index(self.flying.len()), fails);
            }
            Step::End { .. } => {}
            Step::Pass { ms } => self.now = self.now + Span::milliseconds(ms),
        }
    }
}

proptest! {
    #[test]
    fn plan_asks_for_all_that_is_owed_within_its_limits_and_for_nothing_else(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let limits = FetchLimits {
            requests_max: 3,
            requests_per_source_max: 2,
            maps_per_request_max: 2,
            ..FetchLimits::default()
        };
        let (plan, now) = (plan(limits.clone()), Time::ZERO);
        let order = LaneOrder::default();
        let mut watched = Watched { plan, limits, now, order, flying: Vec::new(), owed: BTreeSet::new() };
        for step in &steps {
            watched.apply(step);
        }
        // From here on everything arrives, and every job is served.
        watched.apply(&Step::Order { grants: Vec::new(), only: false });
        while !watched.owed.is_empty() || !watched.flying.is_empty() {
            while watched.send() {}
            if watched.flying.is_empty() {
                watched.now = watched.plan.wake_at(watched.now).expect("what is owed waits for a pause");
            } else {
                watched.end(0, 0);
            }
        }
        prop_assert!(watched.plan.sources.is_empty(), "{:?}", watched.plan);
        prop_assert!(watched.plan.request_of.is_empty());
    }
}
