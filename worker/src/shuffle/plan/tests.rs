//! Tests of the requests of a plan: which, when, and how often.

mod histories;

use super::*;
use crate::protocol::LaneShare;
use gristmill_scheduler::ids::TaskId;
use gristmill_scheduler::units::Span;

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
    end(&mut plan, &urgent[0], 4 << 20);
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
        end(&mut plan, &flying.remove(0), 4 << 20);
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
fn plan_keeps_full_requests_in_flight_while_another_job_has_few_small_outputs() {
    let limits = FetchLimits { request_bytes_max: 4000, maps_per_request_max: 1, ..FetchLimits::default() };
    let mut plan = plan(limits);
    plan.order(&order(&[(1, LaneShare::Weight(1.0)), (2, LaneShare::Weight(1.0))]));
    // Both sizes are known from here on.
    for job in [1, 2] {
        plan.announce(map(job, 0), WorkerId(0), &endpoint());
    }
    for fetch in send_all(&mut plan) {
        end(&mut plan, &fetch, if fetch.job == JobId(1) { 3000 } else { 10 });
    }
    (1..5).for_each(|index| plan.announce(map(2, index), WorkerId(index), &endpoint()));
    let small = send_all(&mut plan);
    (1..100).for_each(|index| plan.announce(map(1, index), WorkerId(index % 8), &endpoint()));
    let full = send_all(&mut plan);
    assert_eq!((small.len(), full.len()), (4, 7), "the small ones count as one");
    // A job that is less urgent than the small requests may not use their room.
    plan.order(&order(&[(2, LaneShare::All), (1, LaneShare::All)]));
    end(&mut plan, &full[0], 3000);
    end(&mut plan, &full[1], 3000);
    end(&mut plan, &full[2], 3000);
    assert_eq!(send_all(&mut plan), []);
}

#[test]
fn plan_shares_bytes_by_weight_whatever_the_sizes_of_outputs() {
    for (maps, sizes) in [(16, [300, 1700]), (1, [3000, 900])] {
        plan_shares_bytes_by_weight(maps, sizes);
    }
}

fn plan_shares_bytes_by_weight(maps: usize, sizes: [u64; 2]) {
    let limits =
        FetchLimits { request_bytes_max: 4000, maps_per_request_max: maps, ..FetchLimits::default() };
    let mut plan = plan(limits);
    plan.order(&order(&[(1, LaneShare::Weight(2.0)), (2, LaneShare::Weight(1.0))]));
    for index in 0..4000 {
        plan.announce(map(1, index), WorkerId(index % 2), &endpoint());
        plan.announce(map(2, index), WorkerId(index % 2), &endpoint());
    }
    let mut flying: Vec<Fetch> = Vec::new();
    let mut had = [0_u64; 2];
    for _ in 0..300 {
        flying.extend(send_all(&mut plan));
        assert!((4..=8).contains(&flying.len()), "two full ones at each source");
        let fetch = flying.remove(0);
        let bytes = sizes[fetch.job.0 as usize - 1];
        had[fetch.job.0 as usize - 1] += bytes * fetch.maps.len() as u64;
        end(&mut plan, &fetch, bytes);
    }
    let share = had[0] as f64 / had[1] as f64;
    assert!((1.95..2.05).contains(&share), "{had:?}");
}
