//! The trait that a generator of jobs implements, from a seed to jobs in the order of arrival.

use super::Job;

/// Generator of jobs.
pub trait Generator: Send + Sync {
    /// Returns the jobs of this seed, in the order of arrival; the same seed gives the same jobs.
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_>;
}
