//! What a feed has told so far: the master, its workers, jobs, attempts and transfers.
//!
//! Words of others are cleaned on their way in, so that nothing below can harm a terminal. Not here: where on the screen
//! anything goes (`draw`), and what somebody has chosen (`app`).

use super::lanes::{Lane, lay};
use gristmill_runtime::api::{
    FeedAttempt, FeedEnd, FeedFetch, FeedLine, FeedLoad, JobStatus, MasterStatus, WorkerStatus,
};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_worker::clean;
use gristmill_worker::protocol::SlotCounts;
use std::collections::{BTreeMap, VecDeque};

/// What has ended longer ago is not shown any more, nanoseconds: twice the longest span of the strip.
const KEPT_NS: u64 = 1200 * NS;
/// Attempts kept of one worker; the oldest go first.
const ATTEMPTS_OF_WORKER_MAX: usize = 2_000;
/// Transfers of which the rate is made.
const FETCHES_MAX: usize = 20_000;
/// Ended jobs that are kept; those that ended first go first.
const ENDED_JOBS_MAX: usize = 500;
/// The rate of the network is that of this time, nanoseconds.
const RATE_NS: u64 = 2 * NS;
/// Longest name of a job or a host that is kept, bytes.
const NAME_BYTES_MAX: usize = 200;
/// Longest sentence of the master that is kept, bytes.
const WORDS_BYTES_MAX: usize = 1_000;
/// A second.
pub(super) const NS: u64 = 1_000_000_000;

/// Which attempt: job, kind (0 map, 1 reduce), index, epoch.
type AttemptName = (u32, u8, u32, u32);

/// One attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) name: AttemptName,
    pub(super) launched_ns: u64,
    /// `None` until it has ended.
    pub(super) started_ns: Option<u64>,
    pub(super) ended_ns: Option<u64>,
    pub(super) end: FeedEnd,
    /// Since when it is suspended, as far as was seen.
    pub(super) suspended_ns: Option<u64>,
}

/// One worker and what ran there.
pub(super) struct WorkerLanes {
    /// `None` once it has gone.
    pub(super) live: Option<WorkerStatus>,
    /// Those it has, or had.
    slots: SlotCounts,
    attempts: BTreeMap<AttemptName, Attempt>,
    /// What ran in each slot, and then what is queued and what is suspended.
    pub(super) lanes: Vec<Lane>,
    /// Something has changed since `lanes` were laid.
    changed: bool,
}

/// All that was told.
#[derive(Default)]
pub(super) struct Model {
    pub(super) master: Option<MasterStatus>,
    pub(super) workers: BTreeMap<WorkerId, WorkerLanes>,
    pub(super) jobs: BTreeMap<JobId, JobStatus>,
    fetches: VecDeque<FeedFetch>,
}

impl Model {
    /// Takes the next line.
    pub(super) fn take(&mut self, line: FeedLine) {
        let now_ns = line.master.now_ns;
        let mut master = line.master;
        clean_words(&mut master.policy_panic);
        for name in [&mut master.policy, &mut master.placement, &mut master.estimator, &mut master.version] {
            clean_name(name);
        }
        if let Some(trouble) = &mut master.trouble {
            clean_words(trouble);
        }
        for mut worker in line.workers {
            clean_name(&mut worker.host);
            let lanes = self.workers.entry(worker.worker).or_default();
            lanes.slots = worker.slot_counts;
            (lanes.live, lanes.changed) = (Some(worker), true);
        }
        for FeedLoad(id, running, memory_bytes, disk_free_bytes) in line.loads {
            let lanes = self.workers.get_mut(&WorkerId(id));
            if let Some(live) = lanes.and_then(|lanes| lanes.live.as_mut()) {
                (live.running, live.memory_bytes, live.disk_free_bytes) =
                    (running, memory_bytes, disk_free_bytes);
            }
        }
        for id in line.left {
            self.workers.entry(id).or_default().live = None;
        }
        for job in line.jobs {
            self.jobs.insert(job.job, cleaned(job));
        }
        for attempt in line.attempts {
            self.take_attempt(attempt, now_ns);
        }
        self.fetches.extend(line.fetches.into_iter().filter(|fetch| 0 < fetch.4));
        self.master = Some(master);
        self.trim(now_ns);
    }

    fn take_attempt(&mut self, told: FeedAttempt, now_ns: u64) {
        let FeedAttempt(job, kind, index, epoch, worker, launched_ns, started_ns, ended_ns, end) = told;
        let known = |ns: u64| (0 < ns).then_some(ns);
        let name = (job, kind, index, epoch);
        let lanes = self.workers.entry(WorkerId(worker)).or_default();
        lanes.changed = true;
        let attempts = &mut lanes.attempts;
        let before = attempts.get(&name).and_then(|before| before.suspended_ns);
        let suspended_ns = (end == FeedEnd::Suspended).then(|| before.unwrap_or(now_ns));
        let (started_ns, ended_ns) = (known(started_ns), known(ended_ns));
        attempts.insert(name, Attempt { name, launched_ns, started_ns, ended_ns, end, suspended_ns });
    }

    /// Lets go of what is not shown any more.
    fn trim(&mut self, now_ns: u64) {
        let before_ns = now_ns.saturating_sub(KEPT_NS);
        let jobs = &self.jobs;
        for lanes in self.workers.values_mut() {
            // What is told no more of when its job ends, ended with it.
            for attempt in lanes.attempts.values_mut().filter(|attempt| attempt.ended_ns.is_none()) {
                attempt.ended_ns = jobs.get(&JobId(attempt.name.0)).and_then(|job| job.ended_ns);
                lanes.changed |= attempt.ended_ns.is_some();
            }
            let before = lanes.attempts.len();
            lanes.attempts.retain(|_, attempt| attempt.ended_ns.is_none_or(|ended| before_ns <= ended));
            let over = lanes.attempts.len().saturating_sub(ATTEMPTS_OF_WORKER_MAX);
            if 0 < over {
                let mut ends: Vec<u64> =
                    lanes.attempts.values().filter_map(|attempt| attempt.ended_ns).collect();
                ends.sort_unstable();
                let last = ends.get(over.min(ends.len()).saturating_sub(1)).copied().unwrap_or(0);
                lanes.attempts.retain(|_, attempt| attempt.ended_ns.is_none_or(|ended| last < ended));
            }
            lanes.changed |= lanes.attempts.len() != before;
            if std::mem::take(&mut lanes.changed) {
                lanes.lanes = lay(lanes.slots, lanes.attempts.values());
            }
        }
        self.workers.retain(|_, lanes| lanes.live.is_some() || !lanes.attempts.is_empty());
        while self.fetches.front().is_some_and(|fetch| fetch.6 + RATE_NS < now_ns)
            || FETCHES_MAX < self.fetches.len()
        {
            self.fetches.pop_front();
        }
        let mut ended: Vec<(u64, JobId)> =
            self.jobs.values().filter_map(|job| Some((job.ended_ns?, job.job))).collect();
        ended.sort_unstable();
        for (_, id) in ended.iter().take(ended.len().saturating_sub(ENDED_JOBS_MAX)) {
            self.jobs.remove(id);
        }
    }

    /// Workers that are there.
    pub(super) fn live(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.workers.values().filter_map(|lanes| lanes.live.as_ref())
    }

    /// Bytes that workers have sent each other in a second lately.
    pub(super) fn network_rate(&self) -> u64 {
        let now_ns = self.master.as_ref().map_or(0, |master| master.now_ns);
        let lately = self.fetches.iter().filter(|fetch| now_ns <= fetch.6 + RATE_NS);
        lately.map(|fetch| fetch.4).sum::<u64>() / (RATE_NS / NS)
    }

    /// What is not as it should be, in sentences; nothing where all is well.
    pub(super) fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        let Some(master) = &self.master else { return troubles };
        if let Some(trouble) = &master.trouble {
            troubles.push(format!("takes no jobs and gives no orders for now: {trouble}"));
        }
        if 0 < master.policy_panics {
            let times = counted(master.policy_panics, "time", "times");
            troubles.push(format!("the policy panicked {times}, fifo stood in: {}", master.policy_panic));
        }
        let count = |which: fn(&WorkerStatus) -> bool| self.live().filter(|worker| which(worker)).count();
        let (away, full) = (count(|worker| worker.away), count(|worker| worker.disk_full));
        if 0 < away {
            let away = counted(away as u64, "worker", "workers");
            troubles.push(format!("{away} away: the connection broke"));
        }
        if 0 < full {
            let full = counted(full as u64, "worker", "workers");
            troubles.push(format!("no new tasks for {full} with full disks"));
        }
        troubles
    }
}

impl Default for WorkerLanes {
    fn default() -> Self {
        Self {
            live: None,
            slots: SlotCounts::Unified(1),
            attempts: BTreeMap::new(),
            lanes: Vec::new(),
            changed: true,
        }
    }
}

fn clean_name(name: &mut String) {
    *name = clean::line(name, NAME_BYTES_MAX);
}

fn clean_words(words: &mut String) {
    *words = clean::line(words, WORDS_BYTES_MAX);
}

fn cleaned(mut job: JobStatus) -> JobStatus {
    clean_name(&mut job.name);
    if let Some(pool) = &mut job.pool {
        clean_name(pool);
    }
    if let Some(failure) = &mut job.failure {
        clean_words(&mut failure.message);
    }
    // Neither is shown, and both may be long.
    job.parameters.clear();
    job.counters.clear();
    job
}
