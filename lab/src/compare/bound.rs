//! Distance of a run to a bound that no schedule can beat.
//!
//! The work is the time that tasks held slots in that run, without pacing. So a run that made its tasks
//! slower has a laxer bound. Not here: the bound itself, which is in the scheduler.

use super::record::RunRecord;
use gristmill_scheduler::sim::bound;

/// Returns the lower bound of the total flow time, in seconds; `None` if no task took time.
#[must_use]
pub fn total_flow(run: &RunRecord) -> Option<f64> {
    let speed = run.workers.iter().map(|worker| f64::from(worker.slots) * worker.speed).sum();
    let mut jobs: Vec<[f64; 2]> =
        run.jobs.iter().map(|job| [job.arrived, job.usage.work_seconds.iter().sum()]).collect();
    jobs.sort_by(|one, other| one[0].total_cmp(&other[0]));
    Some(bound::total_flow(speed, &jobs)).filter(|total| 0.0 < *total && total.is_finite())
}

/// Returns the total flow time as a multiple of the bound; `None` also if the master has discarded the
/// times of tasks.
#[must_use]
pub fn efficiency(run: &RunRecord) -> Option<f64> {
    if 0 < run.omitted {
        return None;
    }
    let total: f64 = run.jobs.iter().map(super::record::JobRun::flow).sum();
    total_flow(run).map(|least| total / least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{job, run};

    #[test]
    fn bound_of_one_job_is_its_work_over_all_slots() {
        let mut alone = run("fifo", 0, vec![job(0, 0.0, 10.0)]);
        alone.jobs[0].usage.work_seconds = [6.0, 2.0];
        let slots: u32 = alone.workers.iter().map(|worker| worker.slots).sum();
        let least = total_flow(&alone).unwrap();
        assert!((least - 8.0 / f64::from(slots)).abs() < 1e-9, "{least}");
        assert!((efficiency(&alone).unwrap() - 10.0 / least).abs() < 1e-9);
    }

    #[test]
    fn bound_of_tiny_jobs_is_never_above_what_they_can_take() {
        // Jobs of 0.2 ms of work on four slots, far apart: each can end after 0.05 ms.
        let mut tiny =
            run("fifo", 0, (0..100).map(|place| job(place, place as f64, place as f64 + 0.01)).collect());
        tiny.jobs.iter_mut().for_each(|job| job.usage.work_seconds = [1e-4, 1e-4]);
        let least = total_flow(&tiny).unwrap();
        assert!((least - 100.0 * 5e-5).abs() < 1e-9, "{least}");
    }

    #[test]
    fn slower_workers_have_a_larger_bound() {
        let mut slow = run("fifo", 0, vec![job(0, 0.0, 10.0), job(1, 1.0, 12.0)]);
        let fast = total_flow(&slow).unwrap();
        slow.workers.iter_mut().for_each(|worker| worker.speed = 0.5);
        assert!((total_flow(&slow).unwrap() / fast - 2.0).abs() < 0.3);
    }
}
