//! Specification of a job on arrival: its maps with the places of their input, its reduces, its weight and limits, and
//! its known work.

use crate::ids::WorkerId;
use crate::units::{Bytes, Time, decode_reduces};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Default number of charged failures of one task after which its job fails.
pub const ATTEMPTS_MAX_DEFAULT: u32 = 4;

/// Maximum number of segments (maps times reduces) of one job; the ledger keeps one bit for each, so this is 512 MiB.
pub const SEGMENTS_MAX: u64 = 1 << 32;

/// One map task: size and places of its input.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MapSpec {
    /// Input of this map, if known; packed and compressed inputs count their bytes on disk.
    pub bytes: Bytes,
    /// Workers that have the input on their own disk; empty if all workers are equally far.
    pub preferred: Vec<WorkerId>,
    /// True if the map must run on a preferred worker, because no other can read the input. When all of them are lost,
    /// others on their hosts replace them: a restarted worker finds the same files under the same paths.
    pub pinned: bool,
}

impl MapSpec {
    /// Creates a map without a preferred worker.
    #[must_use]
    pub fn anywhere(bytes: Bytes) -> Self {
        Self { bytes, preferred: Vec::new(), pinned: false }
    }
}

/// Exact work of a job by task, if known in advance: in simulations and experiments. Shared, not copied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Exact {
    /// Slot-seconds of each map on a worker of speed 1.
    pub maps: Arc<[f64]>,
    /// Output bytes of all maps, over all partitions.
    pub shuffle_bytes: f64,
    /// Slot-seconds of each reduce, as for maps.
    pub reduces: Arc<[f64]>,
}

/// Maximum slots that the jobs of one owner may hold together, regardless of the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SlotQuota {
    /// Number of the submitter.
    pub owner: u32,
    /// Maximum slots at once.
    pub slots_max: u32,
}

/// Specification of a submitted job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// Maps in the order of the input.
    pub maps: Vec<MapSpec>,
    /// Number of partitions and reduce tasks; 0 means that the maps write the output parts themselves.
    #[serde(deserialize_with = "decode_reduces")]
    pub reduces: u32,
    /// Share of the cluster relative to other jobs under a fair policy; above 0 and finite, 1 by default.
    pub weight: f64,
    /// The pool that the job shares with others under a fair policy; `None` is a pool of its own.
    pub pool: Option<u32>,
    /// Share of that pool relative to others, above 0 and finite; the first job of a pool sets it. `None` uses the
    /// policy's default.
    #[serde(default)]
    pub pool_weight: Option<f64>,
    /// Quota of its owner; `None` is no limit.
    #[serde(default)]
    pub quota: Option<SlotQuota>,
    /// Priority among jobs, for policies that use it; higher is more urgent, 0 by default.
    pub priority: i32,
    /// Charged failures of one task after which the job fails; at least 1.
    pub attempts_max: u32,
    /// Time by which it should end; `None` without deadline. A hint to policies, not a limit.
    #[serde(alias = "goal")]
    pub deadline: Option<Time>,
    /// Jobs of equal name are similar, for estimators with history; `None` is similar to no other job.
    pub name: Option<String>,
    /// Exact work, if known. The lengths must equal those of `maps` and `reduces`, and all numbers must be at least 0.
    pub exact: Option<Exact>,
}

impl JobSpec {
    /// Creates a job with weight 1, a pool of its own, [`ATTEMPTS_MAX_DEFAULT`] and no deadline.
    #[must_use]
    pub fn new(maps: Vec<MapSpec>, reduces: u32) -> Self {
        Self {
            maps,
            reduces,
            weight: 1.0,
            pool: None,
            pool_weight: None,
            quota: None,
            priority: 0,
            attempts_max: ATTEMPTS_MAX_DEFAULT,
            deadline: None,
            name: None,
            exact: None,
        }
    }

    /// Checks that the ledger can accept this job.
    ///
    /// # Errors
    /// [`SpecError`] names the first field that is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        let weights = [Some(self.weight), self.pool_weight];
        if let Some(weight) =
            weights.into_iter().flatten().find(|weight| !(weight.is_finite() && 0.0 < *weight))
        {
            return Err(SpecError::Weight { weight });
        }
        if self.attempts_max == 0 {
            return Err(SpecError::NoAttempts);
        }
        let maps = self.maps.len() as u64;
        let segments = maps.saturating_mul(u64::from(self.reduces.max(1)));
        if SEGMENTS_MAX < segments {
            return Err(SpecError::TooManySegments { maps, reduces: self.reduces });
        }
        if let Some(exact) = &self.exact
            && (exact.maps.len() as u64 != maps || exact.reduces.len() as u64 != u64::from(self.reduces))
        {
            return Err(SpecError::Exact { maps: exact.maps.len(), reduces: exact.reduces.len() });
        }
        match self.maps.iter().position(|map| map.pinned && map.preferred.is_empty()) {
            Some(index) => Err(SpecError::PinnedNowhere { index: index as u32 }),
            None => Ok(()),
        }
    }
}

/// Locality of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// On the worker that has the input; reduces always are local.
    Local,
    /// On another worker of the same machine.
    SameHost,
    /// On another machine.
    Remote,
    /// The input is equally far from all workers.
    NoPreference,
}

impl Locality {
    /// All localities, in the order of tables.
    pub const ALL: [Locality; 4] =
        [Locality::Local, Locality::SameHost, Locality::Remote, Locality::NoPreference];
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Locality::Local => "on the worker that has the input",
            Locality::SameHost => "on the host that has the input",
            Locality::Remote => "away from the input",
            Locality::NoPreference => "any worker would do",
        })
    }
}

/// Work of a job: times of its phases with the whole station to themselves. At least 0 and finite.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Size {
    /// Seconds of all map slots.
    pub map: f64,
    /// Seconds of the whole network.
    pub shuffle: f64,
}

impl From<(f64, f64)> for Size {
    fn from((map, shuffle): (f64, f64)) -> Self {
        Self { map, shuffle }
    }
}

impl Size {
    /// Returns the dominant workload `max(m, s)`.
    #[must_use]
    pub fn dominant(self) -> f64 {
        self.map.max(self.shuffle)
    }

    /// Returns the total workload `m + s`.
    #[must_use]
    pub fn total(self) -> f64 {
        self.map + self.shuffle
    }

    /// Returns `s - m`: above 0 is shuffle-heavy, 0 balanced, below map-heavy.
    #[must_use]
    pub fn surplus(self) -> f64 {
        self.shuffle - self.map
    }

    /// Returns the priority of Algorithms 3 to 5: `alpha max(m, s) + (1 - alpha) (m + s)`; a lower one goes first.
    #[must_use]
    pub fn blend(self, alpha: f64) -> f64 {
        alpha * self.dominant() + (1.0 - alpha) * self.total()
    }

    /// Returns the matching weight of two jobs, equation 2: `alpha |m_i + m_j - s_i - s_j| + (1 - alpha) |m_i + s_i -
    /// m_j - s_j|`.
    #[must_use]
    pub fn weight(self, other: Size, alpha: f64) -> f64 {
        let pairing = (self.map + other.map - self.shuffle - other.shuffle).abs();
        alpha * pairing + (1.0 - alpha) * (self.total() - other.total()).abs()
    }
}

/// Error of a job that the ledger rejects.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The weight is not a number above zero.
    #[error("weight {weight} is not a number above zero")]
    Weight {
        /// Given value.
        weight: f64,
    },
    /// `attempts_max` is zero, so no task could ever be tried.
    #[error("attempts_max 0 leaves no try for any task")]
    NoAttempts,
    /// More than [`SEGMENTS_MAX`] segments.
    #[error("{maps} maps times {reduces} reduces are more than {} segments", SEGMENTS_MAX)]
    TooManySegments {
        /// Number of maps.
        maps: u64,
        /// Number of reduces.
        reduces: u32,
    },
    /// The exact work has other numbers of tasks.
    #[error("exact work of {maps} maps and {reduces} reduces does not fit the tasks")]
    Exact {
        /// Number of maps with exact work.
        maps: usize,
        /// Number of reduces with exact work.
        reduces: usize,
    },
    /// A map is pinned but names no worker.
    #[error("map {index} is pinned but names no worker")]
    PinnedNowhere {
        /// Index of the map.
        index: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut JobSpec), expected: &Result<(), SpecError>) {
        let mut spec = JobSpec::new(vec![MapSpec::anywhere(Bytes(1))], 1);
        change(&mut spec);
        assert_eq!(&spec.check(), expected);
    }

    #[test]
    fn a_spec_is_refused_when_the_books_could_not_keep_it() {
        check(|_| {}, &Ok(()));
        check(|spec| spec.weight = 0.0, &Err(SpecError::Weight { weight: 0.0 }));
        check(|spec| spec.pool_weight = Some(-1.0), &Err(SpecError::Weight { weight: -1.0 }));
        check(|spec| spec.attempts_max = 0, &Err(SpecError::NoAttempts));
        check(|spec| spec.maps[0].pinned = true, &Err(SpecError::PinnedNowhere { index: 0 }));
        check(
            |spec| {
                spec.maps = vec![MapSpec::anywhere(Bytes(1)); 2];
                spec.reduces = u32::MAX;
            },
            &Err(SpecError::TooManySegments { maps: 2, reduces: u32::MAX }),
        );
        let mut endless = JobSpec::new(Vec::new(), 0);
        endless.weight = f64::NAN;
        assert!(endless.check().is_err(), "a weight that is not a number was taken");
    }
}
