//! Parameters of the modelled system, and service of one slot.

use crate::policy::Policy;
use crate::units::Time;

/// Parameters of the modelled system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Number of machines, at least 1.
    pub machines: u32,
    /// True if reduces can be interrupted and spread over machines.
    pub preemptive: bool,
    /// True if reduces wait for the slot after their job's last map. Without it the model is that of Lemma 1, in which
    /// SRPT is optimal.
    pub precedence: bool,
}

impl Config {
    /// Creates the model for this policy: preemptive if requested or required; without precedence only for the bound
    /// `srpt`.
    #[must_use]
    pub fn for_policy(policy: &dyn Policy, machines: u32, preemptive: bool) -> Self {
        let bound = policy.name() == "srpt";
        Self { machines, preemptive: preemptive || policy.preempts() || bound, precedence: !bound }
    }
}

/// Service of one job in one slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotService {
    /// Index of the job in the order of arrival, from 0.
    pub seq: u64,
    /// Number of machines that worked on its maps.
    pub maps: u32,
    /// Number of machines that worked on its reduces.
    pub reduces: u32,
}

pub(super) fn time_of(seconds: f64) -> Time {
    Time((seconds * 1e9) as u64)
}
