//! The runs of one policy in `lab sim`, one for each seed, from which a row of its table is made.

use gristmill_scheduler::metrics::RunMetrics;

/// All runs of one policy.
pub(super) struct PolicyRuns {
    /// The policy on the command line.
    pub(super) policy: String,
    /// Results by seed, starting with the first.
    pub(super) outcomes: Vec<RunMetrics>,
}
