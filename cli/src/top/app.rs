//! State of `top`: the data of the feed, the user's selection, and the effect of each key. It has no terminal
//! and no network, so that tests can press keys.
//!
//! Texts from others are sanitized here, so that nothing below can harm a terminal.

use gristmill_runtime::api::{
    FeedAttempt, FeedEnd, FeedLine, JobState, JobStatus, MasterStatus, WorkerStatus,
};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_worker::sanitize;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A second.
pub(super) const NS: u64 = 1_000_000_000;
/// Time that the strip shows, nanoseconds.
pub(super) const SPAN_NS: u64 = 60 * NS;
/// Most attempts that are kept; those that ended first go first.
const ATTEMPTS_MAX: usize = 20_000;
/// Most ended jobs that are kept; those that ended first go first.
const ENDED_JOBS_MAX: usize = 500;
/// Maximum length of a text from others, bytes.
const TEXT_BYTES_MAX: usize = 1_000;
/// An attempt may start this long before the end of the one before it is known, nanoseconds.
const OVERLAP_NS: u64 = 200_000;

/// An attempt: job, kind (0 map, 1 reduce), index, epoch.
type AttemptName = (u32, u8, u32, u32);

/// An attempt on its worker, or in a slot of it.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    worker: u32,
    pub(super) job: u32,
    pub(super) is_reduce: bool,
    /// When it started, as far as is known.
    pub(super) from_ns: u64,
    /// When it ended or was suspended.
    pub(super) until_ns: Option<u64>,
    pub(super) end: FeedEnd,
}

/// Request of a key to the owner of terminal and network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Quit,
    Cancel(JobId),
}

#[derive(Default)]
pub(super) struct App {
    pub(super) master: Option<MasterStatus>,
    pub(super) workers: BTreeMap<WorkerId, WorkerStatus>,
    pub(super) jobs: BTreeMap<JobId, JobStatus>,
    attempts: BTreeMap<AttemptName, Attempt>,
    selected: Option<JobId>,
    /// The job that may be cancelled, while the user is asked.
    pub(super) question: Option<JobId>,
    /// Shown until the next key.
    pub(super) note: Option<String>,
    /// Why a job waits, in sentences.
    pub(super) why: Option<(JobId, Vec<String>)>,
    /// Error of the connection to the master.
    pub(super) lost: Option<String>,
    /// The master's clock now.
    pub(super) now_ns: u64,
    /// Why this key may not cancel, if it may not.
    read_only: Option<String>,
    pub(super) has_colours: bool,
}

impl App {
    /// Creates the state for a key of this name, for example `view-projector@0`.
    pub(super) fn new(token_name: &str, has_colours: bool) -> Self {
        let role = token_name.split(['-', '@']).next().unwrap_or_default();
        let read_only = (role == "view").then(|| {
            format!("the token {token_name} is read-only: cancelling needs one of the role submit (`gristmill cluster token new submit`)")
        });
        Self { read_only, has_colours, ..Self::default() }
    }

    /// Handles the next line of the feed; the first of a feed may be that of another master.
    pub(super) fn take(&mut self, line: FeedLine, is_first: bool) {
        if is_first {
            self.workers.clear();
            self.jobs.clear();
            self.attempts.clear();
        }
        let mut master = line.master;
        [&mut master.policy, &mut master.policy_panic]
            .into_iter()
            .chain(&mut master.trouble)
            .for_each(sanitize);
        let now_ns = master.now_ns;
        self.master = Some(master);
        self.workers.extend(line.workers.into_iter().map(|worker| (worker.worker, worker)));
        for id in line.left {
            self.workers.remove(&id);
        }
        for mut job in line.jobs {
            sanitize(&mut job.name);
            job.failure.iter_mut().for_each(|failure| sanitize(&mut failure.message));
            // Neither is shown, and both may be long.
            job.parameters.clear();
            job.counters.clear();
            self.jobs.insert(job.job, job);
        }
        for FeedAttempt(job, kind, index, epoch, worker, launched_ns, started_ns, ended_ns, end) in
            line.attempts
        {
            let name = (job, kind, index, epoch);
            let suspended = (end == FeedEnd::Suspended)
                .then(|| self.attempts.get(&name).and_then(|before| before.until_ns).unwrap_or(now_ns));
            let until_ns = if ended_ns > 0 { Some(ended_ns) } else { suspended };
            let from_ns = if started_ns > 0 { started_ns } else { launched_ns };
            let attempt = Attempt { worker, job, is_reduce: kind != 0, from_ns, until_ns, end };
            self.attempts.insert(name, attempt);
        }
        self.trim(now_ns);
    }

    /// Removes what is not shown any more.
    fn trim(&mut self, now_ns: u64) {
        // Attempts without an end of their own ended with their job.
        for attempt in self.attempts.values_mut().filter(|attempt| attempt.until_ns.is_none()) {
            attempt.until_ns = self.jobs.get(&JobId(attempt.job)).and_then(|job| job.ended_ns);
        }
        let mut ends: Vec<u64> = self.attempts.values().filter_map(|attempt| attempt.until_ns).collect();
        ends.sort_unstable();
        let over = self.attempts.len().saturating_sub(ATTEMPTS_MAX).min(ends.len());
        let oldest_ns =
            over.checked_sub(1).map_or(0, |last| ends[last] + 1).max(now_ns.saturating_sub(SPAN_NS));
        self.attempts.retain(|_, attempt| attempt.until_ns.is_none_or(|until| until >= oldest_ns));
        let mut ended: Vec<(u64, JobId)> =
            self.jobs.values().filter_map(|job| Some((job.ended_ns?, job.job))).collect();
        ended.sort_unstable();
        for (_, id) in ended.iter().take(ended.len().saturating_sub(ENDED_JOBS_MAX)) {
            self.jobs.remove(id);
        }
    }

    pub(super) fn master_ns(&self) -> u64 {
        self.master.as_ref().map_or(0, |master| master.now_ns)
    }

    /// Attempts in the slots of a worker. Workers do not report which slot runs what, nor when a queued attempt started until it
    /// ends. So each attempt is shown in the first slot that was free at its start, else in the next one that became
    /// free; else it is queued and not shown.
    pub(super) fn slots(&self, worker: &WorkerStatus) -> Vec<Vec<Attempt>> {
        let mut slots = vec![Vec::new(); worker.slots as usize];
        let mut free_ns = vec![0; slots.len()];
        let mut attempts: Vec<Attempt> =
            self.attempts.values().filter(|attempt| attempt.worker == worker.worker.0).copied().collect();
        attempts.sort_by_key(|attempt| attempt.from_ns);
        for mut attempt in attempts {
            let first = free_ns.iter().position(|free| *free <= attempt.from_ns + OVERLAP_NS);
            let next = || {
                (0..free_ns.len()).filter(|slot| free_ns[*slot] < u64::MAX).min_by_key(|slot| free_ns[*slot])
            };
            if let Some(slot) = first.or_else(next) {
                attempt.from_ns = attempt.from_ns.max(free_ns[slot]);
                free_ns[slot] = attempt.until_ns.unwrap_or(u64::MAX);
                slots[slot].push(attempt);
            }
        }
        slots
    }

    /// Jobs in the order of the table: running, waiting, ended; the newest first.
    pub(super) fn sorted_jobs(&self) -> Vec<&JobStatus> {
        let mut jobs: Vec<&JobStatus> = self.jobs.values().collect();
        jobs.sort_by_key(|job| (job.state.ended(), job.state == JobState::Waiting, Reverse(job.job)));
        jobs
    }

    /// The chosen job, else the first.
    pub(super) fn chosen(&self) -> Option<&JobStatus> {
        let selected = self.selected.and_then(|id| self.jobs.get(&id));
        selected.or_else(|| self.sorted_jobs().first().copied())
    }

    /// Problems of the cluster, in sentences.
    pub(super) fn troubles(&self) -> Vec<String> {
        let mut troubles: Vec<String> = self.lost.iter().cloned().collect();
        let Some(master) = &self.master else { return troubles };
        if let Some(trouble) = &master.trouble {
            troubles.push(format!("accepts no jobs and launches no tasks for now: {trouble}"));
        }
        if master.policy_panics > 0 {
            let times = counted(master.policy_panics, "time", "times");
            troubles.push(format!("the policy panicked {times}, fifo replaced it: {}", master.policy_panic));
        }
        let count =
            |which: fn(&WorkerStatus) -> bool| self.workers.values().filter(|worker| which(worker)).count();
        let (away, full) = (count(|worker| worker.away), count(|worker| worker.disk_full));
        let workers = |count: usize| counted(count as u64, "worker", "workers");
        troubles.extend((away > 0).then(|| format!("{} disconnected", workers(away))));
        troubles.extend((full > 0).then(|| format!("no new tasks for {} with full disks", workers(full))));
        troubles
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Order> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.note = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return matches!(key.code, KeyCode::Char('c' | 'C')).then_some(Order::Quit);
        }
        if let Some(job) = self.question.take() {
            let yes = matches!(key.code, KeyCode::Char('y' | 'Y'));
            self.note = (!yes).then(|| format!("{job} continues"));
            return yes.then_some(Order::Cancel(job));
        }
        match key.code {
            KeyCode::Char('q') => return Some(Order::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Char('c') => self.ask_to_cancel(),
            _ => {}
        }
        None
    }

    fn choose(&mut self, by: isize) {
        let jobs = self.sorted_jobs();
        let at = jobs.iter().position(|job| Some(job.job) == self.selected).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(jobs.len().saturating_sub(1));
        self.selected = jobs.get(to).map(|job| job.job);
    }

    fn ask_to_cancel(&mut self) {
        let Some((id, state)) = self.chosen().map(|job| (job.job, job.state)) else {
            self.note = Some("no job to cancel".to_owned());
            return;
        };
        self.selected = Some(id);
        if state.ended() {
            self.note = Some(format!("{id} has ended: {}", state.word()));
        } else if self.read_only.is_some() {
            self.note = self.read_only.clone();
        } else {
            self.question = Some(id);
        }
    }
}

fn sanitize(text: &mut String) {
    *text = sanitize::line(text, TEXT_BYTES_MAX);
}
