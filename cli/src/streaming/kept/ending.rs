//! The end of a job that another process follows: it is asked for by the signal that Ctrl-C sends, once it is sure that the
//! process is still the one that was meant.

use super::{KILL, KeptJob, KeptJobs};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

/// How long the end is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks whether it has come.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KillOutcome {
    /// Its process has ended.
    Ended,
    /// It had ended before.
    TooLate,
    /// It was asked to, and still tidies up.
    Asked,
}

/// Ends a job, and waits for it.
///
/// # Errors
/// A process of somebody else's.
pub fn kill(jobs: &KeptJobs, job: &KeptJob) -> io::Result<KillOutcome> {
    let Some(process) = i32::try_from(job.process).ok().and_then(Pid::from_raw).filter(|_| job.runs()) else {
        return Ok(KillOutcome::TooLate);
    };
    let held = match pidfd_open(process, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(KillOutcome::TooLate),
        held => held?,
    };
    // From here on the number cannot become another's unnoticed.
    if !job.runs() {
        return Ok(KillOutcome::TooLate);
    }
    File::create(jobs.folder(&job.number).join(KILL))?;
    match pidfd_send_signal(&held, Signal::INT) {
        Err(rustix::io::Errno::SRCH) => return Ok(KillOutcome::TooLate),
        sent => sent?,
    }
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        if !job.runs() {
            return Ok(KillOutcome::Ended);
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    Ok(KillOutcome::Asked)
}

/// When a process began, in ticks since the system did; `None` if there is none of this number, or its end is near.
pub(super) fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program stands in parentheses, and may hold any others.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    (state != "Z" && state != "X").then(|| words.nth(18)?.parse().ok())?
}
