//! Workloads: jobs with their arrivals and sizes, from generators and from traces.
//!
//! This module reads no files; texts and bytes are arguments.

pub mod catalogue;
mod clusters;
mod columns;
mod error;
mod generator;
mod lines;
pub mod mix;
pub mod overlap;
mod read;
mod reading;
mod rumen;
mod scale;
mod swim;
pub mod table;

use crate::station::PerStation;
#[cfg(test)]
pub(crate) use catalogue::by_name;
pub use catalogue::catalogue;
pub use error::{BadLine, LineError, LoadError, WorkloadError};
pub use generator::Generator;
pub use read::{Format, read};
pub use reading::{Reading, Trace};
pub use scale::{Costs, Scale};

/// Job of a workload, for every simulator. The fluid model uses `work` of map and shuffle, the slotted one
/// whole units of map and of each reduce, the cluster every task. Times are in seconds (slots, in the slotted
/// model).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Job {
    /// Time of arrival; not before that of the previous job.
    pub arrival: f64,
    /// Slot-seconds of all maps, seconds of the whole network at the shuffle, slot-seconds of all reduces.
    pub work: PerStation<f64>,
    /// Length of each map on a worker of speed 1; their sum is `work[Station::Map]`. Empty if the job is not split into
    /// tasks.
    pub maps: Vec<f64>,
    /// Length of each reduce, as for maps.
    pub reduces: Vec<f64>,
    /// Input bytes of all maps; 0 if unknown.
    pub input_bytes: f64,
    /// Output bytes of all maps, over all partitions; 0 if unknown.
    pub shuffle_bytes: f64,
    /// Time by which it should end.
    pub deadline: Option<f64>,
    /// Weight of the job; 0 counts as 1.
    pub weight: f64,
    /// Pool of the job.
    pub pool: Option<u32>,
    /// Weight of that pool; `None` uses the policy's default.
    pub pool_weight: Option<f64>,
    /// Priority; higher is more urgent.
    pub priority: i32,
    /// Name of the job. Jobs of equal name are similar and share their history.
    pub name: Option<String>,
}

#[cfg(test)]
mod tests;
