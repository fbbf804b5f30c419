//! Workloads: jobs with their arrivals and sizes, from generators and from traces.
//!
//! No file is read here; texts and bytes are arguments.

pub mod asrpt;
pub mod catalogue;
pub mod deadlines;
mod error;
mod load;
pub mod mix;
pub mod overlap;
pub mod pairs;
mod read;
pub mod rumen;
mod scale;
pub mod stragglers;
pub mod swim;
pub mod table;

use crate::station::PerStation;
pub use catalogue::{Generator, by_name, catalogue};
pub use error::{BadLine, LineError, LoadError, WorkloadError};
pub use load::{Growth, LOAD_JOBS_MIN, OfferedLoad, offered_load};
pub use read::{Format, Reading, Trace, read};
pub use scale::{Costs, Scale};
pub use swim::swim_tasks;

/// A job of a workload, for every simulator: the fluid model reads `work` of map and shuffle, the slotted one whole
/// units of map and of each reduce, the cluster every task. Times in seconds (slots, in the slotted model).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Job {
    /// When it arrives; not before the job before it.
    pub arrival: f64,
    /// Slot-seconds of all maps, seconds of the whole network at the shuffle, slot-seconds of all reduces.
    pub work: PerStation<f64>,
    /// Length of each map on a worker of speed 1; their sum is `work[Station::Map]`. Empty: the job is not cut into
    /// tasks.
    pub maps: Vec<f64>,
    /// Length of each reduce, as for maps.
    pub reduces: Vec<f64>,
    /// What all maps read; 0 if unknown.
    pub input_bytes: f64,
    /// What the maps put out, over all partitions; 0 if unknown.
    pub shuffle_bytes: f64,
    /// When it should end.
    pub deadline: Option<f64>,
    /// Its weight; 0 counts as 1.
    pub weight: f64,
    /// The pool that it shares.
    pub pool: Option<u32>,
    /// Weight of that pool; `None` leaves it to the policy.
    pub pool_weight: Option<f64>,
    /// Its urgency; the higher the sooner.
    pub priority: i32,
    /// Jobs of one name are alike: history is kept under it.
    pub name: Option<String>,
}

#[cfg(test)]
mod tests;
