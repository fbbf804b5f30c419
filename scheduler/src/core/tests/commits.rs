//! Tests of commit permits: one at a time, and the next holder.

use super::driver::{JOB, Table, check, map, plain, reduce};
use crate::core::CoreJobState;
use crate::event::Failure;

fn with_reduce_running() -> Table {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0]);
    table
}

#[test]
fn a_reduce_may_publish_when_it_asks_first_and_the_job_ends_with_its_last_part() {
    let mut table = with_reduce_running();
    check(&table.ask_commit(reduce(0, 0)), "grant reduce-0.0");
    check(&table.ask_commit(reduce(0, 0)), "grant reduce-0.0");
    check(
        &table.reduce_done(reduce(0, 0)),
        "forget job-1 at w1
         job-1 succeeded",
    );
    let job = table.job(JOB);
    assert_eq!(job.reduces.done, 1);
    assert_eq!(job.ended, Some(table.now));
}

#[test]
fn a_permit_passes_on_when_its_holder_is_lost() {
    let mut table = with_reduce_running();
    table.ask_commit(reduce(0, 0));
    check(
        &table.lose(1),
        "home 0 at w2
         launch map-0.1 on w2",
    );
    table.map_done(map(0, 1));
    check(&table.fetched(2, map(0, 1), &[0]), "launch reduce-0.1 on w2");
    check(&table.ask_commit(reduce(0, 1)), "grant reduce-0.1");
}

#[test]
fn a_permit_passes_on_when_its_holder_failed_while_it_published() {
    let mut table = with_reduce_running();
    table.ask_commit(reduce(0, 0));
    check(&table.fail(reduce(0, 0), Failure::Worker), "launch reduce-0.1 on w1");
    check(&table.ask_commit(reduce(0, 1)), "grant reduce-0.1");
}

#[test]
fn a_permit_is_fresh_when_the_attempt_before_never_asked() {
    let mut table = with_reduce_running();
    table.fail(reduce(0, 0), Failure::User);
    check(&table.ask_commit(reduce(0, 1)), "grant reduce-0.1");
}

#[test]
fn a_part_published_without_permit_counts_for_nothing() {
    let mut table = with_reduce_running();
    check(&table.reduce_done(reduce(0, 0)), "launch reduce-0.1 on w1");
    assert_eq!(table.job(JOB).attempts.failed[Failure::Worker.index()], 1);
}

#[test]
fn maps_publish_themselves_when_there_are_no_reduces() {
    let mut table = Table::with_workers(&[2]);
    table.submit(plain(2, 0));
    check(&table.ask_commit(map(0, 0)), "grant map-0.0");
    check(&table.ask_commit(map(1, 0)), "grant map-1.0");
    check(&table.map_done(map(1, 0)), "");
    check(&table.map_done(map(0, 0)), "forget job-1 at w1\njob-1 succeeded");
}

#[test]
fn maps_are_refused_when_reduces_publish() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    check(&table.ask_commit(map(0, 0)), "refuse map-0.0");
}

#[test]
fn a_dying_attempt_is_refused() {
    let mut table = with_reduce_running();
    table.handle(&[crate::event::Event::JobCancelled { job: JOB }]);
    check(&table.ask_commit(reduce(0, 0)), "refuse reduce-0.0");
}

#[test]
fn published_parts_survive_the_loss_of_the_worker_that_wrote_them() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 0));
    table.ask_commit(map(0, 0));
    table.map_done(map(0, 0));
    check(&table.lose(1), "");
    table.ask_commit(map(1, 0));
    table.map_done(map(1, 0));
    assert_eq!(table.job(JOB).state, CoreJobState::Ended(crate::command::Outcome::Succeeded));
    assert_eq!(table.job(JOB).attempts.launched, 2);
}
