//! Catalogue entries of the pairs rules.

use super::rule::RULES;
use super::{Pairs, rule};
use crate::catalogue::{ArgumentError, Arguments, Entry};
use crate::policy::Policy;

const fn entry(
    place: usize,
    make: fn(&mut Arguments<'_>) -> Result<Box<dyn Policy>, ArgumentError>,
) -> Entry<dyn Policy> {
    let Entry { name, aliases, paper, summary, parameters, only_simulated, .. } = RULES[place];
    Entry { name, aliases, paper, summary, parameters, only_simulated, make }
}

pub(super) fn policy(place: usize, arguments: &mut Arguments<'_>) -> Result<Box<dyn Policy>, ArgumentError> {
    let rule = (RULES[place].make)(arguments)?;
    Ok(Box::new(Pairs::new(*rule)))
}

/// Catalogue entries of the policies.
pub(in crate::policy) const ENTRIES: &[Entry<dyn Policy>; rule::POLICIES] = &[
    entry(0, |arguments| policy(0, arguments)),
    entry(1, |arguments| policy(1, arguments)),
    entry(2, |arguments| policy(2, arguments)),
    entry(3, |arguments| policy(3, arguments)),
    entry(4, |arguments| policy(4, arguments)),
    entry(5, |arguments| policy(5, arguments)),
    entry(6, |arguments| policy(6, arguments)),
    entry(7, |arguments| policy(7, arguments)),
    entry(8, |arguments| policy(8, arguments)),
    entry(9, |arguments| policy(9, arguments)),
    entry(10, |arguments| policy(10, arguments)),
];
