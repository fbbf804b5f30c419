//! Tests of workers that do not reach each other although the master reaches all, of silent workers, and of draining.

use super::driver::{JOB, Table, check, map, plain};
use crate::core::RouteLimits;
use crate::event::{Event, Failure, FetchRate};
use crate::ids::WorkerId;
use crate::job::MapSpec;
use crate::units::{Bytes, Span};

/// Builds three workers of two slots. Six maps are done, two on each worker, and the homes have read nothing.
fn six_maps_are_done() -> Table {
    let mut table = Table::with_workers(&[2, 2, 2]);
    table.submit(plain(6, 3));
    for index in 0..6 {
        table.map_done(map(index, 0));
    }
    table
}

/// True if this worker keeps the output of a map that a partition lacks.
fn keeps(table: &Table, worker: u32, index: u32) -> bool {
    let keeps = |home| table.core.could_fetch(WorkerId(home), map(index, 0), WorkerId(worker));
    (1..=3).any(keeps)
}

/// Returns the maps whose output this worker keeps.
fn kept_at(table: &Table, worker: u32) -> Vec<u32> {
    (0..6).filter(|&index| keeps(table, worker, index)).collect()
}

fn count(orders: &[String], start: &str, end: &str) -> usize {
    orders.iter().filter(|order| order.starts_with(start) && order.ends_with(end)).count()
}

#[test]
fn all_outputs_behind_a_cut_way_are_made_again_at_once_and_away_from_it() {
    let mut table = six_maps_are_done();
    let lacked = kept_at(&table, 3);
    assert_eq!(lacked.len(), 2);
    let orders = table.fetch_failed(1, map(lacked[0], 0), Failure::Fetch);
    assert_eq!(count(&orders, "retract ", " to w1"), 2, "{orders:?}");
    assert_eq!(count(&orders, "unhome ", " at w3"), 1, "{orders:?}");
    assert_eq!((count(&orders, "launch ", ""), count(&orders, "launch ", " on w3")), (2, 0), "{orders:?}");
    let late = table.core.late_events();
    check(&table.fetch_failed(1, map(lacked[1], 0), Failure::Fetch), "");
    assert_eq!(table.core.late_events(), late + 1);
}

#[test]
fn the_worker_that_no_other_reaches_is_set_aside_and_the_one_suspected_first_comes_back() {
    let mut table = six_maps_are_done();
    let (of_first, of_third) = (kept_at(&table, 1), kept_at(&table, 3));
    // The third worker is cut off. After the first pair either end may be at fault; after the second it is clear.
    table.fetch_failed(3, map(of_first[0], 0), Failure::Fetch);
    assert_eq!(table.core.set_aside().collect::<Vec<_>>(), [WorkerId(3)]);
    let mut table = six_maps_are_done();
    table.fetched(2, map(of_third[0], 0), &[1]);
    table.now = table.now + Span::whole_seconds(5);
    table.fetched(2, map(of_first[0], 0), &[1]);
    table.fetch_failed(3, map(of_first[0], 0), Failure::Fetch);
    assert_eq!(
        table.core.set_aside().collect::<Vec<_>>(),
        [WorkerId(3)],
        "the first has just been read from"
    );
    let second = table.fetch_failed(2, map(of_third[1], 0), Failure::Fetch);
    assert_eq!(table.core.set_aside().collect::<Vec<_>>(), [WorkerId(3)], "{second:?}");
    assert_eq!(count(&second, "retract ", " to w2"), 1, "{second:?}");
}

#[test]
fn a_worker_that_is_set_aside_gets_nothing_of_new_jobs_until_its_time_is_over() {
    let mut table = six_maps_are_done();
    let lacked = kept_at(&table, 3);
    table.fetch_failed(1, map(lacked[0], 0), Failure::Fetch);
    let orders = table.submit(plain(8, 3));
    assert_eq!(count(&orders, "", "w3"), 0, "{orders:?}");
    table.now = table.now + RouteLimits::default().cut_for;
    let orders = table.handle(&[Event::Tick]);
    assert_eq!(count(&orders, "launch ", " on w3"), 2, "{orders:?}");
    assert_eq!(table.core.set_aside().count(), 0);
}

#[test]
fn a_worker_that_is_set_aside_comes_back_when_the_other_end_is_lost() {
    let mut table = six_maps_are_done();
    let lacked = kept_at(&table, 3);
    table.fetch_failed(1, map(lacked[0], 0), Failure::Fetch);
    table.submit(plain(8, 3));
    let orders = table.lose(1);
    assert_eq!(count(&orders, "launch ", " on w3"), 2, "{orders:?}");
}

#[test]
fn an_output_made_where_a_home_cannot_read_it_is_made_again() {
    // All three have one slot; the third worker still runs a map when it is set aside.
    let mut table = Table::with_workers(&[1, 1, 1]);
    table.submit(plain(4, 3));
    for index in 0..3 {
        table.map_done(map(index, 0));
    }
    let (running, snapshot) = table.core.attempts().next().unwrap();
    let at = snapshot.worker;
    let home = if at == WorkerId(1) { 2 } else { 1 };
    let there = (0..3).find(|&index| keeps(&table, at.0, index)).unwrap();
    // The other worker has just been read from, so this one is set aside.
    let other = (0..3).find(|&index| keeps(&table, home, index)).unwrap();
    let third = 6 - home - at.0;
    table.now = table.now + Span::whole_seconds(5);
    table.fetched(third, map(other, 0), &[third - 1]);
    table.fetch_failed(home, map(there, 0), Failure::Fetch);
    assert_eq!(table.core.set_aside().collect::<Vec<_>>(), [at]);
    let orders = table.map_done(running);
    let again = format!("retract {} to w{home}", map(3, 0)).replace("job-1/", "");
    assert!(orders.contains(&again), "{orders:?}");
    assert_eq!(table.job(JOB).attempts.failed.iter().sum::<u32>(), 0, "nobody is charged");
}

#[test]
fn a_job_ends_on_one_worker_where_nobody_reaches_anybody() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 2));
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    let orders = table.fetch_failed(1, map(1, 0), Failure::Fetch);
    let stays = if table.core.set_aside().eq([WorkerId(1)]) { 2 } else { 1 };
    assert_eq!(count(&orders, "home ", &format!(" at w{stays}")), 1, "{orders:?}");
    assert!((0..2).all(|part| table.core.home(JOB, part) == Some(WorkerId(stays))));
}

#[test]
fn a_silent_worker_gets_nothing_new_until_it_is_heard_of() {
    let mut table = Table::with_workers(&[1, 1]);
    let silent = |silent| Event::WorkerSilent { worker: WorkerId(1), silent };
    check(&table.handle(&[silent(true)]), "");
    let orders = table.submit(plain(3, 0));
    assert_eq!(
        (count(&orders, "launch ", " on w1"), count(&orders, "launch ", " on w2")),
        (0, 1),
        "{orders:?}"
    );
    let orders = table.handle(&[silent(false)]);
    assert_eq!(count(&orders, "launch ", " on w1"), 1, "{orders:?}");
}

#[test]
fn a_way_to_a_silent_worker_is_not_judged() {
    let mut table = six_maps_are_done();
    let kept = kept_at(&table, 3);
    table.handle(&[Event::WorkerSilent { worker: WorkerId(3), silent: true }]);
    let again = format!("announce {} from w3 to w1", map(kept[0], 0)).replace("job-1/", "");
    check(&table.fetch_failed(1, map(kept[0], 0), Failure::Fetch), &again);
    assert_eq!(table.core.set_aside().count(), 0);
}

/// Reports that these homes received this many bytes per second from those sources, for 3 s.
fn rates(table: &mut Table, routes: &[(u32, u32, u64)]) -> Vec<String> {
    let told: Vec<Event> = routes.iter().map(|&(home, from, bytes)| fetch_rate(home, from, bytes)).collect();
    table.handle(&told)
}

fn fetch_rate(home: u32, from: u32, bytes_per_second: u64) -> Event {
    let busy = Span::whole_seconds(3);
    let route = FetchRate { from: WorkerId(from), bytes: Bytes(3 * bytes_per_second), busy };
    Event::FetchRates { home: WorkerId(home), routes: vec![route] }
}

/// Rates between the first and the second worker are high; the third is slow. No decision is made before the last
/// report.
const THIRD_IS_SLOW: [(u32, u32, u64); 4] = [(1, 2, 1000), (2, 1, 1000), (3, 1, 1), (1, 3, 1)];

#[test]
fn all_outputs_of_a_worker_behind_a_slow_link_are_made_again_elsewhere() {
    let mut table = six_maps_are_done();
    let orders = rates(&mut table, &THIRD_IS_SLOW);
    assert_eq!(table.core.set_aside().collect::<Vec<_>>(), [WorkerId(3)]);
    assert_eq!(count(&orders, "unhome ", " at w3"), 1, "{orders:?}");
    assert_eq!((count(&orders, "launch ", ""), count(&orders, "launch ", " on w3")), (2, 0), "{orders:?}");
    // The next job also avoids it, until its time is over.
    let orders = table.submit(plain(8, 3));
    assert_eq!(count(&orders, "", "w3"), 0, "{orders:?}");
    table.now = table.now + RouteLimits::default().cut_for;
    table.handle(&[Event::Tick]);
    assert_eq!(table.core.set_aside().count(), 0);
}

#[test]
fn what_comes_soon_over_a_slow_way_is_waited_for() {
    let mut table = six_maps_are_done();
    // Two outputs of 10 bytes, a third of them for each home, arrive within a second; making them also takes a second.
    check(&rates(&mut table, &[(1, 2, 1000), (2, 1, 1000), (3, 1, 10), (1, 3, 10)]), "");
    assert_eq!(table.core.set_aside().count(), 0);
}

#[test]
fn what_can_be_made_nowhere_else_is_waited_for_over_a_slow_way() {
    let mut table = Table::with_workers(&[2, 2, 2]);
    let mut spec = plain(6, 3);
    spec.maps[5] = MapSpec { preferred: vec![WorkerId(3)], pinned: true, ..spec.maps[5].clone() };
    table.submit(spec);
    for index in 0..6 {
        table.map_done(map(index, 0));
    }
    assert!(keeps(&table, 3, 5));
    check(&rates(&mut table, &[(1, 2, 1000), (2, 1, 1000), (1, 3, 1)]), "");
}

#[test]
fn workers_of_one_host_say_nothing_about_the_network() {
    let mut table = Table::with_workers(&[2]);
    // The second worker shares the host of the first.
    table.join_host(2, 1);
    table.join(2);
    table.submit(plain(6, 3));
    for index in 0..6 {
        table.map_done(map(index, 0));
    }
    check(&rates(&mut table, &THIRD_IS_SLOW), "");
}

#[test]
fn rates_of_a_worker_that_is_gone_come_too_late() {
    let mut table = six_maps_are_done();
    table.lose(3);
    let late = table.core.late_events();
    check(&rates(&mut table, &[(3, 1, 1)]), "");
    assert_eq!(table.core.late_events(), late + 1);
}

fn drain(table: &mut Table, worker: u32) -> Vec<String> {
    table.handle(&[Event::WorkerDraining { worker: WorkerId(worker) }])
}

#[test]
fn a_worker_that_is_to_leave_gets_nothing_new_and_goes_when_what_it_runs_has_ended() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(3, 0));
    assert!(!table.core.may_leave(WorkerId(1), table.now), "nobody asked for it");
    check(&drain(&mut table, 1), "");
    assert!(!table.core.may_leave(WorkerId(1), table.now), "it runs a map");
    table.ask_commit(map(0, 0));
    check(&table.map_done(map(0, 0)), "");
    assert!(table.core.may_leave(WorkerId(1), table.now));
    table.ask_commit(map(1, 0));
    check(&table.map_done(map(1, 0)), "launch map-2.0 on w2");
    assert_eq!(table.core.set_aside().count(), 0, "its routes are well");
    check(&table.lose(1), "");
    assert_eq!(table.job(JOB).attempts.failed.iter().sum::<u32>(), 0);
    assert_eq!(table.core.set_aside().count(), 0, "it has gone");
}

#[test]
fn a_worker_that_is_to_leave_stays_until_others_have_what_they_lack_of_it() {
    let mut table = six_maps_are_done();
    let kept = kept_at(&table, 1);
    let orders = drain(&mut table, 1);
    assert_eq!(
        (count(&orders, "unhome ", " at w1"), count(&orders, "home ", " at w1")),
        (1, 0),
        "{orders:?}"
    );
    assert_eq!(count(&orders, "retract ", ""), 0, "others can still read there: {orders:?}");
    let fetch_all = |table: &mut Table, index: u32| {
        for home in 2..=3 {
            let at = |part: &u32| table.core.home(JOB, *part) == Some(WorkerId(home));
            let partitions: Vec<u32> = (0..3).filter(at).collect();
            table.fetched(home, map(index, 0), &partitions);
        }
    };
    fetch_all(&mut table, kept[0]);
    assert!(!table.core.may_leave(WorkerId(1), table.now), "they lack the other one");
    fetch_all(&mut table, kept[1]);
    assert!(table.core.may_leave(WorkerId(1), table.now));
    let orders = table.lose(1);
    assert_eq!(count(&orders, "launch ", ""), 0, "nothing is made again: {orders:?}");
}

#[test]
fn a_worker_that_is_to_leave_goes_without_its_outputs_when_nobody_fetches_them_for_long() {
    let mut table = six_maps_are_done();
    drain(&mut table, 1);
    let end = table.now + RouteLimits::default().drain_max;
    assert!(!table.core.may_leave(WorkerId(1), end - crate::units::Span(1)));
    assert!(table.core.may_leave(WorkerId(1), end));
    let orders = table.lose(1);
    assert_eq!(count(&orders, "retract ", ""), 4, "two maps, two homes: {orders:?}");
}

/// Reports the free space of a worker; the reserve is 10 MiB.
fn room(table: &mut Table, worker: u32, free_mib: u64) -> Vec<String> {
    let (free, reserve) = (Bytes::mib(free_mib), Bytes::mib(10));
    table.handle(&[Event::WorkerDiskRoom { worker: WorkerId(worker), free, reserve }])
}

#[test]
fn a_worker_whose_disk_is_full_gets_nothing_new_keeps_its_outputs_and_comes_back_with_room() {
    let mut table = six_maps_are_done();
    let kept = kept_at(&table, 1);
    let orders = room(&mut table, 1, 10);
    assert!(table.core.disk_full(WorkerId(1)));
    assert_eq!(table.core.set_aside().count(), 0, "no way to it is cut");
    assert_eq!(count(&orders, "unhome ", " at w1"), 1, "others gather its partition: {orders:?}");
    assert_eq!(count(&orders, "retract ", ""), 0, "others can still read there: {orders:?}");
    assert_eq!(kept_at(&table, 1), kept);
    let orders = table.submit(plain(6, 3));
    assert_eq!(
        (count(&orders, "launch ", " on w1"), count(&orders, "home ", " at w1")),
        (0, 0),
        "{orders:?}"
    );
    check(&room(&mut table, 1, 20), "");
    assert!(table.core.disk_full(WorkerId(1)), "twice the reserve is to be free");
    let orders = room(&mut table, 1, 21);
    assert!(!table.core.disk_full(WorkerId(1)));
    assert_eq!(count(&orders, "launch ", " on w1"), 2, "{orders:?}");
}

#[test]
fn room_matters_where_it_makes_a_worker_full_or_not_full_any_more() {
    let mut table = Table::with_workers(&[1, 1]);
    let matters =
        |table: &Table, free| table.core.room_matters(WorkerId(1), Bytes::mib(free), Bytes::mib(10));
    assert_eq!([10, 11].map(|free| matters(&table, free)), [true, false]);
    room(&mut table, 1, 3);
    assert_eq!([0, 20, 21].map(|free| matters(&table, free)), [false, false, true]);
    assert!(!table.core.room_matters(WorkerId(3), Bytes::ZERO, Bytes::ZERO), "there is no such worker");
}

#[test]
fn workers_whose_disks_are_all_full_are_used_all_the_same() {
    let mut table = Table::with_workers(&[1, 1]);
    room(&mut table, 1, 0);
    room(&mut table, 2, 0);
    // Tasks that have to spill fail there, and report why.
    let orders = table.submit(plain(2, 0));
    assert_eq!(count(&orders, "launch ", ""), 2, "{orders:?}");
}
