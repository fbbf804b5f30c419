//! Times that simulated jobs take alone on the system, for their slowdown, and conversion of a simulator's records to
//! seconds. The slotted model counts time in slots, the others in seconds.

use super::ended::{AloneTimes, EndedJob};
use super::model::{SimulatedMachine, SimulatedSystem};
use gristmill_scheduler::metrics::{JobRecord, JobTimes};
use gristmill_scheduler::sim::cluster::SimulatedTasks;
use gristmill_scheduler::sim::{cluster, slotted};
use gristmill_scheduler::workload::Job;

impl SimulatedSystem<'_> {
    /// Computes the times of a seed's jobs alone. In the cluster model that is a simulation of its own, which takes as long
    /// as one policy at most.
    pub fn alone(&self, seed: u64) -> anyhow::Result<AloneTimes> {
        let times = match &self.machine {
            SimulatedMachine::Fluid { .. } => return Ok(AloneTimes::Fluid),
            SimulatedMachine::Slotted { machines, preemptive, slot_seconds } => {
                let jobs = self.jobs(seed);
                jobs.map(|job| slotted::alone(*machines, *preemptive, &job) * slot_seconds).collect()
            }
            SimulatedMachine::Cluster { config, .. } => {
                let config = cluster::Config { seed, ..(**config).clone() };
                let count = |job: &Job| self.add_steps(SimulatedTasks::count(&config, job).all() as u64);
                let times = cluster::alone(&config, self.jobs(seed).inspect(count));
                times.map_err(|error| self.judge("each job alone", seed, &error))?
            }
        };
        Ok(AloneTimes::Jobs(times))
    }

    /// Converts a record to an ended job.
    pub(super) fn ended(&self, record: &JobRecord, alone: &AloneTimes) -> EndedJob {
        let second = match self.machine {
            SimulatedMachine::Slotted { slot_seconds, .. } => slot_seconds,
            SimulatedMachine::Fluid { .. } | SimulatedMachine::Cluster { .. } => 1.0,
        };
        let JobTimes { arrival, start, maps_done, completion, deadline, .. } = record.times();
        let times = JobTimes {
            arrival: arrival * second,
            start: start * second,
            maps_done: maps_done * second,
            completion: completion * second,
            deadline: deadline.map(|deadline| deadline * second),
            alone: alone.time(record),
        };
        EndedJob {
            seq: record.seq,
            times,
            work: record.work.map(|work| work * second),
            weight: record.weight,
        }
    }
}
