//! A child of an embedded cluster: reads its settings from its parent and ends when the parent is gone.

use crate::usage::usage;
use gristmill_runtime::cluster::ChildConfig;
use gristmill_runtime::exit;
use std::io::{BufRead, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long a process may take to end in order once its parent is gone.
const PARENT_GONE_PATIENCE: Duration = Duration::from_secs(5);

/// Longest line of settings, bytes.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// The kernel's word that the parent died. It is not the signal with which people end processes, so the two are told
/// apart without asking whether the parent lives: one that is being killed still seems to for a while.
pub const PARENT_DEATH_SIGNAL: rustix::process::Signal = rustix::process::Signal::USR2;

/// Reads the settings, and from then on turns `stop` true when the parent's end of the pipe closes, and `orphaned` too
/// if it closes without a word.
///
/// # Errors
/// A parent that says nothing that can be read.
pub fn settings(stop: watch::Sender<bool>, orphaned: Arc<AtomicBool>) -> anyhow::Result<ChildConfig> {
    // The last resort, should this process be stuck when its parent is killed.
    let _ = rustix::process::set_parent_process_death_signal(Some(PARENT_DEATH_SIGNAL));
    // The pipe moves to a descriptor that programs started by user code do not inherit; they read nothing.
    let pipe = rustix::io::fcntl_dupfd_cloexec(std::io::stdin().as_fd(), 3)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    let mut stdin = std::io::BufReader::new(std::fs::File::from(pipe));
    let mut line = String::new();
    (&mut stdin).take(SETTINGS_BYTES_MAX).read_line(&mut line)?;
    let settings = serde_json::from_str(&line).map_err(|error| {
        usage(format!("--from-parent is for child processes of `gristmill run`: {error}"))
    })?;
    std::thread::Builder::new().name("parent".to_owned()).spawn(move || {
        let (mut rest, mut in_order) = ([0; 64], false);
        while stdin.read(&mut rest).is_ok_and(|got| 0 < got) {
            in_order = true;
        }
        orphaned.fetch_or(!in_order, Ordering::Relaxed);
        let _ = stop.send(true);
        // Whatever this process is stuck in must not outlive the parent for long.
        std::thread::sleep(PARENT_GONE_PATIENCE);
        std::process::exit(exit::worker::ASKED);
    })?;
    Ok(settings)
}
