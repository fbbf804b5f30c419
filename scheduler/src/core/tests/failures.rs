//! Tests of failures: what is charged for one, and what is tried next.

use super::driver::{JOB, Table, check, map, plain, reduce};
use crate::command::{Cause, Outcome};
use crate::core::{CoreConfig, CoreJobState};
use crate::event::{Event, Failure};
use crate::ids::{AttemptId, WorkerId};
use crate::policy::Fifo;

#[test]
fn a_user_failure_is_tried_on_another_worker_and_ends_the_job_at_the_limit() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(1, 0));
    check(&table.fail(map(0, 0), Failure::User), "launch map-0.1 on w2");
    check(&table.fail(map(0, 1), Failure::User), "launch map-0.2 on w1");
    check(&table.fail(map(0, 2), Failure::User), "launch map-0.3 on w1");
    check(
        &table.fail(map(0, 3), Failure::User),
        "forget job-1 at w1
         forget job-1 at w2
         job-1 failed: user code of map-0 failed too often",
    );
    assert_eq!(table.job(JOB).attempts.failed[Failure::User.index()], 4);
}

#[test]
fn a_retry_waits_for_a_worker_where_the_task_has_not_failed() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 1));
    check(&table.fail(map(0, 0), Failure::User), "");
    check(&table.map_done(map(1, 0)), "announce map-1.0 from w2 to w1\nlaunch map-0.1 on w2");
}

#[test]
fn a_retry_does_not_wait_when_the_other_worker_is_lost() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(2, 1));
    check(&table.fail(map(0, 0), Failure::User), "");
    check(&table.lose(2), "launch map-0.1 on w1");
}

#[test]
fn a_job_with_one_attempt_fails_at_the_first_user_failure() {
    let mut table = Table::with_workers(&[1]);
    let mut spec = plain(1, 0);
    spec.attempts_max = 1;
    table.submit(spec);
    check(
        &table.fail(map(0, 0), Failure::User),
        "forget job-1 at w1
         job-1 failed: user code of map-0 failed too often",
    );
}

#[test]
fn input_and_configuration_failures_end_the_job_at_once() {
    for (class, words) in [
        (Failure::Input, "input of map-0 cannot be used"),
        (Failure::Config, "map-0 found the configuration impossible"),
    ] {
        let mut table = Table::with_workers(&[1]);
        table.submit(plain(1, 1));
        let expected = format!("forget job-1 at w1\njob-1 failed: {words}");
        check(&table.fail(map(0, 0), class), &expected);
    }
}

#[test]
fn a_lost_worker_charges_only_the_culprit() {
    let mut table = Table::with_workers(&[2, 2]);
    let mut spec = plain(4, 0);
    spec.attempts_max = 2;
    table.submit(spec);
    // Maps 0 and 2 run on the first worker, since work goes to the emptier worker.
    let lost = Event::WorkerLost { worker: WorkerId(1), culprit: vec![map(2, 0)] };
    check(&table.handle(&[lost]), "");
    let failed = table.job(JOB).attempts.failed;
    assert_eq!((failed[Failure::User.index()], failed[Failure::Lost.index()]), (1, 1));
    table.join(2);
    check(
        &table.fail(map(2, 1), Failure::User),
        "kill map-0.1 on w3
         kill map-1.0 on w2
         kill map-3.0 on w2
         forget job-1 at w2
         forget job-1 at w3
         job-1 failed: user code of map-2 failed too often",
    );
}

#[test]
fn losing_workers_is_not_charged_but_ends_the_job_when_a_task_outlives_too_many() {
    let mut table = Table::with_workers(&[1]);
    let mut spec = plain(1, 0);
    spec.attempts_max = 1;
    table.submit(spec);
    let losses_max = CoreConfig::default().losses_max;
    for worker in 1..losses_max {
        table.lose(worker);
        check(&table.join(1), &format!("launch map-0.{worker} on w{}", worker + 1));
    }
    check(&table.lose(losses_max), "job-1 failed: workers died too often while map-0 ran");
}

#[test]
fn a_worker_that_fails_a_job_three_times_gets_no_more_of_it() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(8, 0));
    check(&table.fail(map(0, 0), Failure::Worker), "launch map-2.0 on w1");
    check(&table.fail(map(2, 0), Failure::Worker), "launch map-3.0 on w1");
    check(&table.fail(map(3, 0), Failure::Worker), "");
    assert_eq!(table.job(JOB).attempts.failed[Failure::Worker.index()], 3);
    // Another job may use it, and so may this job once no other worker is left.
    check(&table.submit(plain(1, 0)), "launch job-2/map-0.0 on w1");
    check(
        &table.fail(crate::ids::TaskId::map(crate::ids::JobId(2), 0).attempt(0), Failure::Cancelled),
        "launch job-2/map-0.1 on w1",
    );
    table.handle(&[Event::JobCancelled { job: crate::ids::JobId(2) }]);
    table.fail(crate::ids::TaskId::map(crate::ids::JobId(2), 0).attempt(1), Failure::Cancelled);
    check(&table.lose(2), "launch map-0.1 on w1");
}

#[test]
fn partitions_leave_a_barred_home_when_a_better_worker_joins() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    for epoch in 0..3 {
        check(&table.fail(map(0, epoch), Failure::Worker), &format!("launch map-0.{} on w1", epoch + 1));
    }
    check(
        &table.join(1),
        "unhome 0 at w1
         home 0 at w2",
    );
}

#[test]
fn a_job_gives_up_when_its_last_worker_only_makes_trouble() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 0));
    let uncharged_max = CoreConfig::default().uncharged_max;
    for epoch in 0..uncharged_max - 1 {
        table.fail(map(0, epoch), Failure::Worker);
    }
    check(
        &table.fail(map(0, uncharged_max - 1), Failure::Worker),
        "forget job-1 at w1
         job-1 failed: no worker could do map-0 for lack of room or I/O errors",
    );
}

#[test]
fn a_job_gives_up_when_its_only_home_cannot_take_segments() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    for _ in 1..CoreConfig::default().worker_failures_max {
        let again = table.fetch_failed(1, map(0, 0), Failure::Worker);
        check(&again, "announce map-0.0 from w1 to w1");
    }
    check(
        &table.fetch_failed(1, map(0, 0), Failure::Worker),
        "forget job-1 at w1
         job-1 failed: no worker could do map-0 for lack of room or I/O errors",
    );
}

#[test]
fn a_reduce_that_fails_stays_for_one_retry_and_then_moves() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    check(&table.fetched(1, map(0, 0), &[0]), "launch reduce-0.0 on w1");
    check(&table.fail(reduce(0, 0), Failure::User), "launch reduce-0.1 on w1");
    check(
        &table.fail(reduce(0, 1), Failure::User),
        "unhome 0 at w1
         home 0 at w2
         announce map-0.0 from w1 to w2",
    );
    check(&table.fetched(2, map(0, 0), &[0]), "launch reduce-0.2 on w2");
    check(&table.fail(reduce(0, 2), Failure::User), "launch reduce-0.3 on w2");
}

#[test]
fn a_reduce_that_fails_stays_when_there_is_nowhere_else() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.map_done(map(0, 0));
    table.fetched(1, map(0, 0), &[0]);
    for epoch in 0..3 {
        check(&table.fail(reduce(0, epoch), Failure::User), &format!("launch reduce-0.{} on w1", epoch + 1));
    }
}

#[test]
fn late_facts_are_counted_and_change_nothing() {
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(1, 0));
    table.lose(1);
    check(&table.map_done(map(0, 0)), "");
    check(&table.fail(map(0, 0), Failure::User), "");
    check(&table.ask_commit(map(0, 0)), "");
    check(&table.lose(1), "");
    assert_eq!(table.core.late_events(), 4);
    check(&table.handle(&[Event::JobCancelled { job: crate::ids::JobId(9) }]), "");
    assert_eq!(table.core.late_events(), 5);
}

#[test]
fn a_way_that_is_cut_off_charges_nobody_pauses_and_has_a_cause_of_its_own() {
    let mut table = Table::with_config(Fifo::new(), CoreConfig::default());
    table.join(1);
    let mut spec = plain(1, 0);
    spec.attempts_max = 1;
    table.submit(spec);
    let CoreConfig { uncharged_max, backoff, .. } = CoreConfig::default();
    for epoch in 0..uncharged_max - 1 {
        let orders = table.fail(map(0, epoch), Failure::Unreachable);
        assert!(orders.iter().all(|order| order.starts_with("wake at")), "it pauses: {orders:?}");
        table.now = table.now + backoff;
        check(&table.handle(&[Event::Tick]), &format!("launch map-0.{} on w1", epoch + 1));
    }
    check(
        &table.fail(map(0, uncharged_max - 1), Failure::Unreachable),
        "forget job-1 at w1
         job-1 failed: map-0 could not reach the submitter, or the worker that has its input",
    );
}

#[test]
fn a_neighbour_of_a_culprit_is_charged_nothing_however_often_it_loses_its_worker() {
    let config = CoreConfig::default();
    let mut table = Table::with_workers(&[2]);
    let mut long = plain(1, 0);
    long.attempts_max = 1;
    table.submit(long);
    for worker in 1..2 * config.losses_max {
        // Each time another job, whose map crashes the worker.
        table.submit(plain(1, 0));
        let culprit = crate::ids::TaskId::map(crate::ids::JobId(worker + 1), 0).attempt(0);
        table.handle(&[Event::WorkerLost { worker: WorkerId(worker), culprit: vec![culprit] }]);
        table.handle(&[Event::JobCancelled { job: culprit.task.job }]);
        check(&table.join(2), &format!("launch map-0.{worker} on w{}", worker + 1));
    }
    assert_eq!(table.job(JOB).attempts_lost(), 2 * config.losses_max - 1);
}

#[test]
fn a_job_fails_when_too_many_workers_die_of_it_one_task_after_the_other() {
    let deaths_max = CoreConfig::default().deaths_max;
    let mut table = Table::with_workers(&[1]);
    let mut spec = plain(1_000, 1);
    spec.attempts_max = 1_000;
    table.submit(spec);
    table.map_done(map(0, 0));
    let mut worker = 1;
    while table.job(JOB).state == CoreJobState::Running {
        let running: Vec<_> = table.core.attempts().map(|(attempt, _)| attempt).collect();
        table.handle(&[Event::WorkerLost { worker: WorkerId(worker), culprit: running }]);
        table.join(1);
        worker += 1;
        assert!(worker < 2 * deaths_max, "no bound");
    }
    let state = table.job(JOB).state;
    let lost = matches!(state, CoreJobState::Ended(Outcome::Failed { cause: Cause::WorkersLost { .. } }));
    assert!(lost, "{state:?}");
}

#[test]
fn a_worker_with_many_slots_whose_disk_is_full_does_not_end_the_job_while_there_is_another() {
    let worker_failures_max = CoreConfig::default().worker_failures_max;
    let mut table = Table::with_workers(&[2 * worker_failures_max, 1]);
    table.submit(plain(2 * worker_failures_max as usize, 0));
    let on_the_first: Vec<_> = table.core.attempts().filter(|(_, at)| at.worker == WorkerId(1)).collect();
    assert!(worker_failures_max < on_the_first.len() as u32);
    for (attempt, _) in on_the_first {
        table.fail(attempt, Failure::Worker);
    }
    assert_eq!(table.job(JOB).state, CoreJobState::Running);
}

#[test]
fn a_worker_that_does_well_again_when_all_have_failed_is_a_better_one_than_the_rest() {
    let config = CoreConfig::default();
    let mut table = Table::with_workers(&[1, 1]);
    table.submit(plain(100, 1));
    let failures = |of: u32| move |done: u32| done < of;
    let passes_after = [failures(u32::MAX), failures(config.worker_failures_tolerated)];
    let mut ended = [0, 0];
    while table.job(JOB).maps.done < 100 {
        // They alternate while both have work.
        let mut running: Vec<_> = table.core.attempts().collect();
        running.sort_by_key(|(_, at)| ended[at.worker.0 as usize - 1]);
        let &(attempt, at) = running.first().expect("the job goes on");
        let place = at.worker.0 as usize - 1;
        match passes_after[place](ended[place]) {
            true => drop(table.fail(attempt, Failure::Worker)),
            false => drop(table.map_done(attempt)),
        }
        ended[place] += 1;
    }
    assert!(ended[0] < config.worker_failures_max, "{ended:?}: the first one was asked again and again");
}

#[test]
fn a_submitter_that_is_away_for_a_moment_does_not_end_the_job_of_a_worker_with_many_slots() {
    let worker_failures_max = CoreConfig::default().worker_failures_max;
    let mut table = Table::with_workers(&[2 * worker_failures_max]);
    table.submit(plain(2 * worker_failures_max as usize, 0));
    for (attempt, _) in table.core.attempts().collect::<Vec<_>>() {
        table.fail(attempt, Failure::Unreachable);
    }
    assert_eq!(table.job(JOB).state, CoreJobState::Running);
}

fn memory_ran_out(table: &mut Table, attempts: &[AttemptId]) {
    check(&table.handle(&[Event::MemoryRanOut { attempts: attempts.to_vec() }]), "");
}

#[test]
fn tasks_that_ran_where_memory_ran_out_run_alone_from_then_on_and_after_the_second_time_all_of_the_job() {
    let mut table = Table::with_workers(&[2, 2]);
    table.submit(plain(5, 0));
    let alone = |table: &Table| {
        (0..5).filter(|&index| table.core.has_process_to_itself(map(index, 0).task)).collect::<Vec<_>>()
    };
    let on_first: Vec<AttemptId> = table
        .core
        .attempts()
        .filter(|(_, it)| it.worker == WorkerId(1))
        .map(|(attempt, _)| attempt)
        .collect();
    assert_eq!((on_first.len(), alone(&table)), (2, vec![]));
    memory_ran_out(&mut table, &on_first);
    table.lose(1);
    assert_eq!(alone(&table), on_first.iter().map(|attempt| attempt.task.index).collect::<Vec<_>>());
    memory_ran_out(&mut table, &on_first);
    assert_eq!(alone(&table).len(), 2, "they had ended before");
    let on_second: Vec<AttemptId> = table.core.attempts().map(|(attempt, _)| attempt).collect();
    memory_ran_out(&mut table, &on_second);
    assert_eq!(alone(&table), [0, 1, 2, 3, 4]);
}
