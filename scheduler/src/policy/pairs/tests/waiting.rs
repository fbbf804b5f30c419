//! Tests of the policies with jobs that arrive and end, in the fluid model.

use super::whole_jobs;
use crate::job::Size;
use crate::metrics::JobRecord;
use crate::policy::pairs::{Pairs, PairsRule, RULES, rule, times};
use crate::sim::fluid;
use crate::station::{PerStation, Station};
use crate::workload::Job;
use proptest::prelude::*;

fn job(arrival: f64, size: Size) -> Job {
    Job { arrival, work: PerStation::new(size.map, size.shuffle, 0.0), ..Job::default() }
}

/// Returns the records by seq.
fn run(rule: PairsRule, jobs: &[Job]) -> Vec<JobRecord> {
    let mut records = Vec::new();
    fluid::run(&mut Pairs::new(rule), jobs.iter().cloned(), &mut |record| records.push(*record)).unwrap();
    records.sort_by_key(|record| record.seq);
    records
}

fn all_rules() -> Vec<PairsRule> {
    RULES.iter().map(|entry| rule(entry.name).unwrap()).collect()
}

/// Jobs with gaps between their arrivals, and some at the same time.
fn arrivals(count: usize) -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec((0_u8..6, 1_u8..12, 1_u8..12), 1..count).prop_map(|drawn| {
        let mut now = 0.0;
        let mut next = |(gap, map, shuffle): (u8, u8, u8)| {
            now += f64::from(gap);
            job(now, (f64::from(map), f64::from(shuffle)).into())
        };
        drawn.into_iter().map(&mut next).collect()
    })
}

/// True if equal except for rounding.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * a.abs().max(1.0)
}

proptest! {
    #[test]
    fn jobs_that_are_all_there_run_as_the_closed_form_says(jobs in whole_jobs(10)) {
        let jobs: Vec<Size> =
            jobs.into_iter().map(|job| Size { map: job.map + 1.0, shuffle: job.shuffle + 1.0 }).collect();
        let workload: Vec<Job> = jobs.iter().map(|&size| job(0.0, size)).collect();
        for rule in all_rules() {
            // The policies treat jobs that are present at once as the start of the system, where both online algorithms
            // call the offline ones.
            let order = match rule {
                PairsRule::OnlineGroup { alpha, k, .. } => PairsRule::Group { alpha, k }.order(&jobs),
                PairsRule::OnlineMatch { alpha, .. } => PairsRule::Match { alpha }.order(&jobs),
                rule => rule.order(&jobs),
            };
            for (record, times) in run(rule, &workload).iter().zip(times(&jobs, &order)) {
                prop_assert!(close(record.start, times.start), "{rule:?}: {record:?} against {times:?}");
                prop_assert!(close(record.completion, times.end), "{rule:?}: {record:?} against {times:?}");
            }
        }
    }

    #[test]
    fn a_started_job_keeps_the_map_and_the_map_is_never_idle_while_jobs_wait(jobs in arrivals(20)) {
        for rule in all_rules() {
            let mut records = run(rule, &jobs);
            prop_assert_eq!(records.len(), jobs.len());
            records.sort_by(|a, b| a.start.total_cmp(&b.start));
            let mut free = 0.0_f64;
            for (place, record) in records.iter().enumerate() {
                prop_assert!(close(record.maps_done - record.start, record.work[Station::Map]), "{rule:?}: {record:?}");
                // The next one starts when the map is free and a job is present.
                let first_there = records[place..].iter().map(|record| record.arrival).fold(f64::INFINITY, f64::min);
                prop_assert!(close(record.start, free.max(first_there)), "{rule:?}: {record:?} after {free}");
                free = record.maps_done;
            }
            // Both stations serve jobs in the order of their start.
            prop_assert!(records.is_sorted_by(|a, b| a.completion <= b.completion + 1e-9), "{rule:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule(jobs in arrivals(30), seed in any::<u64>()) {
        for rule in [PairsRule::OnlineGroup { alpha: 0.5, k: 3, seed }, PairsRule::OnlineMatch { alpha: 0.5, seed }] {
            prop_assert_eq!(run(rule, &jobs), run(rule, &jobs));
        }
    }
}

#[test]
fn jobs_without_maps_shuffle_while_others_map() {
    let jobs = [job(0.0, (4.0, 1.0).into()), job(0.0, (0.0, 2.0).into())];
    // Both phases follow the order, but shuffle capacity left by the first goes to the second.
    let records = run(PairsRule::MaxDiff, &jobs);
    assert_eq!(records.iter().map(|record| record.completion).collect::<Vec<_>>(), [4.0, 2.0]);
    let records = run(PairsRule::Pair { delta: 0.0 }, &[jobs[0].clone(), job(0.0, (0.0, 5.0).into())]);
    assert!((records[0].completion - 4.0).abs() < 1e-9, "{records:?}");
    assert!((records[1].completion - 6.0).abs() < 1e-9, "{records:?}");
}

#[test]
fn waiting_jobs_are_ordered_anew_when_others_come() {
    // The first runs; (8, 8) waits, then (2, 2) arrives and runs before it.
    let jobs = [job(0.0, (5.0, 5.0).into()), job(1.0, (8.0, 8.0).into()), job(2.0, (2.0, 2.0).into())];
    let starts: Vec<f64> =
        run(PairsRule::Couple { delta: 0.0 }, &jobs).iter().map(|record| record.start).collect();
    assert_eq!(starts, [0.0, 7.0, 5.0]);
}
