//! Twins of the deadlines paper's jobs for a real cluster of a third of its size: every third map, with the same
//! deadlines. Their tasks sleep instead of computing.

use super::common::WORKERS;
use crate::prelude::*;
use crate::workload::deadlines::{Joins, SLOTS, scenario};

/// The paper's scenario at laptop scale.
pub(super) fn twins(weights: [f64; 4], seed: u64) -> Vec<Job> {
    let mut jobs = scenario(Joins::SlowFirstHalf, weights, seed);
    for job in &mut jobs {
        // Every third map, so that phases and heads keep their shape.
        job.maps = job.maps.iter().copied().step_by((SLOTS / WORKERS) as usize).collect();
        job.work[Station::Map] = job.maps.iter().sum();
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::deadlines::{DEADLINES, WEIGHTS};

    #[test]
    fn twins_are_a_third_of_the_papers_jobs_with_their_goals_and_weights() {
        let jobs = twins(WEIGHTS, 1);
        let maps: Vec<usize> = jobs.iter().map(|job| job.maps.len()).collect();
        assert_eq!(maps, [2134, 246, 334, 334]);
        assert!(
            jobs.iter().zip(DEADLINES).all(|(job, deadline)| job.deadline == Some(job.arrival + deadline))
        );
        assert_eq!(jobs.iter().map(|job| job.weight).collect::<Vec<_>>(), WEIGHTS);
    }
}
