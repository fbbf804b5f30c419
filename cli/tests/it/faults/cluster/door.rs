//! The link in front of the current worker process.

use super::super::proxy::Link;
use crate::support::process;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pause between two searches for a worker process without a link.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// The link in front of the current worker process.
pub struct Door {
    state: Arc<Mutex<Doorway>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Doorway {
    current: Option<(u32, Link)>,
    /// Counts of the links of earlier processes.
    before: (u64, u64),
}

impl Door {
    /// Keeps a link in front of the child of this supervisor.
    pub fn keep(own: Ipv4Addr, supervisor: u32) -> Self {
        let (state, stop) = (Arc::new(Mutex::<Doorway>::default()), Arc::new(AtomicBool::new(false)));
        let (seen, ended) = (state.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                watch_worker(own, supervisor, &seen);
                std::thread::sleep(LOOK_PAUSE);
            }
        });
        Self { state, stop, thread: Some(thread) }
    }

    /// Returns the worker's process, once its link exists.
    pub fn pid(&self) -> Option<u32> {
        self.state.lock().unwrap().current.as_ref().map(|(pid, _)| *pid)
    }

    /// Calls a function with the link, if there is one.
    pub fn with(&self, change: impl FnOnce(&Link)) {
        if let Some((_, link)) = &self.state.lock().unwrap().current {
            change(link);
        }
    }

    /// Number of times that the links here did damage, and that their rules applied.
    pub fn fired(&self) -> (u64, u64) {
        let state = self.state.lock().unwrap();
        let now = state.current.as_ref().map_or((0, 0), |(_, link)| (link.struck(), link.treated()));
        (state.before.0 + now.0, state.before.1 + now.1)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts a link in front of the worker process if it is a new one that listens.
fn watch_worker(own: Ipv4Addr, supervisor: u32, state: &Mutex<Doorway>) {
    // The supervisor itself if a script has executed it, else its child.
    let Some(child) = process::children(supervisor).last().copied() else { return };
    let known = |state: &Doorway| state.current.as_ref().is_some_and(|(pid, _)| *pid == child);
    if known(&state.lock().unwrap()) {
        return;
    }
    let [address] = process::listening(child)[..] else { return };
    // Another test may have this port of this address; the next attempt may find it free.
    let Ok(link) = Link::start(SocketAddr::new(own.into(), address.port()), address) else { return };
    let mut state = state.lock().unwrap();
    if let Some((_, old)) = state.current.replace((child, link)) {
        state.before.0 += old.struck();
        state.before.1 += old.treated();
    }
}
