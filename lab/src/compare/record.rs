//! What is kept of a run: jobs with their phases, who held which slot when, what travelled, as plain numbers.
//!
//! Times are seconds from the first arrival by the master's clock. Not here: how it is gathered (`gather`), and sums over runs.

use gristmill_runtime::api::ExactWork;
use gristmill_scheduler::metrics::JobTimes;
use serde::{Deserialize, Serialize};

/// Version of a run's `results.json`.
pub const SCHEMA: u32 = 2;

/// A policy with a placement.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Contender {
    /// For legends and tables; no two alike.
    pub name: String,
    /// Policy as text.
    pub policy: String,
    /// Placement as text.
    pub placement: String,
}

/// One run of the workload under one policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Who decided.
    pub contender: Contender,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Which run of all, from 0.
    pub place: u32,
    /// Cores that all workers share; `None` if they are not all of this machine.
    #[serde(default)]
    pub cores: Option<u32>,
    /// Share of those cores' time that others than the slots used while jobs ran: other programs, and the master and
    /// workers themselves.
    #[serde(default)]
    pub others_busy: Option<f64>,
    /// Workers that were there when the first job arrived.
    pub workers: Vec<WorkerRecord>,
    /// In the order of arrival.
    pub jobs: Vec<JobRun>,
    /// Slots held by attempts that ran, in the order of launching within each job.
    pub spans: Vec<SlotSpan>,
    /// Transfers over HTTP.
    pub transfers: Vec<Transfer>,
    /// Records that the master left out of its traces because there were too many.
    pub omitted: u64,
    /// The simulation of what was measured in this run: its arrivals and the times of its tasks.
    #[serde(default)]
    pub replayed: SimulatedRun,
    /// The simulation of what was known before this run: planned arrivals, sizes and costs, nothing measured in it.
    #[serde(default)]
    pub predicted: SimulatedRun,
}

/// A worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Its number.
    pub worker: u32,
    /// Slots, of both kinds together if they are shared.
    pub slots: u32,
    /// Slots for maps; all, if they are shared.
    pub map_slots: u32,
    /// Slots for reduces; all, if they are shared.
    pub reduce_slots: u32,
    /// How fast its slots are made to be.
    pub speed: f64,
    /// What its shuffle is held to in each direction, bytes in a second.
    pub nic_bytes_per_second: Option<u64>,
}

/// A job of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobRun {
    /// Its place in the order of arrival.
    pub index: usize,
    /// Its kind.
    pub label: String,
    /// Its number at the master.
    pub job: u32,
    /// When it was to arrive.
    pub planned: f64,
    /// When it arrived.
    pub arrived: f64,
    /// When its first task was launched.
    pub started: f64,
    /// When its last map ended.
    pub maps_done: f64,
    /// When the last segment was in.
    pub shuffle_done: f64,
    /// When it ended.
    pub ended: f64,
    /// When it should have ended.
    #[serde(alias = "goal")]
    pub deadline: Option<f64>,
    /// Whether that looked feasible, as the master said.
    pub outlook: Option<String>,
    /// What its attempts took; in files its fields stand beside the others.
    #[serde(flatten)]
    pub usage: SlotUsage,
    /// Bytes that came from other workers.
    pub shuffle_bytes: u64,
    /// What it put out, likewise.
    #[serde(flatten)]
    pub output: JobOutput,
    /// How large it looked: seconds since its arrival, maps done, whole work of the three stations.
    pub estimates: Vec<(f64, u32, [f64; 3])>,
}

/// What the attempts of a job took.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SlotUsage {
    /// Slot-seconds of maps and reduces of attempts that succeeded, as held.
    pub slot_seconds: [f64; 2],
    /// The same on slots that are not slower than the machine.
    pub work_seconds: [f64; 2],
    /// CPU seconds of all attempts.
    pub cpu_seconds: f64,
    /// Seconds in which attempts were made to wait because their slots are slow.
    pub paced_seconds: f64,
    /// Seconds for which attempts were suspended.
    pub suspended_seconds: f64,
    /// Times that attempts were suspended.
    pub suspensions: u32,
    /// Attempts that did not succeed, and maps that ran again.
    pub wasted_attempts: u32,
}

/// What a job put out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobOutput {
    /// Names, lengths and checksums of all parts in one number.
    #[serde(rename = "output_digest")]
    pub digest: u32,
    /// Bytes of all parts.
    #[serde(rename = "output_bytes")]
    pub bytes: u64,
}

impl JobRun {
    /// What its metrics are made of, but what it takes alone, which another run tells.
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

    /// End minus arrival.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.times().flow()
    }

    /// First launch minus arrival.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.times().waiting()
    }

    /// End minus first launch.
    #[must_use]
    pub fn execution(&self) -> f64 {
        self.times().execution()
    }

    /// Seconds of waiting, of maps, of the shuffle after them, of reduces after that: together the flow time.
    #[must_use]
    pub fn phases(&self) -> [f64; 4] {
        phases(self.arrived, self.started, self.maps_done, self.shuffle_done, self.ended)
    }

    /// Seconds past the deadline; 0 if it was met.
    #[must_use]
    pub fn tardiness(&self) -> Option<f64> {
        self.times().tardiness()
    }
}

/// Splits a flow time at instants that need not be in order: a reduce may begin before the last map.
#[must_use]
pub fn phases(arrived: f64, started: f64, maps_done: f64, shuffle_done: f64, ended: f64) -> [f64; 4] {
    let started = started.clamp(arrived, ended);
    let maps_done = maps_done.clamp(started, ended);
    let shuffle_done = shuffle_done.clamp(maps_done, ended);
    [started - arrived, maps_done - started, shuffle_done - maps_done, ended - shuffle_done]
}

/// An attempt in a slot.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SlotSpan {
    /// Index of the job in the run.
    pub job: u32,
    /// Whether it is a map.
    pub map: bool,
    /// Worker.
    pub worker: u32,
    /// From.
    pub from: f64,
    /// To.
    pub to: f64,
    /// Share of that time, without pacing and suspension, in which it used a processor.
    pub busy: f64,
    /// Share of that time in which it was paced.
    pub paced: f64,
}

/// Bytes on their way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Index of the job in the run.
    pub job: u32,
    /// From which worker.
    pub from_worker: u32,
    /// To which.
    pub to_worker: u32,
    /// How many.
    pub bytes: u64,
    /// From.
    pub from: f64,
    /// To.
    pub to: f64,
}

/// What a simulation says of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SimulatedRun {
    /// Job by job; empty if there is no simulation.
    pub jobs: Vec<SimulatedPhases>,
    /// Why there is none.
    pub missing: Option<String>,
}

impl SimulatedRun {
    /// No simulation, and why.
    pub(super) fn missing(reason: &str) -> Self {
        Self { jobs: Vec::new(), missing: Some(reason.to_owned()) }
    }

    /// What it says of a job.
    #[must_use]
    pub fn job(&self, index: usize) -> Option<&SimulatedPhases> {
        self.jobs.iter().find(|job| job.index == index)
    }
}

/// What a simulation says of a job.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SimulatedPhases {
    /// Index of the job in the run.
    pub index: usize,
    /// Its phases as [`JobRun::phases`], seconds.
    pub phases: [f64; 4],
}

impl SimulatedPhases {
    /// Their sum.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.phases.iter().sum()
    }
}

/// A job alone on the cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Alone {
    /// What makes it the same job: name, arguments, parts.
    pub key: String,
    /// End minus arrival, seconds: the median of its runs.
    pub flow: f64,
    /// The same of each run, in their order.
    pub flows: Vec<f64>,
    /// Its work on slots of speed 1, in the run of the median.
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
