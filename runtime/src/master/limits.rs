//! Limits that the master's loop and its connections to workers share: the interval of heartbeats, and the number of
//! frames or inputs that are handled at once.

use std::time::Duration;

/// Interval of heartbeats.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(500);

/// Maximum number of facts entered at once, so that a flood of facts cannot delay orders.
pub(super) const BATCH_MAX: usize = 1024;
