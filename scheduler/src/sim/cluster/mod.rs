//! Cluster simulator: simulated workers drive the [`Core`](crate::core::Core) of the live master in virtual time, map,
//! shuffle and reduce task by task.
//!
//! A task of length `l` takes `l * x / speed` seconds on a worker, where `x` is 1 or drawn from the worker's
//! distribution. There is one draw per task, independent of scheduler and worker; speculative
//! attempts have draws of their own. Segments of a job have equal sizes. A
//! home fetches from a few workers at once, its lanes. Each lane fetches all segments that one worker has for the home
//! of one job. The job is the first in the policy's standing order (jobs of one tier by bytes received per weight);
//! jobs that are not in the order follow by age. A transfer gets the smaller of the fair shares at its two ends; the
//! unused rest of a share is not redistributed. Local segments are read at no cost.
//!
//! All events of one instant are sent to the core at once. Events that follow without delay, such as the end of a fetch
//! over an unlimited network, are sent in the next call, at the same time.
//!
//! A suspended reduce keeps its remaining work.
//!
//! The system's own use of processors can be configured ([`SystemWork`]). Tiny tasks, requests, outputs, segments and
//! bytes then wait for the cores of their host.
//!
//! The simulator does not model faults, disks or memory, nor contention of tasks for processors.

mod alone;
mod check;
mod engine;
mod forecast;
mod jobs;
mod mechanisms;
mod network;
mod pieces;
mod processors;
mod random;
mod tasks;
mod timers;

pub use alone::alone;
pub use forecast::{FORECAST_TASKS_MAX, time_left};
pub use mechanisms::Mechanisms;

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

pub use tasks::SimulatedTasks;

/// Default maximum number of live jobs. It ends simulations where policy or placement cannot carry the load.
pub(crate) const JOBS_MAX_DEFAULT: usize = 100_000;

/// Maximum number of tasks of one job.
pub const TASKS_MAX: u64 = 100_000_000;

/// Longest task and latest arrival, in seconds.
pub const SECONDS_MAX: f64 = 1e9;

/// Simulated worker.
#[derive(Clone, PartialEq, Debug)]
pub struct SimWorker {
    /// Slots of the worker. All workers of a cluster must have the same kind of slots.
    pub slots: Slots,
    /// Work per second of one slot; lengths of tasks are measured at speed 1. Above 0.
    pub speed: f64,
    /// Machine of the worker, from 0.
    pub host: u32,
    /// Distribution of the seconds of a task of length 1 at speed 1; `None` is always 1. Its offset is at least 0. With
    /// `Dtd { a: 1, b: 0, offset: 0 }` service is exponential.
    pub service: Option<Dtd>,
}

impl SimWorker {
    /// Creates a worker of speed 1 on its own machine, whose tasks take exactly their length.
    #[must_use]
    pub fn new(slots: Slots, host: u32) -> Self {
        Self { slots, speed: 1.0, host, service: None }
    }
}

/// Network between the workers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NetworkConfig {
    /// Bytes per second that each worker can receive; infinite without limit. Above 0.
    pub in_rate: f64,
    /// Bytes per second that each worker can send; infinite without limit. Above 0.
    pub out_rate: f64,
    /// Seconds before the first byte of a transfer; at least 0.
    pub latency: f64,
    /// Number of workers that a home fetches from at once; at least 1.
    pub lanes: u32,
    /// True if a worker's own segments count against its limits as those of others do; false if they are read in no time.
    pub own: bool,
}

impl Default for NetworkConfig {
    /// Returns a network without limits, with 8 lanes.
    fn default() -> Self {
        Self { in_rate: f64::INFINITY, out_rate: f64::INFINITY, latency: 0.0, lanes: 8, own: false }
    }
}

/// Simulated cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Workers, at least one. Their ids start at 1.
    pub workers: Vec<SimWorker>,
    /// Network between the workers.
    pub network: NetworkConfig,
    /// Seconds between the end of a map or a reduce and its report to the core; at least 0. Queued attempts start
    /// without this delay.
    pub report: [f64; 2],
    /// Seconds for which a suspending reduce keeps its slot without progress; at least 0.
    pub suspend_cost: f64,
    /// Seconds that a resumed reduce takes before it makes progress; at least 0.
    pub resume_cost: f64,
    /// System's own use of the processors of each host; `None` if it takes no time. A task holds its slot while its
    /// part of it is done.
    pub system: Option<SystemWork>,
    /// Bytes after which a transfer takes no further map, so that lanes turn to a more urgent job soon. Infinite to
    /// fetch all available segments. Above 0.
    pub request_bytes: f64,
    /// Seed of the drawn service times.
    pub seed: u64,
    /// Maximum length in seconds of maps and reduces into which a job without tasks is split; infinite for one task
    /// each. See [`SimulatedTasks`].
    pub task_seconds: f64,
    /// Limits of the core. Its network, by which policies compare bytes with seconds, is the one above unless it is set.
    pub core: CoreConfig,
    /// Maximum number of live jobs.
    pub jobs_max: usize,
}

impl Config {
    /// Creates this many workers of speed 1, each on its own machine, with an unlimited network. Nothing is queued
    /// behind running attempts, since commands take no time here.
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

/// Task that ran, in seconds since the start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskRun {
    /// Index of its job in the order of arrival, from 0.
    pub seq: u64,
    /// Id of the task.
    pub task: crate::ids::TaskId,
    /// Index of the worker in [`Config::workers`].
    pub worker: u32,
    /// Slot of that worker, from 0; with pools the reduce slots follow the map slots.
    pub slot: u32,
    /// Start time.
    pub start: f64,
    /// End time.
    pub end: f64,
}

/// Transfer that ended, in seconds since the start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TransferRun {
    /// Index of its job in the order of arrival, from 0.
    pub seq: u64,
    /// Index of the sending worker in [`Config::workers`].
    pub from: u32,
    /// Index of the receiving worker.
    pub to: u32,
    /// Number of maps whose segments were transferred.
    pub maps: u32,
    /// Bytes transferred.
    pub bytes: f64,
    /// Start time.
    pub start: f64,
    /// End time.
    pub end: f64,
}

/// Receives the events of a simulation. By default it ignores them, as `()` does.
pub trait Observer {
    /// A task ended. For a suspended task, the part since its last resumption.
    fn task(&mut self, _run: &TaskRun) {}

    /// A reduce that ran until now was suspended.
    fn suspended(&mut self, _run: &TaskRun) {}

    /// The core received these events, returned these commands, and has this standing order of the shuffle.
    fn instant(&mut self, _now: Time, _events: &[Event], _commands: &[Command], _order: &ShuffleOrder) {}

    /// A transfer between two workers ended.
    fn transfer(&mut self, _run: &TransferRun) {}

    /// A job holds this many slots for maps and for reduces from this time on, in seconds; queued attempts are not
    /// counted.
    fn held(&mut self, _at: f64, _seq: u64, _slots: [u32; 2]) {}
}

impl Observer for () {}

/// Summary of a simulation.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ClusterSummary {
    /// Jobs that ended.
    pub jobs: u64,
    /// Tasks that ran.
    pub tasks: u64,
    /// Number of fetched segments, without empty ones and those read locally.
    pub segments: u64,
    /// Bytes fetched from other workers, and bytes read locally at no cost.
    pub shuffled: [f64; 2],
    /// End of the last job, in seconds.
    pub end: f64,
    /// Utilisation of each station's capacity from the first arrival until `end`. Unified slots count for maps and
    /// reduces by what they ran. 0 for an unlimited network.
    pub utilisation: PerStation<f64>,
}

/// Policy, placement and estimator of a simulated cluster.
pub struct Deciders {
    /// Chooses the next job.
    pub policy: Box<dyn Policy>,
    /// Chooses the worker of a task.
    pub placement: Box<dyn Placement>,
    /// Estimates the sizes of jobs. Without an estimator, policies see numbers of tasks and segments.
    pub estimator: Option<Box<dyn Estimator>>,
}

impl Deciders {
    /// Creates deciders with this policy, pull placement and no estimator.
    #[must_use]
    pub fn with_policy(policy: Box<dyn Policy>) -> Self {
        Self { policy, placement: Box::new(Pull::new()), estimator: None }
    }
}

/// Runs these jobs, given in the order of arrival, until all have ended. `sink` receives the record of each job in the
/// order of their ends.
///
/// # Errors
/// A job or a setting out of range, a policy that suspends maps, jobs that wait forever, and more live jobs than the
/// limit.
pub fn run(
    config: &Config,
    deciders: Deciders,
    jobs: impl IntoIterator<Item = Job>,
    observer: &mut dyn Observer,
    sink: &mut dyn FnMut(&JobRecord),
) -> Result<ClusterSummary, SimError> {
    run_taken_over(config, deciders, None, jobs, observer, sink)
}

/// Policy that decides from an instant on, in the place of the first one, as [`Core::decide_by`](crate::core::Core::decide_by) describes.
pub struct Takeover {
    /// Seconds since the start: the first instant not before it is the policy's first.
    pub at: f64,
    /// Policy that takes over, with pull placement.
    pub policy: Box<dyn Policy>,
}

/// Runs the jobs as [`run`] does, with another policy from an instant on, if there is one. So the orders of this instant are what the
/// other policy does in the state to which the first one has led.
///
/// # Errors
/// As [`run`].
pub fn run_taken_over(
    config: &Config,
    deciders: Deciders,
    takeover: Option<Takeover>,
    jobs: impl IntoIterator<Item = Job>,
    observer: &mut dyn Observer,
    sink: &mut dyn FnMut(&JobRecord),
) -> Result<ClusterSummary, SimError> {
    takeover.as_ref().map_or(Ok(()), |takeover| check::check_policy(&*takeover.policy))?;
    let core = check::core_of(config, deciders)?;
    let mut jobs = jobs.into_iter();
    engine::Engine::new(config, core, observer, sink).taken_over(takeover).run(&mut jobs, &mut |_| {})
}

#[cfg(test)]
mod tests;
