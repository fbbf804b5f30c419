//! Reasons for which a comparison of policies cannot be run, and their exit codes.

use super::store::StoreError;
use super::workload::DrawError;
use crate::simulate::SimulateError;
use crate::simulate::measure::MeasureError;
use gristmill_runtime::client::ClientError;
use gristmill_runtime::cluster::ClusterError;
use gristmill_runtime::generate::GenerateError;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use std::time::Duration;

/// Reason why a comparison failed.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A job is not in the registry.
    #[error(
        "the workload names a job `{job}` that this program does not know{}",
        nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    )]
    Unknown {
        /// Name in the workload.
        job: String,
        /// Closest known name.
        nearest: Option<String>,
    },
    /// A job does not accept its arguments.
    #[error("the arguments of `{label}` are refused: {}", source.to_string().trim())]
    Arguments {
        /// Label of the kind.
        label: String,
        /// Cause.
        source: clap::Error,
    },
    /// No policies, a duplicate policy, or no repetitions.
    #[error("{reason}")]
    Options {
        /// Description of the invalid option.
        reason: String,
    },
    /// Drawing jobs from the workload failed.
    #[error(transparent)]
    Draw {
        /// Cause.
        #[from]
        source: DrawError,
    },
    /// Generating inputs failed.
    #[error("the workload's data cannot be made")]
    Data {
        /// Cause.
        #[source]
        source: GenerateError,
    },
    /// The journal of the calibration cannot be read.
    #[error("what the system takes for tasks could not be measured before the first run")]
    Calibration {
        /// Cause.
        #[source]
        source: MeasureError,
    },
    /// The simulator cannot be fitted to the times of the calibration.
    #[error("what tiny tasks cost could not be found from the calibration before the first run")]
    Fit {
        /// Cause.
        #[source]
        source: SimulateError,
    },
    /// The directory cannot be used.
    #[error(transparent)]
    Store {
        /// Cause.
        #[from]
        source: StoreError,
    },
    /// A cluster did not start.
    #[error(transparent)]
    Cluster {
        /// Cause.
        source: ClusterError,
    },
    /// Workers did not join in time.
    #[error("not all of the {workers} workers joined in time")]
    Missing {
        /// Expected number of workers.
        workers: u32,
    },
    /// The given master runs other jobs.
    #[error("the master has jobs that have not ended ({jobs}); a comparison needs the cluster for itself")]
    Busy {
        /// Number of these jobs.
        jobs: u32,
    },
    /// A call to the master failed, or a job could not be planned.
    #[error("could not {action}")]
    Client {
        /// Action that failed.
        action: &'static str,
        /// Cause.
        #[source]
        source: Box<ClientError>,
    },
    /// The job had more tasks than the master keeps.
    #[error(
        "the master has forgotten what tasks of job {index} took, for there were too many: measure smaller jobs alone"
    )]
    Forgotten {
        /// Index of the job in the order of arrival.
        index: usize,
    },
    /// A job failed, so flow times are meaningless.
    #[error("job {index} ({job}) failed under {contender}: {reason}")]
    Job {
        /// Kind of the job.
        job: String,
        /// Index of the job in the order of arrival.
        index: usize,
        /// Policy of the run.
        contender: String,
        /// Cause.
        reason: String,
    },
    /// The policy of a run panicked or failed, so others decided in its place.
    #[error("{contender} did not decide alone: {reason}")]
    Policy {
        /// Policy of the run.
        contender: String,
        /// Cause.
        reason: String,
    },
    /// The same job produced other bytes.
    #[error(
        "job {index} ({job}) gave other output under {contender} than under {other} in repetition {repetition}"
    )]
    Output {
        /// Kind of the job.
        job: String,
        /// Index of the job in the order of arrival.
        index: usize,
        /// Policy of the run.
        contender: String,
        /// Policy of the run with the other output.
        other: String,
        /// Number of the repetition, from 1.
        repetition: u32,
    },
    /// Other programs used the processors for too long before a run.
    #[error(
        "other programs use {:.0} % of the processors' time, and runs that measure may start at {:.0} % or less",
        100.0 * share, 100.0 * limit
    )]
    Loaded {
        /// Share that they use.
        share: f64,
        /// Largest share at which a run starts.
        limit: f64,
    },
    /// A run did not end in time.
    #[error("the run under {contender} did not end within {} s", limit.as_secs())]
    Late {
        /// Policy of the run.
        contender: String,
        /// Time limit.
        limit: Duration,
    },
    /// The asynchronous runtime could not be started.
    #[error("the comparison could not start")]
    Start {
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

impl ExitsWith for CompareError {
    fn exit(&self) -> Exit {
        match self {
            Self::Unknown { .. } | Self::Arguments { .. } | Self::Options { .. } | Self::Draw { .. } => {
                Exit::with(exit::USAGE)
            }
            Self::Loaded { .. } => Exit::hinted(
                exit::ENVIRONMENT,
                "finished runs are kept; the same command continues with them once the machine is idle",
            ),
            Self::Data { .. } | Self::Cluster { .. } | Self::Start { .. } => Exit::with(exit::ENVIRONMENT),
            Self::Store { source } => source.exit(),
            Self::Client { source, .. } => source.exit(),
            Self::Busy { .. } | Self::Missing { .. } => Exit::with(exit::CLUSTER),
            Self::Forgotten { .. } | Self::Calibration { .. } | Self::Fit { .. } => Exit::with(exit::FAILED),
            Self::Job { .. } | Self::Policy { .. } | Self::Output { .. } | Self::Late { .. } => {
                Exit::hinted(exit::FAILED, "finished runs are kept; --resume continues with them")
            }
        }
    }
}

impl CompareError {
    pub(super) fn client(action: &'static str) -> impl FnOnce(ClientError) -> Self {
        move |source| CompareError::Client { action, source: Box::new(source) }
    }
}
