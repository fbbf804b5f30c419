//! `master` and `worker`: the processes of a cluster, started by a person or by `run`.
//!
//! Here is what they have in common: a process that ends when it is asked to, and its log.

mod master;
mod worker;

pub use master::{MasterCommand, master};
pub use worker::{WorkerCommand, worker};

use crate::child;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// A runtime, and a switch that turns when this process is asked to end.
struct Stoppable {
    runtime: tokio::runtime::Runtime,
    stop: watch::Sender<bool>,
    stopping: watch::Receiver<bool>,
    /// It was a signal that turned it, sent by somebody.
    signalled: Arc<AtomicBool>,
    /// The parent of this process has died without a word, or the kernel says so.
    orphaned: Arc<AtomicBool>,
}

impl Stoppable {
    fn start() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopping) = watch::channel(false);
        let (signalled, orphaned) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (asked, by_signal, by_death) = (stop.clone(), signalled.clone(), orphaned.clone());
        // From now on, not from when the runtime first runs: by then others may know that this process is there.
        let parent_died = SignalKind::from_raw(child::PARENT_DEATH_SIGNAL.as_raw());
        let signals = runtime.block_on(async {
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(parent_died))
        });
        runtime.spawn(async move {
            let (Ok(mut interrupt), Ok(mut terminate), Ok(mut parent_died)) = signals else { return };
            let cause = tokio::select! {
                _ = interrupt.recv() => by_signal,
                _ = terminate.recv() => by_signal,
                _ = parent_died.recv() => by_death,
            };
            cause.store(true, Ordering::Relaxed);
            let _ = asked.send(true);
        });
        Ok(Self { runtime, stop, stopping, signalled, orphaned })
    }
}

/// Sends the program's own log to stderr, or to where stderr was before user output took its place.
fn log_to(stderr: Option<OwnedFd>, default: &str) {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("GRISTMILL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    // A second subscriber in one process is refused; then the first one stays.
    let _ = match stderr {
        Some(fd) => {
            builder.with_ansi(false).with_writer(std::sync::Mutex::new(fs::File::from(fd))).try_init()
        }
        None => builder.with_ansi(io::stderr().is_terminal()).with_writer(io::stderr).try_init(),
    };
}
