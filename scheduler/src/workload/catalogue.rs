//! Generated workloads by name, with parameters: `overlap:load=0.9,jobs=1000000`.

use super::Job;
use crate::catalogue::Entry;

/// Generator of jobs.
pub trait Generator: Send + Sync {
    /// Returns the jobs of this seed, in the order of arrival; the same seed gives the same jobs.
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_>;
}

/// Returns the generators, without those of the papers' experiments.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Generator>> {
    [super::mix::ENTRIES, super::overlap::ENTRIES].into_iter().flatten().collect()
}

/// Creates the generator of this text.
#[cfg(test)]
pub(crate) fn by_name(text: &str) -> Result<Box<dyn Generator>, crate::catalogue::CatalogueError> {
    crate::catalogue::call(&catalogue(), "workload", text)
}
