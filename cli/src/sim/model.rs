//! One run: the jobs of a seed under one policy on one of the models.
//!
//! The models count differently, so jobs are made to fit: the fluid model takes time of whole stations and has no
//! reduces, the slotted one whole units and no shuffle, the cluster tasks, its own or those that its work is cut into.

use super::ended::{AloneTimes, EndedJob};
use super::flags::{SimCommand, SimModel};
use super::source::SimulatedJobs;
use crate::files::InputFileError;
use crate::usage::usage;
use anyhow::anyhow;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::metrics::{Collector, JobRecord, Metric, RunMetrics};
use gristmill_scheduler::policy::Policy;
use gristmill_scheduler::sim::bound;
use gristmill_scheduler::sim::cluster::{self, Mechanisms, Observer, SimulatedTasks, TaskRun};
use gristmill_scheduler::sim::{SimError, fluid, slotted};
use gristmill_scheduler::station::{PerStation, Station};
use gristmill_scheduler::workload::{Costs, Job};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Maximum number of fetches of one run of the cluster model, which takes about ten minutes for them.
const FETCHES_MAX: f64 = 5e8;

/// The simulated system, ready to run.
pub struct SimulatedSystem<'a> {
    registry: &'a Registry,
    source: &'a SimulatedJobs,
    pub(super) machine: SimulatedMachine,
    bound: bool,
    /// Tasks that have ended in all runs so far, or jobs if the model has no tasks; shown on a terminal.
    progress: ProgressBar,
}

pub(super) enum SimulatedMachine {
    Fluid { slots: f64 },
    Slotted { machines: u32, preemptive: bool, slot_seconds: f64 },
    Cluster { config: Box<cluster::Config>, network: f64, placement: String, estimator: String },
}

impl<'a> SimulatedSystem<'a> {
    /// Checks the machines.
    pub fn new(
        registry: &'a Registry,
        flags: &SimCommand,
        source: &'a SimulatedJobs,
    ) -> anyhow::Result<Self> {
        let machines = &flags.machines;
        let machine = match flags.model {
            SimModel::Fluid => SimulatedMachine::Fluid { slots: machines.fluid_slots()? },
            SimModel::Slotted => SimulatedMachine::Slotted {
                machines: machines.machines,
                preemptive: machines.preemptive,
                slot_seconds: machines.slot_length,
            },
            SimModel::Cluster => {
                let network = machines.network()?.unwrap_or(Costs::default().network);
                registry.make_placement(&machines.placement).map_err(usage)?;
                registry.make_estimator(&machines.estimator).map_err(usage)?;
                SimulatedMachine::Cluster {
                    config: Box::new(machines.cluster(network)?),
                    network,
                    placement: machines.placement.clone(),
                    estimator: machines.estimator.clone(),
                }
            }
        };
        let (bound, progress) = (flags.output.bound, progress(flags.model));
        Ok(SimulatedSystem { registry, source, machine, bound, progress })
    }

    /// Returns the policy of this text, if this model can run it.
    pub fn policy(&self, text: &str) -> anyhow::Result<Box<dyn Policy>> {
        let (name, mechanisms) = Mechanisms::split(text);
        if mechanisms != Mechanisms::default() && !matches!(self.machine, SimulatedMachine::Cluster { .. }) {
            return Err(usage(format!(
                "`{text}` needs --model cluster: only it has mechanisms for running tasks"
            )));
        }
        let made = match self.machine {
            // The cluster model runs the live master's core.
            SimulatedMachine::Cluster { .. } => self.registry.make_policy(name),
            SimulatedMachine::Fluid { .. } | SimulatedMachine::Slotted { .. } => {
                self.registry.simulated_policy(name)
            }
        };
        let policy = made.map_err(usage)?;
        if matches!(self.machine, SimulatedMachine::Fluid { .. }) && policy.counts_slots() {
            return Err(usage(format!(
                "policy `{name}` counts whole slots, which the fluid model does not have; try --model slotted or \
                 --model cluster, or `ps` for `fair`"
            )));
        }
        Ok(policy)
    }

    /// Capacity of each station in the unit of the jobs' work.
    pub fn capacity(&self) -> PerStation<f64> {
        match &self.machine {
            SimulatedMachine::Fluid { .. } => PerStation::new(1.0, 1.0, f64::INFINITY),
            SimulatedMachine::Slotted { machines, .. } => {
                PerStation::new(f64::from(*machines), f64::INFINITY, f64::from(*machines))
            }
            SimulatedMachine::Cluster { config, .. } => {
                let sum = |slots: fn(Slots) -> u32| {
                    config.workers.iter().map(|worker| f64::from(slots(worker.slots)) * worker.speed).sum()
                };
                let maps = sum(|slots| match slots {
                    Slots::Unified(slots) | Slots::Pools { map: slots, .. } => slots,
                });
                let reduces = sum(|slots| match slots {
                    Slots::Unified(slots) | Slots::Pools { reduce: slots, .. } => slots,
                });
                let network = if config.network.in_rate.is_finite() { 1.0 } else { f64::INFINITY };
                PerStation::new(maps, network, reduces)
            }
        }
    }

    /// Returns the jobs of a seed, converted for this model.
    pub(super) fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_> {
        let jobs = self.source.jobs(seed);
        match &self.machine {
            SimulatedMachine::Fluid { slots } => {
                let slots = *slots;
                Box::new(jobs.map(move |mut job| {
                    job.work =
                        PerStation::new(job.work[Station::Map] / slots, job.work[Station::Shuffle], 0.0);
                    job
                }))
            }
            SimulatedMachine::Slotted { slot_seconds, .. } => {
                let slot = *slot_seconds;
                Box::new(jobs.map(move |job| in_units(job, slot)))
            }
            SimulatedMachine::Cluster { network, .. } => {
                let network = *network;
                Box::new(jobs.map(move |mut job| {
                    if job.shuffle_bytes == 0.0 {
                        job.shuffle_bytes = job.work[Station::Shuffle] * network;
                    }
                    job
                }))
            }
        }
    }

    /// Refuses jobs with more fetches of outputs than the cluster model simulates in reasonable time.
    ///
    /// # Errors
    /// Too many fetches, with the number of jobs that could be simulated.
    pub fn check_fetches(&self, seed: u64) -> anyhow::Result<()> {
        let SimulatedMachine::Cluster { config, .. } = &self.machine else { return Ok(()) };
        let workers = config.workers.len() as f64;
        // Each map's output is fetched by every worker that has a partition.
        let fetches = |job: &Job| {
            let tasks = SimulatedTasks::count(config, job);
            tasks.maps * tasks.reduces.min(workers)
        };
        let (mut sum, mut jobs, mut fitting) = (0.0, 0_u64, 0_u64);
        for job in self.jobs(seed) {
            sum += fetches(&job);
            jobs += 1;
            fitting += u64::from(sum <= FETCHES_MAX);
        }
        if sum <= FETCHES_MAX {
            return Ok(());
        }
        Err(usage(format!(
            "the {jobs} jobs of {} fetch {sum:.2e} outputs of maps, and at most {FETCHES_MAX:.0e} can be simulated, about a \
             million per second: try --jobs {fitting}, fewer workers, or a longer --task-length",
            self.source.name()
        )))
    }

    /// Runs a policy on the jobs of a seed, with their times alone; `sink` gets each job as it ends.
    pub fn run(
        &self,
        policy_name: &str,
        seed: u64,
        alone: &AloneTimes,
        sink: &mut dyn FnMut(&EndedJob),
    ) -> anyhow::Result<RunMetrics> {
        let mut collector = Collector::new(self.capacity());
        let counts_tasks = matches!(self.machine, SimulatedMachine::Cluster { .. });
        let mut take = |record: &JobRecord| {
            if !counts_tasks {
                self.progress.inc(1);
            }
            let job = self.ended(record, alone);
            collector.push(&job.times, job.work);
            sink(&job);
        };
        let used = self.simulate(policy_name, seed, &mut take, &mut CountedBar(&self.progress))?;
        let mut outcome = collector.outcome();
        if outcome.flow.count() == 0 {
            return Err(InputFileError::new(Path::new(self.source.name()), "there is no job in it").into());
        }
        if let Some(used) = used {
            outcome.set_use(used);
        }
        if self.capacity()[Station::Shuffle].is_infinite() {
            outcome.set(Metric::ShuffleUse, None);
        }
        if self.bound {
            outcome.set_bound(self.lowest_total(seed)?);
        }
        Ok(outcome)
    }

    /// Settings of the cluster model, by name.
    pub fn described(&self) -> Option<Value> {
        let SimulatedMachine::Cluster { config, placement, estimator, .. } = &self.machine else {
            return None;
        };
        let (workers, task_seconds) = (config.workers.len(), config.task_seconds);
        Some(json!({
            "workers": workers, "placement": placement, "estimator": estimator, "task_length": task_seconds,
        }))
    }

    /// Adds steps that do not belong to a run.
    pub(super) fn add_steps(&self, steps: u64) {
        self.progress.inc(steps);
    }

    /// Removes the progress from the terminal.
    pub fn end_progress(&self) {
        self.progress.finish_and_clear();
    }

    /// Runs the machine. Returns the utilisation of the stations, if the model measures it.
    fn simulate(
        &self,
        policy_name: &str,
        seed: u64,
        sink: &mut dyn FnMut(&JobRecord),
        observer: &mut dyn Observer,
    ) -> anyhow::Result<Option<PerStation<f64>>> {
        let mut policy = self.policy(policy_name)?;
        let failed = |error: SimError| self.judge(policy_name, seed, &error);
        match &self.machine {
            SimulatedMachine::Fluid { .. } => {
                fluid::run(&mut *policy, self.jobs(seed), sink).map_err(failed)?;
                Ok(None)
            }
            SimulatedMachine::Slotted { machines, preemptive, .. } => {
                let config = slotted::Config::for_policy(&*policy, *machines, *preemptive);
                // The bound ignores both rules of the model; any other policy would win by ignoring one alone.
                if config.preemptive && config.precedence && !preemptive {
                    return Err(usage(format!("{policy_name} interrupts reduces; add --preemptive")));
                }
                let jobs: Vec<Job> = self.jobs(seed).collect();
                slotted::run(&mut *policy, &config, &jobs, sink, &mut |_, _| {}).map_err(failed)?;
                Ok(None)
            }
            SimulatedMachine::Cluster { config, placement, estimator, .. } => {
                let mut config = cluster::Config { seed, ..(**config).clone() };
                Mechanisms::split(policy_name).1.set(&mut config.core);
                let placement = self.registry.make_placement(placement).map_err(usage)?;
                let estimator = self.registry.make_estimator(estimator).map_err(usage)?;
                let deciders = cluster::Deciders { policy, placement, estimator: Some(estimator) };
                let jobs = self.jobs(seed);
                let summary = cluster::run(&config, deciders, jobs, observer, sink).map_err(failed)?;
                Ok(Some(summary.utilisation))
            }
        }
    }

    /// Lower bound of the total flow time of any schedule.
    fn lowest_total(&self, seed: u64) -> anyhow::Result<f64> {
        match &self.machine {
            SimulatedMachine::Fluid { .. } => {
                let mut bound = fluid::lower_bound::LowerBound::new();
                for job in self.jobs(seed) {
                    bound.push([job.arrival, job.work[Station::Map], job.work[Station::Shuffle]]);
                }
                Ok(bound.finish().1)
            }
            SimulatedMachine::Slotted { machines, slot_seconds, .. } => {
                let jobs: Vec<Job> = self.jobs(seed).collect();
                slotted::lower_bound::total_flow(*machines, &jobs)
                    .map(|slots| slots * slot_seconds)
                    .map_err(|error| anyhow!("the bound: {error}"))
            }
            SimulatedMachine::Cluster { config, .. } => {
                if config.workers.iter().any(|worker| worker.service.is_some()) {
                    return Err(usage("--bound needs times of tasks, and --workers draws them".to_owned()));
                }
                let workers = config.workers.iter();
                let speed = workers.map(|worker| f64::from(worker.slots.total()) * worker.speed).sum();
                let work = |job: Job| [job.arrival, job.work[Station::Map] + job.work[Station::Reduce]];
                let jobs: Vec<[f64; 2]> = self.jobs(seed).map(work).collect();
                Ok(bound::total_flow(speed, &jobs))
            }
        }
    }

    /// Attributes an error to the jobs, the flags or the policy.
    pub(super) fn judge(&self, policy: &str, seed: u64, error: &SimError) -> anyhow::Error {
        match error {
            SimError::Job { .. } => InputFileError::new(Path::new(self.source.name()), error).into(),
            SimError::Setting { .. } => usage(format!("{policy}: {error}")),
            _ => anyhow!("{policy}, seed {seed}: {error}"),
        }
    }
}

/// Counts the tasks of a simulated cluster.
struct CountedBar<'a>(&'a ProgressBar);

impl Observer for CountedBar<'_> {
    fn task(&mut self, _: &TaskRun) {
        self.0.inc(1);
    }
}

/// Shows the progress of the simulation on a terminal; elsewhere nothing.
fn progress(model: SimModel) -> ProgressBar {
    let unit = if model == SimModel::Cluster { "tasks" } else { "jobs" };
    let style = ProgressStyle::with_template("simulated {human_pos} {msg} in {elapsed}");
    let bar = ProgressBar::no_length().with_message(unit);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Converts a job to whole units of a slot, rounded up.
fn in_units(mut job: Job, slot: f64) -> Job {
    // A unit plus a rounding error counts as one unit.
    let units = |work: f64| (work / slot - 1e-9).ceil().max(0.0);
    job.arrival /= slot;
    job.deadline = job.deadline.map(|deadline| deadline / slot);
    for length in &mut job.reduces {
        *length = units(*length).max(1.0);
    }
    let reduce =
        if job.reduces.is_empty() { units(job.work[Station::Reduce]) } else { job.reduces.iter().sum() };
    job.work = PerStation::new(units(job.work[Station::Map]), job.work[Station::Shuffle], reduce);
    job
}
