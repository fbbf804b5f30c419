//! The worker process: joins a master, runs attempts in its slots, serves and gathers segments.
//!
//! One thread drives the control connection, the shuffle and the clock; slot threads run user code. What to run
//! and where is the master's decision; this loop only carries out. Not here: starting and replacing worker
//! processes (`runtime::cluster`).

mod auth;
pub mod begun;
pub mod capture;
pub mod check;
mod connect;
mod control;
pub mod crash;
mod end_requests;
pub mod files;
mod handed_over;
mod job;
mod publish;
mod rejoin;
pub mod runners;
pub mod slots;
mod work;

use crate::api::{JobPlan, PlanError};
use crate::error_text::chain;
use crate::http::{self, Bind, Endpoint, HttpError, Secret, Token, Transport};
use crate::protocol::{FrameError, FrameReader, HELLO_BYTES_MAX, MasterFrame, WorkerFrame, push_frame};
use crate::settings::WorkerSettings;
use crate::shuffle::plan::FetchLimits;
use crate::shuffle::store::Store;
use auth::serve_shuffle;
use capture::Capture;
use connect::{introduction, join, read_frames, write_frames};
use control::{Agent, JoinedWorker};
use gristmill_scheduler::ids::AttemptId;
use handed_over::HandoverStore;
use runners::RunnerStarter;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::unbounded_channel;

pub use control::{LOG_CHUNK_BYTES_MAX, SUSPENDED_MAX};
pub use end_requests::EndRequests;
pub use rejoin::ORPHAN_PATIENCE;

/// How long the master may take to greet.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);

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

/// Runs a worker until its master or `requests` end it.
///
/// # Errors
/// What keeps it from starting or from joining.
pub async fn run(
    config: WorkerConfig,
    jobs: Arc<dyn JobSource>,
    mut requests: EndRequests,
) -> Result<WorkerExit, WorkerError> {
    let epoch = Instant::now();
    let store = Store::default();
    let WorkerSettings { join_file, input_dirs, .. } = &config.settings;
    crate::input::private::limit(join_file.as_deref(), input_dirs);
    let listener = config.bind.listen().await.map_err(|source| WorkerError::Listen { source })?;
    let address = listener.local_addr().map_err(|source| WorkerError::Start { source })?;
    let pin = match &config.bind.transport {
        Transport::Plain => None,
        Transport::Tls(identity) => Some(identity.pin()),
    };
    // An empty host lets the master fill in the address that it sees.
    let shuffle =
        Endpoint { host: config.settings.advertise.clone().unwrap_or_default(), port: address.port(), pin };
    let handovers = HandoverStore::default();
    let list = Arc::new(OnceLock::new());
    serve_shuffle(listener, &config, store.clone(), handovers.clone(), list.clone(), requests.end.clone());

    let io = join(&config, &mut requests).await?;
    let Some(io) = io else { return Ok(WorkerExit::Shutdown) };
    let (reader, writer) = tokio::io::split(io);
    let mut reader = FrameReader::new(reader, HELLO_BYTES_MAX);
    let hello = introduction(&config, shuffle, epoch.elapsed());
    let (frames, to_write) = unbounded_channel();
    let mut first = Vec::new();
    push_frame(&WorkerFrame::Hello(hello.clone()), &mut first).map_err(|source| WorkerError::Greeting {
        master: config.master.clone(),
        source: Box::new(source),
    })?;
    let _ = frames.send(first);
    let written = tokio::spawn(write_frames(writer, to_write));
    let greeting = tokio::time::timeout(GREETING_PATIENCE, reader.next()).await.unwrap_or(Ok(None));
    let master = config.master.clone();
    let (worker, heartbeat_ms, session) = match greeting {
        Ok(Some(MasterFrame::Welcome { worker, heartbeat_ms, list_key, session })) => {
            let _ = list.set(list_key);
            (worker, heartbeat_ms, session)
        }
        Ok(Some(MasterFrame::Refused { reason })) => return Err(WorkerError::Refused { master, reason }),
        // It died meanwhile; another may come.
        Ok(_) | Err(FrameError::Io { .. }) => return Ok(WorkerExit::MasterGone),
        Err(source) => return Err(WorkerError::Greeting { master, source: Box::new(source) }),
    };
    tracing::info!(%worker, %master, slots = config.settings.slots.total(), "joined");

    let incoming = read_frames(reader);
    let joined = JoinedWorker { worker, store, handovers, epoch, frames, written, session, hello };
    let mut agent = Agent::new(config, jobs, joined)?;
    let exit = agent.drive(incoming, requests, heartbeat_ms).await;
    let written = agent.leave();
    // The last frames, such as the one that names an attempt that hangs, must be sent before the process ends.
    let _ = tokio::time::timeout(Duration::from_secs(1), written).await;
    Ok(exit)
}

#[cfg(test)]
mod tests;
