//! Rules of the pairs paper by name, as functions from sizes to an order.

mod entries;

use super::grouped::{OnlineGroups, group};
use super::matched::{Schedule, matched, n_couple};
use super::optimum;
use super::sequence::{self, Averages, OrderTimes};
use super::sorted::{JobBlocks, by_priority, max_diff, max_shuffle, max_srpt, pairwise};
use crate::catalogue;
use crate::catalogue::{CatalogueError, Entry};
use crate::job::Size;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

pub(super) use entries::POLICIES;
pub use entries::RULES;

/// Rule that orders jobs by their sizes, with its parameters: `delta` in seconds, `alpha` in 0..=1, `k` at least 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PairsRule {
    /// By `m - s`.
    MaxDiff,
    /// All jobs in pairs.
    Pairwise,
    /// By `s`, largest first.
    MaxShuffle,
    /// By `max(m, s)` on arrival, the paper's baseline. The policy `max-srpt` is that of the overlap paper, which uses
    /// remaining sizes.
    MaxSrpt,
    /// Algorithm 1.
    Pair {
        /// Step of priorities.
        delta: f64,
    },
    /// Algorithm 2.
    Couple {
        /// Step of priorities.
        delta: f64,
    },
    /// Algorithm 3.
    Generalized {
        /// Step of priorities.
        delta: f64,
        /// Part of the dominant workload in the priority.
        alpha: f64,
    },
    /// Algorithm 4.
    Group {
        /// Part of the dominant workload in the priority.
        alpha: f64,
        /// Number of groups.
        k: usize,
    },
    /// Algorithm 5.
    OnlineGroup {
        /// Part of the dominant workload in the priority.
        alpha: f64,
        /// Number of groups.
        k: usize,
        /// Seed of the draws.
        seed: u64,
    },
    /// Algorithm 6.
    NewCouple {
        /// Step of both workloads.
        delta: f64,
    },
    /// Algorithm 7.
    Match {
        /// Part of the pairing degree in the weight.
        alpha: f64,
    },
    /// Algorithm 8.
    OnlineMatch {
        /// Part of the pairing degree in the weight.
        alpha: f64,
        /// Seed of the draws.
        seed: u64,
    },
}

impl PairsRule {
    /// Returns its name, as in `--policy`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            PairsRule::MaxDiff => "max-diff",
            PairsRule::Pairwise => "pairwise",
            PairsRule::MaxShuffle => "max-shuffle",
            PairsRule::MaxSrpt => "max-srpt",
            PairsRule::Pair { .. } => "pair",
            PairsRule::Couple { .. } => "couple",
            PairsRule::Generalized { .. } => "generalized",
            PairsRule::Group { .. } => "group",
            PairsRule::OnlineGroup { .. } => "o-group",
            PairsRule::NewCouple { .. } => "n-couple",
            PairsRule::Match { .. } => "match",
            PairsRule::OnlineMatch { .. } => "o-match",
        }
    }

    /// Returns the order of jobs that are all present; the online rules receive them one after the other.
    #[must_use]
    pub fn blocks(&self, jobs: &[Size]) -> JobBlocks {
        match *self {
            PairsRule::MaxDiff => max_diff(jobs),
            PairsRule::Pairwise => pairwise(jobs),
            PairsRule::MaxShuffle => max_shuffle(jobs),
            PairsRule::MaxSrpt => max_srpt(jobs),
            PairsRule::Pair { delta } => by_priority(jobs, delta, Size::dominant),
            PairsRule::Couple { delta } => by_priority(jobs, delta, Size::total),
            PairsRule::Generalized { delta, alpha } => by_priority(jobs, delta, |job| job.blend(alpha)),
            PairsRule::Group { alpha, k } => group(jobs, alpha, k),
            PairsRule::NewCouple { delta } => n_couple(jobs, delta),
            PairsRule::Match { alpha } => matched(jobs, alpha),
            PairsRule::OnlineGroup { alpha, k, seed } => {
                let (mut groups, mut draws) = (OnlineGroups::new(alpha, k), ChaCha8Rng::seed_from_u64(seed));
                for (id, &job) in (0..).zip(jobs) {
                    groups.arrive(id, job, draws.random());
                }
                let index = |ids: Vec<u64>| ids.into_iter().map(|id| id as usize).collect();
                groups.blocks().into_iter().map(index).collect()
            }
            PairsRule::OnlineMatch { alpha, seed } => {
                let (mut schedule, mut draws) = (Schedule::new(alpha), ChaCha8Rng::seed_from_u64(seed));
                for (id, &job) in (0..).zip(jobs) {
                    schedule.arrive(id, job, draws.random());
                }
                schedule.order().map(|id| vec![id as usize]).collect()
            }
        }
    }

    /// Returns the concatenated blocks of [`PairsRule::blocks`].
    #[must_use]
    pub fn order(&self, jobs: &[Size]) -> Vec<usize> {
        self.blocks(jobs).concat()
    }
}

/// Jobs in the order of a rule.
#[derive(Clone, PartialEq, Debug)]
pub struct OrderedJobs {
    /// Indices in the order of execution.
    pub order: Vec<usize>,
    /// The same indices, split into units of the rule: pairs, groups, jobs of one priority.
    pub blocks: JobBlocks,
    /// Times by index of the job.
    pub times: Vec<OrderTimes>,
    /// Means over the jobs.
    pub averages: Averages,
    /// Minimum average makespan of all orders, if there are few enough jobs to try all.
    pub optimum: Option<f64>,
}

/// Error of ordering jobs.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// Unknown rule, or parameters that it rejects.
    #[error(transparent)]
    Rule(CatalogueError),
    /// No job to order.
    #[error("there is no job to order")]
    Empty,
    /// A size out of range.
    #[error("job {index}: `{field}` is {value}, which is not a number of seconds from 0 to {:e}", SIZE_MAX)]
    Size {
        /// Index of the job.
        index: usize,
        /// Given value.
        field: &'static str,
        /// As given.
        value: f64,
    },
}

/// Maximum size of a job in seconds; sums of sizes are finite.
pub const SIZE_MAX: f64 = 1e100;

/// Parses a rule, `name` or `name:parameter=value,...`.
///
/// # Errors
/// Unknown rule, or parameters that it rejects.
pub fn rule(text: &str) -> Result<PairsRule, CatalogueError> {
    const ENTRIES: &[Entry<PairsRule>; POLICIES + 1] = &RULES;
    let entries: Vec<&'static Entry<PairsRule>> = ENTRIES.iter().collect();
    catalogue::call(&entries, "order", text).map(|rule| *rule)
}

/// Orders jobs, (map, shuffle) in seconds at full use, by the rule of this text.
///
/// # Errors
/// Unknown rule, parameters that it rejects, no jobs, or a size that is negative, not finite or above [`SIZE_MAX`].
pub fn order(text: &str, jobs: &[(f64, f64)]) -> Result<OrderedJobs, OrderError> {
    let rule = rule(text).map_err(OrderError::Rule)?;
    if jobs.is_empty() {
        return Err(OrderError::Empty);
    }
    for (index, &(map, shuffle)) in jobs.iter().enumerate() {
        for (field, value) in [("map", map), ("shuffle", shuffle)] {
            if !(0.0..=SIZE_MAX).contains(&value) {
                return Err(OrderError::Size { index, field, value });
            }
        }
    }
    let jobs: Vec<Size> = jobs.iter().copied().map(Size::from).collect();
    let blocks = rule.blocks(&jobs);
    let order = blocks.concat();
    let times = sequence::times(&jobs, &order);
    let averages = sequence::averages(&times);
    let few = jobs.len() <= optimum::JOBS_MAX;
    let optimum = few.then(|| optimum::one_order(&jobs).total / jobs.len() as f64);
    Ok(OrderedJobs { order, blocks, times, averages, optimum })
}
