//! An embedded cluster: a master and worker processes of this same executable, as direct children on loopback.
//!
//! Children receive their secrets and settings through their standard input ([`ChildConfig`]), which stays open while
//! this process lives: when it closes, they end. The code of the children is in the command line (`cli`).

mod child;
mod directories;
mod error;
mod strays;
mod tool;
mod worker_slot;
mod workers;

pub use child::{
    ChildConfig, ChildRole, CommandStart, LEAVE, MasterChild, MasterReady, WorkerChild, inherited,
    start_command, start_detached,
};
pub use directories::{leave_directories, remove_directories};
pub use error::ClusterError;
pub use strays::end_strays;
pub use tool::{Tool, ToolAnswer, ToolCall, ToolError, ToolInput};
pub use workers::WorkerProcesses;

use crate::api::ROOT;
use crate::deciders::DeciderNames;
use crate::master::tokens::Tokens;
use crate::role::Role;
use crate::scratch;
use directories::private_directories;
use gristmill_worker::agent::EndRequests;
use gristmill_worker::descriptors;
use gristmill_worker::http::{Endpoint, JoinLine, Plaintext, Pool, Secret, Timeouts, Token, full};
use gristmill_worker::input::FilePath;
use gristmill_worker::protocol::Slots;
use hyper::Method;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, ChildStdin};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Time for the master to report its port.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Size and settings of an embedded cluster.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Its workers.
    pub workers: WorkerProcesses,
    /// Names of its deciders.
    pub deciders: DeciderNames,
    /// The pools that jobs may name, with their weights; if empty, any name is a pool.
    pub pools: BTreeMap<String, f64>,
    /// File of the master's journal; `None` if it keeps none.
    pub journal: Option<PathBuf>,
    /// True to enable speculative attempts.
    pub backups: bool,
    /// True to divide running maps for idle slots.
    pub divides: bool,
}

/// A running cluster. Dropping it without [`Cluster::stop`] kills its processes.
pub struct Cluster {
    master: Endpoint,
    /// The admin's token.
    token: Token,
    master_child: Child,
    master_stdin: Option<ChildStdin>,
    stop: watch::Sender<bool>,
    supervisors: JoinSet<Option<u8>>,
    directories: Vec<PathBuf>,
    holds: Vec<scratch::DirectoryLock>,
}

impl Cluster {
    /// Starts the processes. Returns as soon as the master listens; workers join meanwhile.
    ///
    /// # Errors
    /// Everything that prevents the processes from starting; nothing is left behind then.
    pub async fn start(config: &ClusterConfig) -> Result<Self, ClusterError> {
        descriptors::ensure_enough()?;
        ensure_proc_and_loopback()?;
        let secret = Secret::generate().map_err(|source| ClusterError::Secret { source })?;
        let (directories, holds) = private_directories(&config.workers.spill_dirs, &secret)?;
        match Self::start_in(config, secret, directories.clone(), holds).await {
            Ok(cluster) => Ok(cluster),
            Err(error) => {
                remove_directories(&directories);
                Err(error)
            }
        }
    }

    async fn start_in(
        config: &ClusterConfig,
        secret: Secret,
        directories: Vec<PathBuf>,
        holds: Vec<scratch::DirectoryLock>,
    ) -> Result<Self, ClusterError> {
        let failed = |source| ClusterError::Start { role: "master", source };
        let mut child = child::start(ChildRole::Master, Stdio::piped()).map_err(failed)?;
        let settings = ChildConfig::Master(MasterChild {
            secret: secret.to_text().to_string(),
            deciders: config.deciders.clone(),
            pools: config.pools.clone(),
            divided_slots: matches!(config.workers.each.slots, Slots::Pools { .. }),
            journal: config.journal.as_deref().map(FilePath::from),
            remove_at_end: directories.clone(),
            backups: config.backups,
            divides: config.divides,
        });
        let stdin = child::configure(&mut child, &settings).await.map_err(failed)?;
        // They start in parallel with the master, because their start takes much of a short job's time.
        let launched = config.workers.launch()?;
        let ready = tokio::time::timeout(START_TIMEOUT, child::first_line(&mut child)).await;
        let Some(ready) = ready.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)?
        else {
            let code = child.wait().await.map_err(failed)?.code();
            return Err(ClusterError::MasterEnded { code });
        };
        let ready: MasterReady = serde_json::from_str(&ready).map_err(|error| failed(error.into()))?;
        let master = Endpoint { host: "127.0.0.1".to_owned(), port: ready.port, pin: None };
        let (stop, stopping) = watch::channel(false);
        let made = |role| Tokens::of_secret(secret.clone()).token(role, None);
        let made = |role| made(role).map_err(|error| failed(io::Error::other(error)));
        let mut cluster = Self {
            master,
            token: made(Role::Admin)?,
            master_child: child,
            master_stdin: Some(stdin),
            stop,
            supervisors: JoinSet::new(),
            directories,
            holds,
        };
        let plaintext = Plaintext::OnLoopback;
        let join = JoinLine { endpoint: cluster.master.clone(), token: made(Role::Work)?, plaintext };
        cluster.supervisors = config
            .workers
            .start(launched, &join, &cluster.directories, &EndRequests::at_once(stopping))
            .await?;
        Ok(cluster)
    }

    /// Join line for a client.
    #[must_use]
    pub fn join_line(&self) -> JoinLine {
        JoinLine {
            endpoint: self.master.clone(),
            token: self.token.clone(),
            plaintext: Plaintext::OnLoopback,
        }
    }

    /// A private directory that is removed with the cluster, also when this process is killed.
    #[must_use]
    pub fn directory(&self) -> &Path {
        // There is always one: without spill directories it is in the system's directory for temporary files.
        self.directories.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Ends all processes and removes their directories. Processes that do not end in time are killed.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        // Workers first: the master removes their directories when it ends.
        while self.supervisors.join_next().await.is_some() {}
        let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
        let path = format!("{ROOT}/shutdown");
        let _ = pool.request(&self.master, Some(&self.token), Method::POST, &path, full(Vec::new())).await;
        child::end(&mut self.master_child, self.master_stdin.take()).await;
        // Some file systems keep an open file under another name, and with it the directory.
        self.holds.clear();
        remove_directories(&self.directories);
    }
}

/// Rejects a machine on which processes can neither be started nor reach each other, before any is started.
fn ensure_proc_and_loopback() -> Result<(), ClusterError> {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkDown, NetworkUnreachable};
    if cfg!(target_os = "linux") && !Path::new("/proc/self").exists() {
        return Err(ClusterError::NoProc);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    match listener.and_then(|listener| TcpStream::connect(listener.local_addr()?)) {
        Err(source)
            if matches!(
                source.kind(),
                AddrNotAvailable | HostUnreachable | NetworkDown | NetworkUnreachable
            ) =>
        {
            Err(ClusterError::NoLoopback { source })
        }
        // Any other error is reported where it occurs again.
        _ => Ok(()),
    }
}

impl Drop for Cluster {
    /// Does nothing after [`Cluster::stop`]; otherwise (such as after a panic) leaves nothing behind.
    fn drop(&mut self) {
        self.supervisors.abort_all();
        let _ = self.master_child.start_kill();
        remove_directories(&self.directories);
    }
}
