//! Generators of the papers' workloads.

pub(crate) mod asrpt;
pub(crate) mod deadlines;
pub(crate) mod overlap_trace;
pub(crate) mod pairs;
mod stragglers;
#[cfg(test)]
mod tests;

use gristmill_scheduler::catalogue::{self, CatalogueError, Entry};
use gristmill_scheduler::workload::{self, Generator};

/// Returns the generators of the papers and of the scheduler, by name.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Generator>> {
    let papers =
        [asrpt::ENTRIES, deadlines::ENTRIES, overlap_trace::ENTRIES, pairs::ENTRIES, stragglers::ENTRIES];
    let mut entries = workload::catalogue();
    entries.extend(papers.into_iter().flatten());
    entries.sort_by_key(|entry| entry.name);
    entries
}

/// Creates the generator of this text, `name` or `name:parameter=value,...`.
pub(crate) fn by_name(text: &str) -> Result<Box<dyn Generator>, CatalogueError> {
    catalogue::call(&catalogue(), "workload", text)
}
