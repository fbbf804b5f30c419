//! The least rate at which bytes have to come or go, so that a peer cannot hold a request up a byte at a time.
//!
//! Only time in which a peer was waited for counts, and of time in which this process stood still one short step at
//! most (see [`super::lived`]). Not here: complete silence, which has the same limit and is noticed at once.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::limits::RATE_BYTES_MIN;
use super::lived::{STEP, step};

/// Watches one stream of bytes, window by window.
#[derive(Debug)]
pub(super) struct LeastRate {
    window: Duration,
    /// Whether bytes must come at that rate; else only silence counts.
    steady: bool,
    /// Time in this window in which the peer was waited for, and bytes that came or went.
    waited: Duration,
    bytes: u64,
}

/// The peer was silent, or slower than [`RATE_BYTES_MIN`], for a whole window.
#[derive(Debug)]
pub(super) struct TooSlow;

impl LeastRate {
    pub(super) fn new(window: Duration, steady: bool) -> Self {
        Self { window, steady, waited: Duration::ZERO, bytes: 0 }
    }

    /// Bytes that have to come in a window.
    fn enough(&self) -> u64 {
        (RATE_BYTES_MIN as f64 * self.window.as_secs_f64()) as u64
    }

    /// How long the next bytes may take: to the end of the window, where too few have come in it so far.
    fn patience(&self) -> Duration {
        let slow = self.steady && self.bytes < self.enough();
        if slow { self.window.saturating_sub(self.waited) } else { self.window }
    }

    /// What `next` gives, if it comes in time. The bytes in it are to be counted with [`LeastRate::count`].
    pub(super) async fn wait<T>(&mut self, next: impl Future<Output = T>) -> Result<T, TooSlow> {
        tokio::pin!(next);
        let begun = Instant::now();
        let (patience, mut lived) = (self.patience(), Duration::ZERO);
        while lived < patience {
            tokio::select! {
                biased;
                done = next.as_mut() => {
                    self.waited += lived + begun.elapsed().saturating_sub(lived).min(STEP);
                    return Ok(done);
                }
                step = step(patience - lived) => lived += step,
            }
        }
        Err(TooSlow)
    }

    /// Counts time in which the peer was waited for.
    pub(super) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// Counts bytes; at the end of a window there must have been enough.
    pub(super) fn count(&mut self, bytes: u64) -> Result<(), TooSlow> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.waited < self.window {
            return Ok(());
        }
        let came = std::mem::take(&mut self.bytes);
        self.waited = Duration::ZERO;
        if self.steady && came < self.enough() { Err(TooSlow) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rate_counts_only_time_in_which_the_peer_was_waited_for() {
        let second = Duration::from_secs(1);
        let mut rate = LeastRate::new(10 * second, true);
        // Slow because of us: what comes is there at once.
        for _ in 0..100 {
            tokio::time::sleep(5 * second).await;
            rate.wait(std::future::ready(())).await.unwrap();
            rate.count(1).unwrap();
        }
        // Slow because of the peer.
        let mut came = 0;
        let slow = loop {
            rate.wait(tokio::time::sleep(5 * second)).await.unwrap();
            came += 1;
            if rate.count(1).is_err() {
                break came;
            }
        };
        assert_eq!(slow, 2);
        for _ in 0..100 {
            rate.wait(tokio::time::sleep(second)).await.unwrap();
            rate.count(RATE_BYTES_MIN).unwrap();
        }
        assert!(rate.wait(std::future::pending::<()>()).await.is_err(), "silence");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_drips_is_given_up_at_the_end_of_the_window_and_not_with_its_next_drop() {
        let second = Duration::from_secs(1);
        let (mut rate, begun) = (LeastRate::new(2 * second, true), Instant::now());
        rate.wait(tokio::time::sleep(second)).await.unwrap();
        rate.count(1).unwrap();
        assert!(rate.wait(tokio::time::sleep(20 * second)).await.is_err());
        assert_eq!(begun.elapsed(), 2 * second);
        let mut patient = LeastRate::new(2 * second, false);
        for _ in 0..9 {
            patient.wait(tokio::time::sleep(second)).await.unwrap();
            patient.count(1).unwrap();
        }
    }
}
