//! The place of one worker, whose process may change. A process that dies is reported to the master and replaced.

use super::child::{self, ChildConfig, ChildRole, WorkerChild};
use super::directories::remove_directories;
use super::error::ClusterError;
use super::strays::end_strays;
use crate::api::{ROOT, WorkerEnded};
use crate::out_of_memory::MemoryKills;
use crate::scratch;
use gristmill_worker::agent::{EndRequests, LEAVE_MAX, capture, crash, started};
use gristmill_worker::exit;
use gristmill_worker::http::{JoinLine, Pool, Secret, full};
use gristmill_worker::protocol::ended_proof;
use gristmill_worker::settings::WorkerSettings;
use hyper::Method;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::process::{Child, ChildStdin};

/// Number of consecutive processes in one place that lived less than [`HASTY`], or could not be started, after which
/// the program or the machine itself must be faulty. With the pauses between them that takes over an hour.
const HASTY_MAX: u32 = 1000;

/// Lifetime below which a worker counts as failed. After two of these in a row there is a pause before the next.
const HASTY: Duration = Duration::from_secs(2);

/// First such pause; doubles each time.
const PAUSE: Duration = Duration::from_millis(50);

/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A draining process ends by itself after [`LEAVE_MAX`]. After this much more time it is ordered to end at once.
const LEAVE_SLACK: Duration = Duration::from_secs(3);

const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();

/// Bytes of the last output of user code sent to the master.
const LAST_WORDS_BYTES_MAX: u64 = 2048;

/// The place of one worker, and the data that a process in it needs.
pub(super) struct WorkerSlot {
    pub(super) number: u32,
    pub(super) settings: WorkerSettings,
    pub(super) join: JoinLine,
    /// Directories in which each process gets its own.
    pub(super) directories: Vec<PathBuf>,
    pub(super) pool: Pool,
    pub(super) memory_kills: MemoryKills,
    pub(super) requests: EndRequests,
    /// Locks of directories that had been removed by others and were created again.
    pub(super) made_again: Vec<scratch::DirectoryLock>,
}

/// The process in a place.
pub(super) struct RunningWorker {
    child: Child,
    /// Held open: the worker ends when it closes.
    stdin: Option<ChildStdin>,
    directories: Vec<PathBuf>,
    /// Key that authenticates the report of this process's end.
    ended_key: Secret,
}

impl WorkerSlot {
    /// Starts a process that waits for its settings; it is killed if it never receives them.
    pub(super) fn launch() -> Result<Child, ClusterError> {
        child::start(ChildRole::Worker, Stdio::null())
            .map_err(|source| ClusterError::Start { role: "worker", source })
    }

    /// Sends the first process its settings.
    pub(super) async fn start(&mut self, launched: Child) -> Result<RunningWorker, ClusterError> {
        self.send_settings(launched, false).await
    }

    /// Starts a process, which may replace one that had worked.
    async fn start_another(&mut self, replaces: bool) -> Result<RunningWorker, ClusterError> {
        self.send_settings(Self::launch()?, replaces).await
    }

    async fn send_settings(
        &mut self,
        mut child: Child,
        replaces: bool,
    ) -> Result<RunningWorker, ClusterError> {
        let ended_key = Secret::generate().map_err(|source| ClusterError::Secret { source })?;
        let directories = self.make_directories(child.id().unwrap_or(0))?;
        let config = ChildConfig::Worker(WorkerChild {
            master: self.join.endpoint.clone(),
            token: self.join.token.to_text().to_string(),
            ended_proof: ended_proof(&ended_key).to_text().to_string(),
            settings: self.settings.clone(),
            directories: directories.clone(),
            replaces,
        });
        // A process that has died already takes no settings; its supervisor notices that and starts another.
        let stdin = child::configure(&mut child, &config).await.ok();
        Ok(RunningWorker { child, stdin, directories, ended_key })
    }

    /// Creates the private directories of the process of this id.
    fn make_directories(&mut self, pid: u32) -> Result<Vec<PathBuf>, ClusterError> {
        let mut made = Vec::with_capacity(self.directories.len());
        for directory in &self.directories {
            // Systems clear their directories for temporary files now and then.
            if let Some(hold) = (!directory.exists()).then(|| scratch::make(directory).ok()).flatten() {
                self.made_again.push(hold);
            }
            let path = directory.join(format!("worker-{}-{pid}", self.number));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => made.push(path),
                Err(source) => return Err(ClusterError::Directory { path, source }),
            }
        }
        Ok(made)
    }

    /// Waits for the process to end and replaces it, until it is to leave or its exit code shows that another process
    /// would fail too. Returns that code.
    pub(super) async fn supervise(mut self, mut process: RunningWorker) -> Option<u8> {
        let (mut hasty, mut worked) = (0, false);
        while hasty < HASTY_MAX {
            let born = Instant::now();
            let pid = process.child.id().unwrap_or(0);
            let status = tokio::select! {
                status = process.child.wait() => status,
                () = self.requests.to_go() => {
                    self.let_go(process).await;
                    return None;
                }
            };
            if self.requests.is_to_go() {
                clear(&process.directories);
                return None;
            }
            let quick = born.elapsed() < HASTY;
            worked |= !quick;
            hasty = if quick { hasty + 1 } else { 0 };
            // A process that gives up its master has waited for it already.
            let gave_up = status.as_ref().is_ok_and(|status| status.code() == Some(exit::worker::RENEW));
            let replaces = worked && !gave_up;
            if let Some(code) =
                self.ended((pid, &process.ended_key), status, &process.directories, worked).await
            {
                return Some(code);
            }
            process = loop {
                if 1 < hasty {
                    let pause = (PAUSE * (1 << (hasty - 2).min(10))).min(PAUSE_MAX);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.requests.to_go() => return None,
                    }
                }
                match self.start_another(replaces).await {
                    Ok(next) => break next,
                    Err(error) if hasty < HASTY_MAX => {
                        hasty += 1;
                        let error = gristmill_worker::error_text::chain(&error);
                        tracing::warn!(error, "a worker could not be replaced; it is tried again");
                    }
                    Err(error) => {
                        tracing::error!(
                            error = gristmill_worker::error_text::chain(&error),
                            "a worker could not be replaced"
                        );
                        return Some(exit::ENVIRONMENT);
                    }
                }
            };
        }
        tracing::error!(replaced = HASTY_MAX, "workers die again and again; no more are started");
        end(process).await;
        Some(exit::FAILED)
    }

    /// Drains the process, unless there is no time for that.
    async fn let_go(&mut self, mut process: RunningWorker) {
        if let Some(stdin) = &mut process.stdin
            && !*self.requests.end.borrow()
        {
            child::ask_to_leave(stdin).await;
            tokio::select! {
                _ = process.child.wait() => {}
                () = tokio::time::sleep(LEAVE_MAX + LEAVE_SLACK) => {}
                () = self.requests.to_end() => {}
            }
        }
        end(process).await;
    }

    /// Cleans up after a process that has ended, and reports its end to the master. Returns the exit code of the
    /// program if another process would fail too.
    async fn ended(
        &self,
        (pid, key): (u32, &Secret),
        status: io::Result<ExitStatus>,
        directories: &[PathBuf],
        worked: bool,
    ) -> Option<u8> {
        let last_words = directories.first().map(|dir| last_words(dir)).unwrap_or_default();
        let begun = directories.first().map(|dir| started::read(dir)).unwrap_or_default();
        let culprit = directories.first().and_then(|dir| crash::read(dir));
        clear(directories);
        let status = status.ok()?;
        // User code may exit with a code that has a meaning here, but leaves a note of its attempt.
        let own_code = status.code().filter(|_| culprit.is_none());
        let final_code = own_code.and_then(|code| final_code(code, worked));
        if final_code.is_none() {
            let (signal, code) = (status.signal(), status.code());
            let host = gristmill_worker::host_name();
            let out_of_memory = signal == Some(SIGKILL) && self.memory_kills.take_one()
                || own_code == Some(exit::worker::OVER_MEMORY);
            let key = key.to_text().to_string();
            let end = WorkerEnded { pid, host, key, signal, out_of_memory, code, last_words, begun, culprit };
            self.report(&end).await;
        }
        final_code
    }

    async fn report(&self, end: &WorkerEnded) {
        let path = format!("{ROOT}/workers/ended");
        let Ok(body) = serde_json::to_vec(end) else { return };
        let (master, token) = (&self.join.endpoint, &self.join.token);
        // The master notices the loss anyway; only its cause would be missing.
        if let Err(error) = self.pool.request(master, Some(token), Method::POST, &path, full(body)).await {
            tracing::debug!(%error, "the end of a worker could not be reported");
        }
    }
}

/// Lets a worker end by itself, and kills it after a timeout.
async fn end(mut process: RunningWorker) {
    child::end(&mut process.child, process.stdin.take()).await;
    clear(&process.directories);
}

/// Kills the processes that user code of an ended process has left behind, and removes its directories.
fn clear(directories: &[PathBuf]) {
    directories.iter().for_each(|directory| end_strays(directory));
    remove_directories(directories);
}

/// Exit code of a program whose worker process ended with this code, if another process would fail too. `worked` is
/// true if a process has run for a while in this place.
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

/// The end of user code's output, read from the file because the process cannot send it any more.
fn last_words(directory: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let file = fs::File::open(directory.join(capture::FILE_NAME))?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(LAST_WORDS_BYTES_MAX);
        let mut bytes = vec![0; (length - from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
