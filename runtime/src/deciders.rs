//! Deciders of a live cluster, which are its policy, placement and estimator: their names, and the objects created from
//! them.

use crate::registry::Registry;
use gristmill_scheduler::estimate::Estimator;
use gristmill_scheduler::placement::Placement;
use gristmill_scheduler::policy::Policy;
use serde::{Deserialize, Serialize};

/// Names of the deciders, each as `name` or `name:parameters`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeciderNames {
    /// Policy: chooses jobs.
    pub policy: String,
    /// Placement: chooses workers.
    pub placement: String,
    /// Estimator: provides job sizes to policies.
    pub estimator: String,
}

/// Deciders created from names.
pub struct MadeDeciders {
    /// The names as given.
    pub names: DeciderNames,
    /// Chooses jobs.
    pub policy: Box<dyn Policy>,
    /// Chooses workers.
    pub placement: Box<dyn Placement>,
    /// Provides job sizes to policies.
    pub estimator: Box<dyn Estimator>,
}

impl DeciderNames {
    /// Creates the deciders, for a live cluster.
    ///
    /// # Errors
    /// An unknown name, invalid parameters, or a decider that can only be simulated.
    pub fn make(self, registry: &Registry) -> Result<MadeDeciders, String> {
        Ok(MadeDeciders {
            policy: registry.make_policy(&self.policy)?,
            placement: registry.make_placement(&self.placement)?,
            estimator: registry.make_estimator(&self.estimator)?,
            names: self,
        })
    }
}
