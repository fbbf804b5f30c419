//! Names of the policy, placement and estimator in force on this master, and the registry that creates another policy
//! or placement when a user changes it.

use crate::deciders::DeciderNames;
use crate::registry::Registry;
use gristmill_scheduler::core::{Core, PolicyPanics};

/// Names of the current deciders, and the registry that creates others.
pub(crate) struct LiveDeciders {
    /// Creates policies and placements.
    pub(super) registry: Registry,
    /// Names and parameters as text.
    pub(super) names: DeciderNames,
    /// Panics of the policy counted at the last report.
    panics_reported: u64,
}

impl LiveDeciders {
    pub(crate) fn new(registry: Registry, names: DeciderNames) -> Self {
        Self { registry, names, panics_reported: 0 }
    }

    /// Reports panics of the policy: the first, second, fourth, eighth and so on.
    pub(super) fn report_panics(&mut self, core: &Core) {
        let PolicyPanics { count, last } = core.policy_panics();
        // Another policy counts from 0.
        let said = self.panics_reported.min(*count);
        if said.checked_ilog2() < count.checked_ilog2() {
            tracing::error!(policy = %self.names.policy, count, panic = %last, "the policy panicked: fifo decided instead");
        }
        self.panics_reported = *count;
    }
}
