//! Incremental feed of changes for clients that poll several times a second. The cost is that of the changes, plus a
//! short check of each job that has not ended.

use super::job::JobEntry;
use super::query::Queries;
use super::record::TaskRecords;
use crate::api::{FeedEnd, FeedFetch, FeedLine, JobState, JobStatus, MasterStatus, WorkerStatus};
use gristmill_scheduler::core::Core;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of attempts and transfers in one line.
const RECORDS_OF_LINE_MAX: usize = 4_000;
/// Maximum number of ended jobs in the first line, the newest ones.
const ENDED_AT_FIRST_MAX: usize = 200;
/// Age after which an ended job appears in the first line with its status only, without attempts.
const RECENTLY: Span = Span::whole_seconds(300);
/// A change of a worker's memory is reported if it exceeds one part in this many of the last reported value, and
/// exceeds [`MEMORY_STEP_BYTES`]. Otherwise each line would contain all workers.
const PARTS_OF_LOAD: u64 = 32;
/// See [`PARTS_OF_LOAD`].
const MEMORY_STEP_BYTES: u64 = 1 << 20;

/// Position of one client in the feed.
#[derive(Default)]
pub(crate) struct FeedCursor {
    /// Workers as last reported.
    workers: BTreeMap<WorkerId, WorkerStatus>,
    /// Jobs with this number or a higher one are new.
    next_job: u32,
    /// Jobs whose end has not been reported.
    open: BTreeMap<JobId, JobCursor>,
}

/// Position of one client in the records of one job.
#[derive(Default)]
struct JobCursor {
    attempts: usize,
    fetches: usize,
    /// Reported attempts that had not ended, by their place, with their last reported state.
    unended: BTreeMap<usize, FeedEnd>,
    /// State of the job as last reported.
    reported: Option<JobLook>,
}

/// Values that show that a job has changed: its state, counts of finished and running tasks, bytes read and shuffled,
/// records out, and incidents.
type JobLook = (JobState, [u32; 4], [u64; 4]);

impl FeedCursor {
    /// Returns all changes since this position, and advances it. The workers are those of `master`.
    pub(crate) fn advance(&mut self, now: Time, queries: Queries<'_>, mut master: MasterStatus) -> FeedLine {
        let mut jobs = self.newly_seen(now, queries);
        let present = std::mem::take(&mut master.workers);
        let mut line = FeedLine {
            master,
            workers: Vec::new(),
            left: Vec::new(),
            jobs: Vec::new(),
            attempts: Vec::new(),
            fetches: Vec::new(),
            more: false,
        };
        report_workers(&mut self.workers, present, &mut line);
        let mut reported = BTreeSet::new();
        for (id, seen) in &mut self.open {
            let Some(job) = queries.jobs.get(*id) else {
                reported.insert(*id);
                continue;
            };
            let room = RECORDS_OF_LINE_MAX.saturating_sub(line.attempts.len() + line.fetches.len());
            let whole = job.records.feed(*id, seen, room, &mut line);
            line.more |= !whole;
            let look = Some(look_of(*id, job, queries.core));
            if look != seen.reported {
                jobs.extend(queries.status_without_parts(now, *id));
                seen.reported = look;
            }
            if whole && job.shown_state().ended() {
                reported.insert(*id);
            }
        }
        self.open.retain(|id, _| !reported.contains(id));
        line.jobs = jobs;
        line
    }

    /// Adds new jobs to the cursor. Returns those of them that had ended before the first read.
    fn newly_seen(&mut self, now: Time, queries: Queries<'_>) -> Vec<JobStatus> {
        let first = self.next_job == 0;
        let mut ended = Vec::new();
        for (id, job) in queries.jobs.entries.range(JobId(self.next_job)..) {
            let past = job.times.ended.is_some_and(|ended| RECENTLY <= now.since(ended));
            if first && past && job.shown_state().ended() {
                ended.push(*id);
            } else {
                self.open.insert(*id, JobCursor::default());
            }
            self.next_job = id.0 + 1;
        }
        let ended = ended.iter().filter_map(|id| queries.status_without_parts(now, *id));
        // Jobs of earlier masters, for which no later line follows.
        let past = queries.jobs.register.past_jobs().filter(|_| first);
        let mut ended: Vec<_> = past.cloned().chain(ended).collect();
        ended.drain(..ended.len().saturating_sub(ENDED_AT_FIRST_MAX));
        self.next_job = self.next_job.max(1);
        ended
    }
}

fn look_of(id: JobId, job: &JobEntry, core: &Core) -> JobLook {
    let running = core.job(id).map_or([0; 2], |job| [job.maps.running, job.reduces.running]);
    let (records, totals) = (&job.records, &job.records.sums.totals);
    let tasks = [records.maps_succeeded, running[0], job.output.reduces_done, running[1]];
    let read = totals.map_bytes_in.saturating_add(job.input.bytes_in_flight);
    let incidents = job.incidents.omitted + job.incidents.latest.len() as u64;
    (job.shown_state(), tasks, [read, totals.shuffle_bytes, totals.records_out, incidents])
}

/// Adds the workers that have joined, changed or gone since they were last reported.
fn report_workers(
    reported: &mut BTreeMap<WorkerId, WorkerStatus>,
    present: Vec<WorkerStatus>,
    line: &mut FeedLine,
) {
    let ids: BTreeSet<WorkerId> = present.iter().map(|worker| worker.worker).collect();
    line.left = reported.keys().copied().filter(|id| !ids.contains(id)).collect();
    reported.retain(|id, _| ids.contains(id));
    for worker in present {
        let id = worker.worker;
        if reported.get(&id).is_none_or(|before| has_changed(before, &worker)) {
            line.workers.push(worker.clone());
            reported.insert(id, worker);
        }
    }
}

/// True if the status of a worker has changed, ignoring its clock offset and small changes of its memory and disk use.
fn has_changed(before: &WorkerStatus, now: &WorkerStatus) -> bool {
    let moved = |before: u64, now: u64| {
        let least = MEMORY_STEP_BYTES.max(before / PARTS_OF_LOAD);
        least < before.abs_diff(now)
    };
    let WorkerStatus { memory_bytes, disk_free_bytes, clock_offset_ns, .. } = *now;
    *now != WorkerStatus { memory_bytes, disk_free_bytes, clock_offset_ns, ..before.clone() }
        || moved(before.memory_bytes, memory_bytes)
        || moved(before.disk_free_bytes, disk_free_bytes)
}

impl TaskRecords {
    /// Adds the changes since `seen`, at most `room` records. Returns true if these were all.
    fn feed(&self, job: JobId, seen: &mut JobCursor, room: usize, line: &mut FeedLine) -> bool {
        let end = line.attempts.len() + line.fetches.len() + room;
        let full = |line: &FeedLine| end <= line.attempts.len() + line.fetches.len();
        let open: Vec<(usize, FeedEnd)> = seen.unended.iter().map(|(at, stood)| (*at, *stood)).collect();
        for (at, stood) in open {
            let Some(now) = self.feed_attempt(job, at).filter(|now| now.8 != stood) else { continue };
            if full(line) {
                return false;
            }
            note(&mut seen.unended, at, now.8);
            line.attempts.push(now);
        }
        while let Some(attempt) = self.feed_attempt(job, seen.attempts) {
            if full(line) {
                return false;
            }
            note(&mut seen.unended, seen.attempts, attempt.8);
            line.attempts.push(attempt);
            seen.attempts += 1;
        }
        for fetch in self.fetches.iter().skip(seen.fetches) {
            if full(line) {
                return false;
            }
            let map = fetch.map.task.index;
            let (from, to) = (fetch.from.0, fetch.to.0);
            line.fetches.push(FeedFetch(job.0, map, from, to, fetch.bytes, fetch.started_ns, fetch.ended_ns));
            seen.fetches += 1;
        }
        true
    }
}

/// Remembers an attempt that has not ended.
fn note(unended: &mut BTreeMap<usize, FeedEnd>, at: usize, stands: FeedEnd) {
    match stands {
        FeedEnd::Running | FeedEnd::Suspended => unended.insert(at, stands),
        _ => unended.remove(&at),
    };
}
