//! Maps queued on a worker behind its running attempts, so that a slot does not wait for the next order.
//!
//! Queuing decides early, so few maps are queued. A map is queued only if all of these hold:
//! - measurements show that the maps of its job are short;
//! - it is the first attempt of its task;
//! - the attempts before it are of the same kind;
//! - no slot that the map could use is free.
//!
//! Invariant: a worker with queued attempts has no free slot.

use crate::ids::AttemptId;
use crate::units::{Span, Time};
use std::collections::BTreeSet;

/// Limits of queuing ahead.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct AheadConfig {
    /// Maximum number of maps queued behind one slot; 32. With 0 nothing is queued.
    pub maps_max: u32,
    /// Work queued behind one slot, measured in mean map times of the job; 1 ms. At least one map is queued.
    pub work: Span,
    /// Maps of a job whose mean time is above this are not queued; 10 ms. For longer maps, the round trip to the master
    /// is less than a hundredth of a task.
    pub mean_max: Span,
    /// A map queued for longer than this is recalled when a slot elsewhere is idle; 50 ms. This bounds the cost of a
    /// wrong estimate of map times.
    pub patience: Span,
}

impl Default for AheadConfig {
    fn default() -> Self {
        Self {
            maps_max: 32,
            work: Span::milliseconds(1),
            mean_max: Span::milliseconds(10),
            patience: Span::milliseconds(50),
        }
    }
}

/// Moving average of the times of a job's maps; the newest maps count most.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pace(Option<Span>);

/// Weight of the newest map: one part in this many.
const PACE_PARTS: u64 = 8;

impl Pace {
    pub(crate) fn add(&mut self, took: Span) {
        let mean = self.0.map_or(took, |mean| Span(mean.0 - mean.0 / PACE_PARTS + took.0 / PACE_PARTS));
        self.0 = Some(mean);
    }

    /// Number of maps that may be queued behind one slot.
    pub(crate) fn depth(self, config: &AheadConfig) -> u32 {
        let Some(mean) = self.0.filter(|mean| *mean <= config.mean_max) else { return 0 };
        let maps = (config.work.0 / mean.0.max(1)).clamp(1, u64::from(u32::MAX)) as u32;
        maps.min(config.maps_max)
    }
}

/// Queued attempts of all workers.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ahead {
    /// Queued attempts by the time of queuing, without those recalled.
    pub(crate) waiting: BTreeSet<(Time, AttemptId)>,
    /// Recalled attempts whose worker has not replied yet.
    pub(crate) recalled: BTreeSet<AttemptId>,
}

impl Ahead {
    /// Removes an attempt that has left its queue.
    pub(crate) fn remove(&mut self, queued: Time, attempt: AttemptId) {
        if !self.recalled.remove(&attempt) {
            self.waiting.remove(&(queued, attempt));
        }
    }
}
