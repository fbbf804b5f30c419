//! Suffixes of a policy's name that switch on mechanisms for running tasks.

use crate::core::{BackupLimits, CloneLimits, CoreConfig, DivideLimits};

/// Mechanisms of a run for running tasks: divide them, back up slow ones, clone those of small jobs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mechanisms([bool; 3]);

impl Mechanisms {
    /// Suffixes, which can be in any order. `+clone` backs up slow tasks too.
    pub const NAMES: [&str; 3] = ["+divide", "+backup", "+clone"];

    /// Returns a policy without its suffixes, and these.
    #[must_use]
    pub fn split(mut policy: &str) -> (&str, Self) {
        let mut found = Self::default();
        while let Some((place, rest)) =
            Self::NAMES.iter().enumerate().find_map(|(place, name)| Some((place, policy.strip_suffix(name)?)))
        {
            (policy, found.0[place]) = (rest, true);
        }
        (policy, found)
    }

    /// Sets the limits of these mechanisms to their defaults, and removes those of others.
    pub fn set(self, core: &mut CoreConfig) {
        let [divides, backs_up, clones] = self.0;
        core.dividing = divides.then(DivideLimits::default);
        let clones = clones.then(CloneLimits::default);
        let backs_up = backs_up || clones.is_some();
        core.backups = backs_up.then(|| BackupLimits { clones, ..BackupLimits::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_split_off_in_any_order_and_nothing_else_is() {
        assert_eq!(Mechanisms::split("fair"), ("fair", Mechanisms([false; 3])));
        assert_eq!(Mechanisms::split("fair+divide"), ("fair", Mechanisms([true, false, false])));
        let both = ("asrpt:slot=1s", Mechanisms([true, false, true]));
        assert_eq!(Mechanisms::split("asrpt:slot=1s+divide+clone"), both);
        assert_eq!(Mechanisms::split("asrpt:slot=1s+clone+divide"), both);
        assert_eq!(Mechanisms::split("fair+other"), ("fair+other", Mechanisms([false; 3])));
    }
}
