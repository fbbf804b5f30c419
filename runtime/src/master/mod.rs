//! The master process: one loop that owns the state, fed by worker connections, client requests and timers.
//!
//! The loop gathers everything that has happened, enters it as the facts of one instant, and sends out what the
//! core orders. Decisions are the scheduler's, and bytes of jobs never come here.

mod address;
mod archive;
mod auth;
mod begin;
mod config;
mod connection;
mod event_loop;
mod gauges;
mod history;
mod input;
mod kept_job;
mod page;
mod programs;
mod recovery;
mod register;
mod routes;
mod state;
pub mod tokens;
mod translate;

pub use config::{MasterConfig, MasterError};
pub use programs::ProgramLimits;
pub use recovery::RecallError;
#[cfg(test)]
pub(crate) use state::tests::status_of;

use archive::Archive;
use auth::MasterAuth;
use begin::{Begun, begin};
use event_loop::{KeptFiles, Master};
use gristmill_scheduler::units::Time;
use gristmill_worker::descriptors;
use gristmill_worker::fault;
use gristmill_worker::http::limits::strangers_max;
use gristmill_worker::http::{Bind, ServerConfig, serve};
use history::HistoryFile;
use input::MasterHandle;
use programs::Programs;
use state::MasterState;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokens::Tokens;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, unbounded_channel};
use tokio::sync::watch;

/// Heartbeats are this far apart.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// How long workers and clients may take to hear that the master ends, and to confirm it.
const END_PATIENCE_ALL: Duration = Duration::from_secs(5);

/// How long a client may take nothing of what it is told and keep its attached job: it may be stopped, or its machine
/// asleep. About as long as the system itself tries to reach a machine that is silent. A client whose process ends is
/// noticed at once.
const CLIENT_STALL_MAX: Duration = Duration::from_secs(15 * 60);

/// Descriptors that are not for connections: files, the listener, what the runtime needs.
const DESCRIPTORS_KEPT: usize = 48;

/// Facts entered in one go, so that a flood of them cannot keep orders back.
const BATCH_MAX: usize = 1024;

/// A master that is ready to run: all that could be refused has been.
pub struct PreparedMaster {
    bind: Bind,
    host_names: Vec<String>,
    tokens: Arc<Tokens>,
    build: String,
    state: MasterState,
    history: Option<HistoryFile>,
    archive: Option<Arc<Archive>>,
    programs: Option<Arc<Programs>>,
    /// The time of the last master, which goes on.
    base: Time,
}

impl PreparedMaster {
    /// Recalls what an earlier master has learned and goes on where it ended, if it ended without notice; begins the
    /// journals.
    ///
    /// # Errors
    /// A journal that cannot be begun or gone on from, a register that cannot be opened. A history that cannot be read is no error: it is moved aside with a warning.
    pub fn new(config: MasterConfig) -> Result<Self, MasterError> {
        let host_names = config.host_names.clone();
        let (bind, tokens, build) = (config.bind.clone(), config.tokens.clone(), config.build.clone());
        let opened = |path: &Path| {
            Archive::open(path).map_err(|source| MasterError::Archive { path: path.to_owned(), source })
        };
        let archive = config.archive.as_deref().map(opened).transpose()?.map(Arc::new);
        let programs = config.programs.as_ref().map(|(path, limits)| {
            Programs::open(path, *limits)
                .map_err(|source| MasterError::Programs { path: path.clone(), source })
        });
        let programs = programs.transpose()?.map(Arc::new);
        let Begun { state, history, base } = begin(config)?;
        Ok(Self { bind, host_names, tokens, build, state, history, archive, programs, base })
    }

    /// Runs on an open listener until `stop` turns true or a client asks it to end.
    pub async fn run(self, listener: TcpListener, mut stop: watch::Receiver<bool>) {
        let (inputs, fed) = unbounded_channel();
        let (shutdown, mut ending) = watch::channel(false);
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
            programs: self.programs.clone(),
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
                let _ = closing.wait_for(|end| *end).await;
            };
            serve(listener, Arc::new(server), auth, answer, end).await;
        });
        let kept = KeptFiles { history: self.history, archive: self.archive };
        let mut master = Master::new(self.state, kept, fed, handle.inputs.clone(), self.base);
        tokio::select! {
            () = master.drive() => {}
            _ = stop.wait_for(|stop| *stop) => {}
            _ = ending.wait_for(|end| *end) => {}
        }
        master.state.shutdown_workers();
        let _ = handle.shutdown.send(true);
        let unfinished = master.state.unfinished();
        master.state.end_journal();
        master.state.close_register();
        if let Some(history) = &mut master.kept.history {
            history.keep_at_end(master.state.memory()).await;
        }
        // Workers are told through their own writers, which end when the state is dropped.
        drop(master);
        drop(handle);
        let left = async {
            let _ = serving.await;
            let _ = all_left.recv().await;
        };
        let _ = tokio::time::timeout(END_PATIENCE_ALL, left).await;
        // Now nobody writes there any more. A client that lives does the same for its own job; twice does no harm.
        for output in unfinished {
            output.abandon();
        }
    }
}

/// As many connections of those who know the secret as this process can have descriptors for.
fn connections_max() -> usize {
    descriptors::allowed().saturating_sub(DESCRIPTORS_KEPT + strangers_max()).max(1)
}
