//! Tests of the durations of jobs alone: by arithmetic, and as in runs where they never overlap.

use super::*;
use crate::queueing::Dtd;
use crate::sim::cluster::alone;

#[test]
fn a_map_and_a_reduce_take_both_lengths_however_many_slots_idle() {
    let times = alone(&unified(100, 2), [job(0.0, &[1.0], &[1.0])]).unwrap();
    assert_eq!(times, [2.0]);
}

#[test]
fn jobs_of_one_shape_take_the_same_and_others_their_own() {
    let pools = Config::uniform(2, Slots::Pools { map: 1, reduce: 1 });
    let jobs = [
        job(0.0, &[2.0; 3], &[1.0]),
        job(1.0, &[2.0, 2.0], &[1.0]),
        job(1.0, &[2.0; 3], &[1.0]),
        job(2.0, &[2.0], &[2.0, 1.0]),
        job(3.0, &[2.0, 2.0], &[1.0]),
        Job { deadline: Some(9.0), weight: 5.0, ..job(3.0, &[2.0; 3], &[1.0]) },
        job(4.0, &[], &[]),
    ];
    assert_eq!(alone(&pools, jobs).unwrap(), [5.0, 3.0, 5.0, 4.0, 3.0, 5.0, 0.0]);
}

#[test]
fn a_job_that_cannot_be_is_named_by_its_place_among_all() {
    let bad = Job { input_bytes: -1.0, ..job(0.0, &[3.0], &[]) };
    let error = alone(&unified(1, 1), [job(0.0, &[2.0], &[]), job(0.0, &[2.0], &[]), bad]).unwrap_err();
    assert!(error.to_string().starts_with("job 2: `input_bytes` is -1"), "{error}");
}

#[test]
fn drawn_service_times_are_those_that_the_job_has_beside_others() {
    let mut one = unified(1, 2);
    one.seed = 7;
    one.workers[0].service = Some(Dtd::new(0.5, 0.1, 0.2).unwrap());
    // More than the restart interval apart, so that they never overlap.
    let jobs: Vec<Job> =
        (0..5).map(|place| job(2e6 * f64::from(place), &[1.0, 2.0, 3.0], &[4.0, 5.0])).collect();
    let seen = watch(&one, TestDeciders::new(Fifo::new()), &jobs).unwrap();
    let times = alone(&one, jobs).unwrap();
    for (record, alone) in seen.records.iter().zip(&times) {
        assert!((record.flow() - alone).abs() < 1e-6, "{} and {alone} s alone", record.flow());
    }
    assert!(times.windows(2).all(|pair| pair[0] != pair[1]), "jobs of one shape draw their own: {times:?}");
}

proptest! {
    /// With workers of different speeds and a network, the assignment of tasks matters.
    #[test]
    fn time_alone_is_that_on_a_cluster_that_has_seen_no_other_job(
        tasks in prop::collection::vec((0..6_usize, 0..4_usize, 1..4_u32, 0..3_u32), 1..8),
    ) {
        let mut config = unified(3, 2);
        config.workers[1].speed = 0.5;
        config.network = NetworkConfig { in_rate: 10.0, out_rate: 10.0, latency: 0.01, lanes: 2, own: false };
        let jobs: Vec<Job> = tasks.into_iter().map(|(maps, reduces, length, bytes)| Job {
            shuffle_bytes: if maps * reduces == 0 { 0.0 } else { f64::from(100 * bytes) },
            ..job(0.0, &vec![f64::from(length); maps], &vec![0.5 * f64::from(length); reduces])
        }).collect();
        let times = alone(&config, jobs.iter().cloned()).unwrap();
        prop_assert_eq!(times.len(), jobs.len());
        for (job, alone) in jobs.into_iter().zip(times) {
            let seen = watch(&config, TestDeciders::new(Fifo::new()), &[job]).unwrap();
            prop_assert!((seen.records[0].flow() - alone).abs() < 1e-6, "{} and {alone} s", seen.records[0].flow());
        }
    }
}
