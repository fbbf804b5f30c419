//! The master process: one loop that owns the state, fed by worker connections, client requests and timers.
//!
//! The loop gathers all events, enters them as the facts of one instant, and sends the orders of the core. Decisions
//! are taken by the scheduler, and job data never passes through the master.

mod address;
mod archive;
mod auth;
mod batches;
mod config;
mod connection;
mod ending;
mod event_loop;
mod gauges;
mod input;
mod kept_job;
mod limits;
mod page;
mod recovery;
mod register;
mod routes;
mod start;
mod state;
pub mod tokens;
mod translate;

pub use config::{MasterConfig, MasterError};
pub use recovery::RecallError;
#[cfg(test)]
pub(crate) use state::tests::status_of;

use crate::plural::counted;
use archive::JobArchive;
use auth::MasterAuth;
use ending::Ending;
use event_loop::Master;
use gristmill_scheduler::units::Time;
use gristmill_worker::agent::EndRequests;
use gristmill_worker::descriptors;
use gristmill_worker::fault;
use gristmill_worker::http::limits::strangers_max;
use gristmill_worker::http::{Bind, ServerConfig, serve};
use input::MasterHandle;
use start::{Started, start};
use state::MasterState;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokens::Tokens;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, unbounded_channel};
use tokio::sync::watch;

/// Time for which a master with jobs continues after the first signal, waiting for a second one.
const SECOND_SIGNAL_MAX: Duration = Duration::from_secs(1);

/// Time for workers and clients to receive the master's end, and to confirm it.
const END_TIMEOUT_ALL: Duration = Duration::from_secs(5);

/// Time for which a client may stop reading and keep its attached job: it may be suspended, or its machine asleep. It
/// is about as long as the operating system itself tries to reach a silent machine. A client whose process ends is
/// noticed at once.
const CLIENT_STALL_MAX: Duration = Duration::from_secs(15 * 60);

/// File descriptors reserved for everything but connections: files, the listener and the async runtime.
const DESCRIPTORS_KEPT: usize = 48;

/// A master that is ready to run: everything that can fail has been checked.
pub struct PreparedMaster {
    bind: Bind,
    host_names: Vec<String>,
    tokens: Arc<Tokens>,
    build: String,
    state: MasterState,
    archive: Option<Arc<JobArchive>>,
    /// The time of the last master, which continues.
    base: Time,
}

impl PreparedMaster {
    /// Recovers the state of an earlier master that did not end in order, or else the memory of its estimator, and
    /// starts the journals.
    ///
    /// # Errors
    /// A journal that cannot be started or continued, or a register that cannot be opened.
    pub fn new(config: MasterConfig) -> Result<Self, MasterError> {
        let host_names = config.host_names.clone();
        let (bind, tokens, build) = (config.bind.clone(), config.tokens.clone(), config.build.clone());
        let opened = |path: &Path| {
            JobArchive::open(path).map_err(MasterError::file("open the directory of ended jobs", path))
        };
        let archive = config.archive.as_deref().map(opened).transpose()?.map(Arc::new);
        let Started { state, base } = start(config)?;
        Ok(Self { bind, host_names, tokens, build, state, archive, base })
    }

    /// Runs on an open listener until a signal or a client requests the end. A first signal keeps the jobs for the next
    /// master of its state directory; a second signal or a client's request abandons them. Returns true if they were
    /// kept.
    pub async fn run(self, listener: TcpListener, requests: EndRequests) -> bool {
        let (inputs, fed) = unbounded_channel();
        let (shutdown, asked_to_end) = watch::channel(None);
        let (attended, mut all_left) = mpsc::channel(1);
        let handle = MasterHandle {
            inputs,
            shutdown: Arc::new(shutdown),
            _attended: attended,
            build: self.build.clone(),
            plaintext: self.bind.permissions.plaintext(),
            tokens: self.tokens.clone(),
            page_codes: Arc::default(),
            archive: self.archive.clone(),
        };
        let mut server = ServerConfig::new(self.bind.transport.clone());
        server.host_names = self.host_names.clone();
        server.limits.connections_max = connections_max();
        server.limits.stall = fault::span("master.stall", CLIENT_STALL_MAX);
        let auth = Arc::new(MasterAuth(self.tokens.clone()));
        let asked = handle.clone();
        let answer = move |request| routes::respond(asked.clone(), request);
        let mut closing = handle.shutdown.subscribe();
        let serving = tokio::spawn(async move {
            let end = async move {
                let _ = closing.wait_for(Option::is_some).await;
            };
            serve(listener, Arc::new(server), auth, answer, end).await;
        });
        let mut master = Master::new(self.state, self.archive, fed, handle.inputs.clone(), self.base);
        let ending = tokio::select! {
            () = master.drive() => Ending::Abandons,
            ending = ending_asked(requests, asked_to_end, &handle) => ending,
        };
        let mut unfinished = Vec::new();
        if ending == Ending::Abandons {
            master.abandon_jobs();
            master.state.shutdown_workers();
            unfinished = master.state.jobs.unfinished();
        }
        let _ = handle.shutdown.send(Some(ending));
        master.state.journal.end(ending);
        master.state.jobs.register.close();
        // Workers are notified by their own writers, which end when the state is dropped.
        drop(master);
        drop(handle);
        let left = async {
            let _ = serving.await;
            let _ = all_left.recv().await;
        };
        let _ = tokio::time::timeout(END_TIMEOUT_ALL, left).await;
        // No task writes there any more. A live client abandons the output of its own job too; twice does no harm.
        for output in unfinished {
            output.abandon();
        }
        ending == Ending::Keeps
    }
}

/// Waits until a master is asked to end. Returns how.
async fn ending_asked(
    mut requests: EndRequests,
    mut asked: watch::Receiver<Option<Ending>>,
    handle: &MasterHandle,
) -> Ending {
    let mut first = requests.clone();
    tokio::select! {
        () = first.to_go() => {}
        _ = asked.wait_for(Option::is_some) => return Ending::Abandons,
    }
    if *requests.end.borrow() {
        return Ending::Abandons;
    }
    let look = handle.call(|state, _| (state.journal.is_recoverable(), state.jobs.live_count())).await;
    let Some((true, live)) = look else { return Ending::Abandons };
    if live == 0 {
        return Ending::Keeps;
    }
    let jobs = counted(u64::from(live), "job", "jobs");
    tracing::info!("ends, and keeps {jobs} for the next master; a second signal within 1 s abandons them");
    match tokio::time::timeout(SECOND_SIGNAL_MAX, requests.to_end()).await {
        Ok(_) => Ending::Abandons,
        Err(_) => Ending::Keeps,
    }
}

/// Number of authenticated connections for which this process has file descriptors.
fn connections_max() -> usize {
    descriptors::allowed().saturating_sub(DESCRIPTORS_KEPT + strangers_max()).max(1)
}
