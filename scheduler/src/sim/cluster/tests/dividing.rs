//! Tests of tasks that are divided for idle slots in virtual time.

use super::*;
use crate::core::{CoreConfig, DivideLimits};
use crate::units::Span;

fn dividing(workers: u32, part_min: Span) -> Config {
    let mut config = unified(workers, 1);
    config.core.dividing = Some(DivideLimits { part_min, ..DivideLimits::default() });
    config
}

/// Slot-seconds of the maps of this job.
fn map_seconds(seen: &Seen, seq: u64) -> f64 {
    let runs = seen.tasks.iter().filter(|run| run.seq == seq && run.task.kind == TaskKind::Map);
    runs.map(|run| run.end - run.start).sum()
}

#[test]
fn one_long_map_is_shared_by_all_workers_in_almost_the_ideal_time() {
    let seen = watch(
        &dividing(4, Span::milliseconds(100)),
        TestDeciders::new(Fifo::new()),
        &[job(0.0, &[8.0], &[0.0])],
    );
    let seen = seen.unwrap();
    assert!((2.0..2.2).contains(&ends(&seen)[0]), "{:?}", ends(&seen));
    assert!((map_seconds(&seen, 0) - 8.0).abs() < 1e-6, "no work is lost or done twice");
    let shortest =
        seen.tasks.iter().filter(|run| run.task.kind == TaskKind::Map).map(|run| run.end - run.start);
    assert!(0.099 <= shortest.fold(f64::INFINITY, f64::min), "no part is shorter than the minimum");
}

#[test]
fn slow_worker_gives_its_map_away_piece_by_piece() {
    let mut config = dividing(4, Span::milliseconds(100));
    config.workers[0].speed = 0.1;
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &[job(0.0, &[4.0; 4], &[0.0])]).unwrap();
    // Together the workers do 3.1 s of work in a second.
    let ideal = 16.0 / 3.1;
    assert!((ideal..ideal * 1.15).contains(&ends(&seen)[0]), "{:?} of {ideal}", ends(&seen));
}

#[test]
fn map_of_a_job_without_reduces_is_not_divided() {
    let seen =
        watch(&dividing(4, Span(0)), TestDeciders::new(Fifo::new()), &[job(0.0, &[8.0], &[])]).unwrap();
    assert_eq!((ends(&seen), seen.tasks.len()), (vec![8.0], 1));
}

/// Slot-seconds of the reduces of this job.
fn reduce_seconds(seen: &Seen, seq: u64) -> f64 {
    let runs = seen.tasks.iter().filter(|run| run.seq == seq && run.task.kind == TaskKind::Reduce);
    runs.map(|run| run.end - run.start).sum()
}

#[test]
fn one_long_reduce_is_shared_by_the_slots_of_its_worker_in_almost_the_ideal_time() {
    let mut config = dividing(1, Span::milliseconds(100));
    config.workers[0].slots = Slots::Unified(4);
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &[job(0.0, &[0.0], &[8.0])]).unwrap();
    assert!((2.0..2.2).contains(&ends(&seen)[0]), "{:?}", ends(&seen));
    assert!((reduce_seconds(&seen, 0) - 8.0).abs() < 1e-6, "no work is lost or done twice");
}

#[test]
fn partition_with_half_of_the_pairs_ends_with_the_others() {
    let mut config = dividing(1, Span::milliseconds(100));
    config.workers[0].slots = Slots::Unified(4);
    let skewed = job(0.0, &[0.0], &[6.0, 2.0, 2.0, 2.0]);
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &[skewed]).unwrap();
    assert!((3.0..3.0 * 1.15).contains(&ends(&seen)[0]), "{:?} of 3.0", ends(&seen));
}

#[test]
fn reduce_is_not_divided_for_slots_of_other_workers() {
    let config = dividing(2, Span::milliseconds(100));
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &[job(0.0, &[0.0], &[8.0])]).unwrap();
    assert_eq!((ends(&seen), seen.tasks.len()), (vec![8.0], 2));
}

/// A job with a long second map and a job with a short one, which arrives while it runs, on one slot.
fn short_behind_long(config: &Config, policy: &str) -> Seen {
    let jobs = [job(0.0, &[1.0, 10.0], &[0.0]), job(3.0, &[1.0], &[0.0])];
    watch(config, TestDeciders::named(policy, "pull", Some("oracle")), &jobs).unwrap()
}

/// Start and end of the short job's map.
fn short_map(seen: &Seen) -> [f64; 2] {
    let map = seen.tasks.iter().find(|run| run.seq == 1 && run.task.kind == TaskKind::Map).unwrap();
    [map.start, map.end]
}

#[test]
fn long_map_makes_way_for_a_short_job_under_preemptive_policies() {
    let config = dividing(1, Span::milliseconds(100));
    for policy in ["asrpt:preemptive=yes", "gristmill"] {
        let seen = short_behind_long(&config, policy);
        assert_eq!(short_map(&seen), [3.0, 4.0], "{policy}");
        assert!((map_seconds(&seen, 0) - 11.0).abs() < 1e-6, "no work is lost or done twice");
    }
    let whole = Config { core: CoreConfig { dividing: None, ..config.core.clone() }, ..config.clone() };
    assert_eq!(short_map(&short_behind_long(&whole, "gristmill")), [11.0, 12.0]);
    assert_eq!(short_map(&short_behind_long(&config, "gristmill:preemptive=no")), [11.0, 12.0]);
}

#[test]
fn making_way_costs_what_it_is_said_to_cost() {
    let config = Config { suspend_cost: 0.25, ..dividing(1, Span::milliseconds(100)) };
    assert_eq!(ends(&short_behind_long(&config, "gristmill")), [12.0, 4.25], "the front works until it ends");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_and_bytes_of_a_job_are_done_whatever_the_divisions(
        jobs in prop::collection::vec(
            (0.0..5.0_f64, prop::collection::vec(0.0..6.0_f64, 1..5), prop::collection::vec(0.0..2.0_f64, 1..4), 0.0..1e6_f64),
            1..5,
        ),
        workers in 1..5_u32,
        policy in prop::sample::select(vec!["fifo", "fair", "gristmill", "lrpt:preemptive=yes", "max-srpt", "asrpt:preemptive=yes"]),
        limited: bool,
    ) {
        let mut jobs: Vec<Job> = jobs
            .into_iter()
            .map(|(arrival, maps, reduces, bytes)| Job { shuffle_bytes: bytes, ..job(arrival, &maps, &reduces) })
            .collect();
        jobs.sort_by(|one, two| one.arrival.total_cmp(&two.arrival));
        let mut config = dividing(workers, Span::milliseconds(50));
        config.workers[0].slots = Slots::Unified(3);
        if limited {
            config.network = NetworkConfig { in_rate: 1e6, out_rate: 1e6, ..NetworkConfig::default() };
        }
        let divided = watch(&config, TestDeciders::named(policy, "pull", Some("linear")), &jobs).unwrap();
        for (seq, job) in jobs.iter().enumerate() {
            let work: f64 = job.maps.iter().sum();
            prop_assert!((map_seconds(&divided, seq as u64) - work).abs() < 1e-5, "maps of job {seq}");
            // Attempts that were suspended are listed in two pieces elsewhere.
            if divided.suspended.is_empty() {
                let work: f64 = job.reduces.iter().sum();
                prop_assert!((reduce_seconds(&divided, seq as u64) - work).abs() < 1e-5, "reduces of job {seq}");
            }
        }
        // Partitions that move are read again.
        let (read, made) = (divided.summary.shuffled, jobs.iter().map(|job| job.shuffle_bytes).sum::<f64>());
        prop_assert!(made * (1.0 - 1e-3) <= read.iter().sum::<f64>(), "{read:?} of {made}");
        prop_assert_eq!(divided.records.len(), jobs.len());
    }
}
