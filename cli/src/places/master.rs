//! Master of `up`: a process of this machine that outlives the command and holds the state directory.

use super::PlaceError;
use crate::flags::JOIN_FILE;
use crate::state::StateFolder;
use gristmill_runtime::client::AsyncClient;
use gristmill_runtime::cluster::start_detached;
use gristmill_runtime::plural::{counted, noun};
use gristmill_worker::http::JoinLine;
use gristmill_worker::whole_file;
use rustix::process::{Pid, Signal, kill_process};
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

/// Time for a killed master to disappear.
const KILLED_MAX: Duration = Duration::from_secs(5);

/// Longest join line, and longest log of a master that ended at once, bytes.
const TEXT_BYTES_MAX: u64 = 4096;

/// Starts a master and waits until it responds; returns the line with which this user's commands reach it.
///
/// # Errors
/// A state directory that another master holds, or a master that ends at once or does not respond.
pub async fn start(state: &Path, words: &[String]) -> anyhow::Result<JoinLine> {
    // Fails if a master holds it. The join line of one that was killed would be mistaken for that of the new one.
    drop(StateFolder::take(state.to_owned())?);
    let _ = fs::remove_file(state.join(JOIN_FILE));
    let path = state.join("master.log");
    let failed =
        |source| PlaceError::File { action: "start a master with the log", path: path.clone(), source };
    let log = File::options().create(true).write(true).truncate(true).mode(0o600).open(&path);
    let mut child = start_detached(words, log.map_err(failed)?).map_err(failed)?;
    let end = Instant::now() + START_MAX;
    loop {
        if child.try_wait().map_err(failed)?.is_some() {
            let said = whole_file::read(&path, TEXT_BYTES_MAX).unwrap_or_default();
            let said = format!("ended at once: {}", String::from_utf8_lossy(&said).trim());
            return Err(PlaceError::Master { said }.into());
        }
        if let Some(line) = join_line(state)
            && AsyncClient::new(&line).master().await.is_ok()
        {
            return Ok(line);
        }
        if Instant::now() >= end {
            let _ = child.kill();
            let said = format!("did not respond within {START_MAX:?}; its log is {}", path.display());
            return Err(PlaceError::Master { said }.into());
        }
        sleep(CHECK_PAUSE).await;
    }
}

fn join_line(state: &Path) -> Option<JoinLine> {
    let bytes = whole_file::read(&state.join(JOIN_FILE), TEXT_BYTES_MAX).ok()?;
    String::from_utf8(bytes).ok()?.parse().ok()
}

/// Ends the master that holds the state directory, if any, and its jobs after `grace`: by a request, else by signals.
///
/// # Errors
/// A master that does not end.
pub async fn end(state: &Path, grace: Duration) -> Result<(), PlaceError> {
    if StateFolder::holder(state).is_some() {
        if let Some(line) = join_line(state) {
            let client = AsyncClient::new(&line);
            wait_for_jobs(&client, grace).await;
            let _ = timeout(KILLED_MAX, client.shut_down()).await;
        }
        for (signal, limit) in
            [(None, END_MAX), (Some(Signal::TERM), END_MAX), (Some(Signal::KILL), KILLED_MAX)]
        {
            // The lock goes with its process, so the number is not that of another.
            let holder = StateFolder::holder(state);
            if let (Some(pid), Some(signal)) = (holder.and_then(|pid| Pid::from_raw(pid as i32)), signal) {
                let _ = kill_process(pid, signal);
            }
            let end = Instant::now() + limit;
            while StateFolder::holder(state).is_some() && Instant::now() < end {
                sleep(CHECK_PAUSE).await;
            }
        }
        if let Some(pid) = StateFolder::holder(state) {
            return Err(PlaceError::Master { said: format!("of process {pid} does not end") });
        }
    }
    // That of a killed master is of no use.
    let _ = fs::remove_file(state.join(JOIN_FILE));
    Ok(())
}

/// Waits until no job runs, as long as `grace`. A master that does not respond is not waited for.
async fn wait_for_jobs(client: &AsyncClient, grace: Duration) {
    let end = Instant::now() + grace;
    let mut said = false;
    while let Ok(status) = client.master().await
        && status.jobs_live > 0
    {
        let live = counted(u64::from(status.jobs_live), "live job", "live jobs");
        if Instant::now() >= end {
            say!("{live} {} abandoned", noun(u64::from(status.jobs_live), "is", "are"));
            return;
        }
        if !said {
            say!("waiting for {live}, for {grace:?} at most");
            said = true;
        }
        sleep(CHECK_PAUSE * 5).await;
    }
}
