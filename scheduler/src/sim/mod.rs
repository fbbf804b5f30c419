//! Simulators: drivers of the policies and placements of real clusters, in virtual time.
//!
//! Every simulator takes the jobs in the order of their arrival and passes the record of each job to a sink when it
//! ends. The same seed gives the same bytes.

pub mod bound;
pub mod cluster;
pub mod fluid;
pub mod slotted;

use crate::workload::Job;

/// Error of a simulation.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SimError {
    /// A field of a job is out of range.
    #[error("job {index}: `{field}` is {value}, which is not {wanted}")]
    Job {
        /// Index in the workload, from 0.
        index: u64,
        field: &'static str,
        /// Given value.
        value: f64,
        /// Description of valid values.
        wanted: &'static str,
    },
    /// A setting of the simulated system is out of range.
    #[error("`{name}` is {value}, which is not {wanted}")]
    Setting {
        name: &'static str,
        /// Given value.
        value: String,
        /// Description of valid values.
        wanted: &'static str,
    },
    /// The policy has stopped to decide.
    #[error("{words}")]
    Policy {
        /// Reason given by the policy.
        words: String,
    },
    /// The policy left jobs waiting forever: no event is pending and it requested no wake.
    #[error("at {at} s {jobs} jobs wait and the policy starts none of their tasks")]
    Stuck {
        /// Time of the error, in seconds.
        at: f64,
        /// Number of waiting jobs.
        jobs: usize,
    },
    /// More jobs wait than the limit allows: the load exceeds what the policy can carry.
    #[error("at {at} s more than {jobs} jobs wait: the load is more than the policy can carry")]
    Overflow {
        /// Time of the error, in seconds.
        at: f64,
        jobs: usize,
    },
}

/// Checks that a number of a job is from 0 to `max`.
fn check_number(
    index: u64,
    field: &'static str,
    value: f64,
    max: f64,
    wanted: &'static str,
) -> Result<(), SimError> {
    match (0.0..=max).contains(&value) {
        true => Ok(()),
        false => Err(SimError::Job { index, field, value, wanted }),
    }
}

/// Checks the fields that all models use: arrivals up to `max`, in order, and weights.
fn check_job(index: u64, job: &Job, before: f64, max: f64, wanted: &'static str) -> Result<(), SimError> {
    check_number(index, "arrival", job.arrival, max, wanted)?;
    if job.arrival < before {
        let wanted = "at or after the arrival of the job before it";
        return Err(SimError::Job { index, field: "arrival", value: job.arrival, wanted });
    }
    check_number(index, "weight", job.weight, f64::MAX, "a finite number, at least 0")
}
