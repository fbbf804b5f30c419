//! How a job goes on, as lines of JSON on standard output, for programs that start this one (`--json`).
//!
//! Each line is an object with an `event`: `status` while the job runs, then `end` with the last status and the trace, or
//! `error` if there is no job. A program that has given a pipe as standard input and closes it, or dies, wants no job any more.
//! People and drivers of Hadoop read the log on standard error ([`report`](super::report)).

use super::StreamError;
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

/// Tells a program how the job goes on, if one wants to know.
pub struct Teller {
    wanted: bool,
    told_at: Option<Instant>,
}

impl Teller {
    pub fn new(wanted: bool) -> Self {
        Self { wanted, told_at: None }
    }

    /// A new status is there.
    pub fn show(&mut self, status: &JobStatus) {
        if self.wanted && self.told_at.is_none_or(|at| PAUSE <= at.elapsed()) {
            self.told_at = Some(Instant::now());
            say(&json!({"event": "status", "status": short(status)}));
        }
    }

    /// The job has ended, well or not.
    pub fn end(&self, status: &JobStatus, output: &Path, client: &Client) {
        if self.wanted {
            // A trace that cannot be had any more is left out: the result is there.
            let trace = client.trace(status.job).ok().map(|trace| chrome(&trace));
            say(&json!({"event": "end", "status": short(status), "output": output, "trace": trace}));
        }
    }

    /// There is no job.
    pub fn error(&self, error: &StreamError) {
        if self.wanted {
            say(&json!({"event": "error", "code": error.code, "message": error.message}));
        }
    }
}

/// Ends the job, as an interruption does, when a pipe that is standard input closes.
pub fn end_with_listener() -> io::Result<()> {
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    if stdin.metadata()?.file_type().is_fifo() {
        let watch = move || {
            // Nobody says anything; an error is an end too.
            let _ = io::copy(&mut &stdin, &mut io::sink());
            let _ = kill_process(getpid(), Signal::INT);
        };
        std::thread::Builder::new().name("listener".to_owned()).spawn(watch)?;
    }
    Ok(())
}

/// A status without the parameters, which the program that asks has made itself.
fn short(status: &JobStatus) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("parameters");
    }
    value
}

fn say(value: &Value) {
    // Whoever does not listen any more needs no answer; the job is ended by a signal.
    let _ = terminal::stdout_line(value);
}
