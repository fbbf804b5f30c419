//! Tests of homes, outputs and segments: where they are, and what is made again.

use super::driver::{JOB, Table, check, map, map_finished, plain, reduce};
use crate::command::{Cause, Outcome};
use crate::core::CoreConfig;
use crate::core::CoreJobState;
use crate::event::{Event, Failure, Fingerprint};
use crate::ids::{AttemptId, JobId, WorkerId};
use crate::units::{Bytes, Span};

#[test]
fn homes_are_spread_evenly_before_the_first_launch() {
    let mut table = Table::with_workers(&[1, 1]);
    check(
        &table.submit(plain(2, 3)),
        "home 0 at w1
         home 1 at w2
         home 2 at w1
         launch map-0.0 on w1
         launch map-1.0 on w2",
    );
}

#[test]
fn homes_follow_the_number_of_slots_when_workers_differ() {
    let mut table = Table::with_workers(&[1, 3]);
    table.submit(plain(1, 8));
    let at = |worker| (0..8).filter(|&p| table.core.home(JOB, p) == Some(WorkerId(worker))).count();
    assert_eq!((at(1), at(2)), (2, 6));
}

#[test]
fn homes_rotate_over_the_workers_when_jobs_have_one_partition_each() {
    let mut table = Table::with_workers(&[1, 1, 1]);
    for _ in 0..6 {
        table.submit(plain(1, 1));
    }
    let homes: Vec<u32> =
        (1..=6).filter_map(|job| table.core.home(JobId(job), 0)).map(|home| home.0).collect();
    assert_eq!(homes, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn homes_wait_for_the_first_worker_when_a_job_arrives_before_it() {
    let mut table = Table::with_workers(&[]);
    check(&table.submit(plain(1, 1)), "wake at 30.001 s");
    check(
        &table.join(1),
        "home 0 at w1
         launch map-0.0 on w1",
    );
}

#[test]
fn homes_are_shared_with_a_new_worker_while_no_map_has_finished() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(2, 4));
    check(
        &table.join(1),
        "unhome 3 at w1
         unhome 2 at w1
         home 2 at w2
         home 3 at w2
         launch map-1.0 on w2",
    );
    table.map_done(map(0, 0));
    check(&table.join(1), "");
}

#[test]
fn an_output_is_announced_once_to_each_home_its_own_worker_included() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(1, 3));
    check(
        &table.map_done(map(0, 0)),
        "announce map-0.0 from w1 to w1
         announce map-0.0 from w1 to w2",
    );
}

#[test]
fn a_reduce_starts_at_its_home_when_its_last_segment_is_there() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 2));
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    check(&table.fetched(2, map(0, 0), &[1]), "");
    check(&table.fetched(2, map(1, 0), &[1]), "launch reduce-1.0 on w2");
    check(&table.fetched(2, map(1, 0), &[1]), "");
    let reduces = table.job(JOB).reduces;
    assert_eq!((reduces.gathering, reduces.running), (1, 1));
}

#[test]
fn a_ready_reduce_waits_a_while_for_its_home_even_if_others_are_idle() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(1, 1));
    table.submit(plain(1, 0));
    table.submit(plain(1, 0));
    table.map_done(map(0, 0));
    check(&table.fetched(1, map(0, 0), &[0]), "");
    assert_eq!(table.job(JOB).reduces.ready, 1);
    let other = crate::ids::TaskId::map(JobId(2), 0).attempt(0);
    check(&table.fail(other, Failure::Cancelled), "launch job-2/map-0.1 on w2");
}

#[test]
fn a_lost_output_is_made_again_only_if_somebody_lacks_it() {
    let mut table = Table::with_workers(&[1, 1, 1]);
    table.submit(plain(3, 1));
    for index in 0..3 {
        table.map_done(map(index, 0));
    }
    table.fetched(1, map(1, 0), &[0]);
    check(&table.lose(2), "");
    check(
        &table.lose(3),
        "retract map-2.0 to w1
         launch map-2.1 on w1",
    );
}

#[test]
fn a_lost_output_is_made_again_when_a_home_that_had_it_is_lost() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 1));
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    table.fetched(1, map(1, 0), &[0]);
    check(&table.lose(2), "");
    table.join(1);
    check(
        &table.lose(1),
        "home 0 at w3
         launch map-0.1 on w3",
    );
    check(
        &table.map_done(map(0, 1)),
        "announce map-0.1 from w3 to w3
         launch map-1.1 on w3",
    );
}

#[test]
fn a_new_home_is_told_of_all_outputs_when_the_old_one_is_lost() {
    let mut table = Table::with_workers(&[2, 1]);
    table.submit(plain(3, 2));
    check(
        &table.handle(&[
            map_finished(map(0, 0), Span::whole_seconds(1)),
            map_finished(map(2, 0), Span::whole_seconds(1)),
        ]),
        "announce map-0.0 from w1 to w1
         announce map-0.0 from w1 to w2
         announce map-2.0 from w2 to w1
         announce map-2.0 from w2 to w2",
    );
    check(
        &table.lose(2),
        "retract map-2.0 to w1
         home 1 at w1
         announce map-0.0 from w1 to w1
         launch map-2.1 on w1",
    );
}

#[test]
fn a_waiting_rerun_is_dropped_when_the_old_output_was_fetched_after_all() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(3, 1));
    check(&table.map_done(map(1, 0)), "announce map-1.0 from w2 to w1\nlaunch map-2.0 on w2");
    check(&table.fetch_failed(1, map(1, 0), Failure::Corrupt), "retract map-1.0 to w1");
    assert_eq!(table.job(JOB).maps.pending, 1);
    table.fetched(1, map(1, 0), &[0]);
    assert_eq!(table.job(JOB).maps.pending, 0);
    check(&table.map_done(map(2, 0)), "announce map-2.0 from w2 to w1");
}

#[test]
fn a_failed_fetch_makes_the_map_again_on_another_worker_and_charges_nobody() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 1));
    table.map_done(map(1, 0));
    check(&table.fetch_failed(1, map(1, 0), Failure::Corrupt), "retract map-1.0 to w1");
    check(
        &table.map_done(map(0, 0)),
        "announce map-0.0 from w1 to w1
         launch map-1.1 on w1",
    );
    assert_eq!(table.job(JOB).attempts.failed, [0; Failure::ALL.len()]);
}

#[test]
fn a_failed_fetch_is_old_news_when_the_output_was_given_up_before() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    table.fetch_failed(1, map(0, 0), Failure::Fetch);
    let late = table.core.late_events();
    check(&table.fetch_failed(1, map(0, 0), Failure::Fetch), "");
    assert_eq!(table.core.late_events(), late + 1);
}

#[test]
fn a_failed_fetch_is_old_news_when_a_newer_output_is_there() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    table.fetch_failed(1, map(0, 0), Failure::Fetch);
    table.map_done(map(0, 1));
    check(&table.fetch_failed(1, map(0, 0), Failure::Fetch), "");
    assert_eq!(table.job(JOB).maps.done, 1);
}

#[test]
fn a_job_fails_when_a_map_output_is_unreadable_too_often() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    let rereads_max = CoreConfig::default().rereads_max;
    for epoch in 0..rereads_max {
        table.map_done(map(0, epoch));
        let expected = format!("retract map-0.{epoch} to w1\nlaunch map-0.{} on w1", epoch + 1);
        check(&table.fetch_failed(1, map(0, epoch), Failure::Fetch), &expected);
    }
    table.map_done(map(0, rereads_max));
    check(
        &table.fetch_failed(1, map(0, rereads_max), Failure::Fetch),
        "forget job-1 at w1
         job-1 failed: map output of map-0 repeatedly unreadable",
    );
}

#[test]
fn a_home_in_trouble_tries_again_and_loses_its_partitions_at_the_third_time() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 2));
    table.map_done(map(0, 0));
    for _ in 0..2 {
        let again = table.fetch_failed(2, map(0, 0), Failure::Worker);
        check(&again, "announce map-0.0 from w1 to w2");
    }
    check(
        &table.fetch_failed(2, map(0, 0), Failure::Worker),
        "unhome 1 at w2
         home 1 at w1
         announce map-0.0 from w1 to w1",
    );
}

#[test]
fn a_reduce_gathers_anew_elsewhere_when_its_segments_are_corrupt() {
    // The first worker would be the better home, except for the segments that were corrupt there.
    let mut table = Table::with_workers(&[2, 1]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    check(&table.fetched(1, map(0, 0), &[0]), "launch reduce-0.0 on w1");
    check(
        &table.fail(reduce(0, 0), Failure::Corrupt),
        "unhome 0 at w1
         home 0 at w2
         announce map-0.0 from w1 to w2",
    );
}

#[test]
fn a_running_reduce_may_end_at_a_home_that_others_have_to_leave() {
    let mut table = Table::with_workers(&[2, 1]);
    table.submit(plain(1, 3));
    table.map_done(map(0, 0));
    check(&table.fetched(1, map(0, 0), &[0]), "launch reduce-0.0 on w1");
    for _ in 0..2 {
        table.fetch_failed(1, map(0, 0), Failure::Worker);
    }
    check(
        &table.fetch_failed(1, map(0, 0), Failure::Worker),
        "unhome 2 at w1
         home 2 at w2
         announce map-0.0 from w1 to w2",
    );
    check(&table.ask_commit(reduce(0, 0)), "grant reduce-0.0");
    table.reduce_done(reduce(0, 0));
    assert_eq!(table.job(JOB).reduces.done, 1);
}

#[test]
fn facts_about_partitions_that_moved_or_maps_that_never_ran_are_ignored() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(3, 1));
    check(&table.fetched(2, map(0, 0), &[0]), "");
    check(&table.fetched(1, map(0, 0), &[0]), "");
    check(&table.fetched(1, map(2, 0), &[0, 7]), "");
    check(&table.fetched(1, map(9, 0), &[0]), "");
    check(&table.fetched(1, reduce(0, 0), &[0]), "");
    check(&table.fetch_failed(1, map(9, 0), Failure::Fetch), "");
    assert_eq!(table.core.late_events(), 6);
    assert_eq!(table.job(JOB).segments_fetched, 0);
}

/// Returns the end of a map whose output has the fingerprint that `sum` stands for.
fn made(attempt: AttemptId, sum: u64) -> Event {
    let fingerprint = Some(Fingerprint { pairs: sum, ..Fingerprint::default() });
    Event::MapFinished { attempt, output_bytes: Bytes(10), took: Span::whole_seconds(1), fingerprint }
}

/// Builds one map and two partitions on two workers. The home of the first partition has its segment, and the output is
/// lost before the other home has it.
fn half_taken() -> Table {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 2));
    table.handle(&[made(map(1, 0), 7)]);
    table.fetched(1, map(1, 0), &[0]);
    table.lose(2);
    table.map_done(map(0, 0));
    assert_eq!(table.job(JOB).maps.running, 1, "the lost output is made again");
    table
}

#[test]
fn a_job_goes_on_when_a_map_that_ran_again_made_the_same_records() {
    let mut table = half_taken();
    table.handle(&[made(map(1, 1), 7)]);
    table.fetched(1, map(1, 1), &[1]);
    table.fetched(1, map(0, 0), &[0, 1]);
    assert_eq!(table.job(JOB).reduces.running, 1);
}

#[test]
fn a_job_fails_when_a_map_that_ran_again_made_other_records_than_a_reduce_took() {
    let mut table = half_taken();
    table.handle(&[made(map(1, 1), 8)]);
    let cause = Cause::NotDeterministic { task: map(1, 0).task };
    assert_eq!(table.job(JOB).state, CoreJobState::Ended(Outcome::Failed { cause }));
}

#[test]
fn a_map_may_make_other_records_while_no_reduce_took_any_but_old_ones_are_not_taken_then() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 2));
    table.handle(&[made(map(1, 0), 7)]);
    table.lose(2);
    table.map_done(map(0, 0));
    table.handle(&[made(map(1, 1), 8)]);
    assert_eq!(table.job(JOB).state, CoreJobState::Running);
    // The home had the bytes of the first attempt, and its report comes late.
    table.fetched(1, map(1, 0), &[0]);
    let cause = Cause::NotDeterministic { task: map(1, 0).task };
    assert_eq!(table.job(JOB).state, CoreJobState::Ended(Outcome::Failed { cause }));
}

#[test]
fn a_home_without_a_way_out_loses_its_partitions_and_not_the_job() {
    // More maps than an output may be unreadable, on the same number of workers; the last worker cannot read from any
    // other.
    let rereads_max = CoreConfig::default().rereads_max;
    let (workers, cut_off) = (rereads_max + 4, rereads_max + 4);
    let mut table = Table::with_workers(&vec![1; workers as usize]);
    table.submit(plain(workers as usize, workers));
    for index in 0..workers {
        table.map_done(map(index, 0));
    }
    let launched = table.job(JOB).attempts.launched;
    let mut failures = 0;
    for index in 0..workers {
        for home in 1..workers {
            let partitions: Vec<u32> =
                (0..workers).filter(|&p| table.core.home(JOB, p) == Some(WorkerId(home))).collect();
            table.fetched(home, map(index, 0), &partitions);
        }
        if table.core.home(JOB, cut_off - 1) == Some(WorkerId(cut_off)) {
            table.fetch_failed(cut_off, map(index, 0), Failure::Fetch);
            failures += 1;
        }
    }
    assert_eq!(failures, 1, "its partition moves at once");
    let job = table.job(JOB);
    assert_eq!(job.state, CoreJobState::Running);
    assert_eq!(job.maps.done, workers, "no map runs again");
    assert_eq!(job.attempts.launched - launched, workers - 1, "reduces whose segments are there run");
}

#[test]
fn an_output_that_was_reached_and_is_of_no_use_is_made_again_and_its_home_is_not_to_blame() {
    let mut table = Table::with_workers(&[1, 1, 1]);
    table.submit(plain(4, 3));
    table.map_done(map(0, 0));
    table.map_done(map(3, 0));
    for (home, index) in [(2, 0), (3, 0), (2, 3)] {
        table.fetched(home, map(index, 0), &[home - 1]);
    }
    // The third home has read from no other worker, and others have read from this worker.
    let orders = table.fetch_failed(3, map(3, 0), Failure::Corrupt);
    assert!(orders.contains(&"retract map-3.0 to w3".to_owned()), "{orders:?}");
    assert_eq!(table.core.home(JOB, 2), Some(WorkerId(3)));
}

/// Builds a table where two partitions are ready at the first worker, which runs a reduce of this job, while the second
/// worker is idle.
fn two_wait_at_a_busy_home(output: Bytes) -> Table {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 3));
    let done = Event::MapFinished {
        attempt: map(0, 0),
        output_bytes: output,
        took: Span::whole_seconds(1),
        fingerprint: None,
    };
    table.handle(&[done]);
    check(&table.fetched(1, map(0, 0), &[0, 1, 2]), "launch reduce-0.0 on w1");
    check(&table.join(1), "wake at 0.205 s");
    table
}

#[test]
fn ready_reduces_move_to_idle_workers_when_their_home_is_busy_for_a_while() {
    let mut table = two_wait_at_a_busy_home(Bytes(30));
    let after = CoreConfig::default().moving.move_after;
    table.now = table.now + after;
    check(
        &table.handle(&[Event::Tick]),
        "unhome 2 at w1
         home 2 at w2
         announce map-0.0 from w1 to w2",
    );
    check(&table.fetched(2, map(0, 0), &[2]), "launch reduce-2.0 on w2");
    // The home keeps its next reduce.
    table.now = table.now + after;
    check(&table.handle(&[Event::Tick]), "");
    table.ask_commit(reduce(2, 0));
    table.reduce_done(reduce(2, 0));
    table.now = table.now + after;
    table.handle(&[Event::Tick]);
    assert_eq!(table.core.home(JOB, 1), Some(WorkerId(2)));
}

#[test]
fn ready_reduces_with_much_input_wait_for_their_home() {
    let most = CoreConfig::default().moving.move_bytes_max;
    stays_at_its_home(&mut two_wait_at_a_busy_home(Bytes(3 * most.0 + 3)));
}

#[test]
fn ready_reduces_move_only_after_a_wait_as_long_as_their_transfer() {
    let mut table = two_wait_at_a_busy_home(Bytes::mib(3));
    // Each of the three reduces has gathered 1 MiB: 0.7 s at this rate, more than three checks.
    table.handle(&[Event::NetworkRate { per_worker: Some(Bytes(3 << 19)) }]);
    stays_at_its_home(&mut table);
    table.now = table.now + CoreConfig::default().moving.move_after;
    table.handle(&[Event::Tick]);
    assert_eq!(table.core.home(JOB, 2), Some(WorkerId(2)));
}

fn stays_at_its_home(table: &mut Table) {
    for _ in 0..3 {
        table.now = table.now + CoreConfig::default().moving.move_after;
        let orders = table.handle(&[Event::Tick]);
        assert!(orders.iter().all(|order| order.starts_with("wake at")), "{orders:?}");
    }
}

#[test]
fn ready_reduces_stay_when_a_map_would_have_to_run_again() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 2));
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    let launched = [&[(1, 0), (1, 1)][..], &[(2, 0), (2, 1)]].concat();
    for (home, index) in launched {
        table.fetched(home, map(index, 0), &[home - 1]);
    }
    assert_eq!(table.job(JOB).reduces.running, 2);
    table.lose(2);
    table.join(1);
    assert_eq!(table.job(JOB).maps.running, 1, "what a home that is gone had gathered is made again");
    for _ in 0..3 {
        table.now = table.now + CoreConfig::default().moving.move_after;
        table.handle(&[Event::Tick]);
    }
    assert_eq!(table.core.home(JOB, 0), Some(WorkerId(1)));
}
