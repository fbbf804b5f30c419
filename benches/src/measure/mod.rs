//! One measured run of a command: wall time, processor time of all descendants, peak memory, exit.
//!
//! This process is a child subreaper, so daemons that a command leaves behind are also waited for and
//! counted. Only one measurement runs at a time: every child of this process belongs to the command.

use crate::process::{Memory, SystemTimes, descendants, memory_backed_bytes, memory_of};
use rustix::process::{Pid, Signal, kill_process, set_child_subreaper};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the memory of all descendants is sampled.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// Pause of the sampler, as a multiple of the processor time of its last sample, so that it never takes
/// more than a tenth of a core. The pause is longer than the interval only with dozens of processes;
/// `MeasuredRun::samples` shows it.
const SAMPLER_REST_FACTOR: u32 = 10;

/// Timeout for processes that a command left behind, after which they are killed.
const STRAGGLER_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which their end is polled.
const STRAGGLER_PAUSE: Duration = Duration::from_millis(2);

/// Description of a run.
pub struct Request<'a> {
    /// Program and arguments.
    pub arguments: &'a [String],
    /// Additional environment variables.
    pub environment: &'a [(String, String)],
    /// Time after which all its processes are killed.
    pub timeout: Duration,
    /// Directories whose bytes count as memory if they are in a memory-backed file system.
    pub spill_directories: &'a [PathBuf],
    /// File for its standard output.
    pub stdout: &'a Path,
    /// File for its standard error.
    pub stderr: &'a Path,
}

/// End of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandEnd {
    /// It exited with this exit code.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// It exceeded the timeout and was killed.
    TimedOut,
}

impl CommandEnd {
    /// True if the command succeeded.
    pub fn well(self) -> bool {
        self == Self::Exited(0)
    }
}

impl std::fmt::Display for CommandEnd {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(out, "exit code {code}"),
            Self::Killed(signal) => write!(out, "killed by signal {signal}"),
            Self::TimedOut => write!(out, "killed because it took too long"),
        }
    }
}

/// Measurements of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredRun {
    /// End of the command.
    pub ended: CommandEnd,
    /// Time from before the fork until the command was reaped, in seconds.
    pub wall_s: f64,
    /// Processor time in user mode of all descendants, seconds.
    pub user_s: f64,
    /// Processor time in the kernel of all descendants, seconds.
    pub system_s: f64,
    /// Peak of the sum of resident memory over live descendants, bytes. Shared pages count in each process.
    pub peak_resident_bytes: u64,
    /// Peak of the sum of anonymous and shared memory, plus spilled bytes in memory-backed file systems.
    pub peak_private_bytes: u64,
    /// Number of memory samples from which the peaks are computed.
    pub samples: u32,
    /// Processor time used by the rest of the machine meanwhile: noise.
    pub others_cpu_s: f64,
    /// Processor time stolen by the host of this virtual machine: noise.
    pub stolen_s: f64,
}

/// Data of a reaped child.
struct Reaped {
    ended: CommandEnd,
    user_s: f64,
    system_s: f64,
    largest_bytes: u64,
}

/// Runs a command and waits until it and all processes it started have ended.
///
/// # Errors
/// The command cannot be started, or the system refuses to be monitored. A command that fails is not an
/// error.
pub fn measure(request: &Request<'_>) -> io::Result<MeasuredRun> {
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut command = Command::new(&request.arguments[0]);
    command
        .args(&request.arguments[1..])
        .envs(request.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(File::create(request.stdout)?)
        .stderr(File::create(request.stderr)?);
    let before = SystemTimes::now()?;
    let start = Instant::now();
    let child = command.spawn()?;
    let pid = child.id() as i32;
    let done = AtomicBool::new(false);
    let (first, wall, sampler, after) = thread::scope(|scope| {
        let sampling = scope.spawn(|| Sampler::new(request.spill_directories).run(&done, request.timeout));
        let first = reap(pid, 0);
        let wall = start.elapsed();
        done.store(true, Ordering::Release);
        sampling.thread().unpark();
        let sampler = sampling.join().expect("the sampler only reads files and cannot panic");
        (first, wall, sampler, SystemTimes::now())
    });
    let first = first?.ok_or_else(|| io::Error::other("the kernel returned without a child"))?;
    let all = reap_stragglers(first)?;
    let sum = |of: fn(&Reaped) -> f64| all.iter().map(of).sum::<f64>();
    let (user_s, system_s) = (sum(|one| one.user_s), sum(|one| one.system_s));
    let machine = after?.since(&before);
    let largest = all.iter().map(|one| one.largest_bytes).max().unwrap_or(0);
    Ok(MeasuredRun {
        ended: if sampler.timed_out { CommandEnd::TimedOut } else { all[0].ended },
        wall_s: wall.as_secs_f64(),
        user_s,
        system_s,
        peak_resident_bytes: sampler.resident.max(largest),
        peak_private_bytes: sampler.private,
        samples: sampler.samples,
        others_cpu_s: (machine.busy_s - user_s - system_s).max(0.0),
        stolen_s: machine.stolen_s,
    })
}

/// Waits for processes that the command left behind, and kills them if they do not end.
fn reap_stragglers(first: Reaped) -> io::Result<Vec<Reaped>> {
    let mut all = vec![first];
    let patience = Instant::now() + STRAGGLER_TIMEOUT;
    loop {
        match reap(-1, libc::WNOHANG) {
            Ok(Some(one)) => all.push(one),
            Ok(None) => {
                if patience < Instant::now() {
                    kill_all();
                }
                thread::sleep(STRAGGLER_PAUSE);
            }
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(all),
            Err(error) => return Err(error),
        }
    }
}

/// Kills every descendant. They all belong to the measured command.
fn kill_all() {
    for pid in descendants(std::process::id() as i32) {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Calls `wait4`. Returns `None` if `options` say not to wait and no child has ended.
fn reap(pid: i32, options: i32) -> io::Result<Option<Reaped>> {
    loop {
        let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        #[allow(
            unsafe_code,
            reason = "both pointers are of locals that outlive the call; zeros are a valid rusage"
        )]
        let (reaped, usage) = unsafe {
            let reaped = libc::wait4(pid, &raw mut status, options, usage.as_mut_ptr());
            (reaped, usage.assume_init())
        };
        match reaped {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => {
                let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
                return Ok(Some(Reaped {
                    ended: if libc::WIFSIGNALED(status) {
                        CommandEnd::Killed(libc::WTERMSIG(status))
                    } else {
                        CommandEnd::Exited(libc::WEXITSTATUS(status))
                    },
                    user_s: seconds(usage.ru_utime),
                    system_s: seconds(usage.ru_stime),
                    // Linux counts it in KiB.
                    largest_bytes: usage.ru_maxrss as u64 * 1024,
                }));
            }
        }
    }
}

/// Samples the memory of all descendants until it is notified that the command has ended.
struct Sampler<'a> {
    spill_directories: &'a [PathBuf],
    resident: u64,
    private: u64,
    samples: u32,
    timed_out: bool,
}

impl<'a> Sampler<'a> {
    fn new(spill_directories: &'a [PathBuf]) -> Self {
        Self { spill_directories, resident: 0, private: 0, samples: 0, timed_out: false }
    }

    fn run(mut self, done: &AtomicBool, timeout: Duration) -> Self {
        let start = Instant::now();
        let mut next = start;
        while !done.load(Ordering::Acquire) {
            let now = Instant::now();
            if now < next {
                thread::park_timeout(next - now);
                continue;
            }
            let worked = clock_gettime(ClockId::ThreadCPUTime);
            self.sample();
            // Not wall time, which on an overloaded machine would measure other processes.
            let cost = clock_gettime(ClockId::ThreadCPUTime) - worked;
            let cost = Duration::try_from(cost).unwrap_or_default();
            next = now + SAMPLE_INTERVAL.max(cost * SAMPLER_REST_FACTOR);
            if timeout < start.elapsed() {
                self.timed_out = true;
                kill_all();
            }
        }
        self
    }

    fn sample(&mut self) {
        let mut sum = Memory::default();
        for pid in descendants(std::process::id() as i32) {
            // A process that has just ended has no memory.
            let Some(memory) = memory_of(pid) else { continue };
            sum.resident_bytes += memory.resident_bytes;
            sum.private_bytes += memory.private_bytes;
        }
        let spilled: u64 =
            self.spill_directories.iter().map(|directory| memory_backed_bytes(directory)).sum();
        self.resident = self.resident.max(sum.resident_bytes);
        self.private = self.private.max(sum.private_bytes + spilled);
        self.samples += 1;
    }
}

#[cfg(test)]
mod tests;
