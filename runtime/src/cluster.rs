//! An embedded cluster: a master and worker processes of this same executable, as direct children on loopback.
//!
//! Children get their secrets and settings through their standard input, which stays open for as long as this
//! process lives: when it closes, they end. A worker that dies is reported to the master and replaced. Not here:
//! what the children do (`cli::master`, `cli::worker`).

use crate::api::{ROOT, WorkerEnded};
use crate::exit;
use crate::master::tokens::{Role, Tokens};
use crate::out_of_memory::MemoryKills;
use crate::scratch;
use gristmill_worker::agent::{begun, capture, crash};
use gristmill_worker::http::{
    Endpoint, JoinLine, Plaintext, Pool, Secret, SecretError, Timeouts, Token, full,
};
use gristmill_worker::protocol::SlotCounts;
use hyper::Method;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

/// How long the master may take to say where it listens.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How long children may take to end by themselves before they are killed.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Processes in one place that lived less than [`HASTY`], or could not be started, one after the other; more means that
/// something is wrong with the program or the machine itself. With the pauses between them that takes over an hour.
const HASTY_MAX: u32 = 1000;

/// The exit code of a program whose worker process ended with this code, if there is no point in another one. `worked`
/// says whether one has lived for a while in this place.
fn final_code(code: i32, worked: bool) -> Option<u8> {
    match code {
        exit::worker::LACKING if !worked => Some(exit::ENVIRONMENT),
        exit::worker::ASKED => Some(exit::OK),
        exit::worker::MASTER_GONE => Some(exit::CLUSTER),
        exit::worker::REFUSED => Some(exit::ENVIRONMENT),
        exit::worker::UNAUTHORISED => Some(exit::UNAUTHORISED),
        _ => None,
    }
}

/// A worker that lived less than this gained nothing; after the second such one in a row the next waits.
const HASTY: Duration = Duration::from_secs(2);

/// First such pause; doubles each time.
const PAUSE: Duration = Duration::from_millis(50);

/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long a process that is being killed may take to be dead: until then it holds its folders.
const DYING_PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks whether it is.
const DYING_PAUSE: Duration = Duration::from_millis(5);

/// What is written to a child before its pipe is closed. A parent that is killed writes nothing.
const FAREWELL: &[u8] = b"end\n";

const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();

/// Last words of user code that are sent to the master, bytes.
const LAST_WORDS_BYTES_MAX: u64 = 2048;

/// An embedded cluster's size and settings.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Worker processes.
    pub workers: u32,
    /// Slots of each. More than one lets user code that aborts take others' attempts with it.
    pub slots: u32,
    /// Memory of all workers together, bytes.
    pub memory_bytes: u64,
    /// Policy, `name` or `name:parameters`.
    pub policy: String,
    /// Placement, `name` or `name:parameters`.
    pub placement: String,
    /// Folders for what does not fit in memory; the system's folder for temporary files if empty.
    pub spill_dirs: Vec<PathBuf>,
    /// Bytes of each such folder's file system that stay free.
    pub disk_reserve_bytes: u64,
    /// How workers get segments.
    pub shuffle: Shuffle,
    /// Slots by kind instead of `slots` for both: maps and reduces, at least 1 each.
    pub pools: Option<(u32, u32)>,
    /// Estimator, `name` or `name:parameters`.
    pub estimator: String,
    /// How fast the workers' slots are made to be, above 0 and at most 1, worker by worker, over again when there are
    /// more workers; empty: as fast as they can.
    pub speeds: Vec<f64>,
    /// What each worker's shuffle is held to in each direction, bytes in a second.
    pub nic_bytes_per_second: Option<NonZeroU64>,
    /// Where the master writes its journal; `None`: nowhere.
    pub journal: Option<PathBuf>,
}

impl ClusterConfig {
    /// What each worker can run at once.
    #[must_use]
    pub fn slot_counts(&self) -> SlotCounts {
        match self.pools {
            Some((map, reduce)) => SlotCounts::Pools { map, reduce },
            None => SlotCounts::Unified(self.slots),
        }
    }
}

/// How workers get segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    /// Those of another worker over HTTP; a worker's own are read where they lie
    #[default]
    Auto,
    /// All over HTTP, also a worker's own
    Http,
}

/// What a child reads from its standard input before anything else: one line of JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct ChildConfig {
    /// For a master the cluster's secret, for a worker its token, as text.
    pub secret: String,
    /// For a worker: the master.
    pub master: Option<Endpoint>,
    /// For a worker: its private folders.
    pub spill_dirs: Vec<PathBuf>,
    /// For a worker: its memory.
    pub memory_bytes: u64,
    /// For a worker: bytes of each folder's file system that stay free.
    pub disk_reserve_bytes: u64,
    /// For a worker: how it gets segments.
    pub shuffle: Shuffle,
    /// For a worker: what it can run at once.
    pub slots: SlotCounts,
    /// For a worker: how fast its slots are made to be.
    pub speed: f64,
    /// For a worker: what its shuffle is held to in each direction, bytes in a second.
    pub nic_bytes_per_second: Option<NonZeroU64>,
    /// Folders that the master removes when its parent has died and cannot.
    pub remove_at_end: Vec<PathBuf>,
}

/// What the master says on its standard output once it listens.
#[derive(Serialize, Deserialize)]
pub(crate) struct MasterReady {
    pub port: u16,
}

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A process of this executable could not be started or ended at once.
    #[error("could not start a {role} process")]
    Start {
        /// Master or worker.
        role: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A private folder could not be made.
    #[error("could not make the folder {path}")]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No randomness.
    #[error("no secret could be made")]
    Secret {
        /// Why.
        #[source]
        source: SecretError,
    },
}

/// A running cluster. Dropping it without [`Cluster::stop`] kills its processes.
pub struct Cluster {
    master: Endpoint,
    /// What lets its owner do everything.
    token: Token,
    master_child: Child,
    master_stdin: Option<ChildStdin>,
    stop: watch::Sender<bool>,
    supervisors: Vec<tokio::task::JoinHandle<()>>,
    folders: Vec<PathBuf>,
    _holds: Vec<scratch::Hold>,
}

impl Cluster {
    /// Starts the processes. Comes back as soon as the master listens; workers join meanwhile.
    ///
    /// # Errors
    /// Whatever keeps the processes from starting; nothing is left behind then.
    pub async fn start(config: &ClusterConfig) -> Result<Self, ClusterError> {
        let secret = Secret::generate().map_err(|source| ClusterError::Secret { source })?;
        let (folders, holds) = private_folders(&config.spill_dirs, &secret)?;
        match Self::start_in(config, secret, folders.clone(), holds).await {
            Ok(cluster) => Ok(cluster),
            Err(error) => {
                remove_folders(&folders);
                Err(error)
            }
        }
    }

    async fn start_in(
        config: &ClusterConfig,
        secret: Secret,
        folders: Vec<PathBuf>,
        holds: Vec<scratch::Hold>,
    ) -> Result<Self, ClusterError> {
        let failed = |source| ClusterError::Start { role: "master", source };
        let mut child = command(master_arguments(config)).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let settings = ChildConfig {
            secret: secret.to_text().to_string(),
            master: None,
            spill_dirs: Vec::new(),
            memory_bytes: 0,
            disk_reserve_bytes: 0,
            shuffle: Shuffle::Auto,
            slots: SlotCounts::Unified(0),
            speed: 1.0,
            nic_bytes_per_second: None,
            remove_at_end: folders.clone(),
        };
        let stdin = configure(&mut child, &settings).await.map_err(failed)?;
        let ready = tokio::time::timeout(START_PATIENCE, first_line(&mut child)).await;
        let ready = ready.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)?;
        let ready: MasterReady = serde_json::from_str(&ready).map_err(|error| failed(error.into()))?;
        let master = Endpoint { host: "127.0.0.1".to_owned(), port: ready.port, pin: None };
        let (stop, stopping) = watch::channel(false);
        let made = |role| Tokens::open(secret.clone(), None).and_then(|tokens| tokens.token(role, None));
        let made = |role| made(role).map_err(|error| failed(io::Error::other(error)));
        let mut cluster = Self {
            master,
            token: made(Role::Admin)?,
            master_child: child,
            master_stdin: Some(stdin),
            stop,
            supervisors: Vec::new(),
            folders,
            _holds: holds,
        };
        let workers = Workers {
            count: config.workers,
            slots: config.slot_counts(),
            speeds: config.speeds.clone(),
            nic_bytes_per_second: config.nic_bytes_per_second,
            memory_bytes: config.memory_bytes,
            master: cluster.master.clone(),
            token: made(Role::Work)?,
            plaintext: Plaintext::OnLoopback,
            spill_dirs: Vec::new(),
            disk_reserve_bytes: config.disk_reserve_bytes,
            shuffle: config.shuffle,
            flags: Vec::new(),
        };
        let memory_kills = MemoryKills::watch();
        for number in 1..=workers.count {
            let mut seat = workers.seat(number, &cluster.folders, &memory_kills, &stopping);
            let first = seat.start().await?;
            cluster.supervisors.push(tokio::spawn(async move {
                let _ = seat.supervise(first).await;
            }));
        }
        Ok(cluster)
    }

    /// What a client needs to use it.
    #[must_use]
    pub fn join_line(&self) -> JoinLine {
        JoinLine {
            endpoint: self.master.clone(),
            token: self.token.clone(),
            plaintext: Plaintext::OnLoopback,
        }
    }

    /// A private folder that goes with the cluster, also when this process is killed.
    pub(crate) fn folder(&self) -> &Path {
        // There is always one: without spill folders it is the system's for temporary files.
        self.folders.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Ends all processes and removes their folders. Processes that do not end in time are killed.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        // Workers first: the master removes their folders when it ends.
        for supervisor in self.supervisors.drain(..) {
            let _ = supervisor.await;
        }
        let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
        let path = format!("{ROOT}/shutdown");
        let _ = pool.request(&self.master, Some(&self.token), Method::POST, &path, full(Vec::new())).await;
        farewell(self.master_stdin.take()).await;
        if tokio::time::timeout(END_PATIENCE, self.master_child.wait()).await.is_err() {
            let _ = self.master_child.kill().await;
        }
        remove_folders(&self.folders);
    }
}

/// Worker processes of this machine, for a master here or elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    pub count: u32,
    pub slots: SlotCounts,
    /// Worker by worker, over again when there are more workers; empty: as fast as they can.
    pub speeds: Vec<f64>,
    /// Of each, in each direction.
    pub nic_bytes_per_second: Option<NonZeroU64>,
    /// Of all together.
    pub memory_bytes: u64,
    pub master: Endpoint,
    pub token: Token,
    pub plaintext: Plaintext,
    /// Where [`Workers::run`] makes private folders.
    pub spill_dirs: Vec<PathBuf>,
    pub disk_reserve_bytes: u64,
    pub shuffle: Shuffle,
    /// Further flags of each process.
    pub flags: Vec<OsString>,
}

impl Workers {
    /// Starts the processes and replaces those that die, until `stopping` turns true or all have ended for good.
    /// Answers the exit code of the last that did, 0 after a stop.
    pub async fn run(self, stopping: watch::Receiver<bool>) -> Result<u8, ClusterError> {
        let nonce = Secret::generate().map_err(|source| ClusterError::Secret { source })?;
        let (folders, _holds) = private_folders(&self.spill_dirs, &nonce)?;
        let result = self.run_in(&folders, &stopping).await;
        remove_folders(&folders);
        result
    }

    fn seat(
        &self,
        number: u32,
        folders: &[PathBuf],
        memory_kills: &MemoryKills,
        stopping: &watch::Receiver<bool>,
    ) -> Seat {
        Seat {
            number,
            slots: self.slots,
            speed: self.speed(number),
            nic_bytes_per_second: self.nic_bytes_per_second,
            memory_bytes: self.memory_bytes / u64::from(self.count.max(1)),
            disk_reserve_bytes: self.disk_reserve_bytes,
            shuffle: self.shuffle,
            master: self.master.clone(),
            token: self.token.clone(),
            folders: folders.to_vec(),
            flags: self.flags.clone(),
            pool: Pool::new(Timeouts::default(), self.plaintext),
            memory_kills: memory_kills.clone(),
            stopping: stopping.clone(),
            made_again: Vec::new(),
        }
    }

    /// How fast the slots of the worker of this number, counted from 1, are made to be.
    fn speed(&self, number: u32) -> f64 {
        let given = self.speeds.len().max(1);
        self.speeds.get((number.max(1) - 1) as usize % given).copied().unwrap_or(1.0)
    }

    async fn run_in(
        &self,
        folders: &[PathBuf],
        stopping: &watch::Receiver<bool>,
    ) -> Result<u8, ClusterError> {
        let mut seats = tokio::task::JoinSet::new();
        let memory_kills = MemoryKills::watch();
        for number in 1..=self.count {
            let mut seat = self.seat(number, folders, &memory_kills, stopping);
            let first = seat.start().await?;
            seats.spawn(seat.supervise(first));
        }
        let mut code = exit::OK;
        while let Some(ended) = seats.join_next().await {
            code = ended.unwrap_or(None).unwrap_or(code);
        }
        Ok(code)
    }
}

impl Drop for Cluster {
    /// After [`Cluster::stop`] there is nothing left to do; otherwise (a panic on the way) nothing may stay behind.
    fn drop(&mut self) {
        for supervisor in &self.supervisors {
            supervisor.abort();
        }
        let _ = self.master_child.start_kill();
        remove_folders(&self.folders);
    }
}

/// One worker's place: the process that sits there may change.
struct Seat {
    number: u32,
    slots: SlotCounts,
    speed: f64,
    nic_bytes_per_second: Option<NonZeroU64>,
    memory_bytes: u64,
    disk_reserve_bytes: u64,
    shuffle: Shuffle,
    master: Endpoint,
    token: Token,
    folders: Vec<PathBuf>,
    flags: Vec<OsString>,
    pool: Pool,
    memory_kills: MemoryKills,
    stopping: watch::Receiver<bool>,
    /// Of folders that somebody had removed.
    made_again: Vec<scratch::Hold>,
}

struct Seated {
    child: Child,
    /// Held open: its end is the worker's end.
    stdin: Option<ChildStdin>,
    spill_dirs: Vec<PathBuf>,
}

impl Seat {
    async fn start(&mut self) -> Result<Seated, ClusterError> {
        let failed = |source| ClusterError::Start { role: "worker", source };
        let master = self.master.to_string();
        let arguments = ["worker", "--from-parent", "--master", &master];
        let arguments = arguments.map(OsString::from).into_iter().chain(self.flags.iter().cloned());
        let mut child = command(arguments).stdout(Stdio::null()).spawn().map_err(failed)?;
        let mut spill_dirs = Vec::with_capacity(self.folders.len());
        for folder in &self.folders {
            // Systems clear their folders for temporary files now and then.
            if let Some(hold) = (!folder.exists()).then(|| scratch::make(folder).ok()).flatten() {
                self.made_again.push(hold);
            }
            let path = folder.join(format!("worker-{}-{}", self.number, child.id().unwrap_or(0)));
            let made = fs::DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|source| ClusterError::Folder { path: path.clone(), source })?;
            spill_dirs.push(path);
        }
        let settings = ChildConfig {
            secret: self.token.to_text().to_string(),
            master: Some(self.master.clone()),
            spill_dirs: spill_dirs.clone(),
            memory_bytes: self.memory_bytes,
            disk_reserve_bytes: self.disk_reserve_bytes,
            shuffle: self.shuffle,
            slots: self.slots,
            speed: self.speed,
            nic_bytes_per_second: self.nic_bytes_per_second,
            remove_at_end: Vec::new(),
        };
        // A process that has died already takes no settings; its supervisor sees that and starts another.
        let stdin = configure(&mut child, &settings).await.ok();
        Ok(Seated { child, stdin, spill_dirs })
    }

    /// Waits for the process to end, again and again, until the cluster stops or the process says by its exit code
    /// that there is no point in another: that code is the answer.
    async fn supervise(mut self, mut seated: Seated) -> Option<u8> {
        let (mut hasty, mut worked) = (0, false);
        while hasty < HASTY_MAX {
            let born = Instant::now();
            let pid = seated.child.id().unwrap_or(0);
            let status = tokio::select! {
                status = seated.child.wait() => status,
                () = stopped(&mut self.stopping) => {
                    end(seated).await;
                    return None;
                }
            };
            if *self.stopping.borrow() {
                remove_folders(&seated.spill_dirs);
                return None;
            }
            let quick = born.elapsed() < HASTY;
            worked |= !quick;
            hasty = if quick { hasty + 1 } else { 0 };
            if let Some(code) = self.ended(pid, status, &seated.spill_dirs, worked).await {
                return Some(code);
            }
            seated = loop {
                if 1 < hasty {
                    let pause = (PAUSE * (1 << (hasty - 2).min(10))).min(PAUSE_MAX);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = stopped(&mut self.stopping) => return None,
                    }
                }
                match self.start().await {
                    Ok(next) => break next,
                    Err(error) if hasty < HASTY_MAX => {
                        hasty += 1;
                        let error = crate::chain(&error);
                        tracing::warn!(error, "a worker could not be replaced; it is tried again");
                    }
                    Err(error) => {
                        tracing::error!(error = crate::chain(&error), "a worker could not be replaced");
                        return Some(exit::ENVIRONMENT);
                    }
                }
            };
        }
        tracing::error!(replaced = HASTY_MAX, "workers die again and again; no more are started");
        end(seated).await;
        Some(exit::FAILED)
    }

    /// Clears up after a process that has ended, and tells the master how it did. Answers the exit code of the program if
    /// there is no point in another one.
    async fn ended(
        &self,
        pid: u32,
        status: io::Result<ExitStatus>,
        spill_dirs: &[PathBuf],
        worked: bool,
    ) -> Option<u8> {
        let last_words = spill_dirs.first().map(|dir| last_words(dir)).unwrap_or_default();
        let begun = spill_dirs.first().map(|dir| begun::read(dir)).unwrap_or_default();
        let culprit = spill_dirs.first().and_then(|dir| crash::read(dir));
        remove_folders(spill_dirs);
        let status = status.ok()?;
        let final_code = status.code().and_then(|code| final_code(code, worked));
        if final_code.is_none() {
            let (signal, code) = (status.signal(), status.code());
            let host = gristmill_worker::host_name();
            let out_of_memory = signal == Some(SIGKILL) && self.memory_kills.take_one();
            let end = WorkerEnded { pid, host, signal, out_of_memory, code, last_words, begun, culprit };
            self.report(&end).await;
        }
        final_code
    }

    async fn report(&self, end: &WorkerEnded) {
        let path = format!("{ROOT}/workers/ended");
        let Ok(body) = serde_json::to_vec(end) else { return };
        let mut request = hyper::Request::new(full(body));
        *request.method_mut() = Method::POST;
        let json = hyper::header::HeaderValue::from_static("application/json");
        request.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
        if let Ok(uri) = path.parse() {
            *request.uri_mut() = uri;
        }
        // The master learns of the loss anyway; only its cause would be missing.
        if let Err(error) = self.pool.send(&self.master, Some(&self.token), request).await {
            tracing::debug!(%error, "the end of a worker could not be reported");
        }
    }
}

/// The command line of a cluster's master. What it names is no secret.
fn master_arguments(config: &ClusterConfig) -> Vec<OsString> {
    let named = [
        ("--policy", OsString::from(&config.policy)),
        ("--placement", OsString::from(&config.placement)),
        ("--estimator", OsString::from(&config.estimator)),
    ];
    let journal = config.journal.as_ref().map(|path| ("--journal", path.clone().into_os_string()));
    let named = named.into_iter().chain(journal).flat_map(|(flag, value)| [OsString::from(flag), value]);
    ["master", "--from-parent"].map(OsString::from).into_iter().chain(named).collect()
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Lets a worker end by itself, then makes it.
async fn end(mut seated: Seated) {
    farewell(seated.stdin.take()).await;
    if tokio::time::timeout(END_PATIENCE, seated.child.wait()).await.is_err() {
        let _ = seated.child.kill().await;
    }
    remove_folders(&seated.spill_dirs);
}

/// The end of what user code wrote, read from the file because the process cannot send it any more.
fn last_words(spill_dir: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let file = fs::File::open(spill_dir.join(capture::FILE_NAME))?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(LAST_WORDS_BYTES_MAX);
        let mut bytes = vec![0; (length - from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// This executable with these arguments, its standard input a pipe, killed if this process drops it.
fn command(arguments: impl IntoIterator<Item = OsString>) -> Command {
    // By its file, so that it is seen under its name; through the kernel's link if that file has been replaced.
    let file = std::env::current_exe().ok().filter(|file| file.exists());
    let program = file.unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).kill_on_drop(true);
    // Ctrl-C goes to the whole foreground group; children leave it, so that this process ends them in order.
    command.process_group(0);
    command
}

async fn configure(child: &mut Child, settings: &ChildConfig) -> io::Result<ChildStdin> {
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = serde_json::to_vec(settings)?;
    line.push(b'\n');
    stdin.write_all(&line).await?;
    stdin.flush().await?;
    Ok(stdin)
}

/// Tells a child that its end is meant, so that it does not take this process for dead.
async fn farewell(stdin: Option<ChildStdin>) {
    let Some(mut stdin) = stdin else { return };
    // A child that has ended needs no word.
    let _ = stdin.write_all(FAREWELL).await;
    let _ = stdin.flush().await;
}

async fn first_line(child: &mut Child) -> io::Result<String> {
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    if line.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
}

/// A folder of our own, 0700, in each of these places, and what keeps it. What the dead have left there is removed.
fn private_folders(
    places: &[PathBuf],
    secret: &Secret,
) -> Result<(Vec<PathBuf>, Vec<scratch::Hold>), ClusterError> {
    let places = match places {
        [] => vec![std::env::temp_dir()],
        places => places.to_vec(),
    };
    let name = scratch::name("", secret);
    let (mut made, mut holds) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
    for place in places {
        scratch::sweep(&place);
        let path = place.join(&name);
        match scratch::make(&path) {
            Ok(hold) => {
                made.push(path);
                holds.push(hold);
            }
            Err(source) => {
                remove_folders(&made);
                return Err(ClusterError::Folder { path, source });
            }
        }
    }
    Ok((made, holds))
}

/// Removes a worker's folders, and if whoever made what they lie in was killed, that too once nobody else uses it.
pub(crate) fn leave_folders(folders: &[PathBuf], holds: Vec<scratch::Hold>, orphaned: bool) {
    remove_folders(folders);
    drop(holds);
    if !orphaned {
        return;
    }
    let mut left: Vec<&Path> = folders.iter().filter_map(|folder| folder.parent()).collect();
    let began = Instant::now();
    loop {
        left.retain(|parent| {
            scratch::sweep_folder(parent);
            parent.exists()
        });
        if left.is_empty() || DYING_PATIENCE < began.elapsed() {
            return;
        }
        std::thread::sleep(DYING_PAUSE);
    }
}

pub(crate) fn remove_folders(folders: &[PathBuf]) {
    for folder in folders {
        if let Err(error) = scratch::remove(folder) {
            tracing::warn!(folder = %folder.display(), %error, "a temporary folder could not be removed");
        }
    }
}
