//! Homes, outputs, segments: where they are and what is made again.

use super::driver::{JOB, Table, check, map, map_finished, plain, reduce};
use crate::core::CoreConfig;
use crate::event::Failure;
use crate::ids::{JobId, WorkerId};
use crate::units::Span;

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
fn a_ready_reduce_waits_for_its_home_even_if_others_are_idle() {
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
        &table.tell(&[
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
    check(&table.fetch_failed(1, map(1, 0), Failure::Fetch), "retract map-1.0 to w1");
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
    assert_eq!(table.job(JOB).attempts_failed, [0; 8]);
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
    // The first worker is the better home, were it not for the segments that went bad there.
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
