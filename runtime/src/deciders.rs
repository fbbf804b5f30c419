//! Who decides on a live cluster: the names that people write, and what is made of them.

use crate::registry::Registry;
use gristmill_scheduler::estimate::Estimator;
use gristmill_scheduler::placement::Placement;
use gristmill_scheduler::policy::Policy;
use serde::{Deserialize, Serialize};

/// Who decides, each as `name` or `name:parameters`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeciderNames {
    /// Chooses jobs.
    pub policy: String,
    /// Chooses workers.
    pub placement: String,
    /// Tells policies how large jobs are.
    pub estimator: String,
}

/// What the names stand for.
pub struct MadeDeciders {
    /// As they were written.
    pub names: DeciderNames,
    /// Chooses jobs.
    pub policy: Box<dyn Policy>,
    /// Chooses workers.
    pub placement: Box<dyn Placement>,
    /// Tells policies how large jobs are.
    pub estimator: Box<dyn Estimator>,
}

impl DeciderNames {
    /// Makes them, for a live cluster.
    ///
    /// # Errors
    /// A name that is not known, parameters that do not fit it, or one that can only be simulated.
    pub fn make(self, registry: &Registry) -> Result<MadeDeciders, String> {
        Ok(MadeDeciders {
            policy: registry.make_policy(&self.policy)?,
            placement: registry.make_placement(&self.placement)?,
            estimator: registry.make_estimator(&self.estimator)?,
            names: self,
        })
    }
}
