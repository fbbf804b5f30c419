//! Limits how often a peer may guess a secret.

use crate::http::limits::{GUESS_WINDOW, GUESSING_PEERS_MAX};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;
use tracing::warn;

/// Counts wrong secrets per address.
pub(super) struct Guesses {
    pub(super) guesses_max: u32,
    /// Invariant: at most [`GUESSING_PEERS_MAX`] entries, and one under `None` for all other peers.
    pub(super) windows: Mutex<HashMap<Option<IpAddr>, GuessWindow>>,
}

impl Guesses {
    /// Records a wrong secret. Returns true if the limit is exceeded.
    pub(super) fn too_many(&self, peer: IpAddr, now: Instant) -> bool {
        // A panic elsewhere cannot have left a count half written.
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if GUESSING_PEERS_MAX <= windows.len() {
            windows.retain(|_, window| now.duration_since(window.start) < GUESS_WINDOW);
        }
        let is_full = GUESSING_PEERS_MAX <= windows.len() && !windows.contains_key(&Some(peer));
        let window =
            windows.entry((!is_full).then_some(peer)).or_insert(GuessWindow { start: now, count: 0 });
        if GUESS_WINDOW <= now.duration_since(window.start) {
            *window = GuessWindow { start: now, count: 0 };
        }
        window.count = window.count.saturating_add(1);
        if window.count.checked_sub(1) == Some(self.guesses_max) {
            warn!(%peer, wrong_secrets = window.count, "too many wrong secrets");
        }
        self.guesses_max < window.count
    }
}

pub(super) struct GuessWindow {
    start: Instant,
    count: u32,
}
