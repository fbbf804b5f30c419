//! Tests that no policy and no estimator depends on the unit of time: where all times are multiplied by a factor, mean
//! flow times are as well.
//!
//! The limits of mechanisms, such as the time that a reduce keeps its slot, are real costs. They are multiplied too, so
//! that only decisions are compared.

use super::*;
use crate::core::{AheadConfig, CoreConfig, DivideLimits, MoveLimits, SuspendLimits};
use crate::units::{Bytes, Span};
use crate::workload::{Scale, by_name};

const SEEDS: [u64; 5] = [0, 1, 2, 3, 4];

/// Bytes per second that a worker sends and receives where times are not scaled.
const NETWORK: f64 = 1e8;

fn scaled(span: Span, factor: f64) -> Span {
    Span((span.0 as f64 * factor) as u64)
}

fn config(factor: f64) -> Config {
    let rate = NETWORK / factor;
    let mut config = unified(4, 2);
    config.network = NetworkConfig { in_rate: rate, out_rate: rate, ..NetworkConfig::default() };
    let (suspending, moving) = (SuspendLimits::default(), MoveLimits::default());
    let (ahead, dividing) = (AheadConfig::default(), DivideLimits::default());
    config.core = CoreConfig {
        network: Some(Bytes(rate as u64)),
        suspending: SuspendLimits {
            suspend_after_min: scaled(suspending.suspend_after_min, factor),
            ..suspending
        },
        moving: MoveLimits { move_after: scaled(moving.move_after, factor), ..moving },
        ahead: AheadConfig {
            work: scaled(ahead.work, factor),
            mean_max: scaled(ahead.mean_max, factor),
            patience: scaled(ahead.patience, factor),
            ..ahead
        },
        dividing: Some(DivideLimits {
            part_min: scaled(dividing.part_min, factor),
            look_after: scaled(dividing.look_after, factor),
            ..dividing
        }),
        ..CoreConfig::default()
    };
    config
}

/// Mean flow time of the laptop mix, in units of the factor.
fn mean_flow((policy, estimator): (&str, &str), seed: u64, factor: f64) -> f64 {
    let scale = Scale { time: factor, ..Scale::default() };
    let workload = by_name("mix:kind=laptop,load=0.7").unwrap();
    let mut jobs: Vec<Job> = workload.jobs(seed).take(30).collect();
    jobs.iter_mut().for_each(|job| scale.apply(job));
    let policy = policy
        .replace("TEN", &(10.0 * factor).to_string())
        .replace("RATE", &(0.1 / factor).to_string())
        .replace("SECOND", &format!("{}ms", factor * 1000.0));
    let deciders = TestDeciders::named(&policy, "pull", Some(estimator)).0;
    let (mut sum, count) = (0.0, jobs.len() as f64);
    let mut sink = |record: &JobRecord| sum += record.completion - record.arrival;
    run(&config(factor), deciders, jobs, &mut (), &mut sink).unwrap();
    sum / count / factor
}

/// Checks the median over seeds: rounded times may swap two jobs that are as good as equal, which changes the rest of a
/// simulation.
#[track_caller]
fn check(policy: &str, estimator: &str) {
    let names = (policy, estimator);
    let usual = SEEDS.map(|seed| mean_flow(names, seed, 1.0));
    for factor in [0.02, 10.0] {
        let mut times = SEEDS.map(|seed| mean_flow(names, seed, factor) / usual[seed as usize]);
        times.sort_by(f64::total_cmp);
        let median = times[SEEDS.len() / 2];
        assert!(
            (median - 1.0).abs() <= 0.02,
            "{policy} with {estimator} at {factor}: {times:?} of {usual:?} s"
        );
    }
}

#[test]
fn no_policy_depends_on_the_unit_of_time() {
    let with_times = [
        "asrpt:slot=SECOND",
        "asrpt:slot=SECOND,preemptive=yes",
        "d-clas:first=TEN",
        "gamma-boost:gamma=RATE",
    ]
    .map(str::to_owned);
    let runs = |policy: &&&crate::catalogue::Entry<dyn Policy>| {
        !["srpt", "dsrpt", "asrpt", "d-clas", "gamma-boost", "min-scheduler", "max-scheduler"]
            .contains(&policy.name)
    };
    let names =
        policy::catalogue().iter().filter(runs).map(|entry| entry.name.to_owned()).collect::<Vec<_>>();
    for policy in names.into_iter().chain(with_times) {
        check(&policy, "linear");
    }
}

#[test]
fn no_estimator_depends_on_the_unit_of_time() {
    for estimator in estimate::catalogue() {
        check("max-srpt", estimator.name);
        check("gristmill", estimator.name);
    }
}
