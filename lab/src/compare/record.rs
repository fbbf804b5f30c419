//! Record of a run in plain numbers: jobs with their phases, slots held over time, and transfers.
//!
//! Times are seconds from the first arrival by the master's clock. Not here: its construction (`gather`),
//! and sums over runs.

use gristmill_runtime::api::ExactWork;
use gristmill_scheduler::metrics::JobTimes;
use gristmill_scheduler::sim::cluster::Mechanisms;
use serde::{Deserialize, Serialize};

/// Version of a run's `results.json`.
pub const SCHEMA: u32 = 2;

/// Policy with a placement.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Contender {
    /// Unique name for legends and tables.
    pub name: String,
    /// Policy as text.
    pub policy: String,
    /// Placement as text.
    pub placement: String,
    /// True if running tasks are divided in its runs, even if the cluster of the comparison does not divide any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub divides: bool,
}

/// Returns a policy without its suffix `+divide`, and true if it had one.
fn split_division(policy: &str) -> (&str, bool) {
    policy.strip_suffix(Mechanisms::NAMES[0]).map_or((policy, false), |policy| (policy, true))
}

impl Contender {
    /// Creates a contender from a policy, which may end with `+divide`, and a placement.
    #[must_use]
    pub fn new(name: impl Into<String>, policy: &str, placement: &str) -> Self {
        let (policy, divides) = split_division(policy);
        Self { name: name.into(), policy: policy.to_owned(), placement: placement.to_owned(), divides }
    }
}

/// One run of the workload under one policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// Schema version, [`SCHEMA`].
    pub schema: u32,
    /// Contender of the run.
    pub contender: Contender,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Number of the run among all, from 0.
    pub place: u32,
    /// Cores that all workers share; `None` if the workers are not all on this machine.
    pub cores: Option<u32>,
    /// Share of those cores' time not used by the slots while jobs ran: by other programs, and by the
    /// master and the worker processes.
    pub others_busy: Option<f64>,
    /// Workers that had joined when the first job arrived.
    pub workers: Vec<WorkerRecord>,
    /// Jobs in the order of arrival.
    pub jobs: Vec<JobRun>,
    /// Slots held by attempts that ran, in launch order within each job.
    pub spans: Vec<SlotSpan>,
    /// Transfers over HTTP.
    pub transfers: Vec<Transfer>,
    /// Number of records that the master omitted from its traces because there were too many.
    pub omitted: u64,
    /// Simulation from measurements of this run: its arrivals and the times of its tasks.
    pub replayed: SimulatedRun,
    /// Simulation from what was known before this run: planned arrivals, sizes and costs, and no
    /// measurement of it.
    pub predicted: SimulatedRun,
}

/// Worker of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Number of the worker.
    pub worker: u32,
    /// Number of slots, of both kinds together if they are shared.
    pub slots: u32,
    /// Number of slots for maps; all slots if they are shared.
    pub map_slots: u32,
    /// Number of slots for reduces; all slots if they are shared.
    pub reduce_slots: u32,
    /// Configured speed of its slots.
    pub speed: f64,
    /// Rate limit of its shuffle in each direction, in bytes per second.
    pub nic_bytes_per_second: Option<u64>,
}

/// Job of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobRun {
    /// Index in the order of arrival.
    pub index: usize,
    /// Kind of the job.
    pub label: String,
    /// Number of the job at the master.
    pub job: u32,
    /// Planned arrival.
    pub planned: f64,
    /// Actual arrival.
    pub arrived: f64,
    /// Launch of its first task.
    pub started: f64,
    /// End of its last map.
    pub maps_done: f64,
    /// Arrival of its last segment.
    pub shuffle_done: f64,
    /// End of the job.
    pub ended: f64,
    /// Deadline of the job.
    pub deadline: Option<f64>,
    /// Feasibility of the deadline, as reported by the master.
    pub outlook: Option<String>,
    /// Usage of its attempts. In files its fields are inlined.
    #[serde(flatten)]
    pub usage: SlotUsage,
    /// Bytes fetched from other workers.
    pub shuffle_bytes: u64,
    /// Bytes to shuffle that policies receive beforehand, of a job that emits as many.
    #[serde(default)]
    pub known_shuffle_bytes: Option<f64>,
    /// Output of the job, also inlined in files.
    #[serde(flatten)]
    pub output: OutputDigest,
    /// Size estimates: seconds since its arrival, maps done, total work of the three stations.
    pub estimates: Vec<(f64, u32, [f64; 3])>,
}

/// Resources that the attempts of a job used.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SlotUsage {
    /// Slot-seconds of maps and reduces of attempts that succeeded, as held.
    pub slot_seconds: [f64; 2],
    /// The same on slots that are not slower than the machine.
    pub work_seconds: [f64; 2],
    /// CPU seconds of all attempts.
    pub cpu_seconds: f64,
    /// Seconds in which attempts were delayed because their slots are slow.
    pub paced_seconds: f64,
    /// Seconds for which attempts were suspended.
    pub suspended_seconds: f64,
    /// Number of suspensions of attempts.
    pub suspensions: u32,
    /// Number of attempts that did not succeed, and of maps that ran again.
    pub wasted_attempts: u32,
}

/// Output of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutputDigest {
    /// One number for the names, lengths and checksums of all parts.
    #[serde(rename = "output_digest")]
    pub digest: u32,
    /// Bytes of all parts.
    #[serde(rename = "output_bytes")]
    pub bytes: u64,
}

impl JobRun {
    /// Returns the input of its metrics, except the time it takes alone, which is measured in another run.
    #[must_use]
    pub fn times(&self) -> JobTimes {
        JobTimes {
            arrival: self.arrived,
            start: self.started,
            maps_done: self.maps_done,
            completion: self.ended,
            deadline: self.deadline,
            alone: None,
        }
    }

    /// Returns end minus arrival.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.times().flow()
    }

    /// Returns first launch minus arrival.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.times().waiting()
    }

    /// Returns end minus first launch.
    #[must_use]
    pub fn execution(&self) -> f64 {
        self.times().execution()
    }

    /// Returns the seconds of waiting, of maps, of the shuffle after them, of reduces after that. Their
    /// sum is the flow time.
    #[must_use]
    pub fn phases(&self) -> [f64; 4] {
        phases(self.arrived, self.started, self.maps_done, self.shuffle_done, self.ended)
    }

    /// Returns the seconds past the deadline; 0 if it was met.
    #[must_use]
    pub fn tardiness(&self) -> Option<f64> {
        self.times().tardiness()
    }
}

/// Splits a flow time at instants that need not be in order: a reduce may start before the last map.
#[must_use]
pub fn phases(arrived: f64, started: f64, maps_done: f64, shuffle_done: f64, ended: f64) -> [f64; 4] {
    let started = started.clamp(arrived, ended);
    let maps_done = maps_done.clamp(started, ended);
    let shuffle_done = shuffle_done.clamp(maps_done, ended);
    [started - arrived, maps_done - started, shuffle_done - maps_done, ended - shuffle_done]
}

/// Attempt in a slot.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SlotSpan {
    /// Index of the job in the run.
    pub job: u32,
    /// True for a map.
    pub map: bool,
    /// Number of the worker.
    pub worker: u32,
    /// Start of the span.
    pub from: f64,
    /// End of the span.
    pub to: f64,
    /// Share of that time, without pacing and suspension, in which it used a processor.
    pub busy: f64,
    /// Share of that time in which it was paced.
    pub paced: f64,
}

/// Transfer between two workers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Index of the job in the run.
    pub job: u32,
    /// Sending worker.
    pub from_worker: u32,
    /// Receiving worker.
    pub to_worker: u32,
    /// Number of bytes.
    pub bytes: u64,
    /// Start of the transfer.
    pub from: f64,
    /// End of the transfer.
    pub to: f64,
}

/// Result of a simulation of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SimulatedRun {
    /// Phases of each job; empty without a simulation.
    pub jobs: Vec<SimulatedPhases>,
    /// Reason why the simulation is missing.
    pub missing: Option<String>,
}

impl SimulatedRun {
    /// Returns a missing simulation with its reason.
    pub(super) fn missing(reason: &str) -> Self {
        Self { jobs: Vec::new(), missing: Some(reason.to_owned()) }
    }

    /// Returns the simulated phases of a job.
    #[must_use]
    pub fn job(&self, index: usize) -> Option<&SimulatedPhases> {
        self.jobs.iter().find(|job| job.index == index)
    }
}

/// Simulated phases of a job.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SimulatedPhases {
    /// Index of the job in the run.
    pub index: usize,
    /// Phases in seconds, as in [`JobRun::phases`].
    pub phases: [f64; 4],
}

impl SimulatedPhases {
    /// Returns their sum.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.phases.iter().sum()
    }
}

/// Job alone on the cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Alone {
    /// Properties that identify equal jobs: name, arguments, parts.
    pub key: String,
    /// End minus arrival in seconds: the median of its runs.
    pub flow: f64,
    /// End minus arrival of each run, in their order.
    pub flows: Vec<f64>,
    /// Work on slots of speed 1, in the run of the median.
    pub exact: ExactWork,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn phases_of_instants_in_order_are_their_differences() {
        assert_eq!(phases(1.0, 2.0, 4.0, 7.0, 11.0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(
            phases(0.0, 0.0, 5.0, 3.0, 6.0),
            [0.0, 5.0, 0.0, 1.0],
            "the last segment came before the last map"
        );
    }

    proptest! {
        #[test]
        fn phases_add_up_to_the_flow_time(times in prop::collection::vec(0.0..100.0_f64, 5)) {
            let ended = times[0].max(times[4]);
            let found = phases(times[0], times[1], times[2], times[3], ended);
            prop_assert!(found.iter().all(|&phase| 0.0 <= phase));
            prop_assert!((found.iter().sum::<f64>() - (ended - times[0])).abs() < 1e-9);
        }
    }
}
