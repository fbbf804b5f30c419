//! Active time of this process: time while it is stopped, or its machine sleeps, counts as at most one short step.
//!
//! A peer must not be given up for a silence of this process: what it sent in the meantime is still unread. Callers
//! define the timeouts.

use std::time::Duration;

/// Maximum length of one unobserved interval that counts.
pub(super) const STEP: Duration = Duration::from_millis(250);

/// Completes after this span of active time.
pub(super) async fn active_time(span: Duration) {
    let mut left = span;
    while !left.is_zero() {
        left = left.saturating_sub(step(left).await);
    }
}

/// Waits for one step of the remaining time. Returns its nominal length, however long it took.
pub(super) async fn step(left: Duration) -> Duration {
    let step = left.min(STEP);
    tokio::time::sleep(step).await;
    step
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    #[tokio::test(start_paused = true)]
    async fn silence_of_a_process_that_stood_still_does_not_count() {
        let waiting = active_time(Duration::from_secs(30));
        tokio::pin!(waiting);
        for _ in 0..10 {
            assert!(
                std::future::poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context)))
                    .await
                    .is_pending()
            );
            // The process is stopped for an hour: the clock jumps, and timers are late.
            tokio::time::advance(Duration::from_secs(3600)).await;
        }
        let start = tokio::time::Instant::now();
        waiting.await;
        let lived = start.elapsed();
        assert!(Duration::from_secs(27) < lived && lived < Duration::from_secs(31), "{lived:?}");
    }
}
