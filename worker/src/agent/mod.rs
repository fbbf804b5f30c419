//! The worker process: joins a master, runs attempts in its slots, serves and gathers segments.
//!
//! One thread drives the control connection, the shuffle and the clock; slot threads run user code. The
//! master decides what runs on which worker; this loop only executes. Not here: starting and replacing
//! worker processes (`runtime::cluster`).

mod assignment;
mod auth;
pub mod capture;
pub mod check;
mod config;
mod connect;
mod control;
pub mod crash;
mod end_requests;
mod failed;
pub mod files;
mod frames;
mod job;
mod memory_peak;
mod part_file;
mod publish;
mod rejoin;
pub mod slots;
pub mod started;
mod work;

use crate::http::{Endpoint, Transport};
use crate::settings::WorkerSettings;
use crate::shuffle::store::SegmentStore;
use auth::serve_shuffle;
use connect::{introduction, join};
use control::{Agent, JoinedWorker};
use rejoin::{Greeted, NotGreeted, greet};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use config::{JobSource, LEAVE_MAX, MASTER_SILENCE_MAX, WorkerConfig, WorkerError, WorkerExit};
pub use end_requests::EndRequests;
pub use rejoin::ORPHAN_TIMEOUT;

/// Runs a worker until its master or `requests` end it.
///
/// # Errors
/// An error that prevents starting or joining.
pub async fn run(
    config: WorkerConfig,
    jobs: Arc<dyn JobSource>,
    mut requests: EndRequests,
) -> Result<WorkerExit, WorkerError> {
    let epoch = Instant::now();
    let store = SegmentStore::default();
    let WorkerSettings { join_file, input_dirs, .. } = &config.settings;
    crate::input::private::limit(join_file.as_deref(), input_dirs);
    let listener = config.bind.listen().await.map_err(|source| WorkerError::Listen { source })?;
    let address = listener.local_addr().map_err(|source| WorkerError::Start { source })?;
    let pin = match &config.bind.transport {
        Transport::Plain => None,
        Transport::Tls(identity) => Some(identity.pin()),
    };
    // For an empty host the master uses the address that it sees.
    let shuffle =
        Endpoint { host: config.settings.advertise.clone().unwrap_or_default(), port: address.port(), pin };
    let list = Arc::new(OnceLock::new());
    serve_shuffle(listener, &config, store.clone(), list.clone(), requests.end.clone());

    let io = join(&config, &mut requests).await?;
    let Some(io) = io else { return Ok(WorkerExit::Shutdown) };
    let hello = introduction(&config, shuffle, epoch.elapsed());
    let master = config.master.clone();
    let Greeted { worker, heartbeat_ms, list_key, session, frames, incoming, written } =
        match greet(io, &hello).await {
            Ok(greeted) => greeted,
            Err(NotGreeted::Refused(reason)) => return Err(WorkerError::Refused { master, reason }),
            Err(NotGreeted::Gone) => return Ok(WorkerExit::MasterGone),
            Err(NotGreeted::Invalid(source)) => {
                return Err(WorkerError::Greeting { master, source: Box::new(source) });
            }
        };
    let _ = list.set(list_key);
    tracing::info!(%worker, %master, slots = config.settings.slots.total(), "joined");

    let joined = JoinedWorker { worker, store, epoch, frames, written, session, hello };
    let mut agent = Agent::new(config, jobs, joined)?;
    let exit = agent.drive(incoming, requests, heartbeat_ms).await;
    let written = agent.leave();
    // The last frames, such as the one that names an attempt that hangs, must be sent before the process
    // ends.
    let _ = tokio::time::timeout(Duration::from_secs(1), written).await;
    Ok(exit)
}

#[cfg(test)]
mod tests;
