//! Numbers and weights of pools, and numbers of the tokens with a quota of slots.

use crate::api::{ApiError, ErrorCode, JobOwner};
use gristmill_scheduler::catalogue::nearest;
use gristmill_scheduler::job::SlotQuota;
use std::collections::BTreeMap;

/// Maximum number of distinct pool names, if any name is a pool.
const POOLS_MAX: usize = 10_000;

/// Pools and token owners by name.
pub(super) struct Pools {
    /// Numbers of the pools that were named.
    pub(super) numbers: BTreeMap<String, u32>,
    /// Weights of the defined pools. If empty, every name is a pool.
    weights: BTreeMap<String, f64>,
    /// Numbers of tokens with a quota of slots.
    pub(super) owners: BTreeMap<String, u32>,
}

impl Pools {
    pub(super) fn new(weights: BTreeMap<String, f64>) -> Self {
        let numbers = (0..).zip(weights.keys()).map(|(number, name)| (name.clone(), number)).collect();
        Self { numbers, weights, owners: BTreeMap::new() }
    }

    /// Number of a pool; a new name gets the next number.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(name.to_owned()).or_insert(next)
    }

    /// Weight of a pool, if it is defined.
    pub(super) fn weight(&self, name: &str) -> Option<f64> {
        self.weights.get(name).copied()
    }

    /// Checks the pool: if pools are defined, no other is accepted.
    pub(super) fn check(&self, pool: Option<&str>) -> Result<(), ApiError> {
        let Some(pool) = pool.filter(|pool| !self.numbers.contains_key(*pool)) else { return Ok(()) };
        let refuse = |message| Err(ApiError { code: ErrorCode::Pool, message });
        if self.weights.is_empty() {
            return match self.numbers.len() < POOLS_MAX {
                true => Ok(()),
                false => refuse(format!("there are {POOLS_MAX} pools already, and `{pool}` is none of them")),
            };
        }
        let near = nearest(pool, self.numbers.keys().map(String::as_str));
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let known: Vec<&str> = self.numbers.keys().map(String::as_str).collect();
        refuse(format!("there is no pool `{pool}`; {near}There is {}", known.join(", ")))
    }

    /// Slot quota that the core enforces for a job.
    pub(super) fn slot_quota(&mut self, owner: Option<&JobOwner>) -> Option<SlotQuota> {
        let JobOwner { token, quota } = owner?;
        let slots_max = quota.slots_max?;
        let next = self.owners.len() as u32;
        let owner = *self.owners.entry(token.clone()).or_insert(next);
        Some(SlotQuota { owner, slots_max })
    }
}
