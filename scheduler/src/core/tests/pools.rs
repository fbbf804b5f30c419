//! Tests of slots in pools: one for maps, one for reduces.

use super::driver::{JOB, Table, check, map, plain, reduce};
use crate::core::{Core, CoreConfig};
use crate::event::{Event, Slots};
use crate::ids::{HostId, TaskId, WorkerId};
use crate::placement::Pull;
use crate::policy::Fifo;
use crate::units::Time;

fn join(worker: u32, slots: Slots) -> Event {
    Event::WorkerJoined { worker: WorkerId(worker), host: HostId(worker), slots }
}

/// Builds a table under fifo with one worker with this many slots for maps and one for reduces.
fn pooled(maps: u32) -> Table {
    let mut table = Table::new(Fifo::new());
    table.handle(&[join(1, Slots::Pools { map: maps, reduce: 1 })]);
    table
}

#[test]
fn maps_leave_the_slots_for_reduces_alone() {
    let mut table = pooled(2);
    check(&table.submit(plain(4, 1)), "home 0 at w1\nlaunch map-0.0 on w1\nlaunch map-1.0 on w1");
    let orders = table.map_done(map(0, 0));
    check(&orders, "announce map-0.0 from w1 to w1\nlaunch map-2.0 on w1");
}

#[test]
fn a_reduce_starts_beside_maps_that_fill_their_own_slots() {
    let mut table = pooled(1);
    table.submit(plain(1, 1));
    table.submit(plain(3, 1));
    table.map_done(map(0, 0));
    check(&table.fetched(1, map(0, 0), &[0]), "launch reduce-0.0 on w1");
    assert_eq!(table.core.slots(), (2, 0));
    table.ask_commit(reduce(0, 0));
    table.reduce_done(reduce(0, 0));
    assert_eq!(table.core.slots(), (2, 1), "no map takes the slot for reduces");
}

#[test]
fn capacity_is_that_of_the_pools() {
    let mut table = pooled(3);
    table.handle(&[join(2, Slots::Pools { map: 2, reduce: 4 })]);
    assert_eq!(Core::capacity(&table.core.ledger), [5.0, 1.0, 5.0]);
    table.lose(1);
    assert_eq!(Core::capacity(&table.core.ledger), [2.0, 1.0, 4.0]);
}

#[test]
fn reduces_of_one_home_take_turns_in_its_pool() {
    let mut table = pooled(4);
    table.submit(plain(1, 3));
    table.map_done(map(0, 0));
    check(&table.fetched(1, map(0, 0), &[0, 1, 2]), "launch reduce-0.0 on w1");
    table.ask_commit(reduce(0, 0));
    check(&table.reduce_done(reduce(0, 0)), "launch reduce-1.0 on w1");
    let next = TaskId::reduce(JOB, 1).attempt(0);
    table.ask_commit(next);
    check(&table.reduce_done(next), "launch reduce-2.0 on w1");
}

#[test]
#[should_panic(expected = "slots of another kind")]
fn a_worker_with_slots_of_another_kind_is_a_bug_of_the_driver() {
    let mut core = Core::new(CoreConfig::default(), Box::new(Fifo::new()), Box::new(Pull::new()));
    let events = [join(1, Slots::Unified(1)), join(2, Slots::Pools { map: 1, reduce: 1 })];
    core.handle(Time::ZERO, &events, &mut Vec::new());
}
