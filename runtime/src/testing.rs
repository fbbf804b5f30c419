//! Tests of jobs: everything in [`gristmill_worker::testing`], and a cluster of threads in this process.
//!
//! A [`LocalCluster`] consists of a real master and real workers that communicate over loopback. It differs from `run`
//! only in that they are threads and not processes. A panic of user code fails its attempt, but user code that aborts
//! ends the test.

use crate::client::{Client, ClientError, JobReport};
use crate::deciders::DeciderNames;
use crate::master::tokens::Tokens;
use crate::master::{MasterConfig, PreparedMaster};
use crate::registry::{Registry, Rounds};
use crate::scratch::ScratchDirectory;
use crate::submit::JobOptions;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::agent::{self, EndRequests, LEAVE_MAX, MASTER_SILENCE_MAX, WorkerConfig};
use gristmill_worker::api::Job;
use gristmill_worker::http::{Bind, Endpoint, JoinLine, Plaintext, Secret};
use gristmill_worker::protocol::{Slots, ended_proof};
use gristmill_worker::settings::WorkerSettings;
use gristmill_worker::shuffle::plan::FetchLimits;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, io};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub use gristmill_worker::testing::*;

/// Number of workers of a cluster, each with one slot: enough for a shuffle over the network.
const WORKERS: u32 = 2;

/// Memory of each worker.
const WORKER_MEMORY: Bytes = Bytes::mib(64);

/// Time for a worker to join.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason for which a cluster for tests could not be started.
#[derive(Debug, thiserror::Error)]
#[error("could not start the {part} of a cluster for tests")]
pub struct LocalClusterError {
    /// The component that failed.
    part: &'static str,
    /// Cause.
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

fn failed<E: Into<Box<dyn Error + Send + Sync>>>(part: &'static str) -> impl Fn(E) -> LocalClusterError {
    move |source| LocalClusterError { part, source: source.into() }
}

/// A master and two workers in this process, with a directory for files. Everything is ended and removed when it is
/// dropped.
///
/// ```
/// # use gristmill_runtime as gristmill;
/// use gristmill::jobs::{WordCount, Words};
/// use gristmill::prelude::*;
/// use gristmill::testing::LocalCluster;
///
/// # fn main() -> anyhow::Result<()> {
/// let registry = Registry::new().job::<WordCount>();
/// let mut cluster = LocalCluster::start(&registry)?;
/// let inputs = vec![cluster.file("words.txt", "to be or not to be")?];
/// let report = cluster.run(WordCount { inputs, words: Words::Ascii, lowercase: false, top: None })?;
/// let mut counts = report.pairs::<String, u64>()?;
/// counts.sort();
/// assert_eq!(counts[0], ("be".to_owned(), 2));
/// # Ok(())
/// # }
/// ```
pub struct LocalCluster {
    client: Client,
    directory: ScratchDirectory,
    jobs: u32,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl LocalCluster {
    /// Starts a cluster with the names of this registry.
    ///
    /// # Errors
    /// Everything that prevents a master or worker from starting.
    pub fn start(registry: &Registry) -> Result<Self, LocalClusterError> {
        let directory = ScratchDirectory::new("test-").map_err(failed("directory"))?;
        let tokens = Arc::new(Tokens::of_secret(Secret::generate().map_err(failed("secret"))?));
        let (stop, stopping) = watch::channel(false);
        let (port, master) = start_master(registry, &tokens, stopping.clone())?;
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port, pin: None };
        let line = |role| -> Result<JoinLine, LocalClusterError> {
            let token = tokens.token(role, None).map_err(failed("token"))?;
            Ok(JoinLine { endpoint: endpoint.clone(), token, plaintext: Plaintext::OnLoopback })
        };
        let client = Client::connect(&line(crate::api::Role::Admin)?).map_err(failed("client"))?;
        let mut cluster = Self { client, directory, jobs: 0, stop, threads: vec![master] };
        let join = line(crate::api::Role::Work)?;
        for number in 0..WORKERS {
            let spill = cluster.directory.path().join(format!("worker-{number}"));
            let worker = start_worker(registry, &join, spill, stopping.clone())?;
            cluster.threads.push(worker);
        }
        cluster.client.wait_for_workers(WORKERS);
        let output = cluster.directory.path().join("rounds");
        fs::create_dir(&output).map_err(failed("directory"))?;
        cluster.client.set_options(cluster.options(output));
        Ok(cluster)
    }

    /// Writes a file and returns its path, for use as an input of a job.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> io::Result<String> {
        let path = self.directory.path().join("files").join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
        fs::write(&path, contents)?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Runs a job to its end, into a directory of its own.
    ///
    /// # Errors
    /// As those of [`Client::run`].
    pub fn run<J: Job>(&mut self, job: J) -> Result<JobReport, ClientError> {
        self.jobs += 1;
        let output = self.directory.path().join(format!("output-{}", self.jobs));
        let options = self.options(output);
        self.client.run(job, &options)
    }

    /// Runs a program of several jobs to its end. Returns the text that it would print.
    ///
    /// # Errors
    /// Those of the program.
    pub fn drive<R: Rounds>(&mut self, rounds: &R) -> anyhow::Result<String> {
        rounds.drive(&mut self.client)
    }

    /// A client of the cluster.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Three parts, so that keys are spread; no syncs.
    fn options(&self, output: PathBuf) -> JobOptions {
        JobOptions { sync: false, reduces: Some(3), ..JobOptions::new(output) }
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed the message.
            let _ = thread.join();
        }
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// The default deciders of a master.
fn deciders() -> DeciderNames {
    let [policy, placement, estimator] = ["gristmill", "pull", "history"].map(str::to_owned);
    DeciderNames { policy, placement, estimator }
}

/// Starts a master without any files. Returns its port.
fn start_master(
    registry: &Registry,
    tokens: &Arc<Tokens>,
    stopping: watch::Receiver<bool>,
) -> Result<(u16, JoinHandle<()>), LocalClusterError> {
    let prepared = PreparedMaster::new(MasterConfig {
        bind: Bind::loopback(),
        host_names: Vec::new(),
        tokens: tokens.clone(),
        build: gristmill_worker::build_id(),
        deciders: deciders().make(registry).map_err(failed("master"))?,
        registry: registry.clone(),
        pools: BTreeMap::new(),
        divided_slots: false,
        backups: true,
        divides: true,
        journal: None,
        recovery: None,
        register: None,
        archive: None,
    })
    .map_err(failed("master"))?;
    let runtime = runtime().map_err(failed("master"))?;
    let listener: TcpListener = runtime.block_on(Bind::loopback().listen()).map_err(failed("master"))?;
    let port = listener.local_addr().map_err(failed("master"))?.port();
    let requests = EndRequests { leave: stopping.clone(), end: stopping };
    let running = move || {
        runtime.block_on(prepared.run(listener, requests));
    };
    let thread = std::thread::Builder::new().name("test-master".to_owned()).spawn(running);
    Ok((port, thread.map_err(failed("master"))?))
}

/// Starts a worker with a directory of its own.
fn start_worker(
    registry: &Registry,
    join: &JoinLine,
    spill: PathBuf,
    stopping: watch::Receiver<bool>,
) -> Result<JoinHandle<()>, LocalClusterError> {
    fs::create_dir(&spill).map_err(failed("worker"))?;
    let ended = Secret::generate().map_err(failed("worker"))?;
    let config = WorkerConfig {
        master: join.endpoint.clone(),
        token: join.token.clone(),
        ended_proof: ended_proof(&ended),
        settings: WorkerSettings::new(Slots::Unified(1), WORKER_MEMORY),
        spill_dirs: vec![spill],
        bind: Bind::loopback(),
        host: gristmill_worker::host_name(),
        build: gristmill_worker::build_id(),
        join_patience: JOIN_TIMEOUT,
        master_silence_max: MASTER_SILENCE_MAX,
        leave_max: LEAVE_MAX,
        fetch: FetchLimits::default(),
        capture: None,
    };
    let (runtime, jobs) = (runtime().map_err(failed("worker"))?, Arc::new(registry.clone()));
    let running = move || {
        let ended = runtime.block_on(agent::run(config, jobs, EndRequests::at_once(stopping)));
        if let Err(error) = ended {
            tracing::error!("{}", gristmill_worker::error_text::chain(&error));
        }
    };
    let thread = std::thread::Builder::new().name("test-worker".to_owned()).spawn(running);
    thread.map_err(failed("worker"))
}
