//! A child of an embedded cluster: reads its settings from its parent and ends with it.

use crate::switches::Switches;
use crate::usage::usage;
use gristmill_runtime::cluster::{ChildConfig, LEAVE};
use gristmill_runtime::exit;
use std::io::{BufRead, Read};
use std::os::fd::AsFd;
use std::time::Duration;

/// Time for a process to end in order once its parent is gone.
const PARENT_GONE_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest line of settings, bytes.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// Maximum bytes that a parent sends after the settings.
const WORDS_BYTES_MAX: u64 = 64;

/// Signal of the kernel that the parent died. It is not a signal with which people end processes, so the two are
/// distinguished without a check of the parent: one that is being killed still seems alive for a while.
pub const PARENT_DEATH_SIGNAL: rustix::process::Signal = rustix::process::Signal::USR2;

/// Reads the settings. From then on it sets switches when the parent asks for it, when the parent's end of
/// the pipe closes, and if it closes without notice.
///
/// # Errors
/// Settings of the parent that cannot be parsed.
pub fn settings(switches: Switches) -> anyhow::Result<ChildConfig> {
    // The last resort, if this process hangs when its parent is killed.
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
        let mut in_order = false;
        for word in stdin.take(WORDS_BYTES_MAX).lines().map_while(Result::ok) {
            match word.as_str() {
                LEAVE => switches.leave(),
                _ => in_order = true,
            }
        }
        if in_order {
            switches.end();
        } else {
            switches.lose_parent();
        }
        // Whatever blocks this process, it must not outlive the parent for long.
        std::thread::sleep(PARENT_GONE_TIMEOUT);
        std::process::exit(exit::worker::ASKED);
    })?;
    Ok(settings)
}
