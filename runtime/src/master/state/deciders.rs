//! The deciders by name, and their replacement while jobs run.

use super::MasterState;
use crate::api::{ApiError, ErrorCode, EstimatorMemory, PolicyChange};
use crate::deciders::DeciderNames;
use crate::journal::JournalRecord;
use crate::registry::Registry;
use gristmill_scheduler::core::PolicyPanics;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::units::Time;

/// Names of the current deciders, and the registry that creates others.
pub(crate) struct LiveDeciders {
    /// Creates policies and placements.
    pub registry: Registry,
    /// Names and parameters as text.
    pub names: DeciderNames,
}

impl MasterState {
    /// Names of the current deciders.
    pub(crate) fn deciders(&self) -> &DeciderNames {
        &self.deciders.names
    }

    /// Panics of the policy, after which `fifo` decided instead.
    pub(crate) fn policy_panics(&self) -> &PolicyPanics {
        self.core.policy_panics()
    }

    /// Reports panics of the policy: the first, second, fourth, eighth and so on.
    pub(super) fn report_policy_panics(&mut self) {
        let PolicyPanics { count, last } = self.core.policy_panics();
        // Another policy counts from 0.
        let said = self.policy_panics_reported.min(*count);
        if said.checked_ilog2() < count.checked_ilog2() {
            tracing::error!(policy = %self.deciders.names.policy, count, panic = %last, "the policy panicked: fifo decided instead");
        }
        self.policy_panics_reported = *count;
    }

    /// Replaces the deciders. Running tasks continue.
    ///
    /// # Errors
    /// Invalid names or parameters, or a decider that cannot decide live. Nothing has changed then.
    pub(crate) fn change_policy(&mut self, now: Time, change: PolicyChange) -> Result<(), ApiError> {
        let policy = change.policy.unwrap_or_else(|| self.deciders.names.policy.clone());
        let placement = change.placement.unwrap_or_else(|| self.deciders.names.placement.clone());
        let refuse = |code, message| ApiError { code, message };
        let registry = &self.deciders.registry;
        let made = registry.make_policy(&policy).map_err(|reason| refuse(ErrorCode::Policy, reason))?;
        let made_placement =
            registry.make_placement(&placement).map_err(|reason| refuse(ErrorCode::Placement, reason))?;
        // Earlier facts are decided by the earlier deciders.
        self.settle(now);
        self.core.decide_by(made, made_placement);
        tracing::info!(%policy, %placement, "others decide from now on");
        self.journal.note(|| JournalRecord::DecideBy {
            at: now,
            policy: policy.clone(),
            placement: placement.clone(),
        });
        (self.deciders.names.policy, self.deciders.names.placement) = (policy, placement);
        self.events.push(Event::Tick);
        self.settle(now);
        Ok(())
    }

    /// Replaces the memory of the estimator.
    ///
    /// # Errors
    /// Live jobs, whose sizes it has already estimated, or the memory of another estimator or of none. Nothing has
    /// changed then.
    pub(crate) fn restore_memory(&mut self, now: Time, memory: EstimatorMemory) -> Result<(), ApiError> {
        let refuse = |message| Err(ApiError { code: ErrorCode::Estimator, message });
        let estimator = self.deciders.names.estimator.clone();
        if memory.estimator != estimator {
            return refuse(format!(
                "the memory is that of the estimator `{}`, and the master has `{estimator}`",
                memory.estimator
            ));
        }
        let jobs = self.jobs_live();
        if 0 < jobs {
            return refuse(format!(
                "{jobs} job(s) have not ended: what the estimator knows can change only while there are none"
            ));
        }
        self.settle(now);
        if let Err(reason) = self.core.restore_memory(&memory.memory) {
            return refuse(reason);
        }
        tracing::info!(%estimator, "the estimator knows from now on what was put back");
        self.journal.note(|| JournalRecord::Memory { at: now, memory: memory.memory });
        self.pending.learned = true;
        Ok(())
    }
}
