//! Ctrl-C and similar signals, for commands that end what they have started in order.

use gristmill_runtime::exit;
use gristmill_worker::signal::is_ignored;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// A signal with a handler. If this process was started with the signal ignored, for example by `nohup`, it
/// never arrives.
pub(crate) struct Listener(Option<Signal>);

impl Listener {
    /// Installs the handler, within a runtime. Every handler of the command line is installed here.
    pub(crate) fn new(kind: SignalKind) -> io::Result<Self> {
        let ignored = is_ignored(kind.as_raw_value());
        Ok(Self(if ignored { None } else { Some(signal(kind)?) }))
    }

    /// Waits for the signal.
    pub(crate) async fn recv(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }
}

/// Counts Ctrl-C, SIGTERM and SIGHUP. The second one ends this process at once. Runs on a thread of its own,
/// so that it works even if this process blocks.
pub fn watch_interruptions() -> io::Result<watch::Receiver<u32>> {
    let (sender, receiver) = watch::channel(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the thread runs, so that a signal right after this counts too.
    let [interrupt, terminate, hangup] = {
        let _within = runtime.enter();
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(Listener::new)
    };
    let (mut interrupt, mut terminate, mut hangup) = (interrupt?, terminate?, hangup?);
    let watching = async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            sender.send_modify(|count| *count += 1);
            if 1 < *sender.borrow() {
                // Children notice the end of this process and end in order.
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(watching))?;
    Ok(receiver)
}
