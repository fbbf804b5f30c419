//! Generated workloads by name, with parameters: `overlap:load=0.9,jobs=1000000`.

use super::Job;
use crate::catalogue::{self, CatalogueError, Entry};

/// Generator of jobs.
pub trait Generator: Send + Sync {
    /// Returns the jobs of this seed, in the order of arrival; the same seed gives the same jobs.
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_>;
}

/// Returns all generators.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Generator>> {
    ENTRIES.iter().copied().flatten().collect()
}

/// Creates the generator of this text, `name` or `name:parameter=value,...`.
///
/// # Errors
/// An unknown name, with the known ones and the nearest, or parameters that it rejects.
pub fn by_name(text: &str) -> Result<Box<dyn Generator>, CatalogueError> {
    catalogue::call(&catalogue(), "workload", text)
}

const ENTRIES: &[&[Entry<dyn Generator>]] = &[
    super::asrpt::ENTRIES,
    super::deadlines::ENTRIES,
    super::mix::ENTRIES,
    super::overlap::ENTRIES,
    super::pairs::ENTRIES,
    super::stragglers::ENTRIES,
];
