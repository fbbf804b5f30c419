//! Ledger: jobs, tasks, attempts, workers and outputs, with the legal changes of their state.
//!
//! The ledger makes no decisions. It holds facts and what follows from them by rule. [`core`](crate::core) asks policy
//! and placement which job and which worker are next.
//!
//! Data has owners: `Workers`, `Job`, `Routes`, `RouteRates`, `Owners` and others change only themselves. `Ledger` holds them
//! and has the rules that concern several: `events` enters an event, `attempts` launches and releases, `ends` handles
//! results and failures, `suspensions` and `backups` second slots and second attempts, `detours` cut routes.
//!
//! Read `jobs` first, then `outputs` and `attempts`; `tests::audit` holds every invariant in one place.

pub(crate) mod ahead;
pub(crate) mod attempts;
pub(crate) mod backups;
mod config;
mod detours;
pub(crate) mod divisions;
pub(crate) mod ends;
mod events;
mod fitness;
mod homes;
mod job_offers;
mod job_parts;
mod jobs;
pub(crate) mod lines;
mod outputs;
mod queue;
pub(crate) mod quotas;
mod rates;
mod reduce_divisions;
mod routes;
mod snapshot;
pub(crate) mod suspensions;
pub(crate) mod tasks;
#[cfg(any(test, debug_assertions))]
pub(crate) mod tests;
mod usual_map;
mod worker;
pub(crate) mod workers;

pub use ahead::AheadConfig;
pub use backups::{BackupLimits, CloneLimits};
pub use config::{CoreConfig, DivideLimits, MoveLimits, RouteLimits, SuspendLimits};
pub use job_parts::BackupTotals;
pub(crate) use job_parts::{ReduceQueue, RunChange};
pub use jobs::Job;
pub(crate) use queue::{Bound, places};
pub use snapshot::{
    AttemptSnapshot, AttemptTotals, CoreJobState, JobSnapshot, MapCounts, ReduceCounts, WorkerSnapshot,
};
pub use workers::{Worker, Workers};

use crate::command::{Command, Outcome};
use crate::ids::{AttemptId, JobId, TaskId};
use crate::station::PerStation;
use crate::units::Time;
use ahead::Ahead;
use attempts::{Attempt, SlotHold};
use backups::Backups;
use lines::LineCredits;
use quotas::Owners;
use rates::RouteRates;
use routes::Routes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use suspensions::Suspensions;
pub(crate) use usual_map::UsualMap;

/// State of the core.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ledger {
    #[serde(skip)]
    pub(crate) config: CoreConfig,
    pub(crate) now: Time,
    pub(crate) workers: Workers,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Attempts that hold a slot, are queued behind one, or are suspended.
    pub(crate) attempts: BTreeMap<AttemptId, Attempt>,
    pub(crate) suspensions: Suspensions,
    /// True if the policy preempts. It then sees suspendable attempts as startable, and not as held.
    #[serde(skip)]
    pub(crate) preempts: bool,
    /// Queued attempts.
    pub(crate) ahead: Ahead,
    pub(crate) ended: EndedJobs,
    /// Id of the last job that arrived. Ids increase, so a smaller id that is not live belongs to an ended job.
    pub(crate) last_job: Option<JobId>,
    pub(crate) waits: Waits,
    /// Lines by station.
    #[serde(skip)]
    pub(crate) lines: PerStation<LineCredits>,
    #[serde(skip)]
    pub(crate) unseen: Unseen,
    /// Number of events that came too late to matter.
    pub(crate) late: u64,
    /// Arrival rate of maps.
    pub(crate) arrivals: ArrivalRate,
    /// Time of a map in jobs that have not finished one.
    #[serde(default)]
    pub(crate) usual_map: UsualMap,
    /// State of the routes between workers.
    pub(crate) routes: Routes,
    /// Transfer rates of the routes.
    pub(crate) rates: RouteRates,
    /// Tasks with two running attempts.
    pub(crate) backups: Backups,
    /// Recomputed when a ledger is restored.
    #[serde(skip)]
    pub(crate) owners: Owners,
}

/// Changes that the policy has not seen yet.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    /// Live jobs that changed since the rows were counted.
    pub(crate) dirty: BTreeSet<JobId>,
    /// Live jobs that the policy does not know.
    pub(crate) arrived: Vec<JobId>,
    /// Jobs that ended and that the policy still knows.
    pub(crate) left: Vec<Job>,
}

/// State of timed waits.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Waits {
    /// Tasks that failed by a worker's fault, with the time of their return to the line. Some may have returned
    /// already.
    pub(crate) backing_off: BTreeSet<(Time, TaskId)>,
    /// Jobs with maps that are pinned to hosts without a worker, and since when.
    pub(crate) orphaned: BTreeSet<(Time, JobId)>,
    /// Time since when slots are idle while reduces wait for busy homes, and time of the next search for reduces that
    /// should move to them.
    #[serde(default)]
    pub(crate) idle_slots: Option<(Time, Time)>,
    /// Time of the last check for work that could leave slow homes.
    pub(crate) slow_looked_at: Time,
    /// Earliest time of the next search for maps to divide.
    #[serde(default)]
    pub(crate) next_division: Time,
    /// Time when the last worker left, or of the start.
    pub(crate) deserted_at: Time,
}

/// Recently ended jobs.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct EndedJobs {
    pub(crate) by_id: BTreeMap<JobId, JobSnapshot>,
    /// Ended jobs in the order of their ends.
    order: VecDeque<JobId>,
}

impl EndedJobs {
    /// Adds a job. Drops the oldest one if there are more than `jobs_max`.
    fn keep(&mut self, job: JobSnapshot, jobs_max: usize) {
        self.order.push_back(job.id);
        self.by_id.insert(job.id, job);
        while jobs_max < self.by_id.len()
            && let Some(first) = self.order.pop_front()
        {
            self.by_id.remove(&first);
        }
    }
}

/// Arrival rate of maps per second, with exponentially decaying weights.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct ArrivalRate {
    last: Option<Time>,
    maps: f64,
    seconds: f64,
}

/// Seconds after which the weight of an arrival has decayed to 1/e.
const ARRIVALS_MEMORY_S: f64 = 600.0;

impl ArrivalRate {
    /// Records the arrival of a job with this many maps.
    pub(crate) fn add(&mut self, now: Time, maps: usize) {
        if let Some(last) = self.last {
            let passed = now.since(last).seconds();
            let kept = (-passed / ARRIVALS_MEMORY_S).exp();
            // The jobs of an interval are those at its end, so the very first job is not counted.
            self.maps = self.maps * kept + maps as f64;
            self.seconds = self.seconds * kept + ARRIVALS_MEMORY_S * (1.0 - kept);
        }
        self.last = Some(now);
    }

    /// Returns the maps per second; `None` before two jobs arrived at different times.
    pub(crate) fn rate(&self) -> Option<f64> {
        (0.0 < self.seconds).then(|| self.maps / self.seconds)
    }
}

impl Ledger {
    pub(crate) fn new(config: CoreConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Returns the bytes per second that a worker can receive: as given, else as transfers have shown.
    pub(crate) fn inbound(&self) -> Option<f64> {
        self.config.network.map(|rate| rate.0 as f64).or_else(|| self.rates.inbound())
    }

    /// Resets lines and assignments of maps because a new policy and placement take over.
    pub(crate) fn reset_decisions(&mut self) {
        self.lines = Default::default();
        for record in self.attempts.values_mut() {
            record.line = None;
        }
        for (&id, job) in &mut self.jobs {
            job.unassign_all(&mut self.workers);
            self.unseen.dirty.insert(id);
        }
    }

    /// Counts an event that came too late to matter.
    pub(crate) fn late(&mut self) {
        self.late += 1;
    }

    /// Ends a job: its attempts are killed and its workers notified.
    pub(crate) fn end(&mut self, id: JobId, outcome: Outcome, out: &mut Vec<Command>) {
        let mut job = self.jobs.remove(&id).expect("only live jobs end");
        self.unseen.dirty.extend(self.owners.remove(&job));
        self.end_races(&mut job);
        for &attempt in &job.attempts.live {
            let record = self.attempts.get_mut(&attempt).expect("running attempts are in the table");
            record.dying = true;
            out.push(Command::Kill { attempt, worker: record.worker });
            if record.hold == SlotHold::Suspendable {
                self.set_hold(attempt, SlotHold::Firm);
            }
        }
        for &worker in job.workers.informed.iter().filter(|&&worker| self.workers.is_live(worker)) {
            out.push(Command::Forget { job: id, worker });
        }
        out.push(Command::JobEnded { job: id, outcome });
        if let Some(since) = job.workers.orphaned_since {
            self.waits.orphaned.remove(&(since, id));
        }
        job.reduce_queue.ready.disperse(&mut self.workers);
        job.reduce_queue.parked.disperse(&mut self.workers);
        job.queue.disperse(&mut self.workers);
        self.workers.forget(id, job.marks().into_iter());
        self.unseen.dirty.remove(&id);
        let snapshot = JobSnapshot::from_job(&job, Some((self.now, outcome)));
        self.ended.keep(snapshot, self.config.ended_jobs_max);
        match job.handle {
            Some(_) => self.unseen.left.push(job),
            None => self.unseen.arrived.retain(|&other| other != id),
        }
    }
}
