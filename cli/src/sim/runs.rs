//! All runs of one policy.

use gristmill_scheduler::metrics::RunMetrics;

/// All runs of one policy.
pub(super) struct PolicyRuns {
    /// The policy on the command line.
    pub(super) policy: String,
    /// Results by seed, starting with the first.
    pub(super) outcomes: Vec<RunMetrics>,
}
