//! Simulated job that has ended: its times in seconds, and its time alone on the system.

use gristmill_scheduler::metrics::{JobRecord, JobTimes};
use gristmill_scheduler::station::{PerStation, Station};

/// Job that has ended, in seconds and slot-seconds whatever the model counts in.
pub struct EndedJob {
    /// Order of arrival, from 0.
    pub seq: u64,
    pub times: JobTimes,
    /// All its work.
    pub work: PerStation<f64>,
    pub weight: f64,
}

/// Times of the jobs of a seed alone, in seconds; the same for all policies.
pub enum AloneTimes {
    /// In the fluid model they follow from the records.
    Fluid,
    /// By order of arrival.
    Jobs(Vec<f64>),
    /// Not needed.
    Unknown,
}

impl AloneTimes {
    pub(super) fn time(&self, record: &JobRecord) -> Option<f64> {
        match self {
            // Map and shuffle overlap, and the shuffle can keep up with the map.
            AloneTimes::Fluid => Some(record.work[Station::Map].max(record.work[Station::Shuffle])),
            AloneTimes::Jobs(times) => times.get(record.seq as usize).copied(),
            AloneTimes::Unknown => None,
        }
    }
}
