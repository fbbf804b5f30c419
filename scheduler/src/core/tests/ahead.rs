//! Tests of queuing behind running attempts, and of recalls.

use super::driver::{JOB, Table, check, map, map_finished, plain, reduce};
use crate::core::CoreConfig;
use crate::event::{Event, Failure};
use crate::ids::{AttemptId, JobId, TaskId, WorkerId};
use crate::policy::{Fair, Fifo};
use crate::units::{Bytes, Span};

/// Map time of which two to three fit into the default work queued.
const SHORT: Span = Span(400_000);
const LONG: Span = Span::whole_seconds(60);

fn queued(table: &Table) -> Vec<AttemptId> {
    table.core.attempts().filter(|(_, attempt)| attempt.queued).map(|(id, _)| id).collect()
}

/// Builds a table with one worker of one slot where map 1 runs and maps 2 and 3 are queued.
fn with_queue(maps: usize) -> Table {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(maps, 1));
    check(
        &table.map_done_in(map(0, 0), SHORT),
        "announce map-0.0 from w1 to w1
         launch map-1.0 on w1
         launch map-2.0 on w1
         launch map-3.0 on w1",
    );
    assert_eq!(queued(&table), [map(2, 0), map(3, 0)]);
    table
}

#[test]
fn maps_are_queued_as_soon_as_they_are_known_to_be_short() {
    let mut table = with_queue(6);
    assert_eq!(table.core.slots(), (1, 0));
    let counts = table.job(JOB).maps;
    assert_eq!((counts.pending, counts.running, counts.done), (4, 1, 1));
    check(
        &table.map_done_in(map(1, 0), SHORT),
        "announce map-1.0 from w1 to w1
         launch map-4.0 on w1",
    );
    assert_eq!(queued(&table), [map(3, 0), map(4, 0)], "the oldest in the queue got the slot");
}

#[test]
fn nothing_is_queued_behind_or_of_long_maps() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(6, 1));
    check(&table.map_done_in(map(0, 0), LONG), "announce map-0.0 from w1 to w1\nlaunch map-2.0 on w1");
    // Map 1 was launched before any measurement and may be slow; map 2 as well.
    check(&table.map_done_in(map(1, 0), SHORT), "announce map-1.0 from w2 to w1\nlaunch map-3.0 on w2");
    assert_eq!(queued(&table), []);
}

#[test]
fn maps_that_turn_out_long_are_queued_no_more() {
    let mut table = with_queue(6);
    check(&table.map_done_in(map(1, 0), LONG), "announce map-1.0 from w1 to w1");
    assert_eq!(queued(&table), [map(3, 0)]);
}

#[test]
fn the_longer_maps_take_the_fewer_are_queued() {
    let depth = |took: Span| {
        let mut table = Table::with_workers(&[1]);
        table.submit(plain(60, 1));
        table.map_done_in(map(0, 0), took);
        queued(&table).len()
    };
    let config = CoreConfig::default().ahead;
    assert_eq!(depth(Span(0)), config.maps_max as usize);
    assert_eq!(depth(Span(config.work.0 / 3)), 3);
    assert_eq!(depth(config.work), 1);
    assert_eq!(depth(config.mean_max), 1);
    assert_eq!(depth(Span(config.mean_max.0 + 1)), 0);
}

#[test]
fn a_free_slot_is_used_before_anything_is_queued() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(4, 1));
    let orders = table.handle(&[map_finished(map(0, 0), SHORT), map_finished(map(1, 0), SHORT)]);
    let launches: Vec<_> = orders.iter().filter(|order| order.starts_with("launch")).collect();
    assert_eq!(launches, ["launch map-2.0 on w1", "launch map-3.0 on w2"]);
}

#[test]
fn queued_maps_are_spread_over_the_shortest_queues() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(20, 1));
    table.handle(&[map_finished(map(0, 0), SHORT), map_finished(map(1, 0), SHORT)]);
    let queues: Vec<u32> = table.core.workers().map(|worker| worker.queued).collect();
    assert_eq!(queues, [2, 2]);
}

#[test]
fn a_job_that_comes_first_and_cannot_queue_gets_the_next_slot() {
    let mut table = Table::new(Fair::new());
    table.join(2);
    table.submit(plain(50, 1));
    table.handle(&[map_finished(map(0, 0), SHORT), map_finished(map(1, 0), SHORT)]);
    assert_eq!(queued(&table), [4, 5, 6, 7].map(|index| map(index, 0)));
    // The new job holds fewer slots, so its map is next. Queued places would keep the slot from it forever.
    check(&table.submit(plain(50, 1)), "home job-2/0 at w1");
    for index in 2..=5 {
        let announced = format!("announce map-{index}.0 from w1 to w1");
        check(&table.map_done_in(map(index, 0), SHORT), &announced);
    }
    let newcomer = TaskId::map(JobId(2), 0).attempt(0);
    let orders = table.map_done_in(map(6, 0), SHORT);
    assert_eq!(orders[1], format!("launch {newcomer} on w1"), "{orders:?}");
}

#[test]
fn a_ready_reduce_gets_the_next_slot_of_its_home() {
    let mut table = Table::new(Fifo::new());
    table.join(1);
    table.submit(plain(1, 1));
    table.submit(plain(20, 1));
    table.map_done(map(0, 0));
    let other = |index| TaskId::map(JobId(2), index).attempt(0);
    table.map_done_in(other(0), SHORT);
    assert_eq!(queued(&table), [other(2), other(3)]);
    check(&table.fetched(1, map(0, 0), &[0]), "");
    table.map_done_in(other(1), SHORT);
    table.map_done_in(other(2), SHORT);
    let orders = table.map_done_in(other(3), SHORT);
    assert_eq!(orders.last().map(String::as_str), Some("launch reduce-0.0 on w1"), "{orders:?}");
}

#[test]
fn a_second_try_is_not_queued_and_nothing_is_queued_behind_it() {
    let mut table = with_queue(6);
    check(&table.fail(map(1, 0), Failure::User), "");
    table.map_done_in(map(2, 0), SHORT);
    check(&table.map_done_in(map(3, 0), SHORT), "announce map-3.0 from w1 to w1\nlaunch map-1.1 on w1");
    assert_eq!(queued(&table), []);
}

#[test]
fn a_queued_map_is_called_back_when_another_slot_stays_idle() {
    let mut table = with_queue(4);
    let due = table.now + CoreConfig::default().ahead.patience;
    check(&table.join(1), &format!("wake at {due}"));
    table.now = due;
    check(&table.handle(&[Event::Tick]), "recall map-2.0 on w1");
    check(&table.handle(&[Event::AttemptReturned { attempt: map(2, 0) }]), "launch map-2.1 on w2");
}

#[test]
fn a_map_that_began_before_it_could_be_called_back_goes_on() {
    let mut table = with_queue(6);
    table.map_done(map(1, 0));
    check(&table.map_done(map(2, 0)), "announce map-2.0 from w1 to w1");
    check(
        &table.map_done(map(3, 0)),
        "announce map-3.0 from w1 to w1
         launch map-4.0 on w1",
    );
}

#[test]
fn queued_maps_of_a_lost_worker_wait_again_at_nobodys_cost() {
    let mut table = with_queue(6);
    table.lose(1);
    check(
        &table.join(1),
        "home 0 at w2
         launch map-0.1 on w2",
    );
    assert_eq!(table.job(JOB).attempts_lost(), 1, "those that were queued had not begun");
}

#[test]
fn queued_maps_of_a_cancelled_job_are_killed_and_their_slots_come_free() {
    let mut table = with_queue(6);
    check(
        &table.handle(&[Event::JobCancelled { job: JOB }]),
        "kill map-1.0 on w1
         kill map-2.0 on w1
         kill map-3.0 on w1
         forget job-1 at w1
         job-1 cancelled",
    );
    for index in [2, 3, 1] {
        table.fail(map(index, 0), Failure::Cancelled);
    }
    assert_eq!(table.core.slots(), (1, 1));
}

#[test]
fn nothing_is_queued_when_that_is_turned_off() {
    let mut config = CoreConfig::default();
    config.ahead.maps_max = 0;
    let mut table = Table::with_config(Fifo::new(), config);
    table.join(1);
    table.submit(plain(6, 1));
    check(&table.map_done_in(map(0, 0), SHORT), "announce map-0.0 from w1 to w1\nlaunch map-1.0 on w1");
}

#[test]
fn an_empty_output_is_at_every_home_at_once() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 2));
    let empty =
        |attempt| Event::MapFinished { attempt, output_bytes: Bytes::ZERO, took: LONG, fingerprint: None };
    check(&table.handle(&[empty(map(0, 0))]), "");
    assert_eq!(table.core.empty_maps(JOB), [0b01]);
    check(&table.handle(&[empty(map(1, 0))]), "launch reduce-0.0 on w1\nlaunch reduce-1.0 on w2");
    assert_eq!(table.job(JOB).segments_fetched, 4);
    // A new home needs nothing either, and no map runs again.
    check(&table.lose(2), "home 1 at w1");
    table.ask_commit(reduce(0, 0));
    check(&table.reduce_done(reduce(0, 0)), "launch reduce-1.1 on w1");
    assert_eq!(table.core.worker(WorkerId(1)).map(|worker| worker.outputs), Some(0));
}

#[test]
fn a_task_pauses_after_a_workers_fault() {
    let mut table = Table::with_config(Fifo::new(), CoreConfig::default());
    table.join(1);
    table.join(1);
    table.submit(plain(1, 1));
    let pause = CoreConfig::default().backoff;
    let orders = table.fail(map(0, 0), Failure::Worker);
    check(&orders, &format!("wake at {}", table.now + pause));
    table.now = table.now + pause;
    check(&table.handle(&[Event::Tick]), "launch map-0.1 on w2");
    table.map_done(map(0, 1));
    check(&table.fetched(1, map(0, 1), &[0]), "launch reduce-0.0 on w1");
    let orders = table.fail(reduce(0, 0), Failure::Worker);
    check(&orders, &format!("wake at {}", table.now + pause));
    table.now = table.now + pause;
    check(&table.handle(&[Event::Tick]), "launch reduce-0.1 on w1");
}
