//! When tasks get a backup.

use crate::units::Span;

/// Limits of backups.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct BackupLimits {
    /// One slot of so many may run a backup, and one in any case; 5.
    pub slots_per_backup: u32,
    /// An attempt is slow that takes so many times as long as its peers, and a worker whose attempts do; 2.
    pub slow_times: u32,
    /// Tasks of the same job and kind that must have ended well before any other counts as slow; 2.
    pub peers_min: u32,
    /// How long an attempt runs before it gets a backup; 200 ms.
    pub run_min: Span,
    /// Tasks that take less say nothing about the speed of their worker; 100 ms.
    pub judge_min: Span,
    /// How far apart looks for slow attempts are at least; 50 ms. Each costs a little for each running attempt.
    pub look_after: Span,
    /// Backups of one task that may fail; 2.
    pub failures_max: u32,
}

impl Default for BackupLimits {
    fn default() -> Self {
        Self {
            slots_per_backup: 5,
            slow_times: 2,
            peers_min: 2,
            run_min: Span::milliseconds(200),
            judge_min: Span::milliseconds(100),
            look_after: Span::milliseconds(50),
            failures_max: 2,
        }
    }
}
