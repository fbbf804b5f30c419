//! Generators of the papers' workloads, which `lab sim --workload` calls by their names.

pub(crate) mod asrpt;
pub(crate) mod deadlines;
pub(crate) mod overlap_trace;
pub(crate) mod pairs;
#[cfg(test)]
mod tests;

use gristmill_scheduler::catalogue::Entry;
use gristmill_scheduler::workload::{self, Generator};

/// Returns the generators of the papers that can be called by name, and those of the scheduler.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Generator>> {
    let mut entries = workload::catalogue();
    entries.extend([&asrpt::ENTRY, &deadlines::ENTRY]);
    entries.sort_by_key(|entry| entry.name);
    entries
}
