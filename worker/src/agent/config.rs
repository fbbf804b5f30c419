//! Configuration of a worker, and reasons for its end.

use super::capture::Capture;
use crate::api::{JobPlan, PlanError};
use crate::exit::{self, Exit, ExitsWith};
use crate::http::{self, Bind, Endpoint, HttpError, Secret, Token};
use crate::protocol::FrameError;
use crate::settings::WorkerSettings;
use crate::shuffle::plan::FetchLimits;
use gristmill_scheduler::ids::AttemptId;
use std::path::PathBuf;
use std::time::Duration;

/// Timeout for the greeting of the master.
pub(super) const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// Default of [`WorkerConfig::master_silence_max`]. A master pings every worker twice a second, and no
/// single task of it takes this long.
pub const MASTER_SILENCE_MAX: Duration = Duration::from_secs(15);

/// Default of [`WorkerConfig::leave_max`]. It is longer than a master waits for others to fetch missing
/// outputs, and shorter than the timeout of service managers (90 s for systemd).
pub const LEAVE_MAX: Duration = Duration::from_secs(80);

/// Converts a job's name and parameters to its plan, with the registry of the program.
pub trait JobSource: Send + Sync {
    /// Returns the plan of the job of this name with these parameters (JSON).
    ///
    /// # Errors
    /// A name that is not registered (as [`PlanError::Parameter`]), or invalid parameters.
    fn plan(&self, name: &str, parameters: &str) -> Result<JobPlan, PlanError>;
}

/// Configuration of a worker.
pub struct WorkerConfig {
    /// Endpoint of the master to join.
    pub master: Endpoint,
    /// Token for joining.
    pub token: Token,
    /// Proves the right to report the end of this process ([`crate::protocol::ended_proof`]).
    pub ended_proof: Secret,
    /// Settings of the worker.
    pub settings: WorkerSettings,
    /// Directories for runs and segments that exceed the memory, private to this process; must exist.
    pub spill_dirs: Vec<PathBuf>,
    /// Address on which the shuffle server listens.
    pub bind: Bind,
    /// Name of this machine. Workers with the same name share a disk.
    pub host: String,
    /// Build id of the executable; see [`crate::build_id`].
    pub build: String,
    /// Timeout for the first connection to the master.
    pub join_patience: Duration,
    /// Maximum silence of the master, after which it is considered lost, with its host or the route to
    /// it. Time in which this process was stopped does not count.
    pub master_silence_max: Duration,
    /// Timeout for a graceful leave, after which the worker ends.
    pub leave_max: Duration,
    /// Limits of fetching.
    pub fetch: FetchLimits,
    /// Captured user output, if it is captured.
    pub capture: Option<Capture>,
}

/// Reason why a worker's process ends.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum WorkerExit {
    /// The master or the shutdown signal requested it.
    Shutdown,
    MasterGone,
    /// User code hangs in a thread that cannot be stopped, so the process must be replaced.
    Stuck(AttemptId),
    /// A slot's thread has panicked in the engine's own code, so the process must be replaced.
    Broken,
}

/// Reason why a worker could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum WorkerError {
    /// The shuffle server cannot listen.
    #[error("the shuffle server cannot listen")]
    Listen {
        #[source]
        source: http::BindError,
    },
    /// The master could not be reached in time.
    #[error("could not reach the master at {master} within {seconds} s")]
    Unreachable {
        master: Endpoint,
        /// Duration of the attempts.
        seconds: u64,
        /// Error of the last attempt.
        #[source]
        source: Box<HttpError>,
    },
    /// The master refused this worker.
    #[error("the master at {master} refused this worker: {reason}")]
    Refused {
        master: Endpoint,
        /// Reason given by the master.
        reason: String,
    },
    /// The token is not the master's, or does not permit joining.
    #[error("the master at {master} refused the token")]
    Unauthorised { master: Endpoint },
    /// The handshake failed.
    #[error("the master at {master} did not greet as expected")]
    Greeting {
        master: Endpoint,
        #[source]
        source: Box<FrameError>,
    },
    /// A thread or file of the worker could not be created.
    #[error("could not start the worker")]
    Start {
        #[source]
        source: std::io::Error,
    },
}

impl ExitsWith for WorkerError {
    fn exit(&self) -> Exit {
        match self {
            Self::Unreachable { .. } => Exit::hinted(
                exit::CLUSTER,
                "check the master's address, or start one with `gristmill cluster master`",
            ),
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}
