//! Tests of the forecast of the time left, against the times that jobs then take.

use super::*;
use crate::core::{BackupLimits, Core, CoreConfig};
use crate::ids::{HostId, JobId, WorkerId};
use crate::job::{Exact, JobSpec, MapSpec};
use crate::units::Bytes;
use crate::workload::by_name;
use std::collections::BTreeMap;

/// Forecasts of the jobs of a workload, each with the time that was then left, in seconds. Only of jobs of which a map
/// has ended.
fn forecasts(policy: &str, jobs: Vec<Job>) -> Vec<[f64; 2]> {
    let mut config = unified(4, 2);
    config.network = NetworkConfig { in_rate: 1e8, out_rate: 1e8, ..NetworkConfig::default() };
    let deciders = || TestDeciders::named(policy, "pull", Some("oracle")).0;
    let mut told: Vec<(JobId, f64, f64)> = Vec::new();
    let mut ends: BTreeMap<u64, f64> = BTreeMap::new();
    let mut calls = 0_u32;
    let mut after = |core: &Core| {
        calls += 1;
        if !u32::is_multiple_of(calls, 50) {
            return;
        }
        let now = core.now().seconds();
        let left = time_left(core, deciders()).unwrap();
        let known = core.live_jobs().filter(|job| 0 < job.maps.done);
        told.extend(known.map(|job| (job.id, now, left[&job.id].seconds())));
    };
    let mut sink = |record: &JobRecord| {
        ends.insert(record.seq, record.completion);
    };
    let core = check::core_of(&config, deciders()).unwrap();
    let mut observer = ();
    let engine = engine::Engine::new(&config, core, &mut observer, &mut sink);
    engine.run(&mut jobs.into_iter(), &mut after).unwrap();
    let with_end = |(job, now, left): (JobId, f64, f64)| [left, ends[&u64::from(job.0 - 1)] - now];
    told.into_iter().map(with_end).collect()
}

/// Median of the relative errors of these forecasts.
fn median_error(forecasts: &[[f64; 2]]) -> f64 {
    let mut errors: Vec<f64> =
        forecasts.iter().map(|[told, was]| (told - was).abs() / was.max(0.1)).collect();
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}

#[test]
fn time_left_of_jobs_of_known_size_is_within_a_quarter_in_the_median_also_while_they_wait() {
    for policy in ["gristmill", "fair", "fifo", "max-srpt"] {
        for kind in ["laptop", "heavy-tailed"] {
            let workload = by_name(&format!("mix:kind={kind},load=0.7")).unwrap();
            let told = forecasts(policy, workload.jobs(7).take(100).collect());
            let error = median_error(&told);
            assert!(100 < told.len() && error <= 0.25, "{policy}, {kind}: {error} of {}", told.len());
        }
    }
}

/// Core, and the events by which two workers of 4 slots join.
fn core_of_8_slots(core: CoreConfig, deciders: Deciders) -> (Core, [Event; 2]) {
    let config = Config { core, ..unified(1, 1) };
    let slots = Slots::Unified(4);
    let joined = [1, 2].map(|id| Event::WorkerJoined { worker: WorkerId(id), host: HostId(id), slots });
    (check::core_of(&config, deciders).unwrap(), joined)
}

/// Arrival of a job of maps that take this many seconds each.
fn arrived(job: u32, maps: usize, seconds: f64) -> Event {
    let exact = Exact { maps: vec![seconds; maps].into(), shuffle_bytes: 0.0, reduces: [].into() };
    let maps = vec![MapSpec::anywhere(Bytes(1)); maps];
    let spec = JobSpec { exact: Some(exact), ..JobSpec::new(maps, 0) };
    Event::JobArrived { job: JobId(job), spec: spec.into() }
}

#[test]
fn time_left_counts_what_is_ahead_in_the_queue() {
    let deciders = || TestDeciders::named("fifo", "pull", Some("oracle")).0;
    let (mut core, joined) = core_of_8_slots(CoreConfig::default(), deciders());
    let events: Vec<Event> = joined.into_iter().chain((1..=6).map(|job| arrived(job, 16, 1.0))).collect();
    core.handle(Time(1), &events, &mut Vec::new());
    let left = time_left(&core, deciders()).unwrap();
    assert_eq!(
        left.values().map(|left| left.seconds()).collect::<Vec<_>>(),
        [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    );
}

#[test]
fn time_left_is_forecast_without_speculative_attempts() {
    let deciders = || TestDeciders::named("fifo", "pull", Some("oracle")).0;
    let config = CoreConfig { backups: Some(BackupLimits::default()), ..CoreConfig::default() };
    let (mut core, [one, two]) = core_of_8_slots(config, deciders());
    core.handle(Time(1), &[one, two, arrived(1, 9, 60.0), arrived(2, 1, 600.0)], &mut Vec::new());
    core.handle(Time(59_000_000_001), &[], &mut Vec::new());
    // Eight maps of the first job are nearly done. Its other one takes ten times as long as what those have left.
    let left = time_left(&core, deciders()).unwrap();
    assert_eq!(left.values().map(|left| left.seconds()).collect::<Vec<_>>(), [66.0, 606.0]);
}

#[test]
fn nothing_is_forecast_without_workers_or_for_too_many_tasks() {
    let deciders = || TestDeciders::named("fifo", "pull", None).0;
    let mut core = check::core_of(&unified(1, 1), deciders()).unwrap();
    assert_eq!(time_left(&core, deciders()), None, "no worker has joined");
    let mut commands = Vec::new();
    let joined = Event::WorkerJoined { worker: WorkerId(1), host: HostId(1), slots: Slots::Unified(1) };
    core.handle(Time(1), &[joined], &mut commands);
    assert_eq!(time_left(&core, deciders()), Some(BTreeMap::new()));
    let maps = vec![MapSpec::anywhere(Bytes(1)); FORECAST_TASKS_MAX + 1];
    let arrived = Event::JobArrived { job: JobId(1), spec: JobSpec::new(maps, 0).into() };
    core.handle(Time(2), &[arrived], &mut commands);
    assert_eq!(time_left(&core, deciders()), None);
}
