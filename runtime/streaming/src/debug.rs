//! The command that examines a failed attempt (`-mapdebug`, `-reducedebug`). It runs in the directory of
//! the attempt's command, receives the files that command left, and its output is added to the reason of
//! the failure.
//!
//! Not here: the detection of failures ([`process`](super::process)). Standard output has already been
//! processed, so the file of that name is empty.

use super::StreamingJob;
use super::process::look_up;
use gristmill_runtime::cluster::{CommandStart, end_strays, start_command};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Timeout of the command.
const DEBUG_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of last bytes of its output that are kept.
const DEBUG_BYTES_MAX: usize = 4 << 10;

/// Remains of a failed attempt.
pub(super) struct Failure<'a> {
    /// Directory in which its command ran.
    pub directory: &'a Path,
    /// Variables of its command.
    pub environment: &'a BTreeMap<OsString, OsString>,
    /// Last lines of its standard error.
    pub last_words: &'a str,
    /// Reason of the failure.
    pub reason: &'a str,
}

/// Runs the command with the paths of `stdout`, `stderr`, `syslog` and `jobconf` as further arguments.
/// Returns the last part of its output, or the reason why it has none.
pub(super) fn look_at(job: &StreamingJob, words: &[String], failure: &Failure<'_>) -> String {
    let said = attempt(job, words, failure);
    said.unwrap_or_else(|error| format!("`{}` could not look at it: {error}", words.join(" ")))
}

fn attempt(job: &StreamingJob, words: &[String], failure: &Failure<'_>) -> io::Result<String> {
    let [program, arguments @ ..] = words else { return Ok(String::new()) };
    let mut arguments = arguments.to_vec();
    let left = [
        ("stdout", String::new()),
        ("stderr", failure.last_words.to_owned()),
        ("syslog", format!("{}\n", failure.reason)),
        ("job.xml", configuration(job)),
    ];
    for (name, content) in left {
        // Not `write`, which would follow a link created by the command.
        let path = failure.directory.join(format!("gristmill-debug-{name}"));
        io::Write::write_all(&mut std::fs::File::create_new(&path)?, content.as_bytes())?;
        arguments.push(path.display().to_string());
    }
    let path = failure.environment.get(&OsString::from("PATH")).cloned().unwrap_or_default();
    let program = look_up(program, failure.directory, &path)?;
    let (directory, environment) = (failure.directory, failure.environment);
    let mut child =
        start_command(&CommandStart { program: &program, arguments: &arguments, directory, environment })?;
    let group = Pid::from_child(&child);
    drop(child.stdin.take());
    let (tell, told) = channel();
    let pipes = [child.stdout.take().map(pipe), child.stderr.take().map(pipe)];
    let readers = pipes.into_iter().flatten().map(|mut from| {
        let tell = tell.clone();
        std::thread::Builder::new().name("command-debug".to_owned()).spawn(move || {
            let mut bytes = [0; DEBUG_BYTES_MAX];
            while let Ok(got) = from.read(&mut bytes) {
                if got == 0 || tell.send(bytes[..got].to_vec()).is_err() {
                    return;
                }
            }
        })
    });
    let readers: io::Result<Vec<_>> = readers.collect();
    drop(tell);
    let until = std::time::Instant::now() + DEBUG_TIMEOUT;
    let mut said = Vec::new();
    let ended = loop {
        match told.recv_timeout(until.saturating_duration_since(std::time::Instant::now())) {
            Ok(bytes) => {
                said.extend(bytes);
                said.drain(..said.len().saturating_sub(DEBUG_BYTES_MAX));
            }
            Err(why) => break why == RecvTimeoutError::Disconnected,
        }
    };
    // It has not been reaped, so its process id is not reused. A group without processes is not an error.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait()?;
    end_strays(directory);
    readers?;
    let mut said = String::from_utf8_lossy(&said).trim_end().to_owned();
    if !ended {
        let _ = write!(said, "\n`{}` was killed after {} s", words.join(" "), DEBUG_TIMEOUT.as_secs());
    }
    Ok(said)
}

fn pipe(from: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(from)
}

/// Returns the properties of the job in Hadoop's file format.
fn configuration(job: &StreamingJob) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let properties = job.properties.iter().map(|(name, value)| {
        format!("<property><name>{}</name><value>{}</value></property>\n", escaped(name), escaped(value))
    });
    format!("<configuration>\n{}</configuration>\n", properties.collect::<String>())
}
