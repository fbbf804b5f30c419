//! Errors of a simulation compared with its runs: of the mean, by job, and by phase, so that cancelling
//! errors are visible.
//!
//! Not here: the simulations (`simulated`), and the presentation of errors (`report`).

use super::record::{JobRun, RunRecord, SimulatedRun};
use super::statistics::mean;
use serde::Serialize;
use std::collections::BTreeMap;

/// Names of the phases.
pub const PHASES: [&str; 4] = ["waiting", "maps", "shuffle after maps", "reduces"];

/// Comparison of all runs of a policy with one of their simulations. Errors are simulated minus measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SimulationError {
    /// Mean simulated seconds of each phase.
    pub phases: [f64; 4],
    /// Error of the mean flow time of all jobs, as a share of the measured one.
    pub mean_flow: f64,
    /// Error of the mean flow time of each run, in the order of repetitions.
    pub mean_flow_by_run: Vec<f64>,
    /// Mean absolute error of a job's flow time, as a share of the measured mean flow time.
    pub per_job: f64,
}

impl SimulationError {
    /// Returns the errors of these runs; `None` if one has no such simulation or no job took time.
    #[must_use]
    pub fn from_runs(runs: &[&RunRecord], simulated: fn(&RunRecord) -> &SimulatedRun) -> Option<Self> {
        let by_run: Vec<Vec<PhasePair>> =
            runs.iter().map(|run| pairs(run, simulated(run))).collect::<Option<_>>()?;
        let all: Vec<&PhasePair> = by_run.iter().flatten().collect();
        let phase = |of: &dyn Fn(&PhasePair) -> [f64; 4]| -> Option<[f64; 4]> {
            let mut means = [0.0; 4];
            for (place, found) in means.iter_mut().enumerate() {
                *found = mean(all.iter().map(|pair| of(pair)[place]))?;
            }
            Some(means)
        };
        let (measured, phases) = (phase(&|pair| pair.measured)?, phase(&|pair| pair.simulated)?);
        let flow: f64 = measured.iter().sum();
        if flow <= 0.0 {
            return None;
        }
        let total: f64 = difference(phases, measured).iter().sum();
        let job = |pair: &&PhasePair| f64::abs(difference(pair.simulated, pair.measured).iter().sum());
        Some(Self {
            phases,
            mean_flow: total / flow,
            mean_flow_by_run: by_run.iter().map(|pairs| relative(pairs)).collect(),
            per_job: mean(all.iter().map(job))? / flow,
        })
    }
}

/// Simulated and measured phases of a job.
struct PhasePair {
    measured: [f64; 4],
    simulated: [f64; 4],
}

fn pairs(run: &RunRecord, simulated: &SimulatedRun) -> Option<Vec<PhasePair>> {
    let of: BTreeMap<usize, [f64; 4]> = simulated.jobs.iter().map(|job| (job.index, job.phases)).collect();
    let pair = |job: &JobRun| Some(PhasePair { measured: job.phases(), simulated: *of.get(&job.index)? });
    run.jobs.iter().map(pair).collect()
}

fn difference(one: [f64; 4], other: [f64; 4]) -> [f64; 4] {
    [0, 1, 2, 3].map(|place| one[place] - other[place])
}

/// Returns the error of the mean flow time of a run.
fn relative(pairs: &[PhasePair]) -> f64 {
    let sum = |of: fn(&PhasePair) -> [f64; 4]| pairs.iter().flat_map(of).sum::<f64>();
    sum(|pair| pair.simulated) / sum(|pair| pair.measured) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::SimulatedPhases;
    use crate::compare::testing::{job, run};

    fn simulated(phases: &[[f64; 4]]) -> SimulatedRun {
        let jobs = phases.iter().enumerate().map(|(index, &phases)| SimulatedPhases { index, phases });
        SimulatedRun { jobs: jobs.collect(), missing: None }
    }

    /// Compares two jobs of 10 s: 1 s of waiting, 5 s of maps, 1 s of shuffle, 3 s of reduces each.
    fn error_of(phases: &[[f64; 4]]) -> SimulationError {
        let mut one = run("fifo", 0, vec![job(0, 0.0, 10.0), job(1, 5.0, 15.0)]);
        one.predicted = simulated(phases);
        SimulationError::from_runs(&[&one], |run| &run.predicted).unwrap()
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn error_of_a_simulation_that_is_right_is_nothing() {
        let error = error_of(&[[1.0, 5.0, 1.0, 3.0]; 2]);
        assert_eq!([error.mean_flow, error.per_job], [0.0; 2]);
    }

    #[test]
    fn errors_of_phases_that_cancel_in_the_mean_are_seen() {
        let error = error_of(&[[1.0, 2.0, 4.0, 3.0]; 2]);
        near(error.mean_flow, 0.0);
        near(error.per_job, 0.0);
        assert_eq!(error.phases, [1.0, 2.0, 4.0, 3.0]);
    }

    #[test]
    fn errors_of_jobs_that_cancel_in_the_mean_are_seen() {
        let error = error_of(&[[1.0, 8.0, 1.0, 3.0], [1.0, 2.0, 1.0, 3.0]]);
        near(error.mean_flow, 0.0);
        near(error.per_job, 0.3);
    }

    #[test]
    fn a_simulation_that_lacks_a_job_has_no_error_to_tell() {
        let mut one = run("fifo", 0, vec![job(0, 0.0, 10.0), job(1, 5.0, 15.0)]);
        assert_eq!(SimulationError::from_runs(&[&one], |run| &run.replayed), None);
        one.replayed = simulated(&[[1.0, 5.0, 1.0, 3.0]]);
        assert_eq!(SimulationError::from_runs(&[&one], |run| &run.replayed), None);
    }
}
