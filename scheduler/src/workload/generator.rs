//! Interface of generators of jobs.

use super::Job;

/// Generator of jobs.
pub trait Generator: Send + Sync {
    /// Returns the jobs of this seed, in the order of arrival; the same seed gives the same jobs.
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_>;
}
