//! Remarks on jobs before they are simulated: parts that the model leaves out, tasks that they become, queues that grow.

use super::{SimulatedMachine, SimulatedSystem};
use crate::sim::{SimCommand, SimModel};
use crate::usage::usage;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::sim::cluster::{self, TaskCounts};
use gristmill_scheduler::station::{PerStation, Station};
use gristmill_scheduler::workload::{Growth, Job, OfferedLoad, offered_load};

impl SimulatedSystem<'_> {
    /// Prints remarks before a run.
    ///
    /// # Errors
    /// A `--task-length` that would cut nothing.
    pub(super) fn remark(&self, flags: &SimCommand) -> anyhow::Result<()> {
        if self.source.is_fixed() && 1 < flags.seeds && flags.model != SimModel::Cluster {
            say!("the jobs and this model are the same for every seed; --seeds 1 suffices");
        }
        if let SimulatedMachine::Cluster { config, .. } = &self.machine {
            self.remark_tasks(flags, config)?;
        }
        if !self.source.is_fixed() {
            return Ok(());
        }
        let jobs: Vec<Job> = self.jobs(flags.seed).collect();
        self.remark_left_out(flags, &jobs);
        let loads = offered_load(&jobs, self.capacity());
        let grows = |loads: &PerStation<OfferedLoad>| {
            loads
                .0
                .into_iter()
                .zip(["map", "shuffle", "reduce"])
                .find(|(load, _)| load.growth() == Growth::Grows)
        };
        if let Some((load, station)) = loads.as_ref().and_then(grows) {
            let [low, high] = load.range.unwrap_or([load.load; 2]);
            say!(
                "the load at the {station} station is {:.3} ({:.3} to {high:.3} with 95 %): queues grow while jobs arrive",
                load.load,
                low.max(0.0)
            );
        }
        Ok(())
    }

    /// Prints the parts of jobs that this model leaves out.
    fn remark_left_out(&self, flags: &SimCommand, jobs: &[Job]) {
        let left_out = match self.machine {
            SimulatedMachine::Fluid { .. } => {
                let reduces = self.source.jobs(flags.seed).map(|job| job.work[Station::Reduce]).sum::<f64>();
                (0.0 < reduces).then(|| format!("{reduces:.1} slot-seconds of reduces"))
            }
            SimulatedMachine::Slotted { .. } => {
                let shuffle = jobs.iter().map(|job| job.work[Station::Shuffle]).sum::<f64>();
                (0.0 < shuffle).then(|| format!("{shuffle:.1} s of shuffle"))
            }
            SimulatedMachine::Cluster { .. } => None,
        };
        if let Some(what) = left_out {
            say!("this model leaves out {what}");
        }
    }

    /// Reports jobs without tasks of their own, which are cut into tasks.
    fn remark_tasks(&self, flags: &SimCommand, config: &cluster::Config) -> anyhow::Result<()> {
        let (mut cut, mut fetch_only) = (0, 0);
        for job in self.jobs(flags.seed) {
            let counts = TaskCounts::of(config, &job);
            cut += u64::from(counts.cut);
            fetch_only += u64::from(counts.fetch_only);
        }
        let seconds = config.task_seconds;
        if cut > 0 {
            let jobs = counted(cut, "job has", "jobs have");
            say!("{jobs} work and no tasks: it is cut into tasks of {seconds} s at most (--task-length)");
        }
        if fetch_only > 0 {
            let jobs = counted(fetch_only, "job shuffles and has", "jobs shuffle and have");
            say!(
                "{jobs} no reduces: reduces of no length fetch it, one for each {seconds} s (--task-length)"
            );
        }
        if flags.machines.task_length.is_some() && cut + fetch_only == 0 {
            let name = self.source.name();
            return Err(usage(format!(
                "--task-length {seconds} would cut nothing: all jobs of {name} have tasks of their own; leave it out"
            )));
        }
        Ok(())
    }
}
