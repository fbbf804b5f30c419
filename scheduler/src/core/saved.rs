//! Saves a core as a whole, and restores it.
//!
//! Only the ledger is saved. Policy and placement start again and see the live jobs as if they arrived now, as after
//! [`Core::decide_by`]. The caller saves [`Core::memory`] of the estimator separately.

use crate::core::Core;
use crate::core::CoreConfig;
use crate::estimate::Estimator;
use crate::ledger::quotas::Owners;
use crate::ledger::{Ledger, RunChange};
use crate::placement::Placement;
use crate::policy::Policy;
use serde::{Deserialize, Serialize};

/// Core to be saved. Fields of fixed size are written by position, so the reader must be the same build.
#[derive(Serialize)]
pub struct CoreToSave<'a> {
    ledger: &'a Ledger,
    shuffle_revision: u64,
}

/// Core that was saved.
#[derive(Debug, Deserialize)]
pub struct SavedCore {
    ledger: Ledger,
    shuffle_revision: u64,
}

impl Core {
    /// Returns all that another core needs to continue from here, between two calls of [`Core::handle`]; `None` while
    /// the policy has not yet seen the end of a job.
    #[must_use]
    pub fn to_save(&self) -> Option<CoreToSave<'_>> {
        let seen = self.ledger.unseen.left.is_empty();
        seen.then_some(CoreToSave { ledger: &self.ledger, shuffle_revision: self.shuffle_revision })
    }

    /// Returns the limits in force.
    #[must_use]
    pub fn config(&self) -> &CoreConfig {
        &self.ledger.config
    }

    /// Restores a core from a saved one, with the limits in force then. The next call of [`Core::handle`] plans, and
    /// requests a wake.
    ///
    /// # Panics
    /// If the policy suspends maps, which no worker supports.
    #[must_use]
    pub fn go_on_from(
        saved: SavedCore,
        config: CoreConfig,
        policy: Box<dyn Policy>,
        placement: Box<dyn Placement>,
        estimator: Box<dyn Estimator>,
    ) -> Self {
        let mut core = Self::new(config, policy, placement).with_estimator(estimator);
        let empty = std::mem::replace(&mut core.ledger, saved.ledger);
        core.shuffle_revision = saved.shuffle_revision + 1;
        let ledger = &mut core.ledger;
        (ledger.config, ledger.preempts) = (empty.config, empty.preempts);
        ledger.owners = Owners::from_jobs(ledger.jobs.values());
        ledger.reset_decisions();
        ledger.workers.moved = ledger.workers.live.keys().copied().collect();
        for (id, job) in &mut ledger.jobs {
            let attempts = &ledger.attempts;
            let began = |attempt| attempts.get(attempt).map(|attempt| RunChange::Started(attempt.started));
            job.attempts.run_changes = job.attempts.runs.iter().filter_map(began).collect();
            ledger.unseen.arrived.push(*id);
        }
        core
    }
}
