//! One run of the four jobs: their end times, and the map slots they hold over time.
//!
//! Not here: the claims about it.

use crate::prelude::*;
use crate::workload::deadlines::{Joins, SLOTS, WEIGHTS, scenario};
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::cluster::{self, Config, Observer};

/// Schedulers, in the order of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scheduler {
    Fifo,
    Fair,
    Weighted,
    Min,
    Max,
}

impl Scheduler {
    pub(super) const ALL: [Scheduler; 5] =
        [Scheduler::Fifo, Scheduler::Fair, Scheduler::Weighted, Scheduler::Min, Scheduler::Max];

    /// Names of the schedulers here, and of their policies.
    const NAMES: [(&str, &str); 5] = [
        ("FIFO", "fifo"),
        ("fair", "fair"),
        ("weighted fair", "fair"),
        ("min-scheduler", "min-scheduler"),
        ("max-scheduler", "max-scheduler"),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    fn policy(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// Width of the intervals over which held slots are averaged, in seconds.
pub(super) const WIDTH: f64 = 10.0;

/// Result of one run.
pub(super) struct DeadlineTrial {
    /// Seconds from arrival to end, by job.
    pub(super) responses: [f64; 4],
    /// Mean map slots held in each interval of [`WIDTH`], by job.
    pub(super) held: Vec<[f64; 4]>,
}

impl DeadlineTrial {
    /// Returns the mean map slots that the job held between two times.
    pub(super) fn mean_held(&self, job: usize, from: f64, to: f64) -> f64 {
        let (from, to) = ((from / WIDTH) as usize, ((to / WIDTH).ceil() as usize).min(self.held.len()));
        let held = &self.held[from.min(to)..to];
        held.iter().map(|held| held[job]).sum::<f64>() / held.len().max(1) as f64
    }

    /// Returns the largest mean number of map slots that the job held in any interval between two times.
    pub(super) fn peak(&self, job: usize, from: f64, to: f64) -> f64 {
        let to = ((to / WIDTH).ceil() as usize).min(self.held.len());
        let held = &self.held[((from / WIDTH) as usize).min(to)..to];
        held.iter().map(|held| held[job]).fold(0.0, f64::max)
    }
}

/// The paper's cluster: one slot of each kind on each worker.
pub(super) fn cluster() -> Config {
    Config::uniform(SLOTS, Slots::Pools { map: 1, reduce: 1 })
}

/// Runs jobs on the paper's cluster.
pub(super) fn run(
    policy: &str,
    jobs: Vec<Job>,
    observer: &mut dyn Observer,
    sink: &mut dyn FnMut(&JobRecord),
) -> anyhow::Result<()> {
    let policy = policy::by_name(policy)?;
    cluster::run(&cluster(), cluster::Deciders::with_policy(policy), jobs, observer, sink)?;
    Ok(())
}

/// Runs the four jobs.
pub(super) fn simulate(joins: Joins, scheduler: Scheduler, seed: u64) -> anyhow::Result<DeadlineTrial> {
    let weights = if scheduler == Scheduler::Weighted { WEIGHTS } else { [1.0; 4] };
    let mut responses = [0.0; 4];
    let mut held = Held::default();
    let mut sink = |record: &JobRecord| responses[record.seq as usize] = record.flow();
    run(scheduler.policy(), scenario(joins, weights, seed), &mut held, &mut sink)?;
    Ok(DeadlineTrial { responses, held: held.means() })
}

/// Adds up map slots over time.
#[derive(Default)]
struct Held {
    /// Start time and number of the slots each job holds now.
    now: [(f64, f64); 4],
    /// Slot-seconds in each interval.
    intervals: Vec<[f64; 4]>,
}

impl Observer for Held {
    fn held(&mut self, at: f64, seq: u64, slots: [u32; 2]) {
        let job = seq as usize;
        let (mut from, held) = self.now[job];
        while from < at {
            let interval = (from / WIDTH) as usize;
            let to = at.min((interval + 1) as f64 * WIDTH);
            if self.intervals.len() <= interval {
                self.intervals.resize(interval + 1, [0.0; 4]);
            }
            self.intervals[interval][job] += held * (to - from);
            from = to;
        }
        self.now[job] = (at, f64::from(slots[0]));
    }
}

impl Held {
    fn means(&self) -> Vec<[f64; 4]> {
        self.intervals.iter().map(|interval| interval.map(|seconds| seconds / WIDTH)).collect()
    }
}
