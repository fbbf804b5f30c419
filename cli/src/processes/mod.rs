//! `master` and `worker`: the processes of a cluster, started by a person or by `run`.
//!
//! Here is what they have in common: a process that ends when it is asked to, and its log.

mod addresses;
mod master;
mod runner;
mod worker;

pub use master::{MasterCommand, master};
pub use worker::{WorkerCommand, worker};

use crate::child;
use crate::interruption::Listener;
use crate::switches::{FirstSignal, Switches};
use gristmill_runtime::cluster::ChildRole;
use gristmill_runtime::registry::Registry;
use gristmill_worker::agent::EndRequests;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;

/// Runs a child process of this program, to which its parent says all it needs to know. It may be told to run any job of
/// the registry.
///
/// # Errors
/// As of the commands whose work it does, and a parent that says nothing that can be read.
pub fn child(role: ChildRole, registry: Registry) -> anyhow::Result<u8> {
    match role {
        ChildRole::Master => master::master_process(registry),
        ChildRole::Worker => worker::worker_process(registry),
        ChildRole::Runner => runner::runner(registry),
    }
}

/// A runtime, and switches that turn when this process is asked to go.
struct Stoppable {
    runtime: tokio::runtime::Runtime,
    switches: Switches,
    requests: EndRequests,
}

impl Stoppable {
    fn start(first: FirstSignal) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = gristmill_worker::threads::runtime()?;
        let (switches, requests) = Switches::new();
        let turned = switches.clone();
        // From now on, not from when the runtime first runs: by then others may know that this process is there.
        let parent_died = SignalKind::from_raw(child::PARENT_DEATH_SIGNAL.as_raw());
        let signals = runtime.block_on(async {
            (
                Listener::new(SignalKind::interrupt()),
                Listener::new(SignalKind::terminate()),
                signal(parent_died),
            )
        });
        runtime.spawn(async move {
            let (Ok(mut interrupt), Ok(mut terminate), Ok(mut parent_died)) = signals else { return };
            loop {
                tokio::select! {
                    _ = interrupt.recv() => turned.signalled(first),
                    _ = terminate.recv() => turned.signalled(first),
                    _ = parent_died.recv() => turned.lose_parent(),
                }
            }
        });
        Ok(Self { runtime, switches, requests })
    }
}

/// Tells on stderr what a client notices beside its answer: what it could not remove, for example.
pub fn log_of_client() {
    log_to(None, "warn");
}

/// Whether the log is for whoever collects logs.
fn log_is_json() -> bool {
    std::env::var_os("GRISTMILL_LOG_FORMAT").is_some_and(|format| format == "json")
}

/// Tells a person on stderr, between the lines of the log; as an event of it where each line has to be one.
fn tell(words: &str) {
    match log_is_json() {
        true => tracing::info!("{words}"),
        false => crate::terminal::stderr_line(words),
    }
}

/// Sends the program's own log to stderr, or to where stderr was before user output took its place: as text, or, for
/// whoever collects logs, as a line of JSON for each event.
fn log_to(stderr: Option<OwnedFd>, default: &str) {
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::fmt::writer::BoxMakeWriter;
    let filter = EnvFilter::try_from_env("GRISTMILL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let has_colours = stderr.is_none() && io::stderr().is_terminal();
    let writer = match stderr {
        Some(fd) => BoxMakeWriter::new(std::sync::Mutex::new(fs::File::from(fd))),
        None => BoxMakeWriter::new(io::stderr),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(writer);
    // A second subscriber in one process is refused; then the first one stays.
    let _ = match log_is_json() {
        true => builder.json().flatten_event(true).try_init(),
        false => builder.with_ansi(has_colours).try_init(),
    };
}
