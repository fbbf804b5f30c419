//! What is said of jobs, or refused, before they are simulated: what the model leaves out, which tasks they become, how
//! many those are, and whether queues grow.

use super::{SimulatedMachine, SimulatedSystem};
use crate::files::InputFileError;
use crate::sim::{SimCommand, SimModel};
use crate::usage::usage;
use gristmill_scheduler::sim::cluster::{self, TaskCounts};
use gristmill_scheduler::station::{PerStation, Station};
use gristmill_scheduler::workload::{Growth, Job, LOAD_JOBS_MIN, OfferedLoad, offered_load};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Tasks of one run from which on it is said what would make fewer: a minute and more.
const TASKS_MANY: f64 = 1e7;
/// Tasks of one run that take seconds, to which a workload is advised to be scaled.
const TASKS_ADVISED: f64 = 1e6;

/// Part of the shuffled bytes from which on it is said that they were read in place.
const IN_PLACE_MANY: f64 = 0.5;

/// The tasks of all jobs of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct TaskTally {
    jobs: u64,
    tasks: f64,
    /// Tasks into which work is cut.
    cut: f64,
    /// Jobs with such work, and those with reduces that only fetch.
    jobs_cut: u64,
    jobs_fetch_only: u64,
}

impl TaskTally {
    fn of(config: &cluster::Config, jobs: impl Iterator<Item = Job>) -> Self {
        let mut tally = TaskTally::default();
        for job in jobs {
            let counts = TaskCounts::of(config, &job);
            let own = (job.maps.len() + job.reduces.len()) as f64;
            tally.jobs += 1;
            tally.tasks += counts.all();
            tally.cut += counts.all() - own;
            tally.jobs_cut += u64::from(counts.cut);
            tally.jobs_fetch_only += u64::from(counts.fetch_only);
        }
        tally
    }
}

impl SimulatedSystem<'_> {
    /// Says what has to be known before a run, and refuses what cannot be meant.
    pub(super) fn remark(&self, flags: &SimCommand) -> anyhow::Result<()> {
        if self.source.is_fixed() && 1 < flags.seeds && flags.model != SimModel::Cluster {
            say!("the jobs and this model are the same for every seed; --seeds 1 tells as much");
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

    /// What of the jobs this model does not run.
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

    /// Which tasks the jobs become where they bring none, and what would make fewer of them where they are too many.
    fn remark_tasks(&self, flags: &SimCommand, config: &cluster::Config) -> anyhow::Result<()> {
        let tally = TaskTally::of(config, self.jobs(flags.seed));
        let (seconds, jobs) = (config.task_seconds, tally.jobs);
        if 0 < tally.jobs_cut {
            say!(
                "{} of {jobs} job(s) have work and no tasks: it is cut into tasks of {seconds} s at most (--task-length)",
                tally.jobs_cut
            );
        }
        if 0 < tally.jobs_fetch_only {
            say!(
                "{} of {jobs} job(s) shuffle and have no reduces: reduces of no length fetch it, one for each {seconds} s \
                 (--task-length) that a worker takes for all of it, one on each worker at most",
                tally.jobs_fetch_only
            );
        }
        if flags.machines.task_length.is_some() && tally.jobs_cut + tally.jobs_fetch_only == 0 {
            let name = self.source.name();
            return Err(usage(format!(
                "--task-length {seconds} would cut nothing: all jobs of {name} have tasks of their own; leave it out"
            )));
        }
        if TASKS_MANY <= tally.tasks {
            let runs = flags.runs();
            say!(
                "{} million tasks in each of {runs} run(s): that takes minutes or hours, as progress will show; for a \
                 million at most, {}",
                (tally.tasks / 1e6).round(),
                self.advice(flags, config, &tally)
            );
        }
        Ok(())
    }

    /// The flags that bring the tasks of a run down to about [`TASKS_ADVISED`].
    fn advice(&self, flags: &SimCommand, config: &cluster::Config, tally: &TaskTally) -> String {
        let mut ways = Vec::new();
        let room = TASKS_ADVISED - (tally.tasks - tally.cut);
        if tally.jobs as f64 <= room && 0.0 < tally.cut {
            let length = config.task_seconds * tally.cut / room;
            ways.push(format!("--task-length {}", rounded_up(length)));
        }
        if let Some(factor) = self.source.bytes_factor(TASKS_ADVISED) {
            ways.push(format!("--scale-bytes {}", factor * flags.jobs.scale_bytes()));
        }
        let mut tasks = 0.0;
        let first = self.jobs(flags.seed).take_while(|job| {
            tasks += TaskCounts::of(config, job).all();
            tasks <= TASKS_ADVISED
        });
        let fit = first.count();
        if 0 < fit {
            ways.push(format!("--jobs {fit}"));
        }
        match ways.is_empty() {
            true => "take jobs with fewer tasks".to_owned(),
            false => ways.join(" or "),
        }
    }

    /// After the runs: how much of the shuffle cost nothing, if that is most of it.
    pub fn remark_in_place(&self) {
        let [fetched, in_place] = self.shuffled.each_ref().map(|bytes| bytes.load(Ordering::Relaxed) as f64);
        let part = in_place / (fetched + in_place);
        if IN_PLACE_MANY < part {
            let wider = match &self.machine {
                SimulatedMachine::Cluster { config, .. } if config.workers.len() == 1 => "there is no other",
                _ => "shorter tasks (--task-length) or more workers would spread jobs wider",
            };
            say!(
                "{:.0} % of the shuffled bytes cost nothing: they were read on the worker where their maps ran; {wider}",
                100.0 * part
            );
        }
    }

    /// How many steps all runs take, with as many jobs in each as in the first seed: tasks in the cluster, those of jobs
    /// alone too where they are simulated, else jobs.
    pub fn steps_of_runs(&self, flags: &SimCommand, alone: bool) -> f64 {
        let jobs = self.jobs(flags.seed);
        match &self.machine {
            SimulatedMachine::Cluster { config, .. } => {
                let runs = flags.runs() + if alone { u64::from(flags.seeds) } else { 0 };
                TaskTally::of(config, jobs).tasks * runs as f64
            }
            _ => jobs.count() as f64 * flags.runs() as f64,
        }
    }
}

/// Why these loads do not show a steady state: at which station, and in words.
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

/// A number of two digits that is not below this one.
fn rounded_up(number: f64) -> f64 {
    let step = 10_f64.powf(number.log10().floor() - 1.0);
    let digits = (number / step).ceil();
    // Powers of ten below 1 are not exact, their inverses are.
    if step < 1.0 { digits / (1.0 / step).round() } else { digits * step }
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

    #[test]
    fn advised_numbers_are_short_and_not_below_what_is_needed() {
        for (number, expected) in [(1.0, 1.0), (43.21, 44.0), (0.0123, 0.013), (999.0, 1000.0), (7.05, 7.1)] {
            assert_eq!(rounded_up(number), expected);
        }
    }
}
