//! Metrics of a run on real processes: those that follow from the times of its jobs, as for simulations,
//! and those that only real processes have. They are declared in the scheduler.
//!
//! Not here: means over the repetitions of a policy (`summary`), and curves (`series`).

use super::bound;
use super::record::{JobRun, RunRecord, WorkerRecord};
use super::series::{average, busy_slots, live_jobs, makespan, overcommitted, receiving, share_above};
use gristmill_scheduler::metrics::{Collector, JobTimes, Metric};
use gristmill_scheduler::station::PerStation;
use std::collections::BTreeMap;

/// Input of the metrics that do not follow from the times of jobs.
struct Measures<'a> {
    run: &'a RunRecord,
    makespan: f64,
}

impl Measures<'_> {
    fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::EfficiencyRatio => bound::efficiency(self.run),
            Metric::MapUse => self.busy(true, |worker| worker.map_slots),
            Metric::ShuffleUse => {
                let workers = self.run.workers.len().max(1) as f64;
                Some(100.0 * average(&receiving(self.run), self.makespan) / workers)
            }
            Metric::ReduceUse => self.busy(false, |worker| worker.reduce_slots),
            Metric::FreeSlots => self.free_slots(),
            Metric::Suspensions => Some(self.sum(|job| f64::from(job.usage.suspensions))),
            Metric::Suspended => Some(self.sum(|job| job.usage.suspended_seconds)),
            Metric::SlotCpu => self.share_of_slots(self.sum(|job| job.usage.cpu_seconds)),
            Metric::SlotPaced => self.share_of_slots(self.sum(|job| job.usage.paced_seconds)),
            Metric::SlotWaiting => {
                let used = self.sum(|job| job.usage.cpu_seconds + job.usage.paced_seconds);
                self.share_of_slots(self.slot_seconds() - used)
            }
            Metric::Overcommitted => {
                let cores = self.run.cores.map(f64::from)?;
                Some(100.0 * overcommitted(self.run, self.makespan, cores))
            }
            Metric::OthersBusy => self.run.others_busy.map(|share| 100.0 * share),
            Metric::Lateness => self.lateness(),
            Metric::WastedAttempts => Some(self.sum(|job| f64::from(job.usage.wasted_attempts))),
            // Follows from the times of jobs.
            _ => None,
        }
    }

    /// Returns the range of lateness in milliseconds. Times are counted from the first arrival, which may
    /// be late itself: then all others seem early.
    fn lateness(&self) -> Option<f64> {
        let late = || self.run.jobs.iter().map(|job| 1e3 * (job.arrived - job.planned));
        Some(late().reduce(f64::max)? - late().reduce(f64::min)?)
    }

    fn sum(&self, of: impl Fn(&JobRun) -> f64) -> f64 {
        self.run.jobs.iter().map(of).sum()
    }

    fn slot_seconds(&self) -> f64 {
        self.run.spans.iter().map(|span| span.to - span.from).sum()
    }

    fn share_of_slots(&self, seconds: f64) -> Option<f64> {
        let all = self.slot_seconds();
        (0.0 < all).then(|| (100.0 * seconds / all).clamp(0.0, 100.0))
    }

    /// Returns the used percentage of the slots that may hold tasks of this kind.
    fn busy(&self, maps: bool, slots: impl Fn(&WorkerRecord) -> u32) -> Option<f64> {
        let slots: u32 = self.run.workers.iter().map(slots).sum();
        let busy = average(&busy_slots(self.run, maps), self.makespan);
        (0 < slots).then(|| 100.0 * busy / f64::from(slots))
    }

    fn free_slots(&self) -> Option<f64> {
        let slots: u32 = self.run.workers.iter().map(|worker| worker.slots).sum();
        let live = share_above(&live_jobs(self.run), self.makespan, 0.0);
        let busy = self.slot_seconds() / self.makespan;
        (0.0 < live && 0.0 < self.makespan).then(|| (f64::from(slots) - busy / live).max(0.0))
    }
}

/// Returns all metrics that apply to a run. `alone` holds the time that each job takes alone, by its index.
#[must_use]
pub fn metrics(run: &RunRecord, alone: &BTreeMap<usize, f64>) -> BTreeMap<Metric, f64> {
    // The use of slots is measured, and need not be computed from work and capacity.
    let mut collector = Collector::new(PerStation::all(f64::INFINITY));
    for job in &run.jobs {
        let times = JobTimes { alone: alone.get(&job.index).copied(), ..job.times() };
        collector.push(&times, PerStation::all(0.0));
    }
    let measures = Measures { run, makespan: makespan(run) };
    let mut values = collector.outcome();
    for &metric in Metric::ALL {
        if let Some(value) = measures.value(metric) {
            values.set(metric, Some(value));
        }
    }
    values.known().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{job, run};
    use gristmill_scheduler::metrics::System;

    #[test]
    fn run_has_every_metric_that_is_declared_of_live_runs_and_no_other() {
        let mut one = run("fifo", 0, (0..100).map(|place| job(place, place as f64, 200.0)).collect());
        one.jobs[0].deadline = Some(3.0);
        one.others_busy = Some(0.1);
        let alone = (0..100).map(|place| (place, 1.0)).collect();
        let found: Vec<Metric> = metrics(&one, &alone).into_keys().collect();
        let declared: Vec<Metric> =
            Metric::ALL.iter().copied().filter(|metric| metric.is_of(System::Live)).collect();
        assert_eq!(found, declared);
    }

    #[test]
    fn first_job_that_is_late_shows_as_much_as_any_other() {
        let planned = |arrivals: [f64; 3]| {
            let jobs = arrivals.iter().zip([0.0, 1.0, 2.0]).enumerate();
            let jobs = jobs.map(|(place, (&at, planned))| JobRun { planned, ..job(place, at, at + 1.0) });
            metrics(&run("fifo", 0, jobs.collect()), &BTreeMap::new())[&Metric::Lateness]
        };
        assert!(planned([0.0, 1.0, 2.0]).abs() < 1e-9);
        assert!((planned([0.0, 1.5, 2.0]) - 500.0).abs() < 1e-9);
        // The first arrived half a second late, the others in time. The clock starts with the first.
        assert!((planned([0.0, 0.5, 1.5]) - 500.0).abs() < 1e-9);
    }

    #[test]
    fn slots_of_a_pool_are_busy_by_what_the_pool_holds() {
        let mut pools = run("fifo", 0, vec![job(0, 0.0, 10.0)]);
        for worker in &mut pools.workers {
            (worker.map_slots, worker.reduce_slots) = (1, 1);
        }
        let found = metrics(&pools, &BTreeMap::new());
        // A map from 1 to 6 s and a reduce from 7 to 10 s, each in one of two slots of its kind.
        assert!((found[&Metric::MapUse] - 25.0).abs() < 1e-9, "{}", found[&Metric::MapUse]);
        assert!((found[&Metric::ReduceUse] - 15.0).abs() < 1e-9, "{}", found[&Metric::ReduceUse]);
        assert!(!found.contains_key(&Metric::Slowdown), "its time alone is not known");
    }
}
