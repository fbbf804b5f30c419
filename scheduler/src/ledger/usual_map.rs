//! Mean time of a map over all jobs: the guess for jobs that have not finished one.
//!
//! A constant guess would make the order of jobs depend on the unit of time: where maps take 20 ms, a new job guessed at
//! a second per map would look larger than all others.

use crate::ledger::Ledger;
use crate::units::Span;

/// Number of maps after which the sums are halved, so that newer maps count more.
const MAPS_MAX: f64 = 1024.0;

/// Factor by which the mean has to change before jobs are counted again. Their rows would otherwise change with every
/// map of any job.
const CHANGE_MIN: f64 = 1.25;

/// Mean time of finished maps; see the module.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct UsualMap {
    maps: f64,
    seconds: f64,
    /// Mean with which jobs were last counted.
    shown: Option<f64>,
}

impl UsualMap {
    /// Records a finished map. Returns true if jobs without a finished map have to be counted again.
    pub(crate) fn add(&mut self, took: Span) -> bool {
        if MAPS_MAX <= self.maps {
            (self.maps, self.seconds) = (self.maps / 2.0, self.seconds / 2.0);
        }
        self.maps += 1.0;
        self.seconds += took.seconds();
        // A mean of 0 has no order of magnitude.
        let mean = (self.seconds / self.maps).max(1e-9);
        let changed = |shown| CHANGE_MIN <= mean / shown || CHANGE_MIN <= shown / mean;
        let news = self.shown.is_none_or(changed);
        if news {
            self.shown = Some(mean);
        }
        news
    }

    /// Returns the mean in seconds; `None` before the first map has finished.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.shown
    }
}

impl Ledger {
    /// Enters the time of a finished map into the mean of all jobs.
    pub(crate) fn learn_map_time(&mut self, took: Span) {
        if self.usual_map.add(took) {
            let unknown = self.jobs.values().filter(|job| job.counts.maps_done == 0);
            self.unseen.dirty.extend(unknown.map(|job| job.id));
        }
    }
}
