//! The books: jobs, tasks, attempts, workers and outputs, with the legal changes of their state.
//!
//! Not here: decisions. The books say what is the case and what follows from a fact by rule; which job and
//! which worker come next is asked of policy and placement by [`core`](crate::core).
//!
//! Read `jobs` first, then `outputs` and `attempts`; `audit` holds every invariant in one place.

pub(crate) mod ahead;
pub(crate) mod attempts;
mod audit;
mod fitness;
mod jobs;
pub(crate) mod lines;
mod outputs;
mod queue;
mod routes;
pub(crate) mod suspensions;
pub(crate) mod tasks;
pub(crate) mod workers;

pub use ahead::AheadConfig;
pub use audit::Violation;
pub use jobs::Job;
pub(crate) use jobs::RunChange;
pub(crate) use queue::{Bound, places};
pub use workers::{Worker, Workers};

use crate::command::{Command, Outcome};
use crate::core::{CoreConfig, JobSnapshot};
use crate::ids::{AttemptId, JobId, TaskId};
use crate::units::Time;
use ahead::Ahead;
use attempts::Attempt;
use lines::Lines;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use suspensions::Hold;

/// Everything the core knows.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) config: CoreConfig,
    pub(crate) now: Time,
    pub(crate) workers: Workers,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Attempts that hold a slot, are queued behind one, or are suspended.
    pub(crate) attempts: BTreeMap<AttemptId, Attempt>,
    /// Those of them that could be told to suspend.
    pub(crate) suspendable: BTreeSet<AttemptId>,
    /// Suspended attempts that can be handed over, and since when each could only go on elsewhere.
    pub(crate) stranded: BTreeMap<AttemptId, Option<Time>>,
    /// Reduces that were told to go on elsewhere; some may do so already.
    pub(crate) moving: BTreeSet<TaskId>,
    /// The policy takes slots back: what can be suspended counts for it as startable, and not as held.
    pub(crate) preempts: bool,
    /// Those of them that are queued.
    pub(crate) ahead: Ahead,
    /// The last jobs that ended.
    pub(crate) ended: BTreeMap<JobId, JobSnapshot>,
    /// In the order in which they ended.
    ended_order: VecDeque<JobId>,
    /// The last id that arrived; ids rise, so a smaller one is known to be over when it is not live.
    pub(crate) last_job: Option<JobId>,
    /// Tasks that failed by a worker's fault and when they stand in line again; some may do so already.
    pub(crate) resting: BTreeSet<(Time, TaskId)>,
    /// Jobs with maps that are pinned to where nobody is, and since when.
    pub(crate) orphaned: BTreeSet<(Time, JobId)>,
    /// Lines by station.
    pub(crate) lines: [Lines; 3],
    /// Live jobs that something happened to since the rows were counted.
    pub(crate) dirty: BTreeSet<JobId>,
    /// Live jobs that the policy does not know yet.
    pub(crate) arrived: Vec<JobId>,
    /// Jobs that ended and that the policy still knows.
    pub(crate) left: Vec<Job>,
    /// Since when, but for looks in between, slots have been idle while reduces waited for busy homes.
    pub(crate) idle_since: Option<Time>,
    /// When the last worker went, or the start.
    pub(crate) deserted_at: Time,
    /// Facts that came too late to matter.
    pub(crate) late: u64,
    /// How fast maps arrive.
    pub(crate) arrivals: Arrivals,
}

/// How many maps arrive in a second, those of long ago counting less and less.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    last: Option<Time>,
    maps: f64,
    seconds: f64,
}

/// After this time an arrival counts as 1/e of itself, in seconds.
const ARRIVALS_MEMORY_S: f64 = 600.0;

impl Arrivals {
    /// A job with so many maps arrived.
    pub(crate) fn add(&mut self, now: Time, maps: usize) {
        if let Some(last) = self.last {
            let passed = now.since(last).seconds();
            let kept = (-passed / ARRIVALS_MEMORY_S).exp();
            // The jobs of an interval are those at its end, so the first ever is not counted.
            self.maps = self.maps * kept + maps as f64;
            self.seconds = self.seconds * kept + ARRIVALS_MEMORY_S * (1.0 - kept);
        }
        self.last = Some(now);
    }

    /// Maps in a second; `None` before two jobs arrived at different times.
    pub(crate) fn rate(&self) -> Option<f64> {
        (0.0 < self.seconds).then(|| self.maps / self.seconds)
    }
}

impl Books {
    pub(crate) fn new(config: CoreConfig) -> Self {
        Self {
            config,
            now: Time::ZERO,
            workers: Workers::default(),
            jobs: BTreeMap::new(),
            attempts: BTreeMap::new(),
            suspendable: BTreeSet::new(),
            stranded: BTreeMap::new(),
            moving: BTreeSet::new(),
            preempts: false,
            ahead: Ahead::default(),
            ended: BTreeMap::new(),
            ended_order: VecDeque::new(),
            last_job: None,
            resting: BTreeSet::new(),
            orphaned: BTreeSet::new(),
            lines: Default::default(),
            dirty: BTreeSet::new(),
            arrived: Vec::new(),
            left: Vec::new(),
            idle_since: None,
            deserted_at: Time::ZERO,
            late: 0,
            arrivals: Arrivals::default(),
        }
    }

    /// Others decide from now on: lines are theirs to draw, and maps that were dealt to be dealt again.
    pub(crate) fn decide_anew(&mut self) {
        self.lines = Default::default();
        for record in self.attempts.values_mut() {
            record.line = None;
        }
        for (&id, job) in &mut self.jobs {
            job.undeal_all(&mut self.workers);
            self.dirty.insert(id);
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
            match record.hold {
                Hold::Suspendable => self.set_hold(attempt, Hold::Firm),
                _ => drop(self.stranded.remove(&attempt)),
            }
        }
        for &worker in job.told.iter().filter(|&&worker| self.workers.is_live(worker)) {
            out.push(Command::Forget { job: id, worker });
        }
        out.push(Command::JobEnded { job: id, outcome });
        if let Some(since) = job.orphaned_since {
            self.orphaned.remove(&(since, id));
        }
        job.ready.disperse(&mut self.workers);
        job.parked.disperse(&mut self.workers);
        job.queue.disperse(&mut self.workers);
        self.workers.forget(id, job.marks().into_iter());
        self.dirty.remove(&id);
        self.ended.insert(id, JobSnapshot::of(&job, Some((self.now, outcome))));
        self.ended_order.push_back(id);
        match job.handle {
            Some(_) => self.left.push(job),
            None => self.arrived.retain(|&other| other != id),
        }
        while self.config.ended_jobs_max < self.ended.len()
            && let Some(first) = self.ended_order.pop_front()
        {
            self.ended.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    #[test]
    fn the_rate_of_arrivals_is_that_of_the_last_minutes() {
        let mut arrivals = Arrivals::default();
        arrivals.add(Time::ZERO, 1_000);
        assert_eq!(arrivals.rate(), None, "one job has no rate");
        let mut now = Time::ZERO;
        for _ in 0..1_000 {
            now = now + Span::whole_seconds(2);
            arrivals.add(now, 10);
        }
        let rate = arrivals.rate().unwrap();
        assert!((rate - 5.0).abs() < 0.05, "{rate}");
        for _ in 0..2_000 {
            now = now + Span::whole_seconds(2);
            arrivals.add(now, 1);
        }
        let rate = arrivals.rate().unwrap();
        assert!((rate - 0.5).abs() < 0.02, "{rate}");
    }
}
