//! What a plan asks for, when, and how often.

use super::*;
use gristmill_scheduler::ids::TaskId;
use proptest::prelude::*;

fn map(job: u32, index: u32) -> AttemptId {
    TaskId::map(JobId(job), index).attempt(0)
}

fn endpoint() -> Endpoint {
    "127.0.0.1:9".parse().unwrap()
}

fn plan(limits: FetchLimits) -> FetchPlan {
    FetchPlan::new(limits)
}

#[test]
fn plan_puts_waiting_maps_of_a_job_into_one_request() {
    let mut plan = plan(FetchLimits { maps_per_request_max: 2, ..FetchLimits::default() });
    for index in 0..3 {
        plan.announce(map(1, index), WorkerId(1), &endpoint());
    }
    let first = plan.next(Time::ZERO).unwrap();
    assert_eq!(first.maps, [map(1, 0), map(1, 1)]);
    assert_eq!(plan.next(Time::ZERO).unwrap().maps, [map(1, 2)]);
    assert_eq!(plan.next(Time::ZERO), None);
}

#[test]
fn plan_never_exceeds_requests_for_one_source_or_in_all() {
    let limits = FetchLimits { requests_max: 3, maps_per_request_max: 1, ..FetchLimits::default() };
    let mut plan = plan(limits);
    for index in 0..10 {
        plan.announce(map(1, index), WorkerId(1 + index % 2), &endpoint());
    }
    let sent: Vec<_> = std::iter::from_fn(|| plan.next(Time::ZERO)).collect();
    let to = |worker| sent.iter().filter(|fetch| fetch.from == WorkerId(worker)).count();
    assert_eq!((sent.len(), to(1), to(2)), (3, 2, 1));
}

#[test]
fn plan_gives_up_after_the_last_try_and_pauses_twice_as_long_each_time() {
    let limits = FetchLimits { tries_max: 3, ..FetchLimits::default() };
    let pause = limits.pause;
    let mut plan = plan(limits);
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    let mut now = Time::ZERO;
    for tries in 1..=2 {
        let fetch = plan.next(now).unwrap();
        assert_eq!(plan.failed(fetch.id, map(1, 0), now), Retry::Later);
        plan.ended(fetch.id);
        assert_eq!(plan.next(now), None, "no pause after try {tries}");
        let wake = plan.wake_at(now).unwrap();
        assert_eq!(wake.since(now), Span(pause.0 * tries));
        now = wake;
    }
    let fetch = plan.next(now).unwrap();
    assert_eq!(plan.failed(fetch.id, map(1, 0), now), Retry::GiveUp);
    plan.ended(fetch.id);
    assert_eq!(plan.wake_at(now), None);
}

#[test]
fn plan_drops_the_result_of_a_map_retracted_in_flight() {
    let mut plan = plan(FetchLimits::default());
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    let fetch = plan.next(Time::ZERO).unwrap();
    plan.retract(map(1, 0));
    assert!(!plan.wants(fetch.id, map(1, 0)));
    assert_eq!(plan.failed(fetch.id, map(1, 0), Time::ZERO), Retry::NotWanted);
    plan.ended(fetch.id);
    assert_eq!(plan.next(Time::ZERO), None);
}

#[test]
fn plan_asks_once_more_for_a_map_announced_again_in_flight() {
    let mut plan = plan(FetchLimits::default());
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    let first = plan.next(Time::ZERO).unwrap();
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    assert_eq!(plan.next(Time::ZERO), None, "the first request is still in flight");
    plan.arrived(first.id, map(1, 0));
    plan.ended(first.id);
    let second = plan.next(Time::ZERO).unwrap();
    assert_eq!(second.maps, [map(1, 0)]);
    plan.arrived(second.id, map(1, 0));
    plan.ended(second.id);
    assert_eq!(plan.next(Time::ZERO), None);
}

#[test]
fn plan_takes_sources_in_turn() {
    let limits = FetchLimits { requests_max: 1, maps_per_request_max: 1, ..FetchLimits::default() };
    let mut plan = plan(limits);
    for index in 0..4 {
        plan.announce(map(1, index), WorkerId(1 + index % 2), &endpoint());
    }
    let mut order = Vec::new();
    while let Some(fetch) = plan.next(Time::ZERO) {
        order.push(fetch.from.0);
        plan.arrived(fetch.id, fetch.maps[0]);
        plan.ended(fetch.id);
    }
    assert_eq!(order, [1, 2, 1, 2]);
}

#[derive(Clone, Debug)]
enum Step {
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
    /// Some request ends; each of its maps fails by this chance out of ten.
    End {
        which: prop::sample::Index,
        fails: u32,
    },
    Pass {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let map = (1..3_u32, 0..6_u32);
    prop_oneof![
        6 => (map.clone(), 1..4_u32).prop_map(|((job, index), from)| Step::Announce { job, index, from }),
        1 => map.prop_map(|(job, index)| Step::Retract { job, index }),
        1 => (1..3_u32).prop_map(|job| Step::Forget { job }),
        4 => Just(Step::Send),
        4 => (any::<prop::sample::Index>(), 0..10_u32).prop_map(|(which, fails)| Step::End { which, fails }),
        2 => (1..300_u64).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// A plan, and beside it what is owed: announced, and neither arrived, given up nor retracted.
struct Watched {
    plan: FetchPlan,
    limits: FetchLimits,
    now: Time,
    flying: Vec<Fetch>,
    owed: BTreeSet<(AttemptId, WorkerId)>,
}

impl Watched {
    fn send(&mut self) -> bool {
        let Some(fetch) = self.plan.next(self.now) else { return false };
        let to_source = self.flying.iter().filter(|other| other.from == fetch.from).count();
        assert!(self.flying.len() < self.limits.requests_max, "too many requests");
        assert!(to_source < self.limits.requests_per_source_max, "too many requests to one source");
        assert!((1..=self.limits.maps_per_request_max).contains(&fetch.maps.len()), "{fetch:?}");
        for map in &fetch.maps {
            assert_eq!(map.task.job, fetch.job);
            assert!(self.owed.contains(&(*map, fetch.from)), "{map} was asked for and nobody wants it");
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
                if self.plan.failed(fetch.id, *map, self.now) == Retry::GiveUp {
                    self.owed.remove(&(*map, fetch.from));
                }
            } else if self.plan.wants(fetch.id, *map) {
                let again = self.plan.in_flight[&fetch.id].again.contains(map);
                self.plan.arrived(fetch.id, *map);
                if !again {
                    self.owed.remove(&(*map, fetch.from));
                }
            }
        }
        self.plan.ended(fetch.id);
    }

    fn take(&mut self, step: &Step) {
        match *step {
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
        let mut watched = Watched { plan, limits, now, flying: Vec::new(), owed: BTreeSet::new() };
        for step in &steps {
            watched.take(step);
        }
        // From here on everything arrives.
        while !watched.owed.is_empty() || !watched.flying.is_empty() {
            while watched.send() {}
            if watched.flying.is_empty() {
                watched.now = watched.plan.wake_at(watched.now).expect("what is owed waits for a pause");
            } else {
                watched.end(0, 0);
            }
        }
        prop_assert!(watched.plan.sources.is_empty(), "{:?}", watched.plan);
        prop_assert!(watched.plan.flies.is_empty() && watched.plan.open.is_empty());
    }
}
