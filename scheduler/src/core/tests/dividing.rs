//! Tests of divided maps: which map makes way for which job, and what becomes of a division that comes too late.

use super::driver::{JOB, Table, check, map, plain};
use super::suspending::Ruthless;
use crate::core::{BackupLimits, CoreConfig, DivideLimits};
use crate::event::{Event, Failure};
use crate::ids::{AttemptId, JobId, TaskId};
use crate::job::JobSpec;
use crate::policy::{Fifo, Policy};
use crate::units::{Bytes, Span};

fn table(policy: impl Policy + 'static) -> Table {
    Table::with_config(
        policy,
        CoreConfig { dividing: Some(DivideLimits::default()), ..CoreConfig::default() },
    )
}

fn divided(attempt: AttemptId, kept: u64) -> Event {
    Event::MapDivided { attempt, kept: Bytes(kept), work: None }
}

/// Builds a worker with one slot, on which the second of three maps of a second each runs for 100 ms.
fn with_map_running() -> Table {
    let mut table = table(Ruthless::default());
    table.join(1);
    table.submit(plain(3, 1));
    let orders = table.map_done(map(0, 0));
    assert!(orders.contains(&"launch map-1.0 on w1".to_owned()), "{orders:?}");
    table.now = table.now + Span::milliseconds(100);
    table
}

fn urgent() -> JobSpec {
    JobSpec { priority: 1, ..plain(1, 1) }
}

#[test]
fn map_makes_way_for_a_more_urgent_job_and_its_rest_runs_after_it() {
    let mut table = with_map_running();
    check(
        &table.submit(urgent()),
        "home job-2/0 at w1
         divide map-1.0 on w1 at once",
    );
    check(&table.handle(&[divided(map(1, 0), 1000)]), "map-1.0 keeps 1000, map-3 is new");
    let orders = table.map_done_in(map(1, 0), Span::milliseconds(101));
    assert!(orders.contains(&"launch job-2/map-0.0 on w1".to_owned()), "{orders:?}");
    assert_eq!(table.job(JOB).maps.pending, 2, "the third map and the rest of the second wait");
}

#[test]
fn map_keeps_its_slot_if_the_other_job_is_not_more_urgent() {
    let mut table = with_map_running();
    check(&table.submit(plain(1, 1)), "home job-2/0 at w1");
}

#[test]
fn map_that_has_just_got_its_slot_makes_way_later() {
    let mut table = table(Ruthless::default());
    table.join(1);
    table.submit(plain(3, 1));
    table.map_done(map(0, 0));
    let orders = table.submit(urgent());
    assert_eq!(orders.len(), 2, "{orders:?}");
    assert!(orders[1].starts_with("wake at "), "{orders:?}");
    table.now = table.now + Span::milliseconds(100);
    check(&table.handle(&[Event::Tick]), "divide map-1.0 on w1 at once");
}

#[test]
fn map_that_ends_soon_or_cannot_be_divided_keeps_its_slot() {
    let mut table = with_map_running();
    table.now = table.now + Span::milliseconds(850);
    check(&table.submit(urgent()), "home job-2/0 at w1");

    let mut table = with_map_running();
    table.submit(urgent());
    check(&table.handle(&[Event::DivisionRefused { attempt: map(1, 0) }]), "");
    check(&table.handle(&[Event::Tick]), "");
}

#[test]
fn first_map_of_a_job_is_not_cut_as_it_shows_how_long_maps_take() {
    let mut table = table(Ruthless::default());
    table.join(1);
    table.submit(plain(3, 1));
    table.now = table.now + Span::whole_seconds(1);
    check(&table.submit(urgent()), "home job-2/0 at w1");
}

/// Builds a table with speculative attempts and two workers. The second has an order to divide its task, and a
/// speculative attempt of that task runs on the first, for which the order was withdrawn.
fn with_withdrawn_order() -> Table {
    let backups = BackupLimits { peers_min: 1, ..BackupLimits::default() };
    let config = CoreConfig {
        dividing: Some(DivideLimits::default()),
        backups: Some(backups),
        ..CoreConfig::default()
    };
    let mut table = Table::with_config(Fifo::new(), config);
    table.join(1);
    table.join(1);
    table.submit(plain(2, 1));
    table.now = table.now + Span::whole_seconds(1);
    let mut orders = table.map_done(map(0, 0));
    for _ in 0..100 {
        table.now = table.now + Span::milliseconds(100);
        orders.extend(table.handle(&[Event::Tick]));
    }
    assert!(orders.contains(&"divide map-1.0 on w2".to_owned()), "{orders:?}");
    assert!(orders.contains(&"launch map-1.1 on w1".to_owned()), "{orders:?}");
    table
}

#[test]
fn attempt_that_divides_after_its_order_was_withdrawn_goes_on_and_its_speculative_attempt_is_stopped() {
    let mut table = with_withdrawn_order();
    let orders = table.handle(&[divided(map(1, 0), 1000)]);
    assert_eq!(orders[..2], ["kill map-1.1 on w1", "map-1.0 keeps 1000, map-2 is new"], "{orders:?}");
    table.fail(map(1, 1), Failure::Cancelled);
    table.map_done(map(1, 0));
    table.map_done(map(2, 0));
    assert_eq!(table.job(JOB).maps.done, 3);
    assert_eq!(table.job(JOB).attempts.failed, [0; Failure::ALL.len()], "no attempt has failed");
}

#[test]
fn attempt_that_refuses_after_its_order_was_withdrawn_races_on() {
    let mut table = with_withdrawn_order();
    check(&table.handle(&[Event::DivisionRefused { attempt: map(1, 0) }]), "");
    let orders = table.map_done(map(1, 1));
    assert!(orders.contains(&"kill map-1.0 on w2".to_owned()), "{orders:?}");
}

#[test]
fn attempt_that_gave_up_its_end_without_an_order_is_stopped_and_keeps_its_slot_until_then() {
    let mut table = table(Fifo::new());
    table.join(1);
    table.submit(plain(1, 1));
    check(&table.handle(&[divided(map(0, 0), 1000)]), "kill map-0.0 on w1");
    let end = Event::AttemptFailed { attempt: map(0, 0), class: Failure::Cancelled };
    check(&table.handle(&[end]), "launch map-0.1 on w1");
    let orders = table.map_done(map(0, 1));
    assert!(orders.contains(&"announce map-0.1 from w1 to w1".to_owned()), "{orders:?}");
}

#[test]
fn end_of_an_attempt_that_gave_up_its_end_without_an_order_does_not_count() {
    let mut table = table(Fifo::new());
    table.join(1);
    table.submit(plain(1, 1));
    table.handle(&[divided(map(0, 0), 1000)]);
    check(&table.map_done(map(0, 0)), "launch map-0.1 on w1");
    assert_eq!(table.job(JOB).maps.done, 0);
    assert_eq!(
        table.core.input_of(TaskId::map(JobId(1), 0)),
        Bytes::mib(1),
        "all of the split is read again"
    );
}
