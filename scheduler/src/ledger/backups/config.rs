//! Limits of speculative attempts: how slow a task must be, and how many attempts run at once.

use crate::units::Span;

/// Limits of speculative attempts.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct BackupLimits {
    /// Slots per speculative attempt: one slot of this many may run one, and at least one slot always may; 5.
    pub slots_per_backup: u32,
    /// An attempt is slow if it takes this many times as long as its peers, and so is a worker whose attempts do; 2.
    pub slow_times: u32,
    /// Number of tasks of the same job and kind that must succeed before any other counts as slow; 2.
    pub peers_min: u32,
    /// Minimum run time of an attempt before a speculative attempt starts; 200 ms.
    pub run_min: Span,
    /// Tasks shorter than this are not used to judge the speed of a worker; 100 ms.
    pub judge_min: Span,
    /// Minimum interval between searches for slow attempts; 50 ms. Each search costs a little per running attempt.
    pub look_after: Span,
    /// Maximum number of failed speculative attempts per task; 2.
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
