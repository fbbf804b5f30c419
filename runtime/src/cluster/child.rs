//! Child processes: their start, configuration and end. No other file starts processes.
//!
//! All settings and secrets are sent through the child's standard input, which stays open while this process lives. The
//! other end of the pipe is in the command line (`cli`). Functions for processes that outlive this one, and for
//! programs of the system that place processes, are at the end.

use super::strays;
use crate::deciders::DeciderNames;
use gristmill_worker::http::Endpoint;
use gristmill_worker::input::FilePath;
use gristmill_worker::settings::WorkerSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::process::{Child, ChildStdin};

/// Time for children to end by themselves before they are killed.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Written to a child before its pipe is closed. A killed parent writes nothing.
const FAREWELL: &[u8] = b"end\n";

/// Written to a worker that is to be drained.
pub const LEAVE: &str = "leave";

/// Configuration that a child reads from its standard input before anything else: one line of JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildConfig {
    /// For the master of an embedded cluster.
    Master(MasterChild),
    /// For a worker process.
    Worker(WorkerChild),
}

/// Configuration of the master of an embedded cluster.
#[derive(Serialize, Deserialize)]
pub struct MasterChild {
    /// The cluster's secret, as text.
    pub secret: String,
    /// Names of the deciders; the parent has checked that they exist.
    pub deciders: DeciderNames,
    /// The pools that jobs may name, with their weights; if empty, any name is a pool.
    pub pools: BTreeMap<String, f64>,
    /// True if workers have separate slots for maps and reduces. A worker that offers shared slots is then refused.
    pub divided_slots: bool,
    /// File of its journal; `None` if it keeps none.
    pub journal: Option<FilePath>,
    /// True to enable speculative attempts.
    pub backups: bool,
    /// True to divide running maps for idle slots.
    pub divides: bool,
    /// Directories that it removes if its parent has died and cannot do so.
    pub remove_at_end: Vec<PathBuf>,
}

/// Configuration of a worker process.
#[derive(Serialize, Deserialize)]
pub struct WorkerChild {
    /// The master that it joins.
    pub master: Endpoint,
    /// Its token, as text.
    pub token: String,
    /// Proof derived from the key with which its parent reports its end, as text.
    pub ended_proof: String,
    /// Its settings.
    pub settings: WorkerSettings,
    /// Its private directories; at least one.
    pub directories: Vec<PathBuf>,
    /// True if it replaces a process that was killed or crashed after it had worked. It then waits for its master as
    /// long as a running worker does.
    pub replaces: bool,
}

/// Line that the master writes to its standard output once it listens.
#[derive(Serialize, Deserialize)]
pub struct MasterReady {
    /// Its port on loopback.
    pub port: u16,
}

/// Role of a child of this program, given by its command line. Users do not type it, and the child reads nothing else
/// from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildRole {
    /// The master of an embedded cluster.
    Master,
    /// A worker process.
    Worker,
}

impl ChildRole {
    /// All roles.
    pub const ALL: [Self; 2] = [Self::Master, Self::Worker];

    /// Arguments behind the program's name.
    #[must_use]
    pub fn words(self) -> [&'static str; 2] {
        match self {
            Self::Master => ["master", "--from-parent"],
            Self::Worker => ["worker", "--from-parent"],
        }
    }

    /// Role given by these arguments, the first of which is the program's name.
    #[must_use]
    pub fn from_arguments(arguments: &[OsString]) -> Option<Self> {
        Self::ALL.into_iter().find(|role| arguments.get(1..).is_some_and(|words| words == role.words()))
    }
}

/// Starts this executable as a child in this role, killed if this process drops it. It waits for [`configure`].
pub(super) fn start(role: ChildRole, stdout: Stdio) -> io::Result<Child> {
    let mut command = Command::new(own_program());
    command.args(role.words()).stdin(Stdio::piped()).stdout(stdout).kill_on_drop(true);
    // Ctrl-C is sent to the whole foreground process group. Children leave it, so that this process ends them in order.
    command.process_group(0);
    strays::adopt();
    command.spawn()
}

/// Path of this executable: its file, so that processes are listed under its name, or the kernel's link if that file
/// has been replaced.
fn own_program() -> PathBuf {
    let file = std::env::current_exe().ok().filter(|file| file.exists());
    file.unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Variables of the worker that user code receives; a name with `*` stands for all with that prefix. Others may be
/// secrets.
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

/// Variables of this process that user code receives.
#[must_use]
pub fn inherited() -> BTreeMap<OsString, OsString> {
    let is_named = |name: &str, listed: &str| match listed.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == listed,
    };
    let is_kept = |name: &str| INHERITED.iter().any(|listed| is_named(name, listed));
    std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept)).collect()
}

/// Start parameters of a command of user code.
#[derive(Clone, Copy, Debug)]
pub struct CommandStart<'a> {
    /// Its file.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Its working directory.
    pub directory: &'a Path,
    /// Its environment; it receives no other variables.
    pub environment: &'a BTreeMap<OsString, OsString>,
}

/// Starts a command with pipes for its input and output, without a shell. It has a session of its own and no
/// descriptors except the standard ones, cannot gain privileges by executing a program, and is killed when the thread
/// that started it ends. [`end_strays`](super::end_strays) ends the processes it leaves behind. All user code outside
/// of workers is started here.
///
/// # Errors
/// A program that cannot be executed.
pub fn start_command(start: &CommandStart<'_>) -> io::Result<std::process::Child> {
    let mut command = std::process::Command::new(start.program);
    command.args(start.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.current_dir(start.directory).env_clear().envs(start.environment);
    let parent = rustix::process::getpid();
    let confine = move || {
        rustix::process::setsid()?;
        rustix::thread::set_no_new_privs(true)?;
        close_at_exec();
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The parent may have died before the kernel was asked to watch it.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(())
    };
    // Invariant: code between fork and exec only makes system calls; it allocates nothing and takes no lock.
    #[allow(unsafe_code, reason = "the compiler does not know what may run between fork and exec")]
    unsafe {
        command.pre_exec(confine);
    }
    strays::start(|| command.spawn())
}

/// Marks all descriptors except the standard ones to be closed when another program is executed. Only makes system
/// calls.
fn close_at_exec() {
    /// Number of descriptors closed one by one if the kernel cannot close a range (before Linux 5.11).
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

/// Sends a child its configuration. The pipe must be kept: the child ends when it closes.
pub(super) async fn configure(child: &mut Child, config: &ChildConfig) -> io::Result<ChildStdin> {
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = serde_json::to_vec(config)?;
    line.push(b'\n');
    stdin.write_all(&line).await?;
    stdin.flush().await?;
    Ok(stdin)
}

/// The first line of a child's standard output; `None` if it was closed without one.
pub(super) async fn first_line(child: &mut Child) -> io::Result<Option<String>> {
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    Ok(if line.is_empty() { None } else { Some(line) })
}

/// Asks a worker to drain. Errors are ignored, because the worker may have ended.
pub(super) async fn ask_to_leave(stdin: &mut ChildStdin) {
    let _ = stdin.write_all(format!("{LEAVE}\n").as_bytes()).await;
    let _ = stdin.flush().await;
}

/// Lets a child end by itself, and kills it after a timeout.
pub(super) async fn end(child: &mut Child, stdin: Option<ChildStdin>) {
    if let Some(mut stdin) = stdin {
        // Otherwise it would consider this process dead. Errors are ignored, because the child may have ended.
        let _ = stdin.write_all(FAREWELL).await;
        let _ = stdin.flush().await;
    }
    if tokio::time::timeout(END_TIMEOUT, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// Starts this executable so that it outlives this process and its terminal: in a session of its own, with a pipe as
/// its input. All its output goes to the file.
///
/// # Errors
/// Errors of the operating system.
pub fn start_detached(words: &[String], log: File) -> io::Result<std::process::Child> {
    let mut command = std::process::Command::new(own_program());
    command.args(words).stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
    let leave_session = || {
        rustix::process::setsid()?;
        Ok(())
    };
    // Invariant: code between fork and exec only makes system calls; it allocates nothing and takes no lock.
    #[allow(unsafe_code, reason = "the compiler does not know what may run between fork and exec")]
    unsafe {
        command.pre_exec(leave_session);
    }
    command.spawn()
}

/// Starts a program of the system with these arguments, killed if this process drops it.
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
        let role =
            |words: &[&str]| ChildRole::from_arguments(&words.iter().map(OsString::from).collect::<Vec<_>>());
        for child in ChildRole::ALL {
            let [command, flag] = child.words();
            assert_eq!(role(&["/opt/h/bin/hadoop", command, flag]), Some(child));
            assert_eq!(role(&["gristmill", command, flag, "--slots"]), None);
            assert_eq!(role(&["gristmill", command]), None);
            assert_eq!(role(&[command, flag]), None);
        }
        assert_eq!(role(&[]), None);
    }
}
