//! Lower bound of the total flow time of jobs on slots, under any schedule.
//!
//! Two bounds, of which the larger counts. All slots as one machine as fast as all of them, on which reduces need not
//! wait for maps: there shortest remaining processing time is optimal (Schrage, *Operations Research* 16, 1968; ASRPT
//! paper, Lemma 1). And each job alone: its longest map and then its longest reduce on the fastest slots. The network is
//! left out.

use crate::station::Station;
use crate::workload::Job;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Job of a bound: times in seconds, work in slot-seconds at speed 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BoundedJob {
    /// Time of arrival.
    pub arrival: f64,
    /// Work of all tasks.
    pub work: f64,
    /// Longest map and longest reduce together, or less.
    pub longest: f64,
}

impl BoundedJob {
    /// Returns the maps and reduces of a job. Those without a list of tasks count by their work alone.
    #[must_use]
    pub fn of_tasks(job: &Job) -> Self {
        let longest = |tasks: &[f64]| tasks.iter().copied().fold(0.0, f64::max);
        let sum = |tasks: &[f64], work: f64| if tasks.is_empty() { work } else { tasks.iter().sum() };
        let work = sum(&job.maps, job.work[Station::Map]) + sum(&job.reduces, job.work[Station::Reduce]);
        Self { arrival: job.arrival, work, longest: longest(&job.maps) + longest(&job.reduces) }
    }
}

/// Returns the bound in seconds, for jobs in the order of arrival and slots of these speeds.
#[must_use]
pub fn total_flow(speeds: &[f64], jobs: &[BoundedJob]) -> f64 {
    let (all, fastest) = (speeds.iter().sum::<f64>(), speeds.iter().copied().fold(0.0, f64::max));
    let alone = |job: &BoundedJob| (job.work / all).max(job.longest / fastest);
    shortest_first(all, jobs).max(jobs.iter().map(alone).sum())
}

/// Returns the total flow time on one machine of this speed, shortest remaining work first.
fn shortest_first(speed: f64, jobs: &[BoundedJob]) -> f64 {
    // Work left of present jobs as ordered bits: it is not negative.
    let mut present: BTreeSet<(u64, Reverse<usize>)> = BTreeSet::new();
    let (mut now, mut total) = (0.0_f64, 0.0);
    let mut coming = jobs.iter().enumerate().peekable();
    loop {
        let until = coming.peek().map_or(f64::INFINITY, |(_, job)| job.arrival);
        while now < until
            && let Some((left, place)) = present.pop_first()
        {
            let (left, room) = (f64::from_bits(left), (until - now) * speed);
            if room < left {
                present.insert(((left - room).to_bits(), place));
                break;
            }
            now += left / speed;
            total += now - jobs[place.0].arrival;
        }
        let Some((place, job)) = coming.next() else { return total };
        now = now.max(job.arrival);
        present.insert((job.work.max(0.0).to_bits(), Reverse(place)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::slotted::lower_bound;
    use crate::station::PerStation;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_machine_is_that_of_the_slotted_model_with_slots_of_no_length(
            jobs in prop::collection::vec((0..40_u32, 1..30_u32), 1..20),
        ) {
            let mut jobs = jobs;
            jobs.sort_unstable();
            // A slot of a thousandth: each job ends at most one of them later.
            let fine = |&(arrival, work): &(u32, u32)| Job {
                arrival: 1000.0 * f64::from(arrival),
                work: PerStation::new(1000.0 * f64::from(work), 0.0, 0.0),
                ..Job::default()
            };
            let slotted = lower_bound::total_flow(1, &jobs.iter().map(fine).collect::<Vec<_>>()).unwrap() / 1000.0;
            let jobs: Vec<BoundedJob> = jobs
                .iter()
                .map(|&(arrival, work)| BoundedJob {
                    arrival: f64::from(arrival), work: f64::from(work), longest: 0.0,
                })
                .collect();
            let found = total_flow(&[1.0], &jobs);
            prop_assert!((slotted - found).abs() <= 0.001 * jobs.len() as f64 + 1e-6, "{slotted} and {found}");
        }
    }

    #[test]
    fn a_job_of_one_long_task_is_bounded_by_the_fastest_slot() {
        let job = Job { maps: vec![6.0, 1.0], reduces: vec![2.0], ..Job::default() };
        assert_eq!(total_flow(&[1.0, 2.0, 1.0], &[BoundedJob::of_tasks(&job)]), 4.0);
        assert_eq!(total_flow(&[0.5; 2], &[BoundedJob { longest: 0.0, ..BoundedJob::of_tasks(&job) }]), 9.0);
    }
}
