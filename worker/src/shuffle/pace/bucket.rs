//! Token bucket of bytes that fills at a rate.

use gristmill_scheduler::units::Time;
use std::num::NonZeroU64;

/// Minimum capacity of a bucket in bytes.
const BURST_BYTES_MIN: u64 = 64 << 10;

/// Capacity as a fraction of a second's bytes, if that is more: 10 ms, because timers have a resolution of 1 ms.
const BURSTS_PER_SECOND: u64 = 100;

/// Bytes that may pass, growing at a rate up to a burst. Pure. A caller may take more than is available, if anything
/// is; the next one then waits longer.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    bytes_per_second: u64,
    pub(super) burst_bytes: u64,
    /// Level in byte-nanoseconds, so that rounding loses nothing: a byte is [`NANOSECONDS`] of them.
    level: i128,
    /// Time of that level.
    at: Time,
}

impl TokenBucket {
    /// Creates a full bucket.
    #[must_use]
    pub fn new(bytes_per_second: NonZeroU64, now: Time) -> Self {
        let bytes_per_second = bytes_per_second.get();
        let burst_bytes = (bytes_per_second / BURSTS_PER_SECOND).max(BURST_BYTES_MIN);
        Self { bytes_per_second, burst_bytes, level: i128::from(burst_bytes) * NANOSECONDS, at: now }
    }

    fn fill(&mut self, now: Time) {
        let gained = i128::from(now.since(self.at).0) * i128::from(self.bytes_per_second);
        self.level = (self.level + gained).min(i128::from(self.burst_bytes) * NANOSECONDS);
        self.at = now.max(self.at);
    }

    /// Returns the time from `now` on when something can be taken.
    #[must_use]
    pub(crate) fn ready_at(&self, now: Time) -> Time {
        let lacking = 1 - self.level;
        if lacking <= 0 {
            return now;
        }
        let rate = i128::from(self.bytes_per_second);
        let span = u64::try_from((lacking + rate - 1) / rate).unwrap_or(u64::MAX);
        now.max(Time(self.at.0.saturating_add(span)))
    }

    /// Takes this many bytes if anything can be taken.
    pub fn take(&mut self, bytes: u64, now: Time) -> bool {
        self.fill(now);
        let any = 0 < self.level;
        if any {
            self.level -= i128::from(bytes) * NANOSECONDS;
        }
        any
    }
}

/// Nanoseconds in a second.
const NANOSECONDS: i128 = 1_000_000_000;
