//! Why nothing can be compared.

use super::store::StoreError;
use super::workload::DrawError;
use crate::simulate::SimulateError;
use crate::simulate::measure::MeasureError;
use gristmill_runtime::client::ClientError;
use gristmill_runtime::cluster::ClusterError;
use gristmill_runtime::generate::GenerateError;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use std::time::Duration;

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A job that this program does not know.
    #[error(
        "the workload names a job `{job}` that this program does not know{}",
        nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    )]
    Unknown {
        /// As named.
        job: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// Arguments that a job does not take.
    #[error("the arguments of `{label}` are refused: {}", source.to_string().trim())]
    Arguments {
        /// The kind.
        label: String,
        /// Why.
        source: clap::Error,
    },
    /// A policy or placement that cannot run on a cluster.
    #[error("{reason}")]
    Name {
        /// Why, with its name.
        reason: String,
    },
    /// No policies, the same twice, or no repetitions.
    #[error("{reason}")]
    Options {
        /// Which, in words.
        reason: String,
    },
    /// Nothing can be drawn from the workload.
    #[error(transparent)]
    Draw {
        /// Why.
        #[from]
        source: DrawError,
    },
    /// Inputs cannot be made.
    #[error("the workload's data cannot be made")]
    Data {
        /// Why.
        #[source]
        source: GenerateError,
    },
    /// The calibration left nothing to read.
    #[error("what the system takes for tasks could not be measured before the first run")]
    Calibration {
        /// Why.
        #[source]
        source: MeasureError,
    },
    /// The calibration shows times that the simulator cannot be fitted to.
    #[error("what tiny tasks cost could not be found from the calibration before the first run")]
    Fit {
        /// Why.
        #[source]
        source: SimulateError,
    },
    /// The folder cannot be used.
    #[error(transparent)]
    Store {
        /// Why.
        #[from]
        source: StoreError,
    },
    /// A cluster did not start.
    #[error(transparent)]
    Cluster {
        /// Why.
        source: ClusterError,
    },
    /// Workers did not join in time.
    #[error("not all of the {workers} workers joined in time")]
    Missing {
        /// How many there should be.
        workers: u32,
    },
    /// The given master has jobs of others.
    #[error("the master has {jobs} job(s) that have not ended; a comparison needs the cluster for itself")]
    Busy {
        /// How many.
        jobs: u32,
    },
    /// A call to the master failed, or a job could not be planned.
    #[error("could not {action}")]
    Client {
        /// What was tried.
        action: &'static str,
        /// Why not.
        #[source]
        source: Box<ClientError>,
    },
    /// The master keeps the tasks of so many jobs only, and they were more.
    #[error(
        "the master has forgotten what tasks of job {index} took, for there were too many: measure smaller jobs alone"
    )]
    Forgotten {
        /// Its place in the order of arrival.
        index: usize,
    },
    /// A job failed, so flow times mean nothing.
    #[error("job {index} ({job}) failed under {contender}: {reason}")]
    Job {
        /// Its kind.
        job: String,
        /// Its place in the order of arrival.
        index: usize,
        /// Under which policy.
        contender: String,
        /// Why.
        reason: String,
    },
    /// The same job gave other bytes.
    #[error(
        "job {index} ({job}) gave other output under {contender} than under {other} in repetition {repetition}"
    )]
    Output {
        /// Its kind.
        job: String,
        /// Its place in the order of arrival.
        index: usize,
        /// Under which policy.
        contender: String,
        /// Than under which.
        other: String,
        /// Which repetition, from 1.
        repetition: u32,
    },
    /// A run that did not end.
    #[error("the run under {contender} did not end within {} s", limit.as_secs())]
    Late {
        /// Under which policy.
        contender: String,
        /// The limit.
        limit: Duration,
    },
    /// A runtime of our own could not be started.
    #[error("the comparison could not start")]
    Start {
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl ExitsWith for CompareError {
    fn exit(&self) -> Exit {
        match self {
            Self::Unknown { .. }
            | Self::Arguments { .. }
            | Self::Name { .. }
            | Self::Options { .. }
            | Self::Draw { .. } => Exit::with(exit::USAGE),
            Self::Data { .. } | Self::Cluster { .. } | Self::Start { .. } => Exit::with(exit::ENVIRONMENT),
            Self::Store { source } => source.exit(),
            Self::Client { source, .. } => source.exit(),
            Self::Busy { .. } | Self::Missing { .. } => Exit::with(exit::CLUSTER),
            Self::Forgotten { .. } | Self::Calibration { .. } | Self::Fit { .. } => Exit::with(exit::FAILED),
            Self::Job { .. } | Self::Output { .. } | Self::Late { .. } => {
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
