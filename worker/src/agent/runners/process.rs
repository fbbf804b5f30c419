//! Process of one runner: start, greeting, end, and private directories.

use super::link::{Heard, RunnerLink};
use super::message::{RUNNER_PROTOCOL, RunnerOrder, RunnerTerms, RunnerWord};
use super::{LISTEN_TIME, Runners, failed};
use crate::agent::config::RunnerStarter;
use crate::agent::failed::Failed;
use crate::folder::Folder;
use crate::input::FilePath;
use crate::protocol::{FailureClass, ProgramSum};
use crate::segment::ensure;
use gristmill_scheduler::ids::JobId;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Timeout for the first message of a runner.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of attempts, and pause between them, to run a program that was just written. It cannot
/// be run while a process that another thread is starting still holds its file.
const BUSY_TRIES_MAX: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Starts a program. Another thread may be starting a process at this moment, which holds copies of all
/// open files until it executes another program.
pub(super) fn run_when_free(
    starter: &dyn RunnerStarter,
    (program, folder): (&Path, &Path),
    socket: UnixStream,
) -> io::Result<Child> {
    let socket = OwnedFd::from(socket);
    let mut tries = 0;
    loop {
        match starter.start(program, folder, socket.try_clone()?) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES_MAX => {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            started => return started,
        }
    }
}

/// Attributes the failure to run a program.
pub(super) fn not_started(sum: ProgramSum, error: &io::Error) -> Failed {
    // The kernel's error for a file that is not a program for this kind of machine.
    if error.raw_os_error() == Some(libc::ENOEXEC) {
        let words = format!("program {sum} is none for this machine ({}): {error}", std::env::consts::ARCH);
        return failed(FailureClass::Config, &words);
    }
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "; is the folder for spills mounted so that nothing in it is run?",
        _ => "",
    };
    failed(FailureClass::Worker, &format!("program {sum} could not be started: {error}{hint}"))
}

/// Ends a process and returns its exit status.
pub(super) fn end(child: &Mutex<Child>) -> io::Result<ExitStatus> {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // Has no effect if it has ended.
    let _ = child.kill();
    child.wait()
}

/// Directories of one runner.
pub(super) struct RunnerFolders {
    pub(super) name: String,
    /// Parent directories, with the runner's directory in each.
    pub(super) pairs: Vec<(Folder, Folder)>,
}

impl RunnerFolders {
    pub(super) fn make(spill: &[PathBuf], number: u64) -> io::Result<Self> {
        let mut folders = Self { name: format!("runner-{number}"), pairs: Vec::new() };
        for path in spill {
            ensure(path)?;
            let outer = Folder::open(path)?;
            let inner = outer.make_folder(&folders.name)?;
            folders.pairs.push((outer, inner));
        }
        Ok(folders)
    }

    /// Returns the directory in which the runner works.
    pub(super) fn first(&self) -> Option<PathBuf> {
        self.pairs.first().map(|(outer, _)| outer.path(&self.name))
    }
}

impl Drop for RunnerFolders {
    fn drop(&mut self) {
        for (outer, _) in &self.pairs {
            // On failure they are removed with the parent directory.
            let _ = outer.remove_tree(&self.name);
        }
    }
}

/// One runner. Its process and its directories are removed on drop.
pub(super) struct Runner {
    pub(super) sum: ProgramSum,
    /// Job that it was last informed of.
    pub(super) job: Option<JobId>,
    pub(super) link: RunnerLink,
    pub(super) child: Arc<Mutex<Child>>,
    pub(super) folders: RunnerFolders,
    pub(super) number: u64,
    pub(super) of: Runners,
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = end(&self.child);
        if let (Some(starter), Some(folder)) = (&self.of.0.starter, self.folders.first()) {
            starter.ended(&folder);
        }
        self.of.pool().alive.remove(&self.number);
    }
}

impl Runner {
    pub(super) fn is_alive(&self) -> bool {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(child.try_wait(), Ok(None))
    }

    /// Waits until it is ready, and sends its settings.
    pub(super) fn begin(&mut self, runners: &Runners) -> Result<(), Failed> {
        let sum = self.sum;
        let started = Instant::now();
        let protocol = loop {
            match self.link.hear::<RunnerWord>(LISTEN_TIME) {
                Ok(Heard::Frame(RunnerWord::Ready { protocol })) => break protocol,
                Ok(Heard::Nothing) if started.elapsed() < READY_TIMEOUT => {}
                _ => return Err(self.no_job_program()),
            }
        };
        if protocol != RUNNER_PROTOCOL {
            let words = format!(
                "program {sum} was built with another version of gristmill (it speaks {protocol}, the cluster \
                 {RUNNER_PROTOCOL}): build it with the cluster's"
            );
            return Err(failed(FailureClass::Config, &words));
        }
        let inner = self.folders.pairs.iter().map(|(_, inner)| FilePath::from(inner.path("").as_path()));
        let terms = RunnerTerms {
            worker: runners.0.worker,
            settings: runners.0.settings.clone(),
            folders: inner.collect(),
            slot_bytes: runners.0.slot_bytes as u64,
        };
        let said = self.link.say(&RunnerOrder::Begin(Box::new(terms)));
        said.map_err(|error| failed(FailureClass::Worker, &format!("program {sum} takes no orders: {error}")))
    }

    fn no_job_program(&self) -> Failed {
        let ended = end(&self.child).map_or_else(|error| error.to_string(), |status| status.to_string());
        let words = format!(
            "program {} did not answer as a program of jobs does ({ended}): is its `main` that of gristmill, of the \
             cluster's version?",
            self.sum
        );
        failed(FailureClass::Config, &words)
    }
}
