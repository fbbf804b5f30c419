//! A sandbox: a directory of one test, in which it runs the program and checks that nothing is left.
//!
//! Every process started in it has a mark in its environment, which its children inherit. All of them can
//! thus be found even if their parents have ended. At the end of a sandbox no marked process may run (so no
//! port is open) and its `TMPDIR` must be empty.

use super::process::{self, Process};
use super::{TIMEOUT, until};
use rustix::process::Signal;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time that processes may take to notice that their parent was killed, and to clean up.
pub const ORPHAN_TIMEOUT: Duration = Duration::from_secs(10);

/// Name of the variable that marks processes. User code inherits variables with this prefix.
const MARK: &str = "LC_TEST_MARK";

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_gristmill");

/// A directory and the processes that were started in it.
pub struct Sandbox {
    directory: tempfile::TempDir,
    mark: String,
    started: AtomicU32,
}

impl Sandbox {
    /// A new one with directories for temporary files, state and faults. Its settings disable speculative
    /// execution, so that tests can stop a task, observe the effects, and count attempts.
    pub fn new() -> Self {
        let sandbox = Self::with_backups();
        sandbox.write("config/gristmill/gristmill.toml", "no-backup = true\n");
        sandbox
    }

    /// A new one without settings: slow tasks get a second attempt.
    pub fn with_backups() -> Self {
        // A shell makes background processes ignore SIGINT, and a signal ignored at the start stays ignored.
        #[allow(unsafe_code, reason = "it sets the default, and no handler")]
        unsafe {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
        }
        let directory = tempfile::Builder::new().prefix("gristmill-it-").tempdir().unwrap();
        for name in ["tmp", "faults", "log"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        if !rustix::process::geteuid().is_root() {
            // Only root can read the environment, and so the mark, of a process that keeps its memory
            // private.
            fs::write(directory.path().join("faults/dumpable"), "").unwrap();
        }
        let mark = format!("{MARK}={}", directory.path().display());
        Self { directory, mark, started: AtomicU32::new(0) }
    }

    /// Returns a path in the sandbox.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the same path as text, for arguments.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, creates its directories, and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self.text(name)
    }

    /// As [`Sandbox::write`], with no access for other users.
    pub fn write_private(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.write(name, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Makes a copy of the program under test.
    ///
    /// Another process writes it. If this process had the file open for writing, every process that another
    /// test starts meanwhile would inherit it. Until such a process has executed its own program, the copy
    /// could not be executed: "text file busy".
    pub fn copy_of_program(&self, name: &str) -> PathBuf {
        let copy = self.path(name);
        let status = Command::new("cp").arg(PROGRAM).arg(&copy).status().unwrap();
        assert!(status.success(), "cp ended with {status}");
        copy
    }

    /// The program with these arguments.
    pub fn gristmill<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Invocation {
        self.program(Path::new(PROGRAM), arguments)
    }

    /// Any program with these arguments, marked and with the sandbox's directories.
    pub fn program<A: AsRef<OsStr>>(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Invocation {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let (name, value) = self.mark.split_once('=').unwrap();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env(name, value)
            .env("TMPDIR", self.path("tmp"))
            .env("GRISTMILL_STATE", self.path("state"))
            .env("GRISTMILL_FAULTS", self.path("faults"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env_remove("GRISTMILL_LOG")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        Invocation {
            command,
            stdout: self.path(&format!("log/{number}.stdout")),
            stderr: self.path(&format!("log/{number}.stderr")),
            mark: self.mark.clone(),
        }
    }

    /// The program with these arguments after a shell script has run, whose mounts are private.
    pub fn prepared(&self, script: &str, arguments: &[&str]) -> Invocation {
        let script = format!("set -e\n{script}\nexec \"$@\"");
        let shell = ["-m", "sh", "-c", &script, "sh", PROGRAM];
        self.program(Path::new("unshare"), shell.iter().chain(arguments))
    }

    /// Runs the program to its end; nothing may be left at that moment.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Finished {
        let finished = self.gristmill(arguments).finish();
        self.assert_nothing_left();
        finished
    }

    /// As [`Sandbox::run`], and it must succeed.
    pub fn run_well<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Finished {
        self.run(arguments).expect_code(0)
    }

    /// The sandbox's live processes.
    pub fn processes(&self) -> Vec<Process> {
        process::marked(&self.mark)
    }

    /// Process ids of the sandbox's live workers or masters, whether embedded or not.
    pub fn pids_of(&self, role: &str) -> Vec<u32> {
        let role = format!(" {role} ");
        let found = self.processes().into_iter();
        let mut pids: Vec<u32> = found
            .filter(|found| format!("{} ", found.command).contains(&role))
            .map(|found| found.pid)
            .collect();
        pids.sort_unstable();
        pids
    }

    /// Fails if a process runs or a temporary file exists.
    pub fn assert_nothing_left(&self) {
        assert_eq!(self.leftovers(), Vec::<String>::new(), "something is left");
    }

    /// Waits until no process runs and no temporary file exists.
    pub fn await_nothing_left(&self, limit: Duration) {
        let start = Instant::now();
        while !self.leftovers().is_empty() {
            assert!(start.elapsed() < limit, "left after {limit:?}: {:#?}", self.leftovers());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until no process runs, after all of them were killed. Then no process was left to clean up, and
    /// the next start does that.
    pub fn await_nothing_left_but_temporary(&self, limit: Duration) {
        super::until_within("no process runs", limit, || self.processes().is_empty().then_some(()));
    }

    /// Kills running processes and removes temporary files: for a test that has recorded them as a failure.
    pub fn clear(&self) {
        until("the end of all processes", || {
            let running = self.processes();
            running.iter().for_each(|found| process::kill(found.pid));
            running.is_empty().then_some(())
        });
        fs::remove_dir_all(self.path("tmp")).unwrap();
        fs::create_dir(self.path("tmp")).unwrap();
    }

    /// Returns running processes and existing temporary files.
    pub fn leftovers(&self) -> Vec<String> {
        let mut left: Vec<String> = self
            .processes()
            .iter()
            .map(|found| format!("process {}: {}", found.pid, found.command))
            .collect();
        for entry in fs::read_dir(self.path("tmp")).unwrap() {
            let path = entry.unwrap().path();
            let within = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.file_name());
            left.push(format!("temporary file {} with {:?}", path.display(), within.collect::<Vec<_>>()));
        }
        left
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let left = if std::thread::panicking() { Vec::new() } else { self.leftovers() };
        for found in self.processes() {
            process::kill(found.pid);
        }
        assert_eq!(left, Vec::<String>::new(), "something is left at the end of the test");
    }
}

/// A program about to be started.
pub struct Invocation {
    command: Command,
    stdout: PathBuf,
    stderr: PathBuf,
    mark: String,
}

impl Invocation {
    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Reads its standard input from a file.
    pub fn stdin_file(mut self, path: impl AsRef<Path>) -> Self {
        self.command.stdin(File::open(path).unwrap());
        self
    }

    /// Starts it in a directory other than the sandbox.
    pub fn within(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        self.command.stdout(File::create(&self.stdout).unwrap()).stderr(File::create(&self.stderr).unwrap());
        let child = self.command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.command));
        let words = format!("{:?}", self.command.get_args().collect::<Vec<_>>());
        Running { child, words, stdout: self.stdout, stderr: self.stderr, mark: self.mark }
    }

    /// Starts it and waits for its end.
    pub fn finish(self) -> Finished {
        self.start().finish()
    }
}

/// A program that was started.
pub struct Running {
    child: Child,
    words: String,
    stdout: PathBuf,
    stderr: PathBuf,
    mark: String,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        process::signal(self.pid(), signal);
    }

    /// Kills it and waits until the kernel has released all its resources.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// True if it has ended. Its exit status is not collected yet.
    pub fn has_ended(&self) -> bool {
        !process::is_alive(self.pid())
    }

    /// Returns what it has written to stdout so far.
    pub fn stdout(&self) -> Vec<u8> {
        fs::read(&self.stdout).unwrap()
    }

    /// Returns what it has written to stderr so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).unwrap()).into_owned()
    }

    /// Waits for its end. On a timeout, everything in the sandbox is killed and the test fails.
    pub fn finish(self) -> Finished {
        self.finish_within(TIMEOUT)
    }

    /// As [`Running::finish`] with another limit.
    pub fn finish_within(mut self, limit: Duration) -> Finished {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if limit < start.elapsed() {
                for found in process::marked(&self.mark) {
                    process::kill(found.pid);
                }
                let _ = self.child.wait();
                panic!("{} did not end within {limit:?}; its stderr:\n{}", self.words, self.stderr());
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        Finished { status, stdout: self.stdout(), stderr: self.stderr(), words: self.words }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// All it wrote to stdout.
    pub stdout: Vec<u8>,
    /// All it wrote to stderr.
    pub stderr: String,
    words: String,
}

impl Finished {
    /// Fails unless it ended with this exit code.
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{} ended with {}; its stderr:\n{}",
            self.words,
            self.status,
            self.stderr
        );
        self
    }

    /// Fails unless all of these words are on stderr.
    pub fn expect_words(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "{} did not say {word:?}:\n{}", self.words, self.stderr);
        }
        self
    }

    /// Returns its stdout, parsed as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", self.words, self.stdout_text()))
    }

    /// Returns its stdout as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }
}
