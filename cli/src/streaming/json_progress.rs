//! Progress of a job as lines of JSON on standard output, for programs that start this one (`--json`).
//!
//! Each line is an object with an `event`: `status` while the job runs, then `end` with the last status and the trace, or
//! `error` if there is no job. If standard input is a pipe, the job ends when that closes.
//! People and drivers of Hadoop read the log on standard error ([`report`](super::report)).

use super::error::StreamError;
use crate::terminal;
use crate::trace::chrome;
use gristmill_runtime::api::JobStatus;
use gristmill_runtime::client::Client;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two statuses.
const PAUSE: Duration = Duration::from_millis(200);

/// Writer of progress for a program, if `--json` was typed.
pub struct JsonProgress {
    wanted: bool,
    told_at: Option<Instant>,
}

impl JsonProgress {
    pub fn new(wanted: bool) -> Self {
        Self { wanted, told_at: None }
    }

    /// Writes a new status.
    pub fn show(&mut self, status: &JobStatus) {
        if self.wanted && self.told_at.is_none_or(|at| PAUSE <= at.elapsed()) {
            self.told_at = Some(Instant::now());
            print_line(&json!({"event": "status", "status": short(status)}));
        }
    }

    /// Writes the end of the job.
    pub fn end(&self, status: &JobStatus, output: &Path, client: &Client) {
        if self.wanted {
            // A trace that is gone is left out: the result exists.
            let trace = client.trace(status.job).ok().map(|trace| chrome(&trace));
            print_line(&json!({"event": "end", "status": short(status), "output": output, "trace": trace}));
        }
    }

    /// Writes an error before the job.
    pub fn error(&self, error: &StreamError) {
        if self.wanted {
            print_line(&json!({"event": "error", "code": error.code, "message": error.message}));
        }
    }
}

/// Ends the job, as an interruption does, when a pipe that is standard input closes.
pub fn end_with_listener() -> io::Result<()> {
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    if stdin.metadata()?.file_type().is_fifo() {
        let watch = move || {
            // Nothing is written there; an error is an end too.
            let _ = io::copy(&mut &stdin, &mut io::sink());
            // A shell makes programs in its background ignore SIGINT.
            let _ = kill_process(getpid(), Signal::TERM);
        };
        std::thread::Builder::new().name("listener".to_owned()).spawn(watch)?;
    }
    Ok(())
}

/// Returns a status without the parameters, which the program has made itself.
fn short(status: &JobStatus) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("parameters");
    }
    value
}

fn print_line(value: &Value) {
    // A reader that is gone ends the job by a signal.
    let _ = terminal::stdout_line(value);
}
