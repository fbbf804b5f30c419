//! Master of `cluster up`: a process of this machine that outlives the command and holds the state directory.

use super::call::{last_words, refused};
use crate::flags::JOIN_FILE;
use crate::state::StateDirectory;
use anyhow::Context as _;
use gristmill_runtime::client::AsyncClient;
use gristmill_runtime::cluster::start_detached;
use gristmill_worker::http::JoinLine;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Time for a master to respond after its start.
const START_MAX: Duration = Duration::from_secs(20);

/// Pause between checks.
const CHECK_PAUSE: Duration = Duration::from_millis(20);

/// Time for a master to end in order: it notifies its workers and abandons unfinished outputs.
const END_MAX: Duration = Duration::from_secs(15);

/// Time for a master to respond to the request to end.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Starts a master and waits until it responds; returns the line with which this user's commands reach it.
///
/// # Errors
/// A master that ends at once or does not respond.
pub async fn start(state: &Path, words: &[String]) -> anyhow::Result<JoinLine> {
    // The join line of a master that was killed would be mistaken for that of the new one.
    let _ = fs::remove_file(state.join(JOIN_FILE));
    let path = state.join("master.log");
    let log = File::options().create(true).write(true).truncate(true).mode(0o600).open(&path);
    let started = log.and_then(|log| start_detached(words, log));
    let mut child =
        started.with_context(|| format!("could not start a master with the log {}", path.display()))?;
    let end = Instant::now() + START_MAX;
    while child.try_wait()?.is_none() && Instant::now() < end {
        if let Some(line) = join_line(state)
            && AsyncClient::new(&line).master().await.is_ok()
        {
            return Ok(line);
        }
        sleep(CHECK_PAUSE).await;
    }
    let _ = child.kill();
    let log = fs::read_to_string(&path).unwrap_or_default();
    Err(refused(format!("the master did not start: {}", last_words(&log))))
}

fn join_line(state: &Path) -> Option<JoinLine> {
    fs::read_to_string(state.join(JOIN_FILE)).ok()?.parse().ok()
}

/// Ends the master that holds the state directory, if any: by a request, else by signals.
///
/// # Errors
/// A master that does not end.
pub async fn end(state: &Path) -> anyhow::Result<()> {
    let master = StateDirectory::holder(state).and_then(|pid| Pid::from_raw(pid as i32));
    if let (Some(_), Some(line)) = (StateDirectory::holder(state), join_line(state)) {
        let _ = timeout(ANSWER_MAX, AsyncClient::new(&line).shut_down()).await;
    }
    for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        // The lock goes with its process, so the number is not that of another.
        let holder = StateDirectory::holder(state);
        if let (Some(pid), Some(signal)) = (holder.and_then(|pid| Pid::from_raw(pid as i32)), signal) {
            let _ = kill_process(pid, signal);
        }
        let end = Instant::now() + END_MAX;
        while StateDirectory::holder(state).is_some() && Instant::now() < end {
            sleep(CHECK_PAUSE).await;
        }
    }
    if let Some(pid) = StateDirectory::holder(state) {
        return Err(refused(format!("the master of process {pid} does not end")));
    }
    // It gives up the lock shortly before it ends.
    let end = Instant::now() + END_MAX;
    while master.is_some_and(is_alive) && Instant::now() < end {
        sleep(CHECK_PAUSE).await;
    }
    // That of a killed master is of no use.
    let _ = fs::remove_file(state.join(JOIN_FILE));
    Ok(())
}

fn is_alive(pid: Pid) -> bool {
    // If it is a child of this process, it stays a zombie until it is waited for.
    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    test_kill_process(pid).is_ok()
}

/// Returns the number of jobs that have not ended; 0 without a master.
///
/// # Errors
/// A master that does not respond.
pub async fn live_jobs(state: &Path) -> anyhow::Result<u32> {
    let Some(pid) = StateDirectory::holder(state) else { return Ok(0) };
    if let Some(line) = join_line(state)
        && let Ok(Ok(status)) = timeout(ANSWER_MAX, AsyncClient::new(&line).master()).await
    {
        return Ok(status.jobs_live);
    }
    Err(refused(format!(
        "the master of process {pid} does not respond, so its jobs are not known: --now ends it and abandons them"
    )))
}
