//! The books: jobs, tasks, attempts, workers and outputs, with the legal changes of their state.
//!
//! Not here: decisions. The books say what is the case and what follows from a fact by rule; which job and
//! which worker come next is asked of policy and placement by [`core`](crate::core).
//!
//! Read `jobs` first, then `outputs` and `attempts`; `audit` holds every invariant in one place.

pub(crate) mod ahead;
pub(crate) mod attempts;
mod audit;
mod jobs;
mod lines;
mod outputs;
mod queue;
pub(crate) mod tasks;
mod workers;

pub use ahead::AheadConfig;
pub use audit::Violation;
pub use jobs::Job;
pub use workers::{Worker, Workers};

use crate::command::{Command, Outcome};
use crate::core::{CoreConfig, JobSnapshot};
use crate::ids::{AttemptId, JobId, TaskId};
use crate::units::Time;
use crate::view::Handle;
use ahead::Ahead;
use attempts::Attempt;
use lines::Lines;
use std::collections::{BTreeMap, BTreeSet};

/// Everything the core knows.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) config: CoreConfig,
    pub(crate) now: Time,
    pub(crate) workers: Workers,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Attempts that hold a slot or are queued behind one.
    pub(crate) attempts: BTreeMap<AttemptId, Attempt>,
    /// Those of them that are queued.
    pub(crate) ahead: Ahead,
    /// The last jobs that ended.
    pub(crate) ended: BTreeMap<JobId, JobSnapshot>,
    /// The last id that arrived; ids rise, so a smaller one is known to be over when it is not live.
    pub(crate) last_job: Option<JobId>,
    /// Tasks that failed by a worker's fault and when they stand in line again; some may do so already.
    pub(crate) resting: BTreeSet<(Time, TaskId)>,
    /// Lines by station.
    pub(crate) lines: [Lines; 3],
    /// Live jobs that something happened to since the rows were counted.
    pub(crate) dirty: BTreeSet<JobId>,
    /// Live jobs that the policy does not know yet.
    pub(crate) arrived: Vec<JobId>,
    /// Rows of jobs that ended and that the policy still knows.
    pub(crate) left: Vec<Handle>,
    /// When the last worker went, or the start.
    pub(crate) deserted_at: Time,
    /// Facts that came too late to matter.
    pub(crate) late: u64,
}

impl Books {
    pub(crate) fn new(config: CoreConfig) -> Self {
        Self {
            config,
            now: Time::ZERO,
            workers: Workers::default(),
            jobs: BTreeMap::new(),
            attempts: BTreeMap::new(),
            ahead: Ahead::default(),
            ended: BTreeMap::new(),
            last_job: None,
            resting: BTreeSet::new(),
            lines: Default::default(),
            dirty: BTreeSet::new(),
            arrived: Vec::new(),
            left: Vec::new(),
            deserted_at: Time::ZERO,
            late: 0,
        }
    }

    /// Counts a fact that came too late to matter.
    pub(crate) fn late(&mut self) {
        self.late += 1;
    }

    /// A job is over: its attempts are told to die, its workers to forget it.
    pub(crate) fn end(&mut self, id: JobId, outcome: Outcome, out: &mut Vec<Command>) {
        let job = self.jobs.remove(&id).expect("only live jobs end");
        for &attempt in &job.running {
            let record = self.attempts.get_mut(&attempt).expect("running attempts are in the table");
            record.dying = true;
            out.push(Command::Kill { attempt, worker: record.worker });
        }
        for &worker in job.told.iter().filter(|&&worker| self.workers.is_live(worker)) {
            out.push(Command::Forget { job: id, worker });
        }
        out.push(Command::JobEnded { job: id, outcome });
        job.ready.disperse(&mut self.workers);
        job.queue.pinned.disperse(&mut self.workers);
        self.workers.forget(id);
        self.dirty.remove(&id);
        match job.handle {
            Some(handle) => self.left.push(handle),
            None => self.arrived.retain(|&other| other != id),
        }
        self.ended.insert(id, JobSnapshot::of(&job, Some((self.now, outcome))));
        while self.config.ended_jobs_max < self.ended.len() {
            self.ended.pop_first();
        }
    }
}
