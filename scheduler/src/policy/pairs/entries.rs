//! Entries by which the policies of the pairs paper are called by name, as in `--policy pair`. They have the names and
//! parameters of the rules that order a fixed set of jobs.

use super::Pairs;
use super::rule::{POLICIES, RULES};
use crate::catalogue::{Entry, Make};
use crate::policy::interface::Policy;

const fn entry<const PLACE: usize>() -> Entry<dyn Policy> {
    let Entry { name, paper, summary, parameters, .. } = RULES[PLACE];
    let make: Make<dyn Policy> = |arguments| Ok(Box::new(Pairs::new(*(RULES[PLACE].make)(arguments)?)));
    Entry { paper, parameters, ..Entry::new(name, summary, make) }
}

/// Catalogue entries of the policies.
pub(in crate::policy) const ENTRIES: &[Entry<dyn Policy>; POLICIES] = &[
    entry::<0>(),
    entry::<1>(),
    entry::<2>(),
    entry::<3>(),
    entry::<4>(),
    entry::<5>(),
    entry::<6>(),
    entry::<7>(),
    entry::<8>(),
    entry::<9>(),
    entry::<10>(),
];
