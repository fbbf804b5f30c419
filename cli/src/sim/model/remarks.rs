//! Remarks on jobs, and refusals, before the simulation: what the model leaves out, the kind and number of
//! tasks, and whether queues grow.

use super::{SimulatedMachine, SimulatedSystem};
use crate::files::InputFileError;
use crate::sim::{SimCommand, SimModel};
use crate::usage::usage;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::sim::cluster::{self, TaskCounts};
use gristmill_scheduler::station::{PerStation, Station};
use gristmill_scheduler::workload::{Growth, Job, LOAD_JOBS_MIN, OfferedLoad, offered_load};
use std::path::Path;

impl SimulatedSystem<'_> {
    /// Prints remarks before a run, and refuses unusable jobs.
    pub(super) fn remark(&self, flags: &SimCommand) -> anyhow::Result<()> {
        if self.source.is_fixed() && 1 < flags.seeds && flags.model != SimModel::Cluster {
            say!("the jobs and this model are the same for every seed; --seeds 1 suffices");
        }
        if let SimulatedMachine::Cluster { config, .. } = &self.machine {
            self.remark_tasks(flags, config)?;
        }
        if !self.source.is_fixed() && !flags.output.steady {
            return Ok(());
        }
        let jobs: Vec<Job> = self.jobs(flags.seed).collect();
        self.remark_left_out(flags, &jobs);
        let loads = offered_load(&jobs, self.capacity());
        let name = |station: usize| ["map", "shuffle", "reduce"][station];
        if flags.output.steady {
            return match loads.and_then(|loads| refusal(loads, jobs.len())) {
                None => Ok(()),
                Some((station, words)) => {
                    let words = format!("its load at the {} station is {words}", name(station));
                    Err(InputFileError::new(Path::new(self.source.name()), words).into())
                }
            };
        }
        let grows =
            |loads: PerStation<OfferedLoad>| loads.0.iter().position(|load| load.growth() == Growth::Grows);
        if let Some(loads) = loads
            && let Some(station) = grows(loads)
        {
            let load = shown(loads.0[station]);
            say!("the load at the {} station is {load}: queues grow while jobs arrive", name(station));
        }
        Ok(())
    }

    /// Reports the parts of the jobs that this model does not run.
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

/// Returns the reason why these loads do not show a steady state: the station, and a text.
fn refusal(loads: PerStation<OfferedLoad>, jobs: usize) -> Option<(usize, String)> {
    let at = |growth: Growth| loads.0.iter().position(|load| load.growth() == growth);
    let because = |station: usize, words: &str| (station, format!("{}{words}", shown(loads.0[station])));
    let too_few = format!(
        ", and {jobs} jobs are too few to tell whether there is a steady state; that takes at least {LOAD_JOBS_MIN}"
    );
    at(Growth::Grows)
        .map(|station| because(station, ", so there is no steady state"))
        .or_else(|| at(Growth::TooFew).map(|station| because(station, &too_few)))
        .or_else(|| {
            at(Growth::Open)
                .map(|station| because(station, ", which leaves open whether there is a steady state"))
        })
}

fn shown(load: OfferedLoad) -> String {
    match load.range {
        Some([low, high]) => format!("{:.3} ({:.3} to {:.3} with 95 %)", load.load, low.max(0.0), high),
        None => format!("{:.3}", load.load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(map: OfferedLoad) -> PerStation<OfferedLoad> {
        let none = OfferedLoad { load: 0.0, range: map.range.map(|_| [0.0; 2]) };
        PerStation::new(map, none, none)
    }

    #[test]
    fn steady_state_is_believed_only_where_the_whole_interval_lies_below_1() {
        let of = |load, range| refusal(loads(OfferedLoad { load, range }), 100).map(|(_, words)| words);
        assert_eq!(of(0.7, Some([0.5, 0.9])), None);
        assert_eq!(
            of(1.5, Some([1.2, 1.8])).unwrap(),
            "1.500 (1.200 to 1.800 with 95 %), so there is no steady state"
        );
        assert!(of(0.9, Some([0.7, 1.1])).unwrap().ends_with("leaves open whether there is a steady state"));
        assert!(of(0.1, None).unwrap().contains("100 jobs are too few"));
    }
}
