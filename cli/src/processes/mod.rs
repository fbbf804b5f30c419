//! `cluster master` and `cluster worker`: the processes of a cluster, started by a user or by `run`.
//!
//! Shared here: a process that ends on request, and its log.

mod addresses;
mod master;
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

/// Runs a child process of this program, which receives its settings from its parent. It may run any job of the registry.
///
/// # Errors
/// Errors of the commands whose work it does, or settings that cannot be read.
pub fn child(role: ChildRole, registry: Registry) -> anyhow::Result<u8> {
    match role {
        ChildRole::Master => master::master_process(registry),
        ChildRole::Worker => worker::worker_process(registry),
    }
}

/// Runtime with switches that turn when this process is asked to end.
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
        // Installed now, and not when the runtime first runs: by then other processes may know this process.
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

/// Logs warnings of a client to stderr, such as files that could not be removed.
pub fn log_of_client() {
    log_to(None, "warn");
}

/// True if the log is read by a program.
fn log_is_json() -> bool {
    std::env::var_os("GRISTMILL_LOG_FORMAT").is_some_and(|format| format == "json")
}

/// Prints a message on stderr, between the lines of the log; as an event of a log of JSON.
fn tell(words: &str) {
    match log_is_json() {
        true => tracing::info!("{words}"),
        false => crate::terminal::stderr_line(words),
    }
}

/// Sends the program's own log to stderr, or to the former stderr where user output took its place: as text, or as a
/// line of JSON for each event.
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
