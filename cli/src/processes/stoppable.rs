//! Runtime with switches that turn when this process is asked to end.

use crate::child;
use crate::interruption::Listener;
use crate::switches::{FirstSignal, Switches};
use gristmill_worker::agent::EndRequests;
use std::io;

/// Runtime with switches that turn when this process is asked to end.
pub(super) struct Stoppable {
    pub(super) runtime: tokio::runtime::Runtime,
    pub(super) switches: Switches,
    pub(super) requests: EndRequests,
}

impl Stoppable {
    pub(super) fn start(first: FirstSignal) -> io::Result<Self> {
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
