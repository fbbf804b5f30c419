//! Tests of reduces that are suspended and resumed in virtual time.

use super::*;
use crate::units::Span;

/// One worker with one slot, a job with a long reduce, and a short job that arrives while it runs.
fn one_slot(change: impl Fn(&mut Config)) -> Seen {
    let mut config = unified(1, 1);
    change(&mut config);
    let jobs = [job(0.0, &[1.0], &[10.0]), job(3.0, &[1.0], &[])];
    watch(&config, TestDeciders::named("asrpt:preemptive=yes", "pull", Some("oracle")), &jobs).unwrap()
}

#[test]
fn a_suspended_reduce_keeps_the_work_it_has_left() {
    let seen = one_slot(|_| {});
    assert_eq!(ends(&seen), [12.0, 4.0]);
    let pieces: Vec<(f64, f64)> = seen.suspended.iter().map(|run| (run.start, run.end)).collect();
    assert_eq!(pieces, [(1.0, 3.0)]);
    let last = seen.tasks.iter().find(|run| run.task.kind == TaskKind::Reduce).unwrap();
    assert_eq!((last.start, last.end), (4.0, 12.0));
    assert_eq!(seen.summary.utilisation, [2.0 / 12.0, 0.0, 10.0 / 12.0]);
}

#[test]
fn suspending_and_resuming_cost_what_they_are_said_to_cost() {
    let seen = one_slot(|config| {
        config.suspend_cost = 0.5;
        config.resume_cost = 0.25;
    });
    // The short job starts when the slot is released, at 3.5; the reduce has 8 s left at 4.5, and a cost of 0.25.
    assert_eq!(ends(&seen), [12.75, 4.5]);
}

#[test]
fn a_reduce_keeps_its_slot_when_it_has_not_had_it_for_long() {
    let seen = one_slot(|config| config.core.suspending.suspend_after_min = Span::whole_seconds(20));
    assert_eq!(ends(&seen), [11.0, 12.0]);
}

#[test]
fn asrpt_is_better_with_preemption_when_a_long_reduce_is_in_the_way_of_short_jobs() {
    let mut jobs = vec![job(0.0, &[1.0], &[200.0, 200.0])];
    jobs.extend((0..30).map(|index| job(5.0 + 4.0 * f64::from(index), &[1.0, 1.0], &[1.0])));
    let mean_flow = |policy: &str| {
        let seen = watch(&unified(1, 2), TestDeciders::named(policy, "pull", Some("oracle")), &jobs).unwrap();
        let flows = seen.records.iter().map(|record| record.completion - record.arrival);
        (flows.sum::<f64>() / seen.records.len() as f64, seen.suspended.len())
    };
    let (kept, none) = mean_flow("asrpt");
    let (taken, suspensions) = mean_flow("asrpt:preemptive=yes");
    assert_eq!(none, 0);
    assert!(30 <= suspensions, "{suspensions} suspensions");
    assert!(taken < kept / 5.0, "mean flow time {taken} s with preemption and {kept} s without");
}

#[test]
fn lrpt_takes_slots_back_for_the_largest_job_when_told_to() {
    let jobs = [job(0.0, &[1.0], &[10.0]), job(3.0, &[20.0], &[])];
    let ends_under = |policy: &str| {
        ends(&watch(&unified(1, 1), TestDeciders::named(policy, "pull", Some("oracle")), &jobs).unwrap())
    };
    assert_eq!(ends_under("lrpt"), [11.0, 31.0]);
    assert_eq!(ends_under("lrpt:preemptive=yes"), [31.0, 23.0]);
}

#[test]
fn the_head_of_the_shuffle_alone_is_fetched_when_the_policy_says_so() {
    let mut config = unified(3, 1);
    config.network = NetworkConfig { in_rate: 10.0, out_rate: 10.0, latency: 0.0, lanes: 4, own: false };
    // One job's home fetches from the workers where its maps ran, and the other's from the third.
    let jobs = [
        Job { shuffle_bytes: 400.0, ..job(0.0, &[1.0, 1.0], &[0.0]) },
        Job { shuffle_bytes: 40.0, ..job(0.0, &[1.0], &[0.0]) },
    ];
    let times = |policy: &str| {
        let seen = watch(&config, TestDeciders::named(policy, "pull", Some("oracle")), &jobs).unwrap();
        let mut times: Vec<(u64, f64, f64)> =
            seen.transfers.iter().map(|run| (run.seq, run.start, run.end)).collect();
        times.sort_by_key(|&(seq, ..)| seq);
        times
    };
    assert_eq!(times("max-srpt:shuffle=all"), [(0, 1.0, 41.0), (0, 1.0, 41.0), (1, 1.0, 5.0)]);
    assert_eq!(times("max-srpt:shuffle=head"), [(0, 5.0, 45.0), (0, 5.0, 45.0), (1, 1.0, 5.0)]);
}
