//! Simulators: drivers of the same policies and placements that decide on real clusters, in virtual time.
//!
//! Every simulator takes the jobs in the order of their arrival, gives a sink the record of each job when it ends, and
//! gives the same bytes for the same seed.

pub mod cluster;
pub mod fluid;
pub mod slotted;

use std::fmt;

/// What cannot be simulated.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SimError {
    /// A field of a job is out of range.
    Job {
        /// Its place in the workload, from 0.
        index: u64,
        field: &'static str,
        /// As given.
        value: f64,
        /// What it could be, in words.
        wanted: &'static str,
    },
    /// A setting of the simulated system is out of range.
    Setting {
        name: &'static str,
        /// As given.
        value: String,
        /// What it could be, in words.
        wanted: &'static str,
    },
    /// The policy left jobs waiting for ever: nothing happens any more and it asked for no wake.
    Stuck {
        /// The time, in seconds.
        at: f64,
        /// Jobs that wait.
        jobs: usize,
    },
    /// More jobs wait than the limit allows: the load is above what the policy can carry.
    Overflow {
        /// The time, in seconds.
        at: f64,
        jobs: usize,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Job { index, field, value, wanted } => {
                write!(f, "job {index}: `{field}` is {value}, which is not {wanted}")
            }
            SimError::Setting { name, value, wanted } => {
                write!(f, "`{name}` is {value}, which is not {wanted}")
            }
            SimError::Stuck { at, jobs } => {
                write!(f, "at {at} s {jobs} jobs wait and the policy gives nobody anything")
            }
            SimError::Overflow { at, jobs } => {
                write!(f, "at {at} s more than {jobs} jobs wait: the load is more than the policy can carry")
            }
        }
    }
}

impl std::error::Error for SimError {}
