//! Largest resident memory of the worker's process, read seldom enough for many short maps.

use crate::machine;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Minimum interval at which the memory of this process is read for maps, which may be many and short.
const MEMORY_LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Largest resident memory of this process so far.
#[derive(Debug, Default)]
pub struct MemoryPeak {
    bytes: AtomicU64,
    looked_ns: AtomicU64,
}

impl MemoryPeak {
    /// Returns the current peak, or that of a moment ago unless `exactly`; 0 where the system does not
    /// report it. `now_ns` is the worker's clock.
    pub(super) fn bytes(&self, now_ns: u64, exactly: bool) -> u64 {
        let looked = self.looked_ns.load(Ordering::Relaxed);
        if exactly
            || looked == 0
            || MEMORY_LOOK_INTERVAL.as_nanos() < u128::from(now_ns.saturating_sub(looked))
        {
            self.looked_ns.store(now_ns, Ordering::Relaxed);
            self.bytes.fetch_max(machine::resident_peak_bytes(), Ordering::Relaxed);
        }
        self.bytes.load(Ordering::Relaxed)
    }
}
