//! Tests of the assignment of tasks to workers.

use super::driver::{JOB, Table, check, map, plain};
use crate::core::CoreConfig;
use crate::event::{Event, Failure};
use crate::ids::WorkerId;
use crate::job::Locality;
use crate::job::{JobSpec, MapSpec};
use crate::policy::Fifo;
use crate::units::Bytes;

fn on(workers: &[u32], pinned: bool) -> MapSpec {
    MapSpec { bytes: Bytes(1), preferred: workers.iter().map(|&worker| WorkerId(worker)).collect(), pinned }
}

fn maps(specs: &[MapSpec]) -> JobSpec {
    JobSpec::new(specs.to_vec(), 0)
}

#[test]
fn maps_run_where_their_input_is_before_order_counts() {
    let mut table = Table::with_workers(&[1, 1]);
    check(
        &table.submit(maps(&[on(&[2], false), on(&[1], false)])),
        "launch map-1.0 on w1
         launch map-0.0 on w2",
    );
    assert_eq!(table.job(JOB).launched(Locality::Local), 2);
}

#[test]
fn maps_run_on_the_host_of_their_input_when_its_worker_is_busy() {
    let mut table = Table::new(Fifo::new());
    table.join_host(1, 5);
    table.join_host(1, 6);
    table.join_host(1, 5);
    check(
        &table.submit(maps(&[on(&[1], false), on(&[1], false), on(&[1], false)])),
        "launch map-0.0 on w1
         launch map-1.0 on w3
         launch map-2.0 on w2",
    );
    let places: Vec<Locality> = table.reasons.iter().map(|reason| reason.locality).collect();
    assert_eq!(places, [Locality::Local, Locality::SameHost, Locality::Remote]);
    assert_eq!(
        table.reasons[1].to_string(),
        "its job is the oldest that could use the slot; on the host that has the input"
    );
}

#[test]
fn maps_that_prefer_nobody_go_to_strangers_first() {
    let mut table = Table::with_workers(&[1, 1]);
    check(
        &table.submit(maps(&[on(&[1], false), on(&[1], false), on(&[], false)])),
        "launch map-0.0 on w1
         launch map-2.0 on w2",
    );
    assert_eq!(table.job(JOB).launched(Locality::NoPreference), 1);
}

#[test]
fn tasks_spread_over_the_workers_with_most_free_slots() {
    let mut table = Table::with_workers(&[1, 3]);
    check(
        &table.submit(plain(4, 0)),
        "launch map-0.0 on w2
         launch map-1.0 on w2
         launch map-2.0 on w1
         launch map-3.0 on w2",
    );
}

#[test]
fn a_pinned_map_waits_for_its_worker() {
    let mut table = Table::with_workers(&[1, 1]);
    check(&table.submit(maps(&[on(&[2], true), on(&[2], true)])), "launch map-0.0 on w2");
    table.ask_commit(map(0, 0));
    check(&table.map_done(map(0, 0)), "launch map-1.0 on w2");
}

#[test]
fn a_pinned_map_is_tried_again_on_its_worker_when_it_has_no_other() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(maps(&[on(&[2], true)]));
    check(&table.fail(map(0, 0), Failure::User), "launch map-0.1 on w2");
    let mut table = Table::with_workers(&[1, 1, 1]);
    table.submit(maps(&[on(&[2, 3], true)]));
    check(&table.fail(map(0, 0), Failure::User), "launch map-0.1 on w3");
}

#[test]
fn a_pinned_map_leaves_a_barred_worker_alone_while_it_has_another() {
    let mut table = Table::with_workers(&[1, 1]);
    let elsewhere = on(&[2], true);
    let both = on(&[1, 2], true);
    table.submit(maps(&[on(&[1], true), elsewhere, both]));
    for epoch in 0..2 {
        check(&table.fail(map(0, epoch), Failure::Worker), &format!("launch map-0.{} on w1", epoch + 1));
    }
    // The first map can run on no other worker; the third can.
    check(&table.fail(map(0, 2), Failure::Worker), "launch map-0.3 on w1");
    table.ask_commit(map(0, 3));
    check(&table.map_done(map(0, 3)), "");
    table.ask_commit(map(1, 0));
    check(&table.map_done(map(1, 0)), "launch map-2.0 on w2");
}

#[test]
fn a_pinned_map_waits_for_a_worker_on_its_host_and_runs_there() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(maps(&[on(&[2], true), on(&[2], true)]));
    let orders = table.lose(2);
    assert!(orders.iter().all(|order| order.starts_with("wake at")), "{orders:?}");
    check(&table.join_host(1, 7), "");
    check(&table.join_host(1, 2), "launch map-0.1 on w4");
    check(&table.join_host(1, 2), "launch map-1.0 on w5");
    // It also does not fail when the earlier grace period ends.
    table.now = table.now + CoreConfig::default().pinned_grace;
    check(&table.handle(&[Event::Tick]), "");
}

#[test]
fn another_worker_of_its_host_takes_over_at_once_when_the_worker_of_a_pinned_map_is_lost() {
    let mut table = Table::new(Fifo::new());
    table.join_host(1, 5);
    table.join_host(1, 5);
    check(&table.submit(maps(&[on(&[2], true), on(&[2], true)])), "launch map-0.0 on w2");
    check(&table.lose(2), "launch map-0.1 on w1");
}

#[test]
fn a_job_fails_for_its_input_when_nobody_comes_to_the_host_of_a_pinned_map_in_time() {
    let grace = CoreConfig::default().pinned_grace;
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(maps(&[on(&[2], true), on(&[2], true)]));
    table.lose(2);
    table.now = table.now + grace;
    check(&table.handle(&[Event::Tick]), "job-1 failed: input of map-0 cannot be used");
    // A map that failed before on the worker that is then lost.
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(maps(&[on(&[2], true), on(&[2], true)]));
    check(&table.fail(map(0, 0), Failure::User), "launch map-0.1 on w2");
    table.lose(2);
    table.now = table.now + grace;
    check(&table.handle(&[Event::Tick]), "job-1 failed: input of map-0 cannot be used");
    // A worker that was lost before the job came.
    let mut table = Table::with_workers(&[1, 1, 1]);
    table.lose(3);
    table.submit(maps(&[on(&[1], true), on(&[3], true)]));
    table.now = table.now + grace;
    let orders = table.handle(&[Event::Tick]);
    assert!(orders.contains(&"job-1 failed: input of map-1 cannot be used".to_owned()), "{orders:?}");
    // A worker that never existed.
    let mut table = Table::with_workers(&[1]);
    check(&table.submit(maps(&[on(&[9], true)])), "job-1 failed: input of map-0 cannot be used");
}

#[test]
fn reduces_launch_with_the_reason_that_their_segments_are_there() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0]);
    assert_eq!(table.reasons.last().map(|reason| reason.locality), Some(Locality::Local));
}
