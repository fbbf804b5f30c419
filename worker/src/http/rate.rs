//! Minimum rate at which bytes have to be received or sent, so that a peer cannot delay a request byte by byte.
//!
//! Only time spent waiting for a peer counts. Time while this process was stopped counts as at most one short step (see
//! [`super::active_time`]). Complete silence has the same limit and is detected at once, elsewhere.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::active_time::{STEP, step};
use super::limits::RATE_BYTES_MIN;

/// Rate of one stream of bytes, window by window.
#[derive(Debug)]
pub(super) struct LeastRate {
    window: Duration,
    /// True if bytes must arrive at that rate; else only silence counts.
    steady: bool,
    /// Time in this window spent waiting for the peer, and bytes received or sent.
    waited: Duration,
    bytes: u64,
}

/// Error: the peer was silent, or slower than [`RATE_BYTES_MIN`], for a whole window.
#[derive(Debug)]
pub(super) struct TooSlow;

impl LeastRate {
    pub(super) fn new(window: Duration, steady: bool) -> Self {
        Self { window, steady, waited: Duration::ZERO, bytes: 0 }
    }

    /// Returns the minimum bytes of a window.
    fn enough(&self) -> u64 {
        (RATE_BYTES_MIN as f64 * self.window.as_secs_f64()) as u64
    }

    /// Returns the time that the next bytes may take: to the end of the window, if too few have arrived in it so far.
    fn patience(&self) -> Duration {
        let slow = self.steady && self.bytes < self.enough();
        if slow { self.window.saturating_sub(self.waited) } else { self.window }
    }

    /// Returns the result of `next`, if it completes in time. Its bytes are to be counted with [`LeastRate::count`].
    pub(super) async fn wait<T>(&mut self, next: impl Future<Output = T>) -> Result<T, TooSlow> {
        tokio::pin!(next);
        let begun = Instant::now();
        let (patience, mut active) = (self.patience(), Duration::ZERO);
        while active < patience {
            tokio::select! {
                biased;
                done = next.as_mut() => {
                    self.waited += active + begun.elapsed().saturating_sub(active).min(STEP);
                    return Ok(done);
                }
                step = step(patience - active) => active += step,
            }
        }
        Err(TooSlow)
    }

    /// Counts time spent waiting for the peer.
    pub(super) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// Counts bytes; fails at the end of a window with too few.
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
        // This process is slow: data is available at once.
        for _ in 0..100 {
            tokio::time::sleep(5 * second).await;
            rate.wait(std::future::ready(())).await.unwrap();
            rate.count(1).unwrap();
        }
        // The peer is slow.
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
