//! Child processes: how they are started, what they are told, how they are asked to end. No other file starts any.
//!
//! All settings and secrets go through the child's standard input, which stays open for as long as this process lives.
//! The other end of the pipe is in the command line (`cli`). What is to outlive this process, and programs of the system
//! that are asked to place some, stand at the end.

use super::strays::{self, end_strays};
use crate::deciders::DeciderNames;
use gristmill_worker::agent::RunnerStarter;
use gristmill_worker::http::Endpoint;
use gristmill_worker::input::FilePath;
use gristmill_worker::settings::WorkerSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::process::{Child, ChildStdin};

/// How long children may take to end by themselves before they are killed.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// What is written to a child before its pipe is closed. A parent that is killed writes nothing.
const FAREWELL: &[u8] = b"end\n";

/// What is written to a worker that is to leave in good order.
pub const LEAVE: &str = "leave";

/// What a child reads from its standard input before anything else: one line of JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildConfig {
    /// For the master of an embedded cluster.
    Master(MasterChild),
    /// For a worker process.
    Worker(WorkerChild),
}

/// What the master of an embedded cluster is told.
#[derive(Serialize, Deserialize)]
pub struct MasterChild {
    /// The cluster's secret, as text.
    pub secret: String,
    /// Who decides; whoever starts the child has looked whether there are such.
    pub deciders: DeciderNames,
    /// The pools that jobs may name, with their weights; empty: any.
    pub pools: BTreeMap<String, f64>,
    /// Workers have slots of their own for maps and for reduces; one that offers others is refused.
    pub divided_slots: bool,
    /// Where it writes its journal; `None`: nowhere.
    pub journal: Option<FilePath>,
    /// Slow tasks get a second attempt.
    pub backups: bool,
    /// Folders that it removes when its parent has died and cannot.
    pub remove_at_end: Vec<PathBuf>,
}

/// What a worker process is told.
#[derive(Serialize, Deserialize)]
pub struct WorkerChild {
    /// The master that it joins.
    pub master: Endpoint,
    /// With what it joins, as text.
    pub token: String,
    /// What its parent's key for telling of its end gives, as text.
    pub ended_proof: String,
    /// What it is made to be.
    pub settings: WorkerSettings,
    /// Its private folders; there is at least one.
    pub folders: Vec<PathBuf>,
    /// Whether it takes the place of one that was killed or broke down after it had worked: its master may be away for as
    /// long as one of a worker that lives on.
    pub replaces: bool,
}

/// What the master says on its standard output once it listens.
#[derive(Serialize, Deserialize)]
pub struct MasterReady {
    /// Where it listens on loopback.
    pub port: u16,
}

/// What a child of this program is, which its command line says. Nobody types that, and the child takes nothing else from
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildRole {
    /// The master of an embedded cluster.
    Master,
    /// A worker process.
    Worker,
    /// A process of a shipped program, which runs attempts for the worker that has started it.
    Runner,
}

impl ChildRole {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Master, Self::Worker, Self::Runner];

    /// What stands behind the program's name.
    #[must_use]
    pub fn words(self) -> [&'static str; 2] {
        match self {
            Self::Master => ["master", "--from-parent"],
            Self::Worker => ["worker", "--from-parent"],
            Self::Runner => ["worker", "--runner"],
        }
    }

    /// The role that these arguments give, the program's name being the first of them.
    #[must_use]
    pub fn of(arguments: &[OsString]) -> Option<Self> {
        Self::ALL.into_iter().find(|role| arguments.get(1..).is_some_and(|words| words == role.words()))
    }
}

/// Starts this executable as a child in this role, killed if this process drops it. It waits for [`configure`].
pub(super) fn start(role: ChildRole, stdout: Stdio) -> io::Result<Child> {
    let mut command = Command::new(own_program());
    command.args(role.words()).stdin(Stdio::piped()).stdout(stdout).kill_on_drop(true);
    // Ctrl-C goes to the whole foreground group; children leave it, so that this process ends them in order.
    command.process_group(0);
    strays::adopt();
    command.spawn()
}

/// This executable: by its file, so that it is seen under its name; through the kernel's link if that file has been
/// replaced.
fn own_program() -> PathBuf {
    let file = std::env::current_exe().ok().filter(|file| file.exists());
    file.unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Starts processes of shipped programs for a worker, which has verified them.
pub struct ShippedPrograms;

impl RunnerStarter for ShippedPrograms {
    fn start(&self, program: &Path, folder: &Path, socket: OwnedFd) -> io::Result<std::process::Child> {
        let mut environment = inherited(&RUNNERS_INHERIT);
        environment.extend([("TMPDIR".into(), folder.into()), ("PWD".into(), folder.into())]);
        let mut command = std::process::Command::new(program);
        // What user code writes goes where that of this worker goes: into the file that catches it.
        command.args(ChildRole::Runner.words()).stdin(socket);
        // It ends when its socket closes, and outlives the thread of the slot that has started it.
        start_user_code(&mut command, (folder, &environment), false)
    }

    fn ended(&self, folder: &Path) {
        end_strays(folder);
    }
}

/// Variables of the worker's own that user code gets; a name with `*` stands for all that begin so. Others may be secrets.
const INHERITED: [&str; 15] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "JAVA_HOME",
    "VIRTUAL_ENV",
    "LC_*",
    "HADOOP_*",
    "GRISTMILL_HDFS*",
];

/// Further ones that shipped programs get: their processes read the inputs of their jobs themselves, so they need the way
/// to stores and the credentials for them.
const RUNNERS_INHERIT: [&str; 10] = [
    "AWS_*",
    "AZURE_*",
    "GOOGLE_*",
    "SSL_CERT_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "GRISTMILL_FAULT*",
    "GRISTMILL_LOG*",
    "RUST_BACKTRACE",
];

/// The variables of this process that user code gets, with those that `more` names.
#[must_use]
pub fn inherited(more: &[&str]) -> BTreeMap<OsString, OsString> {
    let is_named = |name: &str, listed: &str| match listed.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == listed,
    };
    let is_kept = |name: &str| INHERITED.iter().chain(more).any(|listed| is_named(name, listed));
    std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept)).collect()
}

/// A command of user code: what it is, and all that it gets.
#[derive(Clone, Copy, Debug)]
pub struct CommandStart<'a> {
    /// Its file.
    pub program: &'a Path,
    /// What stands behind its name.
    pub arguments: &'a [String],
    /// Where it works.
    pub directory: &'a Path,
    /// Its variables; it gets no others.
    pub environment: &'a BTreeMap<OsString, OsString>,
}

/// Starts a command with pipes for all that it reads and writes, without any shell. It is killed when the thread that starts
/// it ends. What it leaves behind [`end_strays`] ends.
///
/// # Errors
/// A program that cannot be executed.
pub fn start_command(start: &CommandStart<'_>) -> io::Result<std::process::Child> {
    let mut command = std::process::Command::new(start.program);
    command.args(start.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    start_user_code(&mut command, (start.directory, start.environment), true)
}

/// Starts a process of user code: in this directory, with these variables and no descriptors but its standard ones, in a
/// session of its own. It gains no rights by what it executes. All user code is started here.
fn start_user_code(
    command: &mut std::process::Command,
    (directory, environment): (&Path, &BTreeMap<OsString, OsString>),
    ends_with_thread: bool,
) -> io::Result<std::process::Child> {
    command.current_dir(directory).env_clear().envs(environment);
    let parent = rustix::process::getpid();
    let confine = move || {
        rustix::process::setsid()?;
        rustix::thread::set_no_new_privs(true)?;
        close_at_exec();
        if ends_with_thread {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            // It may have died before the kernel was told to watch it.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        Ok(())
    };
    // Invariant: what runs between fork and exec makes system calls alone; it allocates nothing and takes no lock.
    #[allow(unsafe_code, reason = "the compiler does not know what may run between fork and exec")]
    unsafe {
        command.pre_exec(confine);
    }
    strays::start(|| command.spawn())
}

/// Has all descriptors but the standard ones closed when another program is executed. Makes system calls alone.
fn close_at_exec() {
    /// Descriptors that are closed one by one where the kernel cannot close a range (before Linux 5.11).
    const DESCRIPTORS_MAX: i32 = 1 << 16;
    #[allow(unsafe_code, reason = "these calls take numbers alone, and mark descriptors without closing any")]
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) != 0 {
            for descriptor in 3..DESCRIPTORS_MAX {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

/// Tells a child what it needs. The pipe is to be kept: its end is the child's end.
pub(super) async fn configure(child: &mut Child, config: &ChildConfig) -> io::Result<ChildStdin> {
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = serde_json::to_vec(config)?;
    line.push(b'\n');
    stdin.write_all(&line).await?;
    stdin.flush().await?;
    Ok(stdin)
}

/// The first line of a child's standard output; `None` if it has closed it without one.
pub(super) async fn first_line(child: &mut Child) -> io::Result<Option<String>> {
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    Ok(if line.is_empty() { None } else { Some(line) })
}

/// Asks a worker to leave in good order. One that has ended needs no word.
pub(super) async fn ask_to_leave(stdin: &mut ChildStdin) {
    let _ = stdin.write_all(format!("{LEAVE}\n").as_bytes()).await;
    let _ = stdin.flush().await;
}

/// Lets a child end by itself, then makes it.
pub(super) async fn end(child: &mut Child, stdin: Option<ChildStdin>) {
    if let Some(mut stdin) = stdin {
        // So that it does not take this process for dead. A child that has ended needs no word.
        let _ = stdin.write_all(FAREWELL).await;
        let _ = stdin.flush().await;
    }
    if tokio::time::timeout(END_PATIENCE, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// Starts this executable so that it outlives this process and its terminal: in a session of its own, with a pipe for what
/// it reads; all that it says goes to the file.
///
/// # Errors
/// What the system says.
pub fn start_detached(words: &[String], log: File) -> io::Result<std::process::Child> {
    let mut command = std::process::Command::new(own_program());
    command.args(words).stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
    let leave_session = || {
        rustix::process::setsid()?;
        Ok(())
    };
    // Invariant: what runs between fork and exec makes system calls alone; it allocates nothing and takes no lock.
    #[allow(unsafe_code, reason = "the compiler does not know what may run between fork and exec")]
    unsafe {
        command.pre_exec(leave_session);
    }
    command.spawn()
}

/// Has the program of the system that opens files open one, and does not wait for it.
///
/// # Errors
/// What the system says.
pub fn start_opener(program: &str, file: &Path) -> io::Result<()> {
    let mut command = std::process::Command::new(program);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}

/// Starts a program of the system with these words, killed if this process drops it.
pub(super) fn start_tool(program: &OsStr, words: &[String], stdin: Stdio) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(words).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_is_known_by_its_words_and_nothing_beside_them() {
        let role = |words: &[&str]| ChildRole::of(&words.iter().map(OsString::from).collect::<Vec<_>>());
        for child in ChildRole::ALL {
            let [command, flag] = child.words();
            assert_eq!(role(&["/opt/h/bin/hadoop", command, flag]), Some(child));
            assert_eq!(role(&["gristmill", command, flag, "--slots"]), None);
            assert_eq!(role(&["gristmill", command]), None);
            assert_eq!(role(&[command, flag]), None);
        }
        assert_eq!(role(&["gristmill", "master", "--runner"]), None);
        assert_eq!(role(&[]), None);
    }
}
