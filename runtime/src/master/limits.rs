//! Limits that the parts of the master share.

use std::time::Duration;

/// Interval of heartbeats.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(500);

/// Maximum number of facts entered at once, so that a flood of facts cannot delay orders.
pub(super) const BATCH_MAX: usize = 1024;
