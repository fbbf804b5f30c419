//! The cluster simulator: simulated workers drive the [`Core`](crate::core::Core) of the live master in virtual time,
//! map, shuffle and reduce task by task.
//!
//! A task of length `l` takes `l * x / speed` seconds on a worker, where `x` is 1 or drawn from the worker's
//! distribution: one draw for each task, the same whoever schedules it and wherever it runs. Segments of a job are
//! alike. A home fetches from a few workers at once, its lanes; for each it takes all that one worker has for it of one
//! job, the job first that stands first in the policy's standing order (jobs of one tier by the bytes they got for
//! their weight), and jobs that are not in the order by age. A transfer gets the smaller of the fair parts at its two
//! ends; what one end cannot use is not handed on. What a worker has itself, it reads at no cost.
//!
//! All facts of one instant are given to the core at once; what follows without delay, as the end of a fetch over a
//! network without limits, is given right after, at the same time.
//!
//! A reduce that a policy suspends keeps the work it has left; handed over, it goes on with that on another worker when
//! its segments are there.
//!
//! What the system itself takes of processors can be said ([`SystemWork`]): tiny tasks, requests, outputs, segments and
//! bytes then wait for the cores of their host.
//!
//! It is not: a model of faults, disks or memory, nor of processors that tasks compete for with their own work.

mod alone;
mod check;
mod engine;
mod jobs;
mod network;
mod pieces;
mod processors;
mod random;
mod tasks;
mod timers;

pub use alone::alone;

use crate::command::Command;
use crate::core::{AheadConfig, CoreConfig, ShuffleOrder};
use crate::estimate::Estimator;
use crate::event::{Event, Slots};
use crate::metrics::JobRecord;
use crate::placement::{Placement, Pull};
use crate::policy::Policy;
use crate::queueing::Dtd;
use crate::sim::SimError;
use crate::station::PerStation;
use crate::units::Time;
use crate::workload::Job;
pub use processors::SystemWork;

pub use tasks::TaskCounts;

/// Most live jobs by default; a policy or a placement that cannot carry the load ends here.
pub const JOBS_MAX_DEFAULT: usize = 100_000;

/// Most tasks of one job.
pub const TASKS_MAX: u64 = 100_000_000;

/// Longest task and latest arrival, in seconds.
pub const SECONDS_MAX: f64 = 1e9;

/// One simulated worker.
#[derive(Clone, PartialEq, Debug)]
pub struct SimWorker {
    /// What it runs at once; all workers of a cluster are alike in kind.
    pub slots: Slots,
    /// Work done in a second by one slot; 1 is the speed in which lengths of tasks are measured. Above 0.
    pub speed: f64,
    /// The machine it runs on, from 0.
    pub host: u32,
    /// What a task of length 1 takes at speed 1, in seconds; `None` is always 1. Its offset is at least 0. With
    /// `Dtd { a: 1, b: 0, offset: 0 }` service is exponential.
    pub service: Option<Dtd>,
}

impl SimWorker {
    /// A worker of speed 1 on a machine of its own, whose tasks take what they are long.
    #[must_use]
    pub fn new(slots: Slots, host: u32) -> Self {
        Self { slots, speed: 1.0, host, service: None }
    }
}

/// What connects the workers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NetworkConfig {
    /// What each worker takes in, in bytes per second; infinite if nothing limits it. Above 0.
    pub in_rate: f64,
    /// What each worker gives out, likewise.
    pub out_rate: f64,
    /// What passes before the first byte of a transfer, in seconds; at least 0.
    pub latency: f64,
    /// Workers that a home fetches from at once; at least 1.
    pub lanes: u32,
}

impl Default for NetworkConfig {
    /// No limits, and 8 lanes.
    fn default() -> Self {
        Self { in_rate: f64::INFINITY, out_rate: f64::INFINITY, latency: 0.0, lanes: 8 }
    }
}

/// The simulated cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The workers; at least one. They get the ids from 1.
    pub workers: Vec<SimWorker>,
    /// What connects them.
    pub network: NetworkConfig,
    /// How much later than its slot the core is informed of the end of a map and of a reduce, in seconds, at least 0;
    /// what is queued there goes on meanwhile.
    pub report: [f64; 2],
    /// How long a reduce that is ordered to suspend keeps its slot without getting further, in seconds; at least 0.
    pub suspend_cost: f64,
    /// How long one that goes on, there or elsewhere, takes before it gets further, in seconds; at least 0.
    pub resume_cost: f64,
    /// What the system itself asks of the processors of each host; `None` if that takes no time. A task holds its slot
    /// while its part of it is done.
    pub system: Option<SystemWork>,
    /// Bytes after which a transfer takes no further map with it, so that lanes soon turn to a more urgent job;
    /// infinite for all that there are. Above 0.
    pub request_bytes: f64,
    /// Of the drawn service times.
    pub seed: u64,
    /// Longest map and reduce into which a job is cut that comes without tasks, in seconds; infinite for one each. See
    /// [`TaskCounts`].
    pub task_seconds: f64,
    /// Limits of the core. Its network is overwritten by the one above.
    pub core: CoreConfig,
    /// Most live jobs.
    pub jobs_max: usize,
}

impl Config {
    /// So many workers of speed 1, each on a machine of its own, without limits to the network. Nothing is queued
    /// behind running attempts, as orders take no time here.
    #[must_use]
    pub fn uniform(workers: u32, slots: Slots) -> Self {
        let ahead = AheadConfig { maps_max: 0, ..AheadConfig::default() };
        Self {
            workers: (0..workers).map(|host| SimWorker::new(slots, host)).collect(),
            network: NetworkConfig::default(),
            request_bytes: f64::INFINITY,
            report: [0.0; 2],
            suspend_cost: 0.0,
            resume_cost: 0.0,
            system: None,
            seed: 0,
            task_seconds: f64::INFINITY,
            core: CoreConfig { ahead, ..CoreConfig::default() },
            jobs_max: JOBS_MAX_DEFAULT,
        }
    }
}

/// A task that ran, in seconds since the start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskRun {
    /// Order of its job's arrival, from 0.
    pub seq: u64,
    /// Which task.
    pub task: crate::ids::TaskId,
    /// The worker's place in [`Config::workers`].
    pub worker: u32,
    /// The slot of that worker, from 0; in pools those for reduces come after those for maps.
    pub slot: u32,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
}

/// A transfer that ended, in seconds since the start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TransferRun {
    /// Order of its job's arrival, from 0.
    pub seq: u64,
    /// Place of the worker that gave, in [`Config::workers`].
    pub from: u32,
    /// Place of the worker that took.
    pub to: u32,
    /// Maps whose segments these were.
    pub maps: u32,
    /// Bytes moved.
    pub bytes: f64,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
}

/// Sees what happens. By default it looks at nothing, as `()` does.
pub trait Observer {
    /// A task ended. Of one that was suspended, what ran since it was resumed the last time.
    fn task(&mut self, _run: &TaskRun) {}

    /// A reduce that had run until now was suspended.
    fn suspended(&mut self, _run: &TaskRun) {}

    /// The core was given these facts, gave these orders, and has this standing order of the shuffle.
    fn instant(&mut self, _now: Time, _events: &[Event], _commands: &[Command], _order: &ShuffleOrder) {}

    /// A transfer between two workers ended.
    fn transfer(&mut self, _run: &TransferRun) {}

    /// A job holds so many slots for maps and for reduces from this time on, in seconds; those queued are not counted.
    fn held(&mut self, _at: f64, _seq: u64, _slots: [u32; 2]) {}
}

impl Observer for () {}

/// A simulation as a whole.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ClusterSummary {
    /// Jobs that ended.
    pub jobs: u64,
    /// Tasks that ran.
    pub tasks: u64,
    /// Segments that were fetched, empty ones and those read in place not counted.
    pub segments: u64,
    /// Bytes that were fetched from other workers, and those that were read in place, at no cost.
    pub shuffled: [f64; 2],
    /// Calls of the core.
    pub instants: u64,
    /// When the last job ended, in seconds.
    pub end: f64,
    /// Part of each station's capacity that was used from the first arrival up to then; unified slots count for maps and reduces each by what
    /// they ran. 0 for a network without limits.
    pub utilisation: PerStation<f64>,
}

/// Who decides on a simulated cluster.
pub struct Deciders {
    /// Which job comes next.
    pub policy: Box<dyn Policy>,
    /// Which worker gets a task.
    pub placement: Box<dyn Placement>,
    /// How large jobs look; without one policies see numbers of tasks and segments.
    pub estimator: Option<Box<dyn Estimator>>,
}

impl Deciders {
    /// This policy with pull placement and without an estimator.
    #[must_use]
    pub fn of(policy: Box<dyn Policy>) -> Self {
        Self { policy, placement: Box::new(Pull::new()), estimator: None }
    }
}

/// Runs these jobs, which come in the order of arrival, until all have ended; the record of each goes to `sink`, in
/// the order in which they end.
///
/// # Errors
/// A job or a setting out of range, a policy that suspends maps, jobs that wait for ever, and more live jobs than the
/// limit.
pub fn run(
    config: &Config,
    deciders: Deciders,
    jobs: impl IntoIterator<Item = Job>,
    observer: &mut dyn Observer,
    sink: &mut dyn FnMut(&JobRecord),
) -> Result<ClusterSummary, SimError> {
    let core = check::core_of(config, deciders)?;
    let mut jobs = jobs.into_iter();
    engine::Engine::new(config, core, observer, sink).run(&mut jobs, &mut |_| {})
}

#[cfg(test)]
mod tests;
