//! The master of `up`: a process of this machine that outlives the command, in the state folder of whoever typed it.

use super::PlaceError;
use super::process::ProcessName;
use crate::flags::JOIN_FILE;
use crate::state::StateFolder;
use gristmill_runtime::client::AsyncClient;
use gristmill_runtime::cluster::start_detached;
use gristmill_worker::http::JoinLine;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Name of the master's log in the state folder.
const LOG_FILE: &str = "master.log";

/// How long a master may take to answer.
const START_MAX: Duration = Duration::from_secs(20);

/// Pause between looks.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// How long a master may take to end in order: it tells its workers, and abandons what jobs have put out.
const END_MAX: Duration = Duration::from_secs(15);

/// How long until one that was killed is gone.
const KILLED_MAX: Duration = Duration::from_secs(5);

/// Longest join line, bytes.
const JOIN_BYTES_MAX: u64 = 4096;

/// Starts a master with these words in this state folder and waits until it answers; then there is the line by which this
/// user's commands reach it. `seen` learns of the process as soon as there is one.
///
/// # Errors
/// A folder that another master holds, or a master that ends at once or does not answer.
pub async fn start(
    state: &Path,
    words: &[String],
    seen: impl FnOnce(&ProcessName) -> Result<(), PlaceError>,
) -> anyhow::Result<JoinLine> {
    {
        // Whoever holds it is named. The line of a master that was killed would be taken for that of the new one.
        let held = StateFolder::take(state.to_owned())?;
        let _ = fs::remove_file(held.path().join(JOIN_FILE));
    }
    let path = state.join(LOG_FILE);
    let log = File::options().create(true).append(true).mode(0o600).open(&path);
    let failed = |source| PlaceError::Master { log: path.clone(), source };
    let log = log.map_err(failed)?;
    let begins_at = log.metadata().map_err(failed)?.len();
    let mut child = start_detached(words, log).map_err(failed)?;
    let process = ProcessName::of(child.id()).map_err(failed)?;
    seen(&process)?;
    let end = Instant::now() + START_MAX;
    loop {
        if child.try_wait().map_err(failed)?.is_some() {
            return Err(PlaceError::MasterEnded { said: said_since(&path, begins_at) }.into());
        }
        if let Some(line) = line_of(&state.join(JOIN_FILE))
            && AsyncClient::new(&line).master().await.is_ok()
        {
            return Ok(line);
        }
        if end <= Instant::now() {
            finish(&process, state).await;
            return Err(PlaceError::MasterSlow { limit: START_MAX, log: path }.into());
        }
        sleep(LOOK_PAUSE).await;
    }
}

/// The line that the master has left, once it has.
pub fn line_of(path: &Path) -> Option<JoinLine> {
    let mut text = String::new();
    File::open(path).ok()?.take(JOIN_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

/// Ends a master for good, with its jobs; one that does not answer by signals. Returns whether it is gone.
pub async fn finish(process: &ProcessName, state: &Path) -> bool {
    let asked = async { AsyncClient::new(&line_of(&state.join(JOIN_FILE))?).shut_down().await.ok() };
    if tokio::time::timeout(KILLED_MAX, asked).await.ok().flatten().is_none() {
        process.signal(Signal::TERM);
    }
    let process = process.clone();
    let ended = tokio::task::spawn_blocking(move || {
        process.ends_within(END_MAX) || {
            process.signal(Signal::KILL);
            process.ends_within(KILLED_MAX)
        }
    });
    ended.await.unwrap_or(false)
}

fn said_since(path: &Path, begins_at: u64) -> String {
    use std::io::{Seek, SeekFrom};
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(begins_at))?;
        let mut bytes = Vec::new();
        file.take(JOIN_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_default()
}
