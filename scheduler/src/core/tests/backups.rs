//! Tests of speculative attempts: which slow maps get one, where, and what happens when either attempt ends.

use super::driver::{self, JOB, Table, map, plain, reduce};
use crate::core::{BackupLimits, CoreConfig, CoreJobState};
use crate::event::{Event, Failure};
use crate::ids::AttemptId;
use crate::job::{JobSpec, MapSpec};
use crate::policy::Fifo;
use crate::units::{Bytes, Span};

/// Builds a table with speculative attempts and workers of one slot.
fn table(workers: usize) -> Table {
    let config =
        CoreConfig { backoff: Span(0), backups: Some(BackupLimits::default()), ..CoreConfig::default() };
    let mut table = Table::with_config(Fifo::new(), config);
    for _ in 0..workers {
        table.join(1);
    }
    table
}

/// Builds a table with three workers. The third has run map 2 for far too long when the others are done, so that a
/// speculative attempt runs.
fn with_backup(spec: JobSpec) -> Table {
    let mut table = table(3);
    table.submit(spec);
    wait(&mut table, 1_000);
    publish(&mut table, map(0, 0));
    publish(&mut table, map(1, 0));
    check(&wait(&mut table, 990), "");
    check(&wait(&mut table, 100), "launch map-2.1 on w1");
    table
}

/// Checks the commands, except wakes.
#[track_caller]
fn check(orders: &[String], expected: &str) {
    let orders: Vec<String> = orders.iter().filter(|order| !order.starts_with("wake")).cloned().collect();
    driver::check(&orders, expected);
}

fn publish(table: &mut Table, attempt: AttemptId) -> Vec<String> {
    table.ask_commit(attempt);
    table.map_done(attempt)
}

/// Advances time by this much and sends the requested ticks.
fn wait(table: &mut Table, ms: u64) -> Vec<String> {
    table.now = table.now + Span::milliseconds(ms);
    table.handle(&[Event::Tick])
}

fn progress(table: &mut Table, attempt: AttemptId, read: Bytes) -> Vec<String> {
    table.handle(&[Event::AttemptProgressed { attempt, read, of: Bytes::ZERO }])
}

#[test]
fn a_map_that_runs_twice_as_long_as_others_gets_a_backup() {
    let table = with_backup(plain(3, 1));
    let said = table.reasons.last().unwrap().to_string();
    assert_eq!(
        said,
        "speculative attempt: the first one has 2.1 s left, where others took 1.0 s; any worker would do"
    );
    assert_eq!(table.job(JOB).maps.running, 1, "policies see the map, not its attempts");
}

#[test]
fn a_map_that_reads_slowly_gets_a_backup_as_soon_as_it_says_so() {
    let mut table = table(3);
    table.submit(plain(3, 1));
    wait(&mut table, 1_000);
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    check(&progress(&mut table, map(2, 0), Bytes((1 << 20) / 10)), "");
    check(&wait(&mut table, 100), "launch map-2.1 on w1");
}

#[test]
fn a_map_that_reads_as_fast_as_others_gets_no_backup() {
    let mut table = table(3);
    table.submit(plain(3, 1));
    wait(&mut table, 1_000);
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    check(&progress(&mut table, map(2, 0), Bytes((1 << 20) / 2)), "");
    check(&wait(&mut table, 100), "");
}

#[test]
fn the_first_map_that_ends_counts_and_the_other_is_stopped() {
    let mut table = with_backup(plain(3, 1));
    check(&table.map_done(map(2, 1)), "kill map-2.0 on w3\nannounce map-2.1 from w1 to w1");
    let backups = table.job(JOB).attempts.backups;
    assert_eq!((backups.launched, backups.won), (1, 1));
    assert!(Span(0) < backups.slot_time);
    assert_eq!(table.core.slots(), (3, 2), "the loser has its slot until it says so");
    check(&table.fail(map(2, 0), Failure::Cancelled), "");
    assert_eq!(table.core.slots(), (3, 3));
    assert_eq!(table.job(JOB).attempts.failed, [0; Failure::ALL.len()], "nobody has failed");
}

#[test]
fn a_backup_is_stopped_when_the_first_attempt_ends_after_all() {
    let mut table = with_backup(plain(3, 1));
    check(&table.map_done(map(2, 0)), "kill map-2.1 on w1\nannounce map-2.0 from w3 to w1");
    check(&table.map_done(map(2, 1)), "");
    let backups = table.job(JOB).attempts.backups;
    assert_eq!((backups.launched, backups.won), (1, 0));
    assert_eq!(table.core.attempts().count(), 0);
}

#[test]
fn a_backup_goes_on_when_the_first_attempt_fails() {
    let mut table = with_backup(plain(3, 1));
    check(&table.fail(map(2, 0), Failure::User), "");
    check(&table.map_done(map(2, 1)), "announce map-2.1 from w1 to w1");
    assert_eq!(table.job(JOB).attempts.failed[Failure::User.index()], 1);
}

#[test]
fn a_backup_goes_on_when_the_worker_of_the_first_attempt_is_lost() {
    let mut table = with_backup(plain(3, 1));
    check(&table.lose(3), "");
    check(&table.map_done(map(2, 1)), "announce map-2.1 from w1 to w1");
}

#[test]
fn a_backup_that_fails_is_not_charged_to_its_task_while_the_first_attempt_runs() {
    let mut spec = plain(3, 1);
    spec.attempts_max = 1;
    let mut table = with_backup(spec);
    table.fail(map(2, 1), Failure::User);
    assert_eq!(table.job(JOB).state, CoreJobState::Running);
    check(&wait(&mut table, 100), "launch map-2.2 on w2");
    table.fail(map(2, 2), Failure::Input);
    assert_eq!(table.job(JOB).state, CoreJobState::Running);
    check(&wait(&mut table, 100), "");
    check(&table.map_done(map(2, 0)), "announce map-2.0 from w3 to w1");
}

#[test]
fn of_two_attempts_that_ask_to_publish_the_first_may() {
    let mut table = with_backup(plain(3, 0));
    check(&table.ask_commit(map(2, 1)), "grant map-2.1");
    check(&table.ask_commit(map(2, 0)), "refuse map-2.0");
    check(&table.fail(map(2, 0), Failure::Cancelled), "");
    check(
        &table.map_done(map(2, 1)),
        "forget job-1 at w1\nforget job-1 at w2\nforget job-1 at w3\njob-1 succeeded",
    );
}

#[test]
fn an_attempt_that_may_publish_gets_no_backup() {
    let mut table = table(3);
    table.submit(plain(3, 0));
    wait(&mut table, 1_000);
    publish(&mut table, map(0, 0));
    publish(&mut table, map(1, 0));
    table.ask_commit(map(2, 0));
    check(&wait(&mut table, 5_000), "");
}

#[test]
fn backups_take_a_share_of_the_slots_and_no_more() {
    let mut table = table(6);
    table.submit(plain(6, 1));
    wait(&mut table, 1_000);
    (0..3).for_each(|index| drop(table.map_done(map(index, 0))));
    check(&wait(&mut table, 3_000), "launch map-3.1 on w1\nlaunch map-4.1 on w2");
}

#[test]
fn backups_do_not_run_on_workers_that_are_slow() {
    for (took, expected) in [(1, "launch map-3.1 on w2"), (9, "")] {
        let mut table = table(2);
        table.submit(plain(4, 1));
        for index in [0, 2] {
            wait(&mut table, 1_000);
            let next = format!("launch map-{}.0 on w1", index / 2 + 2);
            assert!(table.map_done(map(index, 0)).contains(&next));
        }
        table.map_done_in(map(1, 0), Span::whole_seconds(took));
        check(&wait(&mut table, 20_000), expected);
    }
}

#[test]
fn a_pinned_map_has_its_backup_where_its_input_is() {
    use crate::ids::WorkerId;
    let mut spec = plain(3, 1);
    spec.maps[2] = MapSpec { bytes: Bytes::mib(1), preferred: vec![WorkerId(3)], pinned: true };
    let mut table = table(3);
    table.submit(spec);
    wait(&mut table, 1_000);
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    check(&wait(&mut table, 9_000), "");
}

#[test]
fn a_core_without_backups_launches_none() {
    let mut table = Table::with_workers(&[1, 1, 1]);
    table.submit(plain(3, 1));
    wait(&mut table, 1_000);
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    check(&wait(&mut table, 60_000), "");
}

/// Builds a table with three workers with a partition each. The third took this time for a map that takes 1 s
/// elsewhere.
fn with_slow_third(took: Span) -> (Table, Vec<String>) {
    let mut table = table(3);
    table.submit(plain(9, 3));
    wait(&mut table, 1_000);
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    let orders = table.map_done_in(map(2, 0), took);
    (table, orders.into_iter().filter(|order| order.contains("home")).collect())
}

#[test]
fn reduces_leave_a_slow_home_before_they_begin() {
    let (mut table, orders) = with_slow_third(Span::whole_seconds(9));
    check(&orders, "unhome 2 at w3\nhome 2 at w1");
    assert_eq!(table.core.homes_at(crate::ids::WorkerId(3)).len(), 0);
    let orders = table.submit(plain(1, 4));
    let homes: Vec<_> = orders.iter().filter(|order| order.contains("home")).cloned().collect();
    assert!(homes.len() == 4 && homes.iter().all(|home| !home.ends_with("w3")), "{homes:?}");
}

#[test]
fn reduces_do_not_go_back_to_a_slow_worker_because_it_idles() {
    let (mut table, _) = with_slow_third(Span::whole_seconds(9));
    let mut running: Vec<AttemptId> = table.core.attempts().map(|(attempt, _)| attempt).collect();
    while let Some(attempt) = running.pop() {
        table.map_done(attempt);
        running = table.core.attempts().map(|(attempt, _)| attempt).collect();
    }
    for map in (0..9).map(|index| map(index, 0)) {
        table.fetched(1, map, &[0, 2]);
        table.fetched(2, map, &[1]);
    }
    assert_eq!(table.job(JOB).reduces.ready, 1, "one waits at its home while the slow worker has a slot");
    let orders = wait(&mut table, 300);
    assert!(!orders.iter().any(|order| order.contains("home")), "{orders:?}");
}

#[test]
fn reduces_stay_where_nothing_is_gained() {
    let (_, orders) = with_slow_third(Span::milliseconds(1_900));
    check(&orders, "");
    let (_, orders) = with_slow_third(Span::milliseconds(2_000));
    check(&orders, "");
}

#[test]
fn a_worker_that_loses_to_backups_counts_as_slow() {
    let mut table = with_backup(plain(3, 6));
    table.map_done(map(2, 1));
    let homes = table.core.homes_at(crate::ids::WorkerId(3)).len();
    assert_eq!(homes, 1, "of six, a worker that takes at least twice as long has one");
}

/// Builds a table with four workers with a partition of one map each. The first three reduces are done in 1 s, the last
/// one runs.
fn with_slow_reduce() -> Table {
    let mut table = table(4);
    table.submit(plain(1, 4));
    table.map_done(map(0, 0));
    (0..4).for_each(|home| drop(table.fetched(home + 1, map(0, 0), &[home])));
    wait(&mut table, 1_000);
    for index in 0..3 {
        table.ask_commit(reduce(index, 0));
        let took = Span::whole_seconds(1);
        let end = Event::ReduceFinished { attempt: reduce(index, 0), output_bytes: Bytes(5), took };
        table.handle(&[end]);
    }
    table
}

/// Extends it by a running speculative attempt of the last reduce.
fn with_reduce_backup() -> Table {
    let mut table = with_slow_reduce();
    check(&wait(&mut table, 900), "");
    check(&wait(&mut table, 200), "home 3 at w1\nannounce map-0.0 from w1 to w1");
    check(&table.fetched(1, map(0, 0), &[3]), "");
    check(&wait(&mut table, 100), "launch reduce-3.1 on w1");
    table
}

#[test]
fn a_reduce_that_runs_twice_as_long_as_others_gets_a_backup_where_its_segments_are_gathered_again() {
    let table = with_reduce_backup();
    assert_eq!(table.job(JOB).reduces.running, 1, "policies see the reduce, not its attempts");
}

#[test]
fn the_first_reduce_that_may_publish_counts_and_the_other_is_stopped() {
    let mut table = with_reduce_backup();
    check(&table.ask_commit(reduce(3, 1)), "grant reduce-3.1");
    check(&table.ask_commit(reduce(3, 0)), "refuse reduce-3.0");
    let orders = table.reduce_done(reduce(3, 1));
    assert!(orders.contains(&"kill reduce-3.0 on w4".to_owned()), "{orders:?}");
    assert!(orders.contains(&"unhome 3 at w4".to_owned()), "{orders:?}");
    assert!(orders.contains(&"job-1 succeeded".to_owned()), "{orders:?}");
}

#[test]
fn a_reduce_that_is_done_after_all_ends_its_backup() {
    let mut table = with_reduce_backup();
    table.ask_commit(reduce(3, 0));
    let orders = table.reduce_done(reduce(3, 0));
    assert!(orders.contains(&"kill reduce-3.1 on w1".to_owned()), "{orders:?}");
    assert!(orders.contains(&"unhome 3 at w1".to_owned()), "{orders:?}");
}

#[test]
fn a_backup_of_a_reduce_goes_on_when_the_first_attempt_fails_or_its_worker_is_lost() {
    for lost in [false, true] {
        let mut table = with_reduce_backup();
        match lost {
            true => check(&table.lose(4), ""),
            false => check(&table.fail(reduce(3, 0), Failure::User), "unhome 3 at w4"),
        }
        check(&table.ask_commit(reduce(3, 1)), "grant reduce-3.1");
        assert!(table.reduce_done(reduce(3, 1)).contains(&"job-1 succeeded".to_owned()));
    }
}

#[test]
fn a_reduce_goes_on_when_its_backup_fails_or_the_worker_of_that_is_lost() {
    for lost in [false, true] {
        let mut table = with_reduce_backup();
        match lost {
            true => check(&table.lose(1), ""),
            false => check(&table.fail(reduce(3, 1), Failure::User), "unhome 3 at w1"),
        }
        check(&table.ask_commit(reduce(3, 0)), "grant reduce-3.0");
        assert!(table.reduce_done(reduce(3, 0)).contains(&"job-1 succeeded".to_owned()));
    }
}

#[test]
fn a_second_home_is_given_up_when_an_output_that_it_lacks_is_lost() {
    let mut table = with_slow_reduce();
    wait(&mut table, 900);
    check(&wait(&mut table, 200), "home 3 at w1\nannounce map-0.0 from w1 to w1");
    check(&table.lose(1), "");
    assert_eq!(table.core.homes_at(crate::ids::WorkerId(1)).len(), 0);
    check(&wait(&mut table, 5_000), "");
}
