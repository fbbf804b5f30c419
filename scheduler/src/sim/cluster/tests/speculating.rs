//! Speculative attempts and clones: a slow worker and rare slow tasks hold up no job, and a task counts once.

use super::*;
use crate::core::{BackupLimits, CloneLimits};

fn backups(clones: Option<CloneLimits>) -> Option<BackupLimits> {
    Some(BackupLimits { clones, ..BackupLimits::default() })
}

fn speeds(speeds: &[f64]) -> Config {
    let mut config = unified(speeds.len() as u32, 1);
    config.workers.iter_mut().zip(speeds).for_each(|(worker, &speed)| worker.speed = speed);
    config
}

#[test]
fn a_task_on_a_slow_worker_gets_a_second_attempt_once_a_slot_is_free_and_its_peers_have_ended() {
    let mut config = speeds(&[1.0, 1.0, 1.0, 0.1]);
    let jobs = [job(0.0, &[1.0; 8], &[])];
    assert_eq!(ends(&watch(&config, TestDeciders::new(Fifo::new()), &jobs).unwrap()), [10.0]);
    config.core.backups = backups(None);
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &jobs).unwrap();
    // All slots are used until 2; the second attempt runs from 2 to 3, and the first is stopped.
    assert_eq!(ends(&seen), [3.0]);
    let stopped: Vec<_> = seen.suspended.iter().map(|run| (run.worker, run.end)).collect();
    assert_eq!(stopped, [(3, 3.0)]);
}

#[test]
fn a_reduce_on_a_slow_worker_gets_a_second_attempt_where_its_segments_were_fetched_again() {
    let mut config = speeds(&[1.0, 1.0, 1.0, 0.1]);
    config.network = NetworkConfig { in_rate: 10.0, out_rate: 10.0, ..NetworkConfig::default() };
    let jobs = [Job { shuffle_bytes: 16.0, ..job(0.0, &[0.1; 4], &[1.0; 4]) }];
    let alone = ends(&watch(&config, TestDeciders::new(Fifo::new()), &jobs).unwrap())[0];
    config.core.backups = backups(None);
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &jobs).unwrap();
    assert!(ends(&seen)[0] < 0.5 * alone, "{} of {alone}", ends(&seen)[0]);
    let again: f64 = seen.transfers.iter().map(|transfer| transfer.bytes).sum();
    assert!(12.0 < again, "only {again} bytes were sent, although a partition was fetched twice");
}

#[test]
fn a_clone_starts_with_its_task_but_only_for_small_jobs_and_within_the_budget() {
    let one_each = CloneLimits { slots_per_clone: 1, ..CloneLimits::default() };
    let at_once = |maps: usize, clones: CloneLimits| {
        let mut config = unified(30, 1);
        config.core.backups = backups(Some(clones));
        let jobs = [job(0.0, &vec![1.0; maps], &[])];
        let seen = watch(&config, TestDeciders::new(Fifo::new()), &jobs).unwrap();
        assert_eq!(ends(&seen), [1.0]);
        seen.held.iter().map(|(_, _, held)| held[0]).max().unwrap()
    };
    assert_eq!(at_once(10, one_each.clone()), 20);
    assert_eq!(at_once(11, one_each), 11);
    // One slot of twenty of thirty, rounded up.
    assert_eq!(at_once(10, CloneLimits::default()), 12);
}

#[test]
fn attempts_of_a_task_have_draws_of_their_own_with_backups_and_the_old_ones_without() {
    let mut config = unified(8, 1);
    let service = Some(Dtd::new(0.0, 1.3, 1.0).unwrap());
    config.workers.iter_mut().for_each(|worker| worker.service = service);
    let jobs: Vec<Job> = (0..200).map(|i| job(f64::from(i) * 200.0, &[1.0; 4], &[])).collect();
    let flow = |config: &Config| {
        let seen = watch(config, TestDeciders::new(Fifo::new()), &jobs).unwrap();
        seen.records.iter().map(|record| record.completion - record.arrival).sum::<f64>() / 200.0
    };
    let whole = flow(&config);
    config.core.backups = backups(None);
    let backed_up = flow(&config);
    config.core.backups = backups(Some(CloneLimits { slots_per_clone: 2, ..CloneLimits::default() }));
    let cloned = flow(&config);
    assert!(cloned < 0.9 * backed_up && backed_up < 0.9 * whole, "{whole}, {backed_up}, {cloned}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_ends_every_workload_whose_tasks_may_have_two_attempts(
        case in case(), oracle: bool, clones: bool, divides: bool
    ) {
        let clones = clones.then(|| CloneLimits { slots_per_clone: 2, ..CloneLimits::default() });
        let mut config = case.config.clone();
        config.core.backups = Some(BackupLimits { peers_min: 1, slots_per_backup: 2, clones, ..BackupLimits::default() });
        config.core.dividing = divides.then(crate::core::DivideLimits::default);
        for name in live_policies() {
            let deciders = || TestDeciders::named(name, "pull", oracle.then_some("oracle"));
            let seen = watch(&config, deciders(), &case.jobs);
            prop_assert!(seen.is_ok(), "{}: {}", name, seen.unwrap_err());
            let seen = seen.unwrap();
            prop_assert_eq!(seen.records.len(), case.jobs.len());
            let ended: std::collections::BTreeSet<_> = seen.tasks.iter().map(|run| (run.seq, run.task)).collect();
            let tasks: usize = case.jobs.iter().map(|job| job.maps.len() + job.reduces.len()).sum();
            prop_assert!(tasks <= ended.len(), "{} of {} tasks ended", ended.len(), tasks);
            check_slots(&seen);
            prop_assert_eq!(&seen, &watch(&config, deciders(), &case.jobs).unwrap(), "{} again", name);
        }
    }
}
