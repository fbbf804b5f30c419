//! Tests of the ends of jobs, and of what is left of them.

use super::driver::{JOB, Table, check, map, plain, reduce, words};
use crate::command::{Cause, Outcome};
use crate::core::{Core, CoreConfig, CoreJobState};
use crate::event::{Event, External, Failure};
use crate::ids::JobId;
use crate::placement::Pull;
use crate::plan::Plan;
use crate::policy::{Fifo, Policy};
use crate::units::{Span, Time};
use crate::view::{Change, View};

#[test]
fn a_job_without_tasks_succeeds_at_once_even_without_workers() {
    let mut table = Table::with_workers(&[]);
    check(&table.submit(plain(0, 0)), "job-1 succeeded");
}

#[test]
fn a_job_without_maps_still_makes_all_its_parts() {
    let mut table = Table::with_workers(&[2]);
    check(
        &table.submit(plain(0, 2)),
        "home 0 at w1
         home 1 at w1
         launch reduce-0.0 on w1
         launch reduce-1.0 on w1",
    );
    table.ask_commit(reduce(0, 0));
    table.ask_commit(reduce(1, 0));
    table.reduce_done(reduce(0, 0));
    check(&table.reduce_done(reduce(1, 0)), "forget job-1 at w1\njob-1 succeeded");
}

#[test]
fn a_cancelled_job_holds_its_slots_until_its_attempts_report() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(2, 1));
    table.submit(plain(1, 0));
    check(
        &table.handle(&[Event::JobCancelled { job: JOB }]),
        "kill map-0.0 on w1
         forget job-1 at w1
         job-1 cancelled",
    );
    assert_eq!(table.job(JOB).state, CoreJobState::Ended(Outcome::Cancelled));
    check(&table.fail(map(0, 0), Failure::Cancelled), "launch job-2/map-0.0 on w1");
}

#[test]
fn an_attempt_that_was_faster_than_its_death_leaves_nothing_behind() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.handle(&[Event::JobCancelled { job: JOB }]);
    check(&table.map_done(map(0, 0)), "forget job-1 at w1");
}

#[test]
fn a_job_ends_when_somebody_outside_gives_it_up() {
    let mut table = Table::with_workers(&[]);
    table.submit(plain(1, 1));
    let failed = Event::JobFailed { job: JOB, cause: External::ClientLost };
    check(&table.handle(&[failed]), "job-1 failed: the client is gone");
}

#[test]
fn jobs_fail_when_there_is_no_worker_for_the_whole_grace() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    let orders = table.lose(1);
    check(&orders, "wake at 30.003 s");
    table.now = Time::ZERO + Span::whole_seconds(10);
    check(&table.submit(plain(1, 1)), "");
    table.now = Time::ZERO + Span::milliseconds(30_002);
    // The second job arrived later, so it waits longer.
    check(
        &table.handle(&[Event::Tick]),
        "job-1 failed: no live workers
         wake at 40.001 s",
    );
    table.now = Time::ZERO + Span::milliseconds(40_000);
    check(&table.handle(&[Event::Tick]), "job-2 failed: no live workers");
    let ended = CoreJobState::Ended(Outcome::Failed { cause: Cause::NoWorkers });
    assert_eq!(table.job(JobId(2)).state, ended);
}

#[test]
fn jobs_go_on_when_a_worker_joins_within_the_grace() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 1));
    table.lose(1);
    table.now = Time::ZERO + Span::whole_seconds(29);
    check(
        &table.join(1),
        "home 0 at w2
         launch map-0.1 on w2",
    );
    table.now = Time::ZERO + Span::whole_seconds(31);
    check(&table.handle(&[Event::Tick]), "");
}

#[test]
fn a_job_is_remembered_after_its_end_up_to_the_limit() {
    let config = CoreConfig { ended_jobs_max: 2, ..CoreConfig::default() };
    let mut core = Core::new(config, Box::new(Fifo::new()), Box::new(Pull::new()));
    let mut commands = Vec::new();
    for job in 1..=3 {
        let arrived = Event::JobArrived { job: JobId(job), spec: plain(0, 0).into() };
        core.handle(Time(u64::from(job)), &[arrived], &mut commands);
    }
    assert_eq!(core.job(JobId(1)), None);
    assert_eq!(core.ended_jobs().map(|job| job.id).collect::<Vec<_>>(), [JobId(2), JobId(3)]);
    assert_eq!(words(&commands[2]), "job-3 succeeded");
}

#[test]
fn a_snapshot_tells_the_times_and_counts_of_a_job() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(2, 1));
    let arrival = table.now;
    table.map_done(map(0, 0));
    table.map_done(map(1, 0));
    let maps_done = table.now;
    table.fetched(1, map(0, 0), &[0]);
    let job = table.job(JOB);
    assert_eq!(
        (job.arrival, job.first_launch, job.maps_done, job.ended),
        (arrival, Some(arrival), Some(maps_done), None)
    );
    assert_eq!((job.maps.pending, job.maps.running, job.maps.done), (0, 0, 2));
    assert_eq!((job.segments_fetched, job.attempts.launched, job.map_output.get()), (1, 2, 20));
    let worker = table.core.workers().next().unwrap();
    assert_eq!((worker.slots, worker.running, worker.jobs, worker.homes, worker.outputs), (1, 0, 1, 1, 2));
}

#[test]
#[should_panic(expected = "suspends maps")]
fn core_refuses_a_policy_that_would_suspend_maps() {
    struct Preempting;
    impl Policy for Preempting {
        fn name(&self) -> &'static str {
            "preempting"
        }
        fn suspends_maps(&self) -> bool {
            true
        }
        fn observe(&mut self, _: View<'_>, _: Change) {}
        fn plan(&mut self, _: View<'_>, _: &mut Plan<'_>) {}
    }
    let _ = Core::new(CoreConfig::default(), Box::new(Preempting), Box::new(Pull::new()));
}

#[test]
#[should_panic(expected = "joined twice")]
fn core_refuses_a_worker_id_that_was_used_before() {
    let mut table = Table::with_workers(&[1]);
    table.lose(1);
    let worker = crate::ids::WorkerId(1);
    table.handle(&[Event::WorkerJoined {
        worker,
        host: crate::ids::HostId(1),
        slots: crate::event::Slots::Unified(1),
    }]);
}
