//! Tests of the requests of a plan: which, when, and how often.

use super::*;
use crate::protocol::LaneShare;
use gristmill_scheduler::ids::TaskId;
use gristmill_scheduler::units::Span;
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

/// Sends a request, after a pause if needed, which fails with its source after `took`. Returns the results of its maps.
fn breaks(plan: &mut FetchPlan, now: &mut Time, took: Span) -> Vec<Retry> {
    let fetch = plan.next(*now).or_else(|| {
        *now = plan.wake_at(*now)?;
        plan.next(*now)
    });
    let fetch = fetch.expect("something is owed");
    *now = *now + took;
    let retries = fetch.maps.iter().map(|map| plan.unreachable(fetch.id, *map, *now)).collect();
    plan.ended(fetch.id);
    retries
}

#[test]
fn plan_gives_up_a_source_after_two_slow_failures_one_after_the_other() {
    let (slow, mut now) = (Span::whole_seconds(2), Time::ZERO);
    let mut plan = plan(FetchLimits { maps_per_request_max: 2, ..FetchLimits::default() });
    for index in 0..6 {
        plan.announce(map(1, index), WorkerId(1), &endpoint());
    }
    assert_eq!(breaks(&mut plan, &mut now, slow), [Retry::Later; 2]);
    assert_eq!(breaks(&mut plan, &mut now, slow), [Retry::GiveUp; 2], "other outputs, and the same way");
    assert_eq!(breaks(&mut plan, &mut now, slow), [Retry::GiveUp; 2], "until they are retracted");
    assert_eq!(now.since(Time::ZERO), Span::whole_seconds(6));
}

#[test]
fn plan_counts_failures_of_requests_that_were_in_flight_together_as_one() {
    let mut plan = plan(FetchLimits { maps_per_request_max: 1, ..FetchLimits::default() });
    for index in 0..2 {
        plan.announce(map(1, index), WorkerId(1), &endpoint());
    }
    let sent = send_all(&mut plan);
    let now = Time::ZERO + Span::whole_seconds(2);
    for fetch in &sent {
        assert_eq!(plan.unreachable(fetch.id, fetch.maps[0], now), Retry::Later);
        plan.ended(fetch.id);
    }
    assert_eq!(sent.len(), 2);
}

#[test]
fn plan_forgives_a_source_its_failures_when_a_request_brings_all() {
    let (slow, mut now) = (Span::whole_seconds(2), Time::ZERO);
    let mut plan = plan(FetchLimits { maps_per_request_max: 1, ..FetchLimits::default() });
    for index in 0..4 {
        plan.announce(map(1, index), WorkerId(1), &endpoint());
    }
    for _ in 0..2 {
        assert_eq!(breaks(&mut plan, &mut now, slow), [Retry::Later]);
        let well = plan.next(now).unwrap();
        end(&mut plan, &well, 1000);
    }
}

#[test]
fn plan_tries_four_times_in_less_than_a_second_where_failures_come_at_once() {
    let (at_once, mut now) = (Span(0), Time::ZERO);
    let mut plan = plan(FetchLimits::default());
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    for _ in 0..3 {
        assert_eq!(breaks(&mut plan, &mut now, at_once), [Retry::Later]);
    }
    assert_eq!(breaks(&mut plan, &mut now, at_once), [Retry::GiveUp]);
    assert_eq!(now.since(Time::ZERO), Span::milliseconds(700));
}

#[test]
fn plan_counts_no_try_while_a_shortage_is_short() {
    let limits = FetchLimits { tries_max: 2, ..FetchLimits::default() };
    let (pause, shortage_max) = (limits.pause, limits.shortage_max);
    let mut plan = plan(limits);
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    let (mut now, mut asked) = (Time::ZERO, 0);
    let end = loop {
        let fetch = plan.next(now).unwrap();
        let retry = plan.lacked_means(fetch.id, map(1, 0), now);
        plan.ended(fetch.id);
        if retry == Retry::GiveUp {
            break now;
        }
        asked += 1;
        assert_eq!(plan.next(now), None, "no pause");
        now = plan.wake_at(now).unwrap();
    };
    assert_eq!(end, Time::ZERO + shortage_max + pause, "two tries count at its end");
    assert_eq!(asked, shortage_max.0 / pause.0 + 1);
    // An output that has arrived since shows that the shortage is over.
    plan.announce(map(1, 1), WorkerId(1), &endpoint());
    let fetch = plan.next(now).unwrap();
    plan.arrived(fetch.id, map(1, 1), 1);
    plan.ended(fetch.id);
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    let fetch = plan.next(now).unwrap();
    assert_eq!(plan.lacked_means(fetch.id, map(1, 0), now), Retry::Later);
    plan.ended(fetch.id);
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
    plan.arrived(first.id, map(1, 0), 1000);
    plan.ended(first.id);
    let second = plan.next(Time::ZERO).unwrap();
    assert_eq!(second.maps, [map(1, 0)]);
    plan.arrived(second.id, map(1, 0), 1000);
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
        plan.arrived(fetch.id, fetch.maps[0], 1000);
        plan.ended(fetch.id);
    }
    assert_eq!(order, [1, 2, 1, 2]);
}

fn order(grants: &[(u32, LaneShare)]) -> LaneOrder {
    let grants = grants.iter().map(|&(job, share)| (JobId(job), share)).collect();
    LaneOrder { grants, ..LaneOrder::default() }
}

/// Sends all requests that are allowed now.
fn send_all(plan: &mut FetchPlan) -> Vec<Fetch> {
    std::iter::from_fn(|| plan.next(Time::ZERO)).collect()
}

/// Ends a complete request, each map with this many bytes.
fn end(plan: &mut FetchPlan, fetch: &Fetch, bytes: u64) {
    fetch.maps.iter().for_each(|map| plan.arrived(fetch.id, *map, bytes));
    plan.ended(fetch.id);
}

#[test]
fn plan_sends_for_an_urgent_job_although_others_have_taken_all_requests() {
    let mut plan = plan(FetchLimits { maps_per_request_max: 1, ..FetchLimits::default() });
    plan.order(&order(&[(2, LaneShare::All), (1, LaneShare::All)]));
    for (worker, index) in (0..4).flat_map(|worker| (0..4).map(move |index| (worker, worker * 4 + index))) {
        plan.announce(map(1, index), WorkerId(worker), &endpoint());
    }
    assert_eq!(send_all(&mut plan).len(), 8);
    for index in 0..4 {
        plan.announce(map(2, index), WorkerId(1), &endpoint());
    }
    let urgent = send_all(&mut plan);
    assert_eq!(urgent.iter().map(|fetch| fetch.job.0).collect::<Vec<_>>(), [2, 2], "{urgent:?}");
    // Requests of a less urgent job count against a job that is no more urgent.
    plan.order(&order(&[(1, LaneShare::All), (2, LaneShare::All)]));
    end(&mut plan, &urgent[0], 1);
    assert_eq!(send_all(&mut plan), []);
}

#[test]
fn plan_sends_to_other_sources_while_one_stands_still() {
    let mut plan = plan(FetchLimits { maps_per_request_max: 1, ..FetchLimits::default() });
    plan.order(&order(&[(1, LaneShare::All), (2, LaneShare::All)]));
    for index in 0..20 {
        plan.announce(map(1, index), WorkerId(1), &endpoint());
        plan.announce(map(2, index), WorkerId(2), &endpoint());
    }
    let first = send_all(&mut plan);
    assert_eq!(first.iter().map(|fetch| fetch.job.0).collect::<Vec<_>>(), [1, 1, 2, 2]);
    // The first source is stalled; the second job continues.
    let mut flying: Vec<Fetch> = first.into_iter().filter(|fetch| fetch.job == JobId(2)).collect();
    for _ in 2..20 {
        end(&mut plan, &flying.remove(0), 1);
        flying.extend(send_all(&mut plan));
        assert_eq!(flying.len(), 2);
    }
}

#[test]
fn plan_keeps_a_job_to_the_requests_that_it_was_granted() {
    let mut plan = plan(FetchLimits { maps_per_request_max: 1, ..FetchLimits::default() });
    plan.order(&order(&[(1, LaneShare::Requests(1)), (2, LaneShare::All)]));
    for index in 0..8 {
        plan.announce(map(1, index), WorkerId(index), &endpoint());
        plan.announce(map(2, index), WorkerId(index), &endpoint());
    }
    let sent = send_all(&mut plan);
    assert_eq!(sent.iter().map(|fetch| fetch.job.0).collect::<Vec<_>>(), [1, 2, 2, 2, 2, 2, 2, 2]);
}

#[test]
fn plan_sends_nothing_for_jobs_that_the_order_leaves_out_until_there_is_another() {
    let mut plan = plan(FetchLimits::default());
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    plan.order(&LaneOrder { only: true, ..order(&[(2, LaneShare::All)]) });
    assert_eq!(send_all(&mut plan), []);
    plan.order(&order(&[(2, LaneShare::All)]));
    assert_eq!(send_all(&mut plan).len(), 1);
}

#[test]
fn plan_keeps_requests_short_while_an_order_is_in_force() {
    let mut plan = plan(FetchLimits { request_bytes_max: 1000, ..FetchLimits::default() });
    for index in 0..100 {
        plan.announce(map(1, index), WorkerId(1), &endpoint());
    }
    let free = plan.next(Time::ZERO).unwrap();
    assert_eq!(free.maps.len(), 16, "no order is in force");
    end(&mut plan, &free, 300);
    plan.order(&order(&[(1, LaneShare::All)]));
    assert_eq!(plan.next(Time::ZERO).unwrap().maps.len(), 3);
    plan.announce(map(2, 0), WorkerId(2), &endpoint());
    plan.announce(map(2, 1), WorkerId(2), &endpoint());
    let fetch = send_all(&mut plan).into_iter().find(|fetch| fetch.job == JobId(2)).unwrap();
    assert_eq!(fetch.maps.len(), 1, "nothing is known of its sizes");
}

#[test]
fn plan_keeps_requests_short_on_a_paced_network_before_any_order_has_come() {
    let limits = FetchLimits::default().paced(4_000_000);
    assert_eq!(limits.request_bytes_max, 200_000);
    assert_eq!(FetchLimits::default().paced(1).request_bytes_max, 64 << 10);
    assert_eq!(FetchLimits::default().paced(u64::MAX).request_bytes_max, 4 << 20);
    let mut plan = plan(limits);
    for index in 0..20 {
        plan.announce(map(1, index), WorkerId(1), &endpoint());
    }
    let first = plan.next(Time::ZERO).unwrap();
    assert_eq!(first.maps.len(), 1);
    end(&mut plan, &first, 50_000);
    assert_eq!(plan.next(Time::ZERO).unwrap().maps.len(), 4);
}

#[test]
fn plan_asks_again_for_a_map_whose_request_was_preempted_and_counts_no_try() {
    let limits = FetchLimits { tries_max: 1, ..FetchLimits::default() };
    let mut plan = plan(limits);
    plan.announce(map(1, 0), WorkerId(1), &endpoint());
    let mut now = Time::ZERO;
    for _ in 0..5 {
        let fetch = plan.next(now).unwrap();
        plan.preempted(fetch.id, map(1, 0), now);
        plan.ended(fetch.id);
        assert_eq!(plan.next(now), None);
        now = plan.wake_at(now).unwrap();
    }
}

#[test]
fn plan_shares_bytes_by_weight_whatever_the_sizes_of_outputs() {
    let mut plan = plan(FetchLimits { request_bytes_max: 4000, ..FetchLimits::default() });
    plan.order(&order(&[(1, LaneShare::Weight(2.0)), (2, LaneShare::Weight(1.0))]));
    for index in 0..4000 {
        plan.announce(map(1, index), WorkerId(index % 2), &endpoint());
        plan.announce(map(2, index), WorkerId(index % 2), &endpoint());
    }
    let mut flying: Vec<Fetch> = Vec::new();
    let mut had = [0_u64; 2];
    for _ in 0..300 {
        flying.extend(send_all(&mut plan));
        assert_eq!(flying.len(), 4, "two at each source");
        let fetch = flying.remove(0);
        let bytes = if fetch.job == JobId(1) { 300 } else { 1700 };
        had[fetch.job.0 as usize - 1] += bytes * fetch.maps.len() as u64;
        end(&mut plan, &fetch, bytes);
    }
    let share = had[0] as f64 / had[1] as f64;
    assert!((1.95..2.05).contains(&share), "{had:?}");
}

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
        let room = |flying: &[&Fetch], tier: usize, most: usize| {
            flying.len() < 2 * most && flying.iter().filter(|fetch| tier_of(fetch.job) <= tier).count() < most
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
                self.plan.arrived(fetch.id, *map, 1000);
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
