//! One worker's place: its process may change. A process that dies is reported to the master and replaced.

use super::ClusterError;
use super::child::{self, ChildConfig, ChildRole, WorkerChild};
use super::folders::remove_folders;
use super::strays::end_strays;
use crate::api::{ROOT, WorkerEnded};
use crate::exit;
use crate::out_of_memory::MemoryKills;
use crate::scratch;
use gristmill_worker::agent::{EndRequests, LEAVE_MAX, begun, capture, crash};
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

/// Processes in one place that lived less than [`HASTY`], or could not be started, one after the other; more means that
/// something is wrong with the program or the machine itself. With the pauses between them that takes over an hour.
const HASTY_MAX: u32 = 1000;

/// A worker that lived less than this gained nothing; after the second such one in a row the next waits.
const HASTY: Duration = Duration::from_secs(2);

/// First such pause; doubles each time.
const PAUSE: Duration = Duration::from_millis(50);

/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A process that was asked to leave ends by itself after [`LEAVE_MAX`]; after this much more it is told to end at once.
const LEAVE_SLACK: Duration = Duration::from_secs(3);

const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();

/// Last words of user code that are sent to the master, bytes.
const LAST_WORDS_BYTES_MAX: u64 = 2048;

/// One worker's place and all that a process in it needs.
pub(super) struct WorkerSlot {
    pub(super) number: u32,
    pub(super) settings: WorkerSettings,
    pub(super) join: JoinLine,
    /// In which each process gets a folder of its own.
    pub(super) folders: Vec<PathBuf>,
    pub(super) pool: Pool,
    pub(super) memory_kills: MemoryKills,
    pub(super) requests: EndRequests,
    /// Of folders that somebody had removed.
    pub(super) made_again: Vec<scratch::FolderLock>,
}

/// The process in a slot.
pub(super) struct RunningWorker {
    child: Child,
    /// Held open: its end is the worker's end.
    stdin: Option<ChildStdin>,
    folders: Vec<PathBuf>,
    /// By which the master believes that this process has ended.
    ended_key: Secret,
}

impl WorkerSlot {
    /// Starts a process that waits to be told what it is; it is killed if it never is.
    pub(super) fn launch() -> Result<Child, ClusterError> {
        child::start(ChildRole::Worker, Stdio::null())
            .map_err(|source| ClusterError::Start { role: "worker", source })
    }

    /// Tells the first process what it is.
    pub(super) async fn start(&mut self, launched: Child) -> Result<RunningWorker, ClusterError> {
        self.tell(launched, false).await
    }

    /// Starts a process, which may replace one that had worked.
    async fn start_another(&mut self, replaces: bool) -> Result<RunningWorker, ClusterError> {
        self.tell(Self::launch()?, replaces).await
    }

    async fn tell(&mut self, mut child: Child, replaces: bool) -> Result<RunningWorker, ClusterError> {
        let ended_key = Secret::generate().map_err(|source| ClusterError::Secret { source })?;
        let folders = self.make_folders(child.id().unwrap_or(0))?;
        let config = ChildConfig::Worker(WorkerChild {
            master: self.join.endpoint.clone(),
            token: self.join.token.to_text().to_string(),
            ended_proof: ended_proof(&ended_key).to_text().to_string(),
            settings: self.settings.clone(),
            folders: folders.clone(),
            replaces,
        });
        // A process that has died already takes no settings; its supervisor sees that and starts another.
        let stdin = child::configure(&mut child, &config).await.ok();
        Ok(RunningWorker { child, stdin, folders, ended_key })
    }

    /// Private folders of the process of this id.
    fn make_folders(&mut self, pid: u32) -> Result<Vec<PathBuf>, ClusterError> {
        let mut made = Vec::with_capacity(self.folders.len());
        for folder in &self.folders {
            // Systems clear their folders for temporary files now and then.
            if let Some(hold) = (!folder.exists()).then(|| scratch::make(folder).ok()).flatten() {
                self.made_again.push(hold);
            }
            let path = folder.join(format!("worker-{}-{pid}", self.number));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => made.push(path),
                Err(source) => return Err(ClusterError::Folder { path, source }),
            }
        }
        Ok(made)
    }

    /// Waits for the process to end, again and again, until it is to go or the process says by its exit code
    /// that there is no point in another: that code is the answer.
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
                clear(&process.folders);
                return None;
            }
            let quick = born.elapsed() < HASTY;
            worked |= !quick;
            hasty = if quick { hasty + 1 } else { 0 };
            // One that gives up its master has waited for it already.
            let gave_up = status.as_ref().is_ok_and(|status| status.code() == Some(exit::worker::RENEW));
            let replaces = worked && !gave_up;
            if let Some(code) = self.ended((pid, &process.ended_key), status, &process.folders, worked).await
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
        end(process).await;
        Some(exit::FAILED)
    }

    /// Lets the process leave in good order, unless there is no time for that.
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

    /// Clears up after a process that has ended, and tells the master how it did. Answers the exit code of the program if
    /// there is no point in another one.
    async fn ended(
        &self,
        (pid, key): (u32, &Secret),
        status: io::Result<ExitStatus>,
        folders: &[PathBuf],
        worked: bool,
    ) -> Option<u8> {
        let last_words = folders.first().map(|dir| last_words(dir)).unwrap_or_default();
        let begun = folders.first().map(|dir| begun::read(dir)).unwrap_or_default();
        let culprit = folders.first().and_then(|dir| crash::read(dir));
        clear(folders);
        let status = status.ok()?;
        // User code may exit with a code that is ours, and leaves word of its attempt.
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
        let mut request = hyper::Request::new(full(body));
        *request.method_mut() = Method::POST;
        let json = hyper::header::HeaderValue::from_static("application/json");
        request.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
        if let Ok(uri) = path.parse() {
            *request.uri_mut() = uri;
        }
        // The master learns of the loss anyway; only its cause would be missing.
        if let Err(error) = self.pool.send(&self.join.endpoint, Some(&self.join.token), request).await {
            tracing::debug!(%error, "the end of a worker could not be reported");
        }
    }
}

/// Lets a worker end by itself, then makes it.
async fn end(mut process: RunningWorker) {
    child::end(&mut process.child, process.stdin.take()).await;
    clear(&process.folders);
}

/// Ends what user code of a process that has ended has left behind, and removes its folders.
fn clear(folders: &[PathBuf]) {
    folders.iter().for_each(|folder| end_strays(folder));
    remove_folders(folders);
}

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

/// The end of what user code wrote, read from the file because the process cannot send it any more.
fn last_words(folder: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let file = fs::File::open(folder.join(capture::FILE_NAME))?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(LAST_WORDS_BYTES_MAX);
        let mut bytes = vec![0; (length - from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
