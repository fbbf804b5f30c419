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
    /// Limits of clones; `None`, the default, starts none.
    #[serde(default)]
    pub clones: Option<CloneLimits>,
}

/// Limits of clones: speculative attempts of small jobs' tasks that start without a sign of slowness.
///
/// Ananthanarayanan et al., *Effective Straggler Mitigation: Attack of the Clones*, NSDI 2013. Deviations: a task has one
/// clone and not as many as a probability of success asks for; a clone uses only a slot that is free; a reduce is cloned
/// after its segments were fetched once more.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct CloneLimits {
    /// Largest number of tasks of a job that counts as small; 10, as in the paper.
    pub tasks_max: u32,
    /// Slots per speculative attempt above which no clone starts: one slot of this many may run one, and at least one slot
    /// always may; 20, the paper's 5 %.
    pub slots_per_clone: u32,
}

impl Default for CloneLimits {
    fn default() -> Self {
        Self { tasks_max: 10, slots_per_clone: 20 }
    }
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
            clones: None,
        }
    }
}
