//! How a worker runs, and why it ends.

use super::capture::Capture;
use crate::api::{JobPlan, PlanError};
use crate::exit::{self, Exit, ExitsWith};
use crate::http::{self, Bind, Endpoint, HttpError, Secret, Token};
use crate::protocol::FrameError;
use crate::settings::WorkerSettings;
use crate::shuffle::plan::FetchLimits;
use gristmill_scheduler::ids::AttemptId;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

/// How long the master may take to greet.
pub(super) const GREETING_PATIENCE: Duration = Duration::from_secs(10);

/// A usual [`WorkerConfig::master_silence_max`]: a master pings every worker twice a second, and is not busy with one
/// thing for so long.
pub const MASTER_SILENCE_MAX: Duration = Duration::from_secs(15);

/// A usual [`WorkerConfig::leave_max`]: longer than a master waits for others to fetch what they lack, and short enough to
/// come before the patience of whoever ends services (90 s for systemd).
pub const LEAVE_MAX: Duration = Duration::from_secs(80);

/// Turns a job's name and parameters into its plan; the registry of the program does that.
pub trait JobSource: Send + Sync {
    /// The plan of the job of this name with these parameters (JSON).
    ///
    /// # Errors
    /// A name that is not registered (as [`PlanError::Parameter`]) or parameters that do not fit.
    fn plan(&self, name: &str, parameters: &str) -> Result<JobPlan, PlanError>;
}

/// Starts processes of shipped programs.
pub trait RunnerStarter: Send + Sync {
    /// Starts the program of this file in the folder, with the socket as its standard input; it is to [`serve`](super::runners::serve) there.
    ///
    /// # Errors
    /// A file that cannot be run.
    fn start(&self, program: &Path, folder: &Path, socket: OwnedFd) -> io::Result<Child>;

    /// The process that was started in the folder has been reaped: ends what it has left behind.
    fn ended(&self, folder: &Path);
}

/// How a worker runs.
pub struct WorkerConfig {
    /// The master to join.
    pub master: Endpoint,
    /// What lets it join.
    pub token: Token,
    /// Proves who may report that this process has ended ([`crate::protocol::ended_proof`]).
    pub ended_proof: Secret,
    /// What it is made to be.
    pub settings: WorkerSettings,
    /// Folders for runs and segments that do not fit, private to this process; must exist.
    pub spill_dirs: Vec<PathBuf>,
    /// Where the shuffle server listens.
    pub bind: Bind,
    /// Name of this machine; workers with the same name share a disk.
    pub host: String,
    /// Identifies the executable; see [`crate::build_id`].
    pub build: String,
    /// How long to keep trying to reach the master at first.
    pub join_patience: Duration,
    /// A master that sends nothing for so long is gone, with its host or the way to it. Time in which this process stood
    /// still does not count.
    pub master_silence_max: Duration,
    /// How long it may take to leave in good order before it ends all the same.
    pub leave_max: Duration,
    /// Limits of fetching.
    pub fetch: FetchLimits,
    /// User output caught so far, if it is caught.
    pub capture: Option<Capture>,
    /// What starts processes of shipped programs; `None`: none are.
    pub runners: Option<Arc<dyn RunnerStarter>>,
}

/// Why a worker's process ends.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum WorkerExit {
    /// The master asked for it, or the shutdown signal came.
    Shutdown,
    MasterGone,
    /// User code hangs in a thread that nothing can stop: the process must be replaced.
    Stuck(AttemptId),
    /// A slot's thread has died in the engine's own code: the process must be replaced.
    Broken,
}

/// Why a worker could not run.
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
        /// How long it was tried.
        seconds: u64,
        /// The error of the last try.
        #[source]
        source: Box<HttpError>,
    },
    /// The master does not want this worker.
    #[error("the master at {master} refused this worker: {reason}")]
    Refused {
        master: Endpoint,
        /// Its words.
        reason: String,
    },
    /// The token is not the master's, or may not join.
    #[error("the master at {master} refused the token")]
    Unauthorised { master: Endpoint },
    /// The first frames went wrong.
    #[error("the master at {master} did not greet as expected")]
    Greeting {
        master: Endpoint,
        #[source]
        source: Box<FrameError>,
    },
    /// A thread or file of the worker itself.
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
                "check the master's address, or start one with `gristmill master`",
            ),
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}
