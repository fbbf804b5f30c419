//! A core written down whole, and another that goes on from that.
//!
//! The ledger alone is kept. Who decides begins anew and sees the live jobs as if they arrived now, as after
//! [`Core::decide_by`]; what the estimator has learned is kept by whoever keeps [`Core::memory`].

use crate::core::Core;
use crate::core::CoreConfig;
use crate::estimate::Estimator;
use crate::ledger::{Ledger, RunChange};
use crate::placement::Placement;
use crate::policy::Policy;
use serde::{Deserialize, Serialize};

/// A core to be written down. Fields of bounded size are written by their place, so a reader must be of the same build.
#[derive(Serialize)]
pub struct CoreToSave<'a> {
    ledger: &'a Ledger,
    shuffle_revision: u64,
}

/// A core that was written down.
#[derive(Debug, Deserialize)]
pub struct SavedCore {
    ledger: Ledger,
    shuffle_revision: u64,
}

impl Core {
    /// All that another core needs to go on from here, between two calls of [`Core::handle`]; `None` while the policy has
    /// not seen yet that a job is over.
    #[must_use]
    pub fn to_save(&self) -> Option<CoreToSave<'_>> {
        let seen = self.ledger.unseen.left.is_empty();
        seen.then_some(CoreToSave { ledger: &self.ledger, shuffle_revision: self.shuffle_revision })
    }

    /// The limits in force.
    #[must_use]
    pub fn config(&self) -> &CoreConfig {
        &self.ledger.config
    }

    /// A core that goes on from one that was written down, with the limits in force then. The next call of
    /// [`Core::handle`] plans, and asks for a wake.
    ///
    /// # Panics
    /// If the policy suspends maps, which no worker can.
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
        ledger.find_owners();
        ledger.decide_anew();
        ledger.workers.moved = ledger.workers.live.keys().copied().collect();
        for (id, job) in &mut ledger.jobs {
            let attempts = &ledger.attempts;
            let began = |attempt| attempts.get(attempt).map(|attempt| RunChange::Began(attempt.started));
            job.attempts.run_changes = job.attempts.runs.iter().filter_map(began).collect();
            ledger.unseen.arrived.push(*id);
        }
        core
    }
}
